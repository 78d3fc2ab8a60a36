"""How the offline judge got its weights, and how good it is: ``python -m evaluator.argue.judges.tuning``.

For each judgment type a logistic regression over the numbers of :mod:`evaluator.argue.judges.features`, fitted on the half ``tune`` of
the labelled pairs; the accuracy that stands next to every score is that on the other half, ``measure``. With so few pairs the
weights are held near what we expect of them beforehand (a normal prior around :data:`EXPECTED`, Gelman et al., Bayesian Data
Analysis, ch. 16), so that a word that occurs in no pair keeps its meaning. The result is committed: ``data/lexical.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.argue.asking import Question
from evaluator.argue.judges.features import NAMES, embedded, features
from evaluator.argue.models import JudgmentType
from evaluator.errors import EvaluatorError
from schemas.files import file_sha256

T = JudgmentType
PAIRS = Path(__file__).parents[1] / "data" / "labelled-pairs.jsonl"
RESULT = Path(__file__).with_name("data") / "lexical.json"
# Of the prior; chosen like the features by leaving out one topic after the other of the half `tune`.
STRENGTH = 8.0
Expected = tuple[float, tuple[float, ...]]  # constant, and weights in the order of the names
EXPECTED: Mapping[JudgmentType, Expected] = {
    T.SENTENCE_ATTESTED: (-3.5, (1.0, 1.5, -3.0, -1.0, -2.0, -2.0, 4.0)),
    T.SENTENCE_ANSWERS_QUESTION: (-4.0, (2.0, 0.5, -2.5, -0.5, -1.5, -1.5, 3.0, 2.0)),
    T.REQUIRES_CITATION: (1.0, (-3.0, -3.0, 1.0)),
    T.FIRST_INSTANCE: (5.0, (-1.5, -1.5, 2.0, 1.0, -4.0)),
    T.CITED_DOCUMENT_RELEVANCE: (-2.5, (3.0, 4.0)),  # no pairs: stays as it is
}


class Pair(NamedTuple):
    """A labelled pair: its question, the right answer, and the half that it belongs to."""

    id: str
    question: Question
    label: bool
    half: str
    case: str


def read_pairs(path: Path = PAIRS) -> list[Pair]:
    """The labelled pairs of a file. Raises :class:`EvaluatorError` with the line of what is none."""
    found = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                question = Question(
                    T(row["type"]),
                    row["sentence"],
                    row.get("document", ""),
                    row.get("previous_sentences", ""),
                    row.get("nugget_question", ""),
                    row.get("nugget_answer", ""),
                    doc_id=row.get("doc_id", ""),
                )
                label = {"YES": True, "NO": False}[row["label"]]
                found.append(Pair(str(row["id"]), question, label, row["half"], row.get("case", "")))
            except (ValueError, KeyError, TypeError) as error:
                raise EvaluatorError(f"{path.name}:{number}: is no labelled pair", str(error)) from None
    return found


def fit(
    rows: Sequence[Sequence[float]], labels: Sequence[bool], expected: Expected
) -> tuple[float, list[float]]:
    """Constant and weights: the mode of the posterior around what is expected, by Newton's method."""
    import numpy as np

    constant, weights = expected
    x = np.c_[np.asarray(rows, dtype=float), np.ones(len(rows))]
    y = np.asarray(labels, dtype=float)
    prior = np.array([*weights, constant])
    # Held in units of the spread of each number; the constant hardly at all.
    hold = np.r_[STRENGTH * np.maximum(x[:, :-1].std(axis=0), 0.1) ** 2, 0.01]
    w = prior.copy()

    def loss(at: Any) -> float:
        return float(np.logaddexp(0, -(2 * y - 1) * (x @ at)).sum() + (hold * (at - prior) ** 2).sum() / 2)

    for _ in range(200):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -500, 500)))
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + np.diag(hold), x.T @ (p - y) + hold * (w - prior))
        if float(np.abs(step).max()) < 1e-10:
            break
        # A whole step may lead too far: half of it then, and so on.
        size = 1.0
        while size > 1e-6 and loss(w - size * step) > loss(w):
            size /= 2
        w = w - size * step
    return round(float(w[-1]), 4), [round(float(v), 4) for v in w[:-1]]


def decide(found: Sequence[float], constant: float, weights: Sequence[float]) -> bool:
    """Yes if the weighted sum is above 0."""
    return constant + sum(a * b for a, b in zip(found, weights, strict=True)) > 0


