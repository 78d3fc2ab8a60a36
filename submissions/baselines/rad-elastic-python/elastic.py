"""The elastic baseline: quote the argument that BM25 finds for what the user has just said, on what arguments attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from debating import CONCEDE, Row, search, serve, shortened


def answer(messages: Sequence[Mapping[str, str]]) -> tuple[str, list[Row]]:
    """The first hit, cut to 60 words where it is longer; without a hit the point is the user's."""
    hits = search(
        {
            "query": {"match": {"attacks": messages[-1]["content"]}},
            "size": 1,
            "_source": {"excludes": ["*_embedding*"]},
        }
    )
    return (shortened(hits[0]["text"]), hits) if hits else (CONCEDE, [])


if __name__ == "__main__":
    serve(answer)
