"""What evaluations gave: aggregates, scores by topic, findings; of the one that decided a run's outcome, or of many at once."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, func, select, tuple_, union_all

from runner.model.outcome import UNSETTLED
from runner.model.pins import Pins
from runner.model.run import FindingCount, MeasureValue, Run
from runner.records.split import WHOLE, Split
from runner.records.store import tables as t
from runner.records.store.connect import Store

Evaluated = tuple[str, int, int]  # run id, attempt, evaluation
_Key = tuple[str, int | None, int | None]  # the same; None matches nothing
_T = TypeVar("_T")
_AT_ONCE = 500  # evaluations that a query asks for


# --- of one evaluation, in the caller's transaction -------------------------------------------------------------


def measures_in(connection: Connection, key: _Key) -> dict[str, MeasureValue]:
    """The aggregates of one evaluation by measure."""
    query = select(t.measures).where(_is(t.measures, key)).order_by(t.measures.c.measure)
    asked = select(t.evaluations.c.asked).where(_is(t.evaluations, key, "number"))
    pins = Pins.read(connection.execute(asked).scalar())
    return {row.measure: _value(row, pins) for row in connection.execute(query)}


def pending_in(connection: Connection, key: _Key) -> dict[str, str]:
    """Measures without a value yet, with the reasons."""
    query = select(t.pending).where(_is(t.pending, key)).order_by(t.pending.c.measure)
    return {row.measure: row.reason for row in connection.execute(query)}


def topics_in(connection: Connection, key: _Key) -> dict[str, dict[str, float]]:
    """Scores by measure and topic."""
    c = t.topic_scores.c
    query = select(c.measure, c.topic, c.value).where(_is(t.topic_scores, key))
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for measure, topic, value in connection.execute(query.order_by(c.measure, c.topic)):
        scores[measure][topic] = value
    return dict(scores)


def unanswered_in(connection: Connection, key: _Key) -> dict[str, set[str]]:
    """The topics by measure that the run has nothing for, as far as its evaluation says it."""
    c = t.topic_scores.c
    found: dict[str, set[str]] = defaultdict(set)
    for row in connection.execute(select(c.measure, c.topic).where(_is(t.topic_scores, key), ~c.answered)):
        found[row.measure].add(row.topic)
    return dict(found)


def findings_in(connection: Connection, key: _Key) -> tuple[FindingCount, ...]:
    """How often each code was found, by code."""
    c = t.findings.c
    query = select(c.code, c.severity, c["count"], c.title).where(_is(t.findings, key)).order_by(c.code)
    return tuple(FindingCount(**row) for row in connection.execute(query).mappings())


def _is(table: Any, key: _Key, number: str = "evaluation") -> Any:
    return (table.c.run == key[0]) & (table.c.attempt == key[1]) & (table.c[number] == key[2])


def _value(row: Any, pins: Pins | None) -> MeasureValue:
    name = pins.measures[row.measure][0] if pins and row.measure in pins.measures else ""
    return MeasureValue(row.value, row.topics, row.covered, row.low, row.high, name)


# --- of the evaluation that decided a run's outcome; empty when there is none -------------------------------------


def _deciding(store: Store, run: Run, read: Callable[[Connection, _Key], _T]) -> _T:
    with store.read() as connection:
        return read(connection, (run.id, run.outcome.attempt, run.outcome.evaluation))


def measures(store: Store, run: Run) -> dict[str, MeasureValue]:
    """The aggregates of ``run`` by measure.

    Values of measures that the task defines otherwise now are left out: they would stand under a wrong name.
    """
    return {name: value for name, value in values(store, run).items() if name not in run.changed}


def values(store: Store, run: Run) -> dict[str, MeasureValue]:
    """As :func:`measures`, with what was computed by other definitions than the task has now (see their ``measure``)."""
    return _deciding(store, run, measures_in)


def pending_measures(store: Store, run: Run) -> dict[str, str]:
    """The measures of ``run`` that have no value yet, with the reasons."""
    return _deciding(store, run, pending_in)


def all_topic_scores(store: Store, run: Run) -> dict[str, dict[str, float]]:
    """The scores of ``run`` by measure and topic, of measures that the task still defines so."""
    found = _deciding(store, run, topics_in)
    return {measure: scores for measure, scores in found.items() if measure not in run.changed}


def topic_scores(store: Store, run: Run, measure: str, split: Split = WHOLE) -> dict[str, float]:
    """The scores of ``run`` by topic for one measure, of the part of the topics that ``split`` looks at; empty when there are
    none, or none by the task's definition."""
    return split.topics(run.dataset, topic_scores_of(store, [run], measure)[run.id])