class Numbers(NamedTuple):
    """What a judge computes about questions of a type: the names of its numbers, what they are expected to weigh, and how.

    ``texts``: whose embeddings it takes, so that those of many questions can be computed at once.
    """

    names: tuple[str, ...]
    expected: Expected
    of: Callable[[Question], tuple[float, ...]]
    texts: Callable[[Question], Sequence[str]] = lambda _: ()


def lexical_numbers() -> dict[JudgmentType, Numbers]:
    """The numbers of the offline judge, by judgment type."""
    from evaluator.argue.judges.embedding import embedder

    return {
        kind: Numbers(names, EXPECTED[kind], lambda question: features(question, embedder()), embedded)
        for kind, names in NAMES.items()
    }


def tune(path: Path = PAIRS) -> dict[str, Any]:
    """Weights and figures of the offline judge from labelled pairs, as they stand in ``lexical.json``."""
    from evaluator.argue.judges.embedding import MODEL

    about = (
        "weights of the offline judge and its accuracy on pairs that it was not tuned on; "
        "made by python -m evaluator.argue.judges.tuning"
    )
    return {"about": about, "model": MODEL, **fitted(lexical_numbers(), path)}


def fitted(numbers: Mapping[JudgmentType, Numbers], path: Path = PAIRS) -> dict[str, Any]:
    """Weights by judgment type, fitted on one half of the labelled pairs, with their figures on the other half."""
    pairs = read_pairs(path)
    out: dict[str, Any] = {
        "pairs": {"file": path.name, "sha256": file_sha256(path), "count": len(pairs)},
        "types": {},
    }
    for kind, (names, expected, of, _) in numbers.items():
        found = [(p, of(p.question)) for p in pairs if p.question.type is kind]
        tuned = [(f, p.label) for p, f in found if p.half == "tune"]
        constant, weights = expected[0], list(expected[1])
        if tuned:
            constant, weights = fit([f for f, _ in tuned], [y for _, y in tuned], expected)
        row: dict[str, Any] = {"constant": constant, "weights": dict(zip(names, weights, strict=True))}
        measured = [(p, decide(f, constant, weights)) for p, f in found if p.half == "measure"]
        if measured:
            row["measured"] = figures([(p.label, said) for p, said in measured])
            cases: dict[str, list[bool]] = {}
            for p, said in measured:
                cases.setdefault(p.case, []).append(p.label == said)
            row["by_case"] = {case: [sum(right), len(right)] for case, right in sorted(cases.items())}
            row["tuned_on"] = len(tuned)
            right = [decide(f, constant, weights) == y for f, y in tuned]
            row["accuracy_on_tune"] = round(sum(right) / len(right), 4)
        out["types"][kind.value] = row
    return out


def figures(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    """Accuracy with its 95 % interval (Wilson, 1927), precision and recall of YES and Cohen's kappa of (right, said) pairs."""
    from evaluator.measures.agreement import kappa

    both = sum(a and b for a, b in pairs)
    said, right = sum(b for _, b in pairs), sum(a for a, _ in pairs)
    value = kappa([a for a, _ in pairs], [b for _, b in pairs]).value
    n, share, z = len(pairs), sum(a == b for a, b in pairs) / len(pairs), 1.959964
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return {
        "pairs": n,
        "accuracy": round(share, 4),
        "interval": [round(middle - half, 4), round(middle + half, 4)],
        "precision": round(both / said, 4) if said else 0.0,
        "recall": round(both / right, 4) if right else 0.0,
        "kappa": None if value is None else round(value, 4),
    }


def text_of(result: Mapping[str, Any]) -> str:
    """The file's text."""
    return json.dumps(result, indent=1) + "\n"


def main(words: Sequence[str]) -> int:
    """``python -m evaluator.argue.judges.tuning [--check]``: write the file, or only say whether it is what comes out (0 if so)."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluator.argue.judges.tuning", description="Tune the offline judge."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if the file would change")
    args = parser.parse_args(words)
    text = text_of(tune())
    if not args.check:
        RESULT.write_text(text, encoding="utf-8")
        print(text, end="")
        return 0
    same = RESULT.read_text("utf-8") == text
    print(f"{RESULT.name} is {'what comes out' if same else 'not what comes out: run it without --check'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
