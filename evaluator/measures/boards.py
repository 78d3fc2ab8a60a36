"""Comparing two leaderboards: which runs and measures belong together, and what to do about missing ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.measures.correlation import KNOWN, LEAST, Method
from evaluator.measures.records.resampling import FEWEST, RESAMPLES, SEED, Resamples, Spread, percentiles

ON_MISSING = ("error", "warn", "skip", "default")
MOST = 10_000_000  # pairs of runs that are looked at in all resamples
BEST = "*"  # in place of the judge's measure: the one that does best


class Pair(NamedTuple):
    """Both sides' values of the same runs, and the runs that only one side has."""

    truth: Mapping[str, float]
    judge: Mapping[str, float]
    missing: Sequence[str]
    unknown: Sequence[str]


def align(truth: Mapping[str, float], judge: Mapping[str, float], on_missing: str) -> Pair:
    """Match runs by name. Runs of the truth that the judge lacks are left out, or count 0 with ``default``."""
    missing = sorted(truth.keys() - judge.keys())
    unknown = sorted(judge.keys() - truth.keys())
    if on_missing == "default":
        judge = {**judge, **dict.fromkeys(missing, 0.0)}
    shared = sorted(truth.keys() & judge.keys())
    return Pair({r: truth[r] for r in shared}, {r: judge[r] for r in shared}, missing, unknown)


class Comparison:
    """A measure by its string: ``coefficient@truth measure/judge measure``, such as ``kendall@nDCG/LENGTH``.

    The coefficient may have a depth (``kendall@10@nDCG/LENGTH``). Without ``/``, both sides call the measure the same;
    ``*`` for the judge's measure takes the one with the highest coefficient. A name with a slash is the judge's from the
    last slash on. Raises :class:`EvaluatorError`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        name, at, rest = text.partition("@")
        depth, second, further = rest.partition("@")
        if second and depth.isascii() and depth.isdigit():
            name, rest = f"{name}@{depth}", further
        if not at or not rest:
            raise EvaluatorError(
                f"there is no measure {text[:60]!r} for leaderboards",
                f"write coefficient@truth measure/judge measure; coefficients are {KNOWN}",
            )
        self.method = Method(name)
        truth, slash, judge = rest.rpartition("/")
        self.truth, self.judge = (truth, judge) if slash else (rest, rest)
        if not self.truth or not self.judge:
            raise EvaluatorError(f"a side is missing in {text[:60]!r}", "write truth measure/judge measure")


def enough(runs: int) -> bool:
    """Whether a correlation over so many runs says anything."""
    return runs >= LEAST


def spread(method: Method, pair: Pair) -> Spread:
    """How sure a coefficient is: a 95 % interval by percentile bootstrap over the runs, of both leaderboards at once, and its values in these resamples.

    Runs are drawn with replacement (BOOT-SYSTEMS of D. Deutsch, R. Dror and D. Roth, A Statistical Analysis of Summarization Evaluation
    Metrics Using Resampling Methods, TACL 9, 2021, section 4): 1,000 times, from 101 runs on less often, and from 224 on there is none. A run that is
    drawn twice ties with itself. What is drawn depends on the names of the runs only, so that two judges can be compared resample by resample.
    """
    import numpy as np

    runs = method.runs(pair.truth, pair.judge)
    times = min(RESAMPLES, MOST // max(len(runs), 1) ** 2)
    if len(runs) < LEAST or times < FEWEST:
        return Spread()
    told = hashlib.sha256(json.dumps([SEED, runs]).encode())
    draws: Any = np.random.default_rng(int.from_bytes(told.digest())).integers(
        0, len(runs), (times, len(runs))
    )
    told.update(draws.astype("<u4").tobytes())
    truth, judge = ([side[run] for run in runs] for side in (pair.truth, pair.judge))
    values = [method.of([truth[n] for n in drawn], [judge[n] for n in drawn]) for drawn in draws.tolist()]
    return percentiles(Resamples(told.hexdigest(), values))
