"""Ranks: by the value of one measure, or by the mean or median of the ranks on several measures and in several cells.

Wherever ranks stand on a board, equal figures share one and the ranks behind are left out (1, 2, 2, 4). The ranks that
``mean_rank`` and ``median_rank`` combine are those of Friedman's test (J. Demšar, Statistical Comparisons of Classifiers
over Multiple Data Sets, JMLR 7, 2006): equal values share the mean of their ranks (1, 2.5, 2.5, 4), so that a tie favours
nobody, and who has no value stands behind all who have one, several of these sharing the mean of the last ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from runner.model.task import Cell, Ranking
from runner.views.leaderboard.rows import Combined, Component, Row


def ranked(rows: Sequence[Row], rank_by: Ranking, direction: str) -> list[Row]:
    """Rows with their ranks among each other, the best first; equal ones in the order of their names.

    Args:
        rows: Each with a value on the first measure of ``rank_by``, or where ranks are combined with these.
        rank_by: What decides.
        direction: Which end of the measure is good, ``higher`` or ``lower``; ranks are always better when lower.
    """
    rows = _combined(rows, rank_by) if rank_by.rule != "value" else rows
    sign = -1.0 if direction == "higher" else 1.0

    def figure(row: Row) -> float:
        return row.combined.value if row.combined else sign * row.values[rank_by.first].mean

    found: list[Row] = []
    for place, row in enumerate(sorted(rows, key=lambda r: (figure(r), r.team, r.software)), start=1):
        same = found and figure(found[-1]) == figure(row)
        found.append(replace(row, rank=found[-1].rank if same else place))
    return found


def _combined(rows: Sequence[Row], rank_by: Ranking) -> list[Row]:
    """Rows with ranks in each component that are those among ``rows`` only, and with what these give together.

    Ranks are made of ranks: they have the order of the values, and their ties.
    """
    parts = [row.combined.ranks for row in rows if row.combined]
    columns = [
        mean_ranks([None if one.missing else one.rank for one in part]) for part in zip(*parts, strict=True)
    ]
    made = []
    for n, row in enumerate(rows):
        ranks = [column[n] for column in columns]
        whole = median(ranks) if rank_by.rule == "median_rank" else fmean(ranks)
        components = (replace(one, rank=rank) for one, rank in zip(parts[n], ranks, strict=True))
        made.append(replace(row, combined=Combined(whole, tuple(components))))
    return made


def with_components(
    rows: Sequence[Row],
    values: Sequence[Sequence[Mapping[str, float]]],
    cells: Sequence[Cell],
    rank_by: Ranking,
    directions: Mapping[str, str],
) -> list[Row]:
    """Rows with their ranks on each measure of ``rank_by`` in each cell; nothing is added where a value decides.

    ``values`` are those of each row by measure, cell by cell, empty where nothing of it counts.
    """
    if rank_by.rule == "value":
        return list(rows)
    found: list[list[Component]] = [[] for _ in rows]
    for n, cell in enumerate(cells):
        for measure in rank_by.measures:
            sign = -1.0 if directions[measure] == "higher" else 1.0
            there = [row[n].get(measure) for row in values]
            places = mean_ranks([None if value is None else sign * value for value in there])
            for components, value, rank in zip(found, there, places, strict=True):
                components.append(Component(cell.dataset, cell.scenario, measure, rank, value is None))
    return [replace(row, combined=Combined(0.0, tuple(own))) for row, own in zip(rows, found, strict=True)]


def mean_ranks(values: Sequence[float | None]) -> list[float]:
    """The rank of each value, the lowest first: equal ones share the mean of their ranks, and so do those that are None,
    behind all others."""
    keys = [(value is None, 0.0 if value is None else value) for value in values]
    places: dict[tuple[bool, float], list[int]] = {}
    for place, key in enumerate(sorted(keys), start=1):
        places.setdefault(key, []).append(place)
    return [(places[key][0] + places[key][-1]) / 2 for key in keys]


def aggregated(rule: str, cells: Sequence[Cell], values: Sequence[float]) -> float:
    """The mean of ``values``, one a cell, by one of :data:`runner.tasks.tables.AGGREGATES`."""
    if rule == "mean":
        return fmean(values)
    parts: dict[str, list[float]] = {}
    for cell, value in zip(cells, values, strict=True):
        part = cell.dataset if rule == "scenarios-then-datasets" else cell.scenario
        parts.setdefault(part, []).append(value)
    return fmean([fmean(part) for part in parts.values()])
