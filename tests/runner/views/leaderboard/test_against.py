"""All rows of a leaderboard against any of them: how the row is named, what is tested, and all rows at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import schemas
from runner.model.comparing import holm
from runner.model.errors import RunnerError
from runner.views.audience import ORGANISER, PUBLIC
from runner.views.leaderboard import comparing
from runner.views.leaderboard.export import as_dict, each_as_dict, from_dict
from runner.views.leaderboard.formats.page import to_html
from runner.views.leaderboard.formats.parts import legend
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from tests.runner.views.leaderboard.test_bootstrap import figures, said, scored
from tests.worlds import records
from tests.worlds.records import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    for n, team in enumerate(("baselines", "alpha", "beta")):
        made.scored(team, "bm25", mean=0.2 + 0.3 * n)
    made.scored("gamma", "few", topics=20)
    return made


def against(world: World, row: str | None, each: bool = False) -> LeaderboardTable:
    return build(world.store, records.task(), None, ORGANISER, against=row, each=each)


def test_rows_are_tested_against_the_row_that_was_chosen(world: World) -> None:
    table = against(world, "alpha/bm25")
    by = {row.team: row for row in table.rows}
    mine, p_values = by["alpha"].values["ndcg"].mean, {}
    assert by["alpha"].comparison is None
    for team in ("baselines", "beta"):
        found = by[team].comparison
        assert found is not None
        assert found.difference == pytest.approx(by[team].values["ndcg"].mean - mine)
        p_values[team] = found.p
    few = by["gamma"].comparison
    assert few is not None and few.topics == 20, "on the topics that both have"
    assert len([note for note in table.notes if "alpha/bm25" in note]) == 1, "of the shared topics"
    tested = [row.comparison for row in table.rows if row.comparison]
    assert [one.p_corrected for one in tested] == holm([one.p for one in tested])
    assert [row.comparison.mark for row in (by["baselines"], by["beta"]) if row.comparison] == ["‡", "†"]
    (line,) = [one for one in legend(table) if one.startswith("†")]
    assert "‡" in line and "alpha/bm25" in line
    data = as_dict(table)
    assert schemas.validate(data, "leaderboard") == [] and data["significance"]["against"] == "alpha/bm25"
    assert from_dict(data, table.audience) == table


def test_a_row_is_named_by_its_software_its_submission_or_a_run(world: World) -> None:
    (row,) = [row for row in against(world, None).rows if row.team == "beta"]
    for name in ("beta/bm25", row.submission, row.runs[0], row.runs[0][:6]):
        assert against(world, name).against == "beta/bm25", name
    for name in ("none", "", "b"):  # of two rows runs begin so
        with pytest.raises(RunnerError) as error:
            against(world, name)
        assert error.value.code == "E102"


def test_every_row_at_once_is_what_each_is_alone(world: World) -> None:
    table = against(world, None, each=True)
    assert len(table.each) == 4
    for row, one in zip(table.rows, table.each, strict=True):
        alone = against(world, f"{row.team}/{row.software}")
        assert [other.comparison for other in alone.rows] == [*map(one.comparisons.get, range(4))]
        assert (alone.notes, alone.test) == (one.notes, one.test)
    data = each_as_dict(table)
    (mine,) = [one for one in data["against"] if one["name"] == "alpha/bm25"]
    assert mine["significance"] == as_dict(against(world, "alpha/bm25"))["significance"]
    assert [one is None for one in mine["comparisons"]] == [row.team == "alpha" for row in table.rows]


def test_too_many_rows_are_not_tested_against_each_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = against(world, None)
    for most, too_many in ((4, False), (3, True)):
        monkeypatch.setattr(comparing, "MOST_EACH", most)
        monkeypatch.setattr("runner.views.leaderboard.table.MOST_EACH", most)
        table = against(world, None, each=True)
        assert (table.each == ()) is too_many and len(table.notes) - len(plain.notes) == too_many
        assert ('id="tests"' in to_html(table, piece=True, task_at="/tasks/mini")) is not too_many
        assert [row.comparison for row in table.rows] == [row.comparison for row in plain.rows]


def test_figures_that_were_resampled_have_every_row_too(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    for n, team in enumerate(("baselines", "alpha", "beta")):
        scored(world, team, figures(said(0.6 + 0.1 * n, n)))
    table = against(world, None, each=True)
    first, last = (n for n, row in enumerate(table.rows) if row.team in ("baselines", "beta"))
    one, other = table.each[first].comparisons[last], table.each[last].comparisons[first]
    assert (one.p, one.difference) == (other.p, -other.difference) and {one.mark, other.mark} == {"†", "‡"}
    chosen = against(world, "beta/bm25")
    assert chosen.test is not None and "bootstrap" in chosen.test
    assert [row.comparison for row in chosen.rows] == [*map(table.each[first].comparisons.get, range(3))]


def test_without_a_baseline_any_row_can_be_chosen(world: World) -> None:
    task = records.task(baseline=None)
    assert build(world.store, task, None, ORGANISER).test is None
    assert build(world.store, task, None, ORGANISER, against="beta/bm25").test is not None


def test_rounded_scores_have_rounded_tests_against_every_row(world: World) -> None:
    """What everybody gets of another row is no more exact than what they get of the baseline."""
    task = records.task()
    measures = {name: replace(one, precision=2) for name, one in task.measures.items()}
    table = build(world.store, replace(task, measures=measures), None, PUBLIC, each=True)
    for one in table.each:
        for found in one.comparisons.values():
            assert (found.difference, found.p) == (round(found.difference, 2), round(found.p, 3))
            assert found.p_corrected == round(found.p_corrected, 3)
