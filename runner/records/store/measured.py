"""The measures of many evaluations, read at once: as planning and leaderboards need them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from sqlalchemy import select, union_all

from runner.model.run import MeasureValue, Run
from runner.records.store import tables as t
from runner.records.store.connect import Store

Evaluated = tuple[str, int, int]  # run id, attempt, evaluation


def measured(store: Store) -> Mapping[Evaluated, frozenset[str]]:
    """The names of the measures that an evaluation has a value for, or will have one for (pending), by evaluation."""
    found: dict[Evaluated, set[str]] = defaultdict(set)
    both = [select(c.run, c.attempt, c.evaluation, c.measure) for c in (t.measures.c, t.pending.c)]
    with store.read() as connection:
        for run, attempt, evaluation, measure in connection.execute(union_all(*both)):
            found[run, attempt, evaluation].add(measure)
    return {key: frozenset(names) for key, names in found.items()}


def measures_of(store: Store, task: str, runs: Iterable[Run]) -> dict[str, dict[str, MeasureValue]]:
    """The aggregates of the evaluations that decided the outcomes of these runs of a task: run id → measure → value.

    As :func:`runner.records.store.queries.measures` gives them for one run: without values of measures that the task defines
    otherwise now.
    """
    deciding = {(run.id, run.outcome.attempt, run.outcome.evaluation): run for run in runs}
    found: dict[str, dict[str, MeasureValue]] = {run.id: {} for run in deciding.values()}
    query = select(t.measures).join(t.runs, t.runs.c.id == t.measures.c.run).where(t.runs.c.task == task)
    with store.read() as connection:
        for row in connection.execute(query.order_by(t.measures.c.measure)):
            run = deciding.get((row.run, row.attempt, row.evaluation))
            if run is not None and row.measure not in run.changed:
                name = (
                    run.pins.measures[row.measure][0] if run.pins and row.measure in run.pins.measures else ""
                )
                found[run.id][row.measure] = MeasureValue(
                    row.value, row.topics, row.covered, row.low, row.high, name
                )
    return found
