"""A dense baseline: the nearest arguments by sentence embeddings, of which the best that is new is quoted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from debating import CONCEDE, Row, search, serve, shortened
from embedding import Encoder, model_encoder

# What arguments attack has to be near to what the user said, and so has their text: the scores are added.
FIELDS = {"attacks_embedding_minilm": 200, "text_embedding_minilm": 50}
HITS = 20


def answerer(encode: Encoder) -> Callable[[Sequence[Mapping[str, str]]], tuple[str, list[Row]]]:
    """An answer to a dialogue: the first hit that nobody has said in it, cut to 60 words where it is longer."""

    def answer(messages: Sequence[Mapping[str, str]]) -> tuple[str, list[Row]]:
        vector = [round(float(x), 6) for x in encode([messages[-1]["content"]])[0]]
        near = [
            {"field": field, "query_vector": vector, "k": k, "num_candidates": 2 * k}
            for field, k in FIELDS.items()
        ]
        hits = search({"knn": near, "size": HITS, "_source": {"excludes": ["*_embedding*"]}})
        said = "\n".join(m["content"] for m in messages)
        for hit in hits:
            content = shortened(hit["text"])
            if content not in said:  # neither by us nor, as its own argument, by the user
                return content, [hit]
        return CONCEDE, []

    return answer


if __name__ == "__main__":
    serve(answerer(model_encoder()))