def findings(store: Store, run: Run) -> tuple[FindingCount, ...]:
    """What was found in the output of ``run``: one entry a code, by name."""
    return _deciding(store, run, findings_in)


# --- of many at once ----------------------------------------------------------------------------------------------


def measured(store: Store) -> Mapping[Evaluated, frozenset[str]]:
    """The names of the measures that an evaluation has a value for, or will have one for (pending), by evaluation."""
    found: dict[Evaluated, set[str]] = defaultdict(set)
    both = [select(c.run, c.attempt, c.evaluation, c.measure) for c in (t.measures.c, t.pending.c)]
    with store.read() as connection:
        for run, attempt, evaluation, measure in connection.execute(union_all(*both)):
            found[run, attempt, evaluation].add(measure)
    return {key: frozenset(names) for key, names in found.items()}


def topic_scores_of(store: Store, runs: Collection[Run], measure: str) -> dict[str, dict[str, float]]:
    """The scores of each of ``runs`` by topic for one measure, by run id; empty where there are none, or none by the task's definition."""
    found: dict[str, dict[str, float]] = {run.id: {} for run in runs}
    c = t.topic_scores.c
    for row in _of_measure(store, t.topic_scores, runs, measure, c.topic, c.value):
        found[row.run][row.topic] = row.value
    return found


class Resamples(NamedTuple):
    """Values in bootstrap resamples of the topics, NaN for none; those of what else has the same ``drawn`` can be paired."""

    drawn: str
    values: Sequence[float]


def resamples_of(store: Store, runs: Collection[Run], measure: str) -> dict[str, Resamples]:
    """The values of a measure in resamples by run id, of those of ``runs`` that have such by the task's definition."""
    c = t.resamples.c
    return {
        row.run: Resamples(row.drawn, struct.unpack(f"<{len(row[2]) // 8}d", row[2]))
        for row in _of_measure(store, t.resamples, runs, measure, c.drawn, c["values"])
    }


def _of_measure(
    store: Store, table: Any, runs: Iterable[Run], measure: str, *columns: ColumnElement[Any]
) -> Iterator[Any]:
    """The run and ``columns`` of what a table has for one measure of the evaluations that decided the outcomes of ``runs``, by the first
    of these; without runs for which the task defines it otherwise now."""
    c, first = table.c, columns[0]
    wanted = [
        (run.id, run.outcome.attempt, run.outcome.evaluation)
        for run in runs
        if run.outcome.evaluation is not None and measure not in run.changed
    ]
    here = tuple_(c.run, c.attempt, c.evaluation)
    with store.read() as connection:
        for begin in range(0, len(wanted), _AT_ONCE):
            some = here.in_(wanted[begin : begin + _AT_ONCE])
            query = select(c.run, *columns).where(some, c.measure == measure).order_by(c.run, first)
            yield from connection.execute(query)


def measures_of(
    store: Store, task: str, runs: Iterable[Run], split: Split = WHOLE
) -> dict[str, dict[str, MeasureValue]]:
    """The aggregates of the evaluations that decided the outcomes of these runs of a task: run id → measure → value.

    As :func:`measures` gives them for one run: without values of measures that the task defines
    otherwise now. Where ``split`` looks at a part of the topics, they are over that part, and what has no value there is left out.
    """
    deciding = {(run.id, run.outcome.attempt, run.outcome.evaluation): run for run in runs}
    found: dict[str, dict[str, MeasureValue]] = {run.id: {} for run in deciding.values()}
    query = select(t.measures).join(t.runs, t.runs.c.id == t.measures.c.run).where(t.runs.c.task == task)
    with store.read() as connection:
        for row in connection.execute(query.order_by(t.measures.c.measure)):
            run = deciding.get((row.run, row.attempt, row.evaluation))
            if run is not None and row.measure not in run.changed:
                found[run.id][row.measure] = _value(row, run.pins)
        by_topic, without = _by_topic(connection, task, deciding, split.partial)
    for run in deciding.values():
        if run.dataset in split.partial:
            found[run.id] = over(split, run.dataset, found[run.id], by_topic[run.id], without[run.id])
    return found


