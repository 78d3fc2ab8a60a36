"""How well a judge's yes and no agree with people's: the measures of Touché's retrieval-augmented debating 2025, task 2.

Each of the four criteria is a yes-or-no question about every answer of every debate. Counting is micro: over all judged
turns of all debates. Precision, recall and F1 are those of the class "yes", as in the task's own evaluator, and the
Score is the mean of the four F1. Since always saying yes does well by these, figures that correct for chance stand beside.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.measures.records.resampling import Resamples, Spread
from schemas.debates import CRITERIA

THRESHOLD = 0.5  # a score from here on means yes
RESAMPLES = 2_000
KEPT = 1_000  # of these, for tests of two judges


class Counts(NamedTuple):
    """Judged turns by what the judge and people said: true and false "yes", false and true "no"."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0


def count(labels: Sequence[int | None], scores: Sequence[float | None]) -> Counts:
    """Count the turns that have a label. A missing score (None) and NaN are a "no"."""
    cells = [0, 0, 0, 0]
    for label, score in zip(labels, scores, strict=True):
        if label is None:
            continue
        yes = score is not None and score >= THRESHOLD
        cells[0 if label and yes else 1 if yes else 2 if label else 3] += 1
    return Counts(*cells)


def total(counts: Sequence[Counts]) -> Counts:
    """The sum of counts, cell by cell."""
    return Counts(*(sum(cell) for cell in zip(*counts, strict=True))) if counts else Counts()


def precision(c: Counts) -> float:
    """TP / (TP + FP); 0 without a true positive."""
    return c.tp / (c.tp + c.fp) if c.tp else 0.0


def recall(c: Counts) -> float:
    """TP / (TP + FN); 0 without a true positive."""
    return c.tp / (c.tp + c.fn) if c.tp else 0.0


def f1(c: Counts) -> float:
    """2 P R / (P + R), the harmonic mean of precision and recall; 0 without a true positive."""
    p, r = precision(c), recall(c)
    return 2 * p * r / (p + r) if p + r else 0.0


def accuracy(c: Counts) -> float:
    """The share of turns on which the judge says what people say; 0 without turns."""
    n = sum(c)
    return (c.tp + c.tn) / n if n else 0.0


def balanced_accuracy(c: Counts) -> float:
    """The mean of the shares found of the turns labelled yes and of those labelled no (Brodersen et al., 2010).

    0.5 for one who always says the same. If people said only one of both, the share found of that one.
    """
    shares = [hit / (hit + miss) for hit, miss in ((c.tp, c.fn), (c.tn, c.fp)) if hit + miss]
    return fsum(shares) / len(shares) if shares else 0.0


def kappa(c: Counts) -> float:
    """Cohen's kappa (1960): (po - pe) / (1 - pe), po the accuracy, pe the agreement expected by chance.

    1 is perfect, 0 is chance, below is worse than chance. 0 where it is undefined (judge and people both always say the
    same one thing): nothing was shown beyond chance.
    """
    n = sum(c)
    if not n:
        return 0.0
    # In whole numbers, so that "undefined" is exact: chance is pe * n * n.
    chance = (c.tp + c.fp) * (c.tp + c.fn) + (c.fn + c.tn) * (c.fp + c.tn)
    return ((c.tp + c.tn) * n - chance) / (n * n - chance) if chance != n * n else 0.0


def yes_rate(c: Counts) -> float:
    """The share of turns on which the judge says yes; 0 without turns."""
    n = sum(c)
    return (c.tp + c.fp) / n if n else 0.0


NAMES: Mapping[str, Callable[[Counts], float]] = {
    "precision": precision,
    "recall": recall,
    "f1": f1,
    "accuracy": accuracy,
    "balanced-accuracy": balanced_accuracy,
    "kappa": kappa,
    "yes-rate": yes_rate,
}
KNOWN = "score; " + ", ".join(NAMES) + ", each for one criterion (f1@quality) or as the mean of the four (f1)"


class Measure:
    """A measure by its string: ``name@criterion``, ``name`` (mean over the four criteria) or ``score`` (the same as ``f1``).

    ``criteria`` are those that it needs. Raises :class:`EvaluatorError` for a string that is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        name, at, criterion = ("f1", "", "") if text == "score" else text.partition("@")
        if name not in NAMES or (at and criterion not in CRITERIA):
            raise EvaluatorError(
                f"there is no measure {text[:60]!r} for judgments",
                f"there are {KNOWN}",
                f"the criteria are {', '.join(CRITERIA)}",
            )
        self.name = name
        self.criteria: tuple[str, ...] = (criterion,) if at else CRITERIA
        self._of = NAMES[name]
        # Accuracy of one criterion is a mean over turns: single turns have values, and are tested by these.
        self.by_turn = name == "accuracy" and len(self.criteria) == 1

    def value(self, counts: Mapping[str, Counts]) -> float:
        """The measure's value, given the counts of each criterion that it needs."""
        return fsum(self._of(counts[c]) for c in self.criteria) / len(self.criteria)


def spans(
    measures: Mapping[str, Measure], debates: Sequence[Mapping[str, Counts]], *, seed: int = 20_260_101
) -> dict[str, Spread]:
    """A 95 % interval of each measure: percentile bootstrap over debates (turns of one debate depend on each other), and the values in the first
    :data:`KEPT` resamples, by which two judges are tested against each other.

    2,000 resamples, seeded, the same for all measures and all runs on these labels. With fewer than 2 debates there are none.
    """
    if len(debates) < 2 or not measures:
        return {}
    import numpy as np

    cells = np.array([[n for c in CRITERIA for n in debate[c]] for debate in debates], dtype=np.int64)
    draws = np.random.default_rng(seed).multinomial(
        len(debates), [1 / len(debates)] * len(debates), RESAMPLES
    )
    # Debates have no ids: how many answers of each are labelled names them, and is the same for every run.
    labelled = [[sum(debate[c]) for c in CRITERIA] for debate in debates]
    told = hashlib.sha256(json.dumps([seed, labelled]).encode())
    told.update(draws[:KEPT].astype("<u4").tobytes())
    sums: Any = (draws @ cells).tolist()
    resampled = [{c: Counts(*row[4 * i : 4 * i + 4]) for i, c in enumerate(CRITERIA)} for row in sums]
    out = {}
    for name, measure in measures.items():
        values = [measure.value(one) for one in resampled]
        low, high = np.quantile(values, (0.025, 0.975))
        out[name] = Spread((float(low), float(high)), Resamples(told.hexdigest(), values[:KEPT]))
    return out
