"""An entailment cross-encoder in ONNX form, from a folder of the organiser's: how likely a text follows from another.

The folder holds what such models are published with: the model (``model.onnx``, or one ``.onnx`` file there or in ``onnx/``),
``tokenizer.json``, and ``config.json``, whose ``id2label`` says which of the outputs is entailment. None is shipped. A long text is
read in windows, and the window from which the claim follows best counts (Laban et al., SummaC, TACL 2022, section 3).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.asking import Question
from evaluator.argue.judges.wording import sentences
from evaluator.argue.models import JudgmentType
from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from schemas.files import file_sha256

T = JudgmentType
NAMES = ("entailed", "contradicted")
TYPES = (T.SENTENCE_ATTESTED, T.SENTENCE_ANSWERS_QUESTION, T.FIRST_INSTANCE)
WINDOW = 120  # words of a window: with the claim it fits into the 512 pieces of the usual encoder
MOST_PIECES = 512
BATCH = 4096  # pieces of a batch, padding included


class Follows(NamedTuple):
    """Two probabilities of a cross-encoder; ``contradicted`` is 0 where it knows entailment only."""

    entailed: float
    contradicted: float


class CrossEncoder:
    """The model in ``folder``; see the module."""

    def __init__(self, folder: Path) -> None:
        """Raises :class:`EvaluatorError` for a folder that holds no such model, ImportError without onnxruntime and tokenizers."""
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self.folder = folder
        self._labels = _labels(folder)
        self._files = (_model(folder), folder / "tokenizer.json", folder / "config.json")
        self._session, self._tokenizer = self._open()
        self._takes = {found.name for found in self._session.get_inputs()}
        self._tokenizer.enable_truncation(MOST_PIECES, strategy="only_first")
        self._known: dict[tuple[str, str], Follows] = {}

    @property
    def name(self) -> str:
        """As its folder is called."""
        return plain(self.folder.resolve().name, 80)

    def digest(self) -> str:
        """The SHA-256 (hex) of model, tokenizer and configuration."""
        return hashlib.sha256("".join(map(file_sha256, self._files)).encode()).hexdigest()

    def follows(self, pairs: Sequence[tuple[str, str]]) -> list[Follows]:
        """For each (text, claim), whether the claim follows from the text, to four digits."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        encoded = self._tokenizer.encode_batch(new) if new else []
        # Like lengths together: little padding, and a row must not depend on what shares its batch.
        order = sorted(range(len(new)), key=lambda i: (len(encoded[i].ids), new[i]))
        while order:
            take = max(
                1, next((n for n, i in enumerate(order) if (n + 1) * len(encoded[i].ids) > BATCH), len(order))
            )
            batch, order = order[:take], order[take:]
            for i, row in zip(batch, self._run([encoded[i] for i in batch]), strict=True):
                self._known[new[i]] = row
        return [self._known[pair] for pair in pairs]

    def _run(self, batch: Sequence[Any]) -> list[Follows]:
        import numpy as np

        longest = max(len(one.ids) for one in batch)
        feeds = {name: np.zeros((len(batch), longest), dtype=np.int64) for name in self._takes}
        for at, one in enumerate(batch):
            size = len(one.ids)
            for name, values in (
                ("input_ids", one.ids),
                ("attention_mask", [1] * size),
                ("token_type_ids", one.type_ids),
            ):
                if name in feeds:
                    feeds[name][at, :size] = values
        logits = np.asarray(self._session.run(None, feeds)[0], dtype=np.float64)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        yes, no = self._labels
        return [
            Follows(round(float(row[yes]), 4), 0.0 if no is None else round(float(row[no]), 4))
            for row in shares
        ]

    def _open(self) -> tuple[Any, Any]:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "1") or 1)
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
        onnxruntime.disable_telemetry_events()
        model, tokenizer, _ = self._files
        try:
            session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001 - onnxruntime has no base class of its own
            raise _unusable(model, str(error)) from None
        unknown = {found.name for found in session.get_inputs()} - {
            "input_ids",
            "attention_mask",
            "token_type_ids",
        }
        if unknown:
            raise _unusable(
                model, f"it wants {', '.join(map(plain, sorted(unknown)))}, which an encoder does not"
            )
        width = session.get_outputs()[0].shape[-1]
        if isinstance(width, int) and width <= max(i for i in self._labels if i is not None):
            raise _unusable(model, f"it gives {width} values, and config.json has more labels")
        try:
            return session, Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # noqa: BLE001 - tokenizers raise Exception itself
            raise _unusable(tokenizer, str(error)) from None


def numbers(question: Question, encoder: CrossEncoder) -> tuple[float, float]:
    """The two numbers of :data:`NAMES` for a question of one of :data:`TYPES`."""
    if question.type is T.SENTENCE_ANSWERS_QUESTION:
        claim = f"{question.nugget_question} {question.nugget_answer}"
        found = encoder.follows([(question.sentence, claim)])
    else:
        source = question.document if question.type is T.SENTENCE_ATTESTED else question.previous
        found = encoder.follows([(part, question.sentence) for part in windows(source)])
    best = max(found)
    return best.entailed, best.contradicted


def windows(text: str) -> list[str]:
    """The text in pieces of whole sentences with about :data:`WINDOW` words; neighbours share one sentence."""
    parts = sentences(text) or [""]
    out: list[list[str]] = [[]]
    for part in parts:
        if out[-1] and len(" ".join([*out[-1], part]).split()) > WINDOW:
            out.append(out[-1][-1:])
        out[-1].append(part)
    return [" ".join(window) for window in out]


def _model(folder: Path) -> Path:
    found = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    named = [path for path in found if path.name == "model.onnx"]
    if len(named or found) == 1:
        return (named or found)[0]
    names = ", ".join(plain(path.name, 60) for path in found[:5]) or "none"
    raise _unusable(folder, f"one .onnx file is needed there or in its folder onnx; there is {names}")


def _labels(folder: Path) -> tuple[int, int | None]:
    """Which outputs are entailment and contradiction."""
    path = folder / "config.json"
    try:
        known = json.loads(path.read_text("utf-8"))["id2label"]
        labels = {int(number): str(label).lower() for number, label in known.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unusable(path, f"id2label cannot be read: {type(error).__name__}") from None
    yes = [i for i, label in labels.items() if re.fullmatch(r"entail(s|ed|ment)?", label)]
    no = [i for i, label in labels.items() if label.startswith("contradict")]
    if len(yes) != 1 or len(no) > 1 or min([*yes, *no]) < 0:
        raise _unusable(path, "id2label names no entailment (a model of natural language inference does)")
    return yes[0], no[0] if no else None


def _unusable(path: Path, why: str) -> EvaluatorError:
    return EvaluatorError(
        f"{plain(path.name, 80)} is no entailment model that can be used",
        plain(why, 300),
        "give the folder of a cross-encoder exported to ONNX: model.onnx, tokenizer.json and config.json",
    )
