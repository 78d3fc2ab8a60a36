"""Judging the judges: judgments of debates against people's labels, or one leaderboard against another.

``form: judgments``: the run is ``evaluations.jsonl`` (one line per debate); inputs hold the debates, truths people's labels.
``form: leaderboard``: the run is a leaderboard that a judge made; truths hold the leaderboard that it should be like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import Any, Literal

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, show
from evaluator.formats.evaluations import (
    READINGS,
    Judgments,
    Reading,
    Shape,
    read_failures,
    read_judgments,
    read_shape,
)
from evaluator.formats.gold import Gold, read_gold
from evaluator.formats.leaderboards import FORMATS, Board, read_board, read_boards
from evaluator.measures.boards import BEST, ON_MISSING, Comparison, align
from evaluator.measures.correlation import LEAST
from evaluator.measures.judging import KNOWN as JUDGING
from evaluator.measures.judging import Counts, Measure, count, spans, total
from evaluator.request import Request
from evaluator.scores import Sink
from schemas.debates import CRITERIA

DEBATES = "debates.jsonl"
FAILURES = "turns.jsonl"  # the driver's record, beside the run of a judge that is a server
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "form": ("judgments", "leaderboard"),
    "reading": READINGS,
    "format": FORMATS,
    "truth_format": FORMATS,
    "on_missing": ON_MISSING,
}


class Meta:
    """Options: ``form``; ``reading`` and ``interval`` for judgments; ``format``, ``truth_format``, ``on_missing``, ``recompute``."""

    name = "meta"
    measures = f"for judgments: {JUDGING}; for leaderboards: kendall@truth measure/judge measure and others"

    def evaluate(self, run: Path, inputs: Path, truths: Path, request: Request, sink: Sink) -> None:
        """Check and score the run; see :class:`evaluator.kinds.base.Kind`."""
        options = Options(request.options)
        if options.form == "judgments":
            _judgments(run, inputs, truths, request, options, sink)
        else:
            _leaderboard(run, truths, request, options, sink)

    def check(self, run: Path, inputs: Path, request: Request, log: Log) -> None:
        """Check the run alone; see :class:`evaluator.kinds.base.Checker`."""
        options = Options(request.options)
        if options.form == "judgments":
            shape = _shape(inputs, request)
            if shape is None:
                raise EvaluatorError(
                    "the debates are not in the inputs", f"there is no {request.topics or DEBATES}"
                )
            _read(run, shape, request, options, log)
        else:
            board = read_board(run, options.format, log, max_bytes=request.max_bytes)
            if not log.invalid:
                _lacking(board, [Comparison(m.measure) for m in request.measures], log)


KIND = Meta()


class Options:
    """The kind's options, checked. Raises :class:`EvaluatorError`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        for key, value in options.items():
            if key in ("interval", "recompute"):
                legal, expected = isinstance(value, bool), "true or false"
            elif key in _CHOICES:
                legal, expected = value in _CHOICES[key], "one of " + ", ".join(_CHOICES[key])
            else:
                known = ", ".join((*_CHOICES, "interval", "recompute"))
                raise EvaluatorError(f"the kind meta has no option {str(key)[:40]!r}", f"it has {known}")
            if not legal:
                raise EvaluatorError(f"the option {key} is wrong", f"it has to be {expected}")
        if "form" not in options:
            raise EvaluatorError("the option form is missing", "it is judgments or leaderboard")
        self.form: Literal["judgments", "leaderboard"] = options["form"]
        self.reading: Reading = options.get("reading", "strict")
        self.interval: bool = options.get("interval", True)
        self.format: str = options.get("format", "ir_measures")
        self.truth_format: str = options.get("truth_format", "ir_measures")
        self.on_missing: str = options.get("on_missing", "error")
        self.recompute: bool = options.get("recompute", False)


# --- judgments ---------------------------------------------------------------------------------------------


