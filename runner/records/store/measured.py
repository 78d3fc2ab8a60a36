"""Which measures evaluations have: read for all runs at once, as planning needs it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import select, union_all

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
