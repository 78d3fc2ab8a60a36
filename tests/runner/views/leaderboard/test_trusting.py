"""A board does not rank by a measure that an answer without worth can win."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runner.model.run import MeasureValue, Run
from runner.model.task import Cell, Ranking, Table, Task
from runner.views.audience import ORGANISER
from runner.views.leaderboard.table import build, filtered
from runner.views.leaderboard.trusting import trusted
from tests.worlds.records import World, task


class Measure:
    def __init__(self, direction: str = "higher") -> None:
        self.direction = direction


def board(values: dict[str, list[float]], canaries: dict[str, float], **directions: str) -> Any:
    """The measure that the board ranks by, and its notes; the first of ``values`` is the one of the definition."""
    found, notes = found_by(Ranking((next(iter(values)),)), values, canaries, **directions)
    return found.first, notes


def names(note: str) -> list[str]:
    """Return the measures and numbers that a note has, in order."""
    return re.findall(r"quality|manner|answered|[0-9]\.[0-9]{4}", note)


def found_by(
    rank_by: Ranking, values: dict[str, list[float]], canaries: dict[str, float], **directions: str
) -> tuple[Ranking, tuple[str, ...]]:
    """What the board ranks by, and its notes."""

    judged = SimpleNamespace(judge={"name": "llm", "canaries": canaries})
    toy = SimpleNamespace(measures={n: Measure(directions.get(n, "higher")) for n in values})
    names = list(values)
    table = Table("main", (Cell("test", "default"),), rank_by, measures=tuple(names))
    rows = [
        (
            [cast("Run", judged)],
            [{name: MeasureValue(of[i], 4, 4) for name, of in values.items()}],
        )
        for i in range(len(values[names[0]]))
    ]
    found, notes = trusted(table, cast("Task", toy), rows)
    return found.rank_by, notes


def test_a_measure_that_no_echo_wins_ranks() -> None:
    assert board({"quality": [0.4, 0.9], "words": [3, 4]}, {"quality": 0.5}) == ("quality", ())
    assert board({"quality": [0.4, 0.9]}, {}) == ("quality", ())
    assert board({"quality": []}, {"quality": 1.0}) == ("quality", ())


def test_of_combined_ranks_those_on_a_measure_that_an_echo_wins_are_left_out() -> None:
    values = {"quality": [0.4, 0.9], "manner": [0.1, 0.2], "answered": [1.0, 0.5]}
    both = Ranking(("quality", "manner"), "mean_rank")
    assert found_by(both, values, {"quality": 0.5}) == (both, ())
    by, (note,) = found_by(both, values, {"quality": 0.9})
    assert by == Ranking(("manner",), "mean_rank") and names(note)[0] == "quality" and "manner" not in note
    by, (note,) = found_by(both, values, {"quality": 0.9, "manner": 0.2})
    assert by == Ranking(("answered",), "mean_rank")
    assert {"quality", "manner"} <= {*names(note)} and names(note)[-1] == "answered"


@pytest.mark.parametrize("worthless", [0.9, 1.0])
def test_the_next_measure_ranks_instead(worthless: float) -> None:
    values = {"quality": [0.4, 0.9], "manner": [0.1, 0.2], "answered": [1.0, 0.5]}
    by, (note,) = board(values, {"quality": worthless, "manner": 1.0})
    assert by == "answered" and names(note)[0] == "quality" and names(note)[-1] == "answered"
    assert f"{worthless:.4f}" in names(note)


def test_with_nothing_else_nobody_is_ranked() -> None:
    by, (note,) = board({"quality": [0.4, 1.0]}, {"quality": 1.0})
    assert by == "quality" and {*names(note)} == {"quality", "1.0000"}


def test_lower_is_better_for_some() -> None:
    assert board({"errors": [0.1, 0.4]}, {"errors": 0.2}, errors="lower") == ("errors", ())
    assert board({"errors": [0.1, 0.4]}, {"errors": 0.0}, errors="lower")[1]


def test_a_filter_ranks_nobody_where_nobody_is_ranked(world: World) -> None:
    for team, mean in (("alpha", 0.4), ("beta", 0.6), ("gamma", 0.6)):
        world.scored(team, "x", scores={"1": mean, "2": mean})
    board = build(world.store, task(baseline=None), None, ORGANISER)
    assert [row.rank for row in filtered(board, method="automatic").rows] == [1, 1, 3]
    nobody = replace(board, rows=tuple(replace(row, rank=1) for row in board.rows))
    assert [row.rank for row in filtered(nobody, method="automatic").rows] == [1, 1, 1]
    tied = replace(board, rows=board.rows[:2])
    assert [row.rank for row in filtered(tied, how="executed").rows] == [1, 1]
