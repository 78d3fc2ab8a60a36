"""Rows of a leaderboard against its baseline: paired tests over topics, corrected for their number."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from runner.model.run import rounded
from runner.model.task import Table, Task
from runner.records.split import WHOLE, Split
from runner.records.store import results
from runner.views.leaderboard import significance
from runner.views.leaderboard.choosing import Group
from runner.views.leaderboard.rows import Comparison, Row

if TYPE_CHECKING:
    from runner.records.store.connect import Store

FEW_TOPICS = 25
TEST_NAME = "Fisher's randomisation test"
CORRECTION = "Holm"


def compare(
    store: Store, task: Task, table: Table, ranked: list[tuple[Row, Group]], split: Split = WHOLE
) -> tuple[list[Row], list[str], str | None]:
    """Test every row against the baseline on the ranking measure. Returns rows, notes and the test's name."""
    rows = [row for row, _ in ranked]
    if table.baseline is None:
        return rows, [], None
    base = next((n for n, r in enumerate(rows) if f"{r.team}/{r.software}" == table.baseline), None)
    if base is None:
        return rows, [f"No significance test: the baseline {table.baseline} is not ranked."], None
    scores = [_topic_scores(store, table, group, split) for _, group in ranked]
    against = scores[base]
    if not against:
        # A figure over all answers at once, such as an F1, has no paired differences to test.
        return rows, [f"No significance test: {table.rank_by.first} has no values by topic."], None
    shared = {n: sorted(set(scores[n]) & set(against)) for n in range(len(rows)) if n != base}
    notes = [
        f"No significance test of {rows[n].team}/{rows[n].software}: it shares no topic with the baseline."
        for n, keys in shared.items()
        if not keys
    ]
    others = [n for n, keys in shared.items() if keys]
    shared = {n: shared[n] for n in others}
    pairs = [[scores[n][key] - against[key] for key in shared[n]] for n in others]
    if any(len(keys) != len(against) for keys in shared.values()):
        notes.append("Some rows were compared with the baseline on the shared topics only.")
    p_values = significance.randomisation(pairs)
    corrected = significance.holm(p_values)
    higher = task.measures[table.rank_by.first].direction == "higher"
    found = {
        n: _comparison(pair, p, pc, higher)
        for n, pair, p, pc in zip(others, pairs, p_values, corrected, strict=True)
    }
    if (places := task.measures[table.rank_by.first].precision) is not None:
        found = {
            n: _rounded(one, rows[n], rows[base], table.rank_by.first, places) for n, one in found.items()
        }
    topics = len(against)
    if topics < FEW_TOPICS:
        notes.append(f"Only {topics} topics: differences this few topics can show are large ones.")
    return [replace(r, comparison=found.get(n)) for n, r in enumerate(rows)], notes, TEST_NAME


P_DECIMALS = 3  # of p-values beside rounded scores


def _rounded(one: Comparison, row: Row, base: Row, measure: str, decimals: int) -> Comparison:
    """A comparison that says no more of the scores than the rounded means of ``row`` and ``base`` do."""
    shown = [one.values[measure].mean for one in (row, base) if measure in one.values]
    difference = rounded(shown[0] - shown[1] if len(shown) == 2 else one.difference, decimals)
    p, corrected = (round(p, P_DECIMALS) for p in (one.p, one.p_corrected))
    return replace(one, difference=difference, p=p, p_corrected=corrected)


def _comparison(pair: list[float], p: float, corrected: float, higher: bool) -> Comparison:
    difference = math.fsum(pair) / len(pair) if pair else 0.0
    mark = ""
    if corrected <= significance.ALPHA and difference != 0:
        mark = "†" if (difference > 0) == higher else "‡"
    return Comparison(difference, len(pair), p, corrected, mark)


def _topic_scores(store: Store, table: Table, group: Group, split: Split) -> dict[tuple[str, str], float]:
    """Dataset and topic → mean score over the table's scenarios.

    A topic that is answered in several scenarios is one topic: counted twice it would make differences look
    more certain than they are.
    """
    scores: dict[tuple[str, str], list[float]] = {}
    for run in group.runs:
        for topic, value in results.topic_scores(store, run, table.rank_by.first, split).items():
            scores.setdefault((run.dataset, topic), []).append(value)
    return {key: math.fsum(values) / len(values) for key, values in scores.items()}
