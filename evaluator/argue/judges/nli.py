"""Judges with an entailment cross-encoder (:mod:`evaluator.argue.judges.entailment`), by itself or beside the lexical judge's numbers.

``evaluator argue fit FOLDER`` fits both on one half of the labelled pairs, as :mod:`evaluator.argue.judges.tuning` does for the
lexical judge, and writes weights and figures beside the model; accuracy and kappa on the other half stand beside every score.
Questions that are not about entailment (does a sentence need a citation?) are answered as the lexical judge does.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluator.argue.asking import Question
from evaluator.argue.judges import lexical
from evaluator.argue.judges.entailment import NAMES, TYPES, CrossEncoder, numbers
from evaluator.argue.models import JudgmentType
from evaluator.argue.terminal import say
from evaluator.errors import EvaluatorError
from schemas.details import Detail, noted
from schemas.files import file_sha256

T = JudgmentType
FIT = "proctor-nli.json"
ALONE, TOGETHER = "nli", "lexical+nli"
JUDGES = (ALONE, TOGETHER)
# What an entailment is expected to weigh before a pair was seen: it speaks for yes, and for what is said again against "first".
_EXPECTED = {
    T.SENTENCE_ATTESTED: (-1.5, (3.0, -2.0)),
    T.SENTENCE_ANSWERS_QUESTION: (-1.5, (3.0, -2.0)),
    T.FIRST_INSTANCE: (1.5, (-3.0, 0.0)),
}


def fit_folder(folder: Path) -> dict[str, Any]:
    """Weights and figures of both judges with the model in ``folder``, as they stand in :data:`FIT`.

    Raises:
        EvaluatorError: the folder holds no model that can be used.
    """
    from evaluator.argue.judges.tuning import fitted

    encoder = CrossEncoder(folder)
    judges = {name: fitted(_numbers(name, encoder)) for name in JUDGES}
    about = "weights of judges with this entailment model, and their figures on pairs that they were not fitted on; made by evaluator argue fit"
    return {
        "about": about,
        "model": encoder.name,
        "sha256": encoder.digest(),
        "code": _code(),
        "judges": judges,
    }


class NliJudge(lexical.LexicalJudge):
    """See the module. ``name`` is ``nli`` or ``lexical+nli``."""

    def __init__(self, name: str, folder: Path) -> None:
        """Raises :class:`EvaluatorError` unless ``folder`` holds a model and what was fitted with it."""
        super().__init__()
        self.name = name
        encoder = CrossEncoder(folder)
        self._fit = _read_fit(folder, encoder)
        self._digest = file_sha256(folder / FIT)
        self.numbers = {**self.numbers, **_numbers(name, encoder)}
        self._fitted: Mapping[str, Any] = self._fit["judges"][name]["types"]
        self.types = {**self.types, **self._fitted}

    def identity(self) -> Mapping[str, Any]:
        """The model and the weights, its own and those of the lexical judge."""
        return {
            "model": self._model,
            "rules": f"sha256:{self._digest}",
            "lexical": f"sha256:{lexical.digest()}",
        }

    def facts(self) -> dict[str, Any]:
        """Name, model, and accuracy and kappa by judgment type."""
        return {
            "name": f"{self.name} (offline)",
            "model": self._model,
            "prompts": f"sha256:{self._digest}",
            "reliability": self.reliability(),
            **noted(Detail("entailment")),
        }

    def reliability(self) -> dict[str, float]:
        """Accuracy and kappa of the types that the model decides, on pairs that it was not fitted on."""
        return lexical.reliability(self._fitted, ("accuracy", "kappa"))

    @property
    def _model(self) -> str:
        return f"{self._fit['model']} ({self._fit['sha256'][:12]})"


def fit_command(words: Sequence[str]) -> int:
    """``evaluator argue fit FOLDER``: write :data:`FIT` and say the figures. Returns 0. Raises :class:`EvaluatorError`."""
    from evaluator.argue.arguments import Parser

    parser = Parser(
        prog="evaluator argue fit",
        description=f"Fit the judges {ALONE} and {TOGETHER} with an entailment model in ONNX form: writes FOLDER/{FIT}.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="model.onnx, tokenizer.json, config.json")
    args: argparse.Namespace = parser.parse_args(list(words))
    found = fit_folder(args.folder)
    try:
        (args.folder / FIT).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluatorError(
            f"{FIT} cannot be written", str(error.strerror), "give a folder that you may write"
        ) from None
    for name in JUDGES:
        rows = found["judges"][name]["types"]
        figures = ", ".join(
            f"{key} {value:.2f}"
            for key, value in lexical.reliability(rows, ("accuracy", "kappa")).items()
            if value <= 1
        )
        say(f"{name}: on labelled pairs that it was not fitted on: {figures}")
    say(f"wrote {args.folder / FIT}")
    return 0


def _numbers(name: str, encoder: CrossEncoder) -> dict[JudgmentType, Any]:
    """What is computed for the types that the model decides."""
    from evaluator.argue.judges.tuning import EXPECTED, Numbers, lexical_numbers

    if name == ALONE:
        return {kind: Numbers(NAMES, _EXPECTED[kind], partial(numbers, encoder=encoder)) for kind in TYPES}
    words = lexical_numbers()

    def both(question: Question, kind: JudgmentType) -> tuple[float, ...]:
        return (*words[kind].of(question), *numbers(question, encoder))

    return {
        kind: Numbers(
            (*words[kind].names, *NAMES),
            (EXPECTED[kind][0] + _EXPECTED[kind][0], (*EXPECTED[kind][1], *_EXPECTED[kind][1])),
            partial(both, kind=kind),
            words[kind].texts,
        )
        for kind in TYPES
    }


def _code() -> str:
    """The SHA-256 of the code that computes the numbers: another one needs another fit."""
    return file_sha256(Path(__file__).with_name("entailment.py"))


def _read_fit(folder: Path, encoder: CrossEncoder) -> dict[str, Any]:
    again = f"run evaluator argue fit on this folder: it measures the judge and writes {FIT}"
    try:
        found: dict[str, Any] = json.loads((folder / FIT).read_text("utf-8"))
        made = found["sha256"], found["code"], *(found["judges"][name]["pairs"]["sha256"] for name in JUDGES)
    except FileNotFoundError:
        raise EvaluatorError(
            f"the model has no {FIT}", "its weights were not fitted and measured yet", again
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EvaluatorError(f"{FIT} cannot be read", type(error).__name__, again) from None
    pairs = lexical.rules()["pairs"]["sha256"]
    if made != (encoder.digest(), _code(), pairs, pairs):
        raise EvaluatorError(
            f"{FIT} was made with another model, other pairs or another version of ours", "", again
        )
    return found
