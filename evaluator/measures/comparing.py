"""Every measure of one leaderboard against every measure of another, by coefficients of correlation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.formats.leaderboards import Board
from evaluator.measures.boards import align
from evaluator.measures.correlation import LEAST, METHODS, Method


def compare(
    truth: Board,
    judge: Board,
    coefficients: Sequence[str] = (),
    *,
    truth_measures: Sequence[str] = (),
    judge_measures: Sequence[str] = (),
    recompute: bool = False,
    on_missing: str = "error",
    warn: Callable[[str], None],
) -> list[dict[str, Any]]:
    """A row for every measure of the truth and every measure of the judge: names, runs, and the coefficients.

    Without ``coefficients`` there are all of them, and ``kendall@10``; without measures, all that a side has. ``warn`` is
    given what was left out. A coefficient that is undefined is None. Raises :class:`EvaluatorError` for missing runs (as
    ``on_missing`` says, one of :data:`evaluator.measures.boards.ON_MISSING`) and measures.
    """
    methods = [Method(text) for text in coefficients or [*METHODS, "kendall@10"]]
    rows = []
    for left in _chosen(truth, truth_measures, "truth"):
        for right in _chosen(judge, judge_measures, "judge"):
            there, _ = truth.overall(left, recompute=recompute)
            here, _ = judge.overall(right, recompute=recompute)
            pair = align(there, here, on_missing)
            if (pair.missing or pair.unknown) and on_missing in ("error", "warn"):
                lists = {"the judge": pair.missing, "the truth": pair.unknown}
                parts = [
                    f"{who} lacks {len(runs)} ({plain(', '.join(runs), 120)})"
                    for who, runs in lists.items()
                    if runs
                ]
                what = f"{plain(left)} and {plain(right)} are not about the same runs"
                if on_missing == "error":
                    raise EvaluatorError(
                        what,
                        "; ".join(parts),
                        "give both the same runs, or say --on-missing warn, skip or default",
                    )
                warn(f"{what}: {'; '.join(parts)}: left out")
            if len(pair.truth) < LEAST or len(pair.missing) == len(there):
                raise EvaluatorError(
                    f"{plain(left)} and {plain(right)} have {len(there) - len(pair.missing)} runs in common",
                    f"a correlation needs {LEAST}",
                    "check the formats: with the wrong one, topics or measures are taken for runs",
                )
            values = {m.text: m.value(pair.truth, pair.judge) for m in methods}
            rows.append({"truth": left, "judge": right, "runs": len(pair.truth), **values})
    return rows


def _chosen(board: Board, wanted: Sequence[str], side: str) -> list[str]:
    known = board.measures
    for name in wanted:
        if name not in known:
            raise EvaluatorError(
                f"the {side} has no measure {plain(name)}",
                f"it has {plain(', '.join(known), 200)}",
                usage=True,
            )
    if not known:
        raise EvaluatorError(f"the {side} has no measure with numbers")
    return list(wanted) or known