def _judgments(run: Path, inputs: Path, truths: Path, request: Request, options: Options, sink: Sink) -> None:
    measures = {m.id: (Measure(m.measure), m.truths) for m in request.measures}
    shape = _shape(inputs, request)
    gold = {
        name: read_gold(truths / name, shape, reading=options.reading)
        for name in dict.fromkeys(name for _, name in measures.values())
    }
    for labels in gold.values():
        if shape is None:
            shape = Shape([len(turns) for turns in labels])
        elif len(labels) != len(shape.turns):
            raise EvaluatorError("the measures' labels are of different numbers of debates")
    if shape is None:
        raise EvaluatorError("there is nothing to compare with: the task has no measures")
    judged = _read(run, shape, request, options, sink.findings)
    if sink.findings.invalid:
        return
    for name, labels in gold.items():
        mine = {i: measure for i, (measure, of) in measures.items() if of == name}
        _score(mine, labels, judged, options, sink)


def _shape(inputs: Path, request: Request) -> Shape | None:
    name = request.topics or DEBATES
    path = next((p for n in (name, f"{name}.gz") if (p := inputs / n).exists()), None)
    if path is None and request.topics:
        raise EvaluatorError("the debates are not in the inputs", f"there is no {name}")
    return None if path is None else read_shape(path, name)


def _read(run: Path, shape: Shape, request: Request, options: Options, log: Log) -> Judgments:
    return read_judgments(
        run,
        shape,
        log,
        reading=options.reading,
        failures=read_failures(run.parent / FAILURES, shape) if request.records else {},
        max_bytes=request.max_bytes,
    )


def _score(
    measures: Mapping[str, Measure], labels: Gold, judged: Judgments, options: Options, sink: Sink
) -> None:
    debates = counted(labels, judged)
    overall = {c: total([debate[c] for debate in debates]) for c in CRITERIA}
    ready = {}
    for name, measure in measures.items():
        if reason := lacking(measure, overall, judged):
            sink.pending[name] = reason
        else:
            ready[name] = measure
    intervals = spans(ready, debates) if options.interval else {}
    for name, measure in ready.items():
        topics, covered = _coverage(measure, labels, judged)
        sink.aggregate(
            name, measure.value(overall), topics=topics, covered=covered, interval=intervals.get(name)
        )
        _parts(name, measure, labels, judged, debates, sink)


def counted(labels: Gold, judged: Judgments) -> list[dict[str, Counts]]:
    """For every debate and criterion the judged turns by what judge and people said."""
    return [
        {
            c: count([turn[k] for turn in turns], judged.of(place, c) if c in judged.part else [None] * len(turns))
            for k, c in enumerate(CRITERIA)
        }
        for place, turns in enumerate(labels)
    ]  # fmt: skip


def lacking(measure: Measure, overall: Mapping[str, Counts], judged: Judgments) -> str:
    """Why a measure has no value: a criterion that the judge does not judge, or that nobody has labelled; or ""."""
    unlabelled = [c.capitalize() for c in measure.criteria if not sum(overall[c])]
    if unlabelled:
        return f"no answer is labelled for {', '.join(unlabelled)}"
    unjudged = [c.capitalize() for c in measure.criteria if c not in judged.part]
    return f"does not judge {', '.join(unjudged)}" if unjudged else ""


def _coverage(measure: Measure, labels: Gold, judged: Judgments) -> tuple[int, int]:
    """Turns with a label for one of the measure's criteria, and those of them with all the scores they need."""
    columns = [CRITERIA.index(c) for c in measure.criteria]
    topics = covered = 0
    for turns, said in zip(labels, judged.scores, strict=True):
        for label, scores in zip(turns, said, strict=True):
            wanted = [scores[k] for k in columns if label[k] is not None]
            topics += bool(wanted)
            covered += bool(wanted) and all(s is not None and not isnan(s) for s in wanted)
    return topics, covered


