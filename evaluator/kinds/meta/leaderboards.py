"""Form ``leaderboard``: the run is a leaderboard that a judge made, truths hold the one that it should be like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, show
from evaluator.formats.leaderboards import Board, read_board, read_boards
from evaluator.measures.boards import BEST, Comparison, Pair, align, spread
from evaluator.measures.correlation import LEAST
from evaluator.measures.records.resampling import Spread
from evaluator.request import Request
from evaluator.scores import Sink


class _Found(NamedTuple):
    """A coefficient, how many ``runs`` the truth has and how many of them the judge has, and the values of both; without an order, None."""

    value: float
    runs: int
    covered: int
    pair: Pair | None


def evaluate(run: Path, truths: Path, request: Request, options: Mapping[str, Any], sink: Sink) -> None:
    """Check the leaderboard and correlate it with that of the truths."""
    log = sink.findings
    comparisons = {m.id: Comparison(m.measure) for m in request.measures}
    names = {m.id: m.truths for m in request.measures}
    boards = {
        name: read_boards([truths / name], options["truth_format"]) for name in dict.fromkeys(names.values())
    }
    for i, comparison in comparisons.items():
        values, _ = boards[names[i]].overall(comparison.truth, recompute=options["recompute"])
        if len(values) < LEAST:
            raise EvaluatorError(
                f"the truth has fewer than {LEAST} runs for {comparison.truth[:60]!r}",
                f"a correlation needs {LEAST}",
            )
    board = read_board(run, options["format"], log, max_bytes=request.max_bytes)
    _lacking(board, comparisons.values(), log)
    if log.invalid:
        return
    said: set[str] = set()
    found = {
        i: _compared(c, boards[names[i]], board, request, options, log, said) for i, c in comparisons.items()
    }
    if log.invalid:
        return
    for i, one in found.items():
        sure = spread(comparisons[i].method, one.pair) if options["interval"] and one.pair else Spread()
        drawn = sure.resamples.as_dict() if sure.resamples else None
        sink.aggregate(
            i, one.value, topics=one.runs, covered=one.covered, interval=sure.interval, resamples=drawn
        )
        if sure.resamples:
            sink.note("runs-resampled", measure=comparisons[i].text, times=len(sure.resamples.values))


def check(run: Path, request: Request, options: Mapping[str, Any], log: Log) -> None:
    """Check the leaderboard alone."""
    board = read_board(run, options["format"], log, max_bytes=request.max_bytes)
    _lacking(board, [Comparison(m.measure) for m in request.measures], log)


def _lacking(board: Board, comparisons: Iterable[Comparison], log: Log) -> None:
    """Report measures that the judge has to give and does not, in a file of which something could be read."""
    if log.invalid and not board.runs:
        return
    known = set(board.measures)
    wanted = {c.judge for c in comparisons} - {BEST}
    for name in sorted(wanted - known):
        log.add("F248", None, f"there is no value of the measure {show(name)}")
    if not known and not wanted:
        log.add("F248", None, "no measure has numbers")


def _compared(
    comparison: Comparison,
    truths: Board,
    board: Board,
    request: Request,
    options: Mapping[str, Any],
    log: Log,
    said: set[str],
) -> _Found:
    """What a comparison says."""
    truth, _ = truths.overall(comparison.truth, recompute=options["recompute"])
    best: _Found | None = None
    for name in board.measures if comparison.judge == BEST else [comparison.judge]:
        values, computed = board.overall(name, recompute=options["recompute"])
        pair = align(truth, values, options["on_missing"])
        if name not in said:
            said.add(name)
            if len(pair.missing) == len(truth) and options["on_missing"] != "error":
                log.add("F028", None, f"none of the task's runs has a value of {show(name)}")
            _report(name, pair.missing, pair.unknown, computed, request, options, log)
        covered = len(truth) - len(pair.missing)
        value = comparison.method.value(pair.truth, pair.judge)
        if value is None:
            if len(pair.judge) < LEAST:
                log.add("F245", None, f"only {len(pair.judge)} runs have {show(name)}: {LEAST} are needed")
            else:
                log.add("F250", None, f"there is no order by {show(name)}: {comparison.method.text} counts 0")
        found = _Found(value or 0.0, len(truth), covered, None if value is None else pair)
        if best is None or found.value > best.value:
            best = found
    return best or _Found(
        0.0, len(truth), 0, None
    )  # no measure has numbers, and the task says that is no error


def _report(
    name: str,
    missing: Any,
    unknown: Any,
    computed: list[str],
    request: Request,
    options: Mapping[str, Any],
    log: Log,
) -> None:
    if missing and options["on_missing"] != "skip":
        # Runs of a blinded dataset are not named.
        which = f", such as {show(missing[0])}" if request.public else ""
        message = f"{len(missing):,} runs have no value of {show(name)}{which}"
        ends = {"error": "", "warn": ": they are left out", "default": ": they count 0"}
        code = "F245" if options["on_missing"] == "error" else "F246"
        log.add(code, None, message + ends[options["on_missing"]])
    if unknown:
        log.add("F247", None, f"{len(unknown):,} runs are none of the task's, such as {show(unknown[0])}")
    if computed and not options["recompute"]:
        log.add("F249", None, f"{len(computed):,} runs have no line of {show(name)} for all topics")