def over(
    split: Split,
    dataset: str,
    whole: Mapping[str, MeasureValue],
    topics: Mapping[str, Mapping[str, float]],
    unanswered: Mapping[str, Collection[str]],
) -> dict[str, MeasureValue]:
    """Aggregates by measure over the part of the topics that ``split`` looks at, of those that have a value there."""
    means = {
        name: split.mean(dataset, value, topics.get(name, {}), unanswered.get(name, ()))
        for name, value in whole.items()
    }
    return {name: value for name, value in means.items() if value is not None}


def _by_topic(
    connection: Connection, task: str, deciding: Mapping[_Key, Run], datasets: Collection[str]
) -> tuple[dict[str, dict[str, dict[str, float]]], dict[str, dict[str, set[str]]]]:
    """Scores by run, measure and topic of the deciding evaluations on some datasets of a task; and, by run and measure, the topics
    that were not answered, as far as evaluations say it."""
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    without: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    if not datasets:
        return found, without
    here = (t.runs.c.task == task) & t.runs.c.dataset.in_(sorted(datasets))
    query = select(t.topic_scores).join(t.runs, t.runs.c.id == t.topic_scores.c.run).where(here)
    for row in connection.execute(query):
        if (row.run, row.attempt, row.evaluation) in deciding:
            found[row.run][row.measure][row.topic] = row.value
            if not row.answered:
                without[row.run][row.measure].add(row.topic)
    return found, without


def counting(store: Store, run: str, attempt: int) -> int | None:
    """The number of the evaluation of an attempt that counts: of those that gave a result and do not wait, the last one."""
    c = t.evaluations.c
    here = (c.run == run, c.attempt == attempt, c.counts, c.status != "error")
    with store.read() as connection:
        return connection.execute(select(func.max(c.number)).where(*here)).scalar()


class Took(NamedTuple):
    """Seconds from start to end of a run's last execution that was the software's own, and of its last evaluation; None: never."""

    execution: float | None = None
    evaluation: float | None = None


def took(store: Store) -> Mapping[str, Took]:
    """How long runs took the last time, by run id; what failed on our side says nothing and is left out."""
    found: dict[str, Took] = {}
    of = t.attempts.c, t.evaluations.c
    with store.read() as connection:
        ended = select(of[0].run, of[0].started, of[0].finished).where(of[0].verdict.not_in(UNSETTLED))
        for row in connection.execute(ended.order_by(of[0].seq)):
            found[row.run] = Took(_seconds(row))
        judged = select(of[1].run, of[1].started, of[1].finished).where(of[1].status != "error")
        for row in connection.execute(judged.order_by(of[1].seq)):
            found[row.run] = found.get(row.run, Took())._replace(evaluation=_seconds(row))
    return found


def _seconds(row: Any) -> float | None:
    try:
        began, ended = (datetime.fromisoformat(moment) for moment in (row.started, row.finished))
        return max(0.0, (ended - began).total_seconds())
    except (ValueError, TypeError):  # an old record without a time, or one without its zone
        return None


def evaluation_manifests(store: Store, runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Which evaluation decided each of ``runs``: its attempt, number and the SHA-256 of its manifest."""
    found = []
    with store.read() as connection:
        for run in runs:
            n, k = run.outcome.attempt, run.outcome.evaluation
            query = select(t.evaluations.c.manifest).where(_is(t.evaluations, (run.id, n, k), "number"))
            manifest = connection.execute(query).scalar_one()
            found.append({"run": run.id, "attempt": n, "evaluation": k, "manifest": manifest})
    return found