def _parts(
    name: str,
    measure: Measure,
    labels: Gold,
    judged: Judgments,
    debates: list[dict[str, Counts]],
    sink: Sink,
) -> None:
    """Values of single debates; and of single turns, where the measure is a mean over turns (accuracy of a criterion).

    Values of debates have a facet: the value over all debates is not their mean.
    """
    for place, counts in enumerate(debates, 1):
        if any(sum(counts[c]) for c in measure.criteria):
            sink.score(name, f"{place}", measure.value(counts), {"debate": place})
    if measure.name != "accuracy" or len(measure.criteria) > 1:
        return
    criterion = measure.criteria[0]
    column = CRITERIA.index(criterion)
    for place, turns in enumerate(labels):
        for turn, (label, score) in enumerate(zip(turns, judged.of(place, criterion), strict=True), 1):
            one = count([label[column]], [score])
            if sum(one):
                sink.score(name, f"{place + 1}.{turn}", measure.value({criterion: one}))


# --- leaderboards ------------------------------------------------------------------------------------------


def _leaderboard(run: Path, truths: Path, request: Request, options: Options, sink: Sink) -> None:
    log = sink.findings
    comparisons = {m.id: Comparison(m.measure) for m in request.measures}
    names = {m.id: m.truths for m in request.measures}
    boards = {
        name: read_boards([truths / name], options.truth_format) for name in dict.fromkeys(names.values())
    }
    for i, comparison in comparisons.items():
        values, _ = boards[names[i]].overall(comparison.truth, recompute=options.recompute)
        if len(values) < LEAST:
            raise EvaluatorError(
                f"the truth has fewer than {LEAST} runs for {comparison.truth[:60]!r}",
                f"a correlation needs {LEAST}",
            )
    board = read_board(run, options.format, log, max_bytes=request.max_bytes)
    if log.invalid:
        return
    _lacking(board, comparisons.values(), log)
    if log.invalid:
        return
    said: set[str] = set()
    found = {
        i: _compared(c, boards[names[i]], board, request, options, log, said) for i, c in comparisons.items()
    }
    if log.invalid:
        return
    for i, (value, topics, covered) in found.items():
        sink.aggregate(i, value, topics=topics, covered=covered)


def _lacking(board: Board, comparisons: Iterable[Comparison], log: Log) -> None:
    """Report measures that the judge has to give and does not."""
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
    options: Options,
    log: Log,
    said: set[str],
) -> tuple[float, int, int]:
    """A comparison's value, the runs of the truth, and how many of them the judge has."""
    truth, _ = truths.overall(comparison.truth, recompute=options.recompute)
    best: tuple[float, int] | None = None
    for name in board.measures if comparison.judge == BEST else [comparison.judge]:
        values, computed = board.overall(name, recompute=options.recompute)
        pair = align(truth, values, options.on_missing)
        if name not in said:
            said.add(name)
            if len(pair.missing) == len(truth) and options.on_missing != "error":
                log.add("F028", None, f"none of the task's runs has a value of {show(name)}")
            _report(name, pair.missing, pair.unknown, computed, request, options, log)
        covered = len(truth) - len(pair.missing)
        value = comparison.method.value(pair.truth, pair.judge)
        if value is None:
            if len(pair.judge) < LEAST:
                log.add("F245", None, f"only {len(pair.judge)} runs have {show(name)}: {LEAST} are needed")
            else:
                log.add("F250", None, f"there is no order by {show(name)}: {comparison.method.text} counts 0")
            value = 0.0
        if best is None or value > best[0]:
            best = value, covered
    if best is None:  # no measure has numbers, and the task says that this is no error
        return 0.0, len(truth), 0
    return best[0], len(truth), best[1]


def _report(
    name: str,
    missing: Any,
    unknown: Any,
    computed: list[str],
    request: Request,
    options: Options,
    log: Log,
) -> None:
    if missing and options.on_missing != "skip":
        # Runs of a blinded dataset are not named.
        which = f", such as {show(missing[0])}" if request.public else ""
        message = f"{len(missing):,} runs have no value of {show(name)}{which}"
        if options.on_missing == "error":
            log.add("F245", None, message)
        elif options.on_missing == "warn":
            log.add("F246", None, f"{message}: they are left out")
        else:
            log.add("F246", None, f"{message}: they count 0")
    if unknown:
        log.add("F247", None, f"{len(unknown):,} runs are none of the task's, such as {show(unknown[0])}")
    if computed and not options.recompute:
        log.add("F249", None, f"{len(computed):,} runs have no line of {show(name)} for all topics")
