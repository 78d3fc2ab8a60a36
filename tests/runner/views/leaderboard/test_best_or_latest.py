"""Boards of many teams: which run counts is a choice, columns that say nothing go, and it fits a terminal."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import schemas
from runner.cli import output
from runner.model.clock import FixedClock
from runner.model.errors import RunnerError
from runner.model.task import Cell, Task
from runner.submissions.register import choose
from runner.tasks.load import load_task
from runner.views.audience import ORGANISER, PUBLIC
from runner.views.leaderboard.export import export, from_dict, print_table
from runner.views.leaderboard.rounds import board
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from tests.worlds import records
from tests.worlds.commands import At
from tests.worlds.records import World

EVIL = "=1+1 <b>bold</b> \x1b[31m\n" + "long words " * 30


def flat(value: float) -> dict[str, float]:
    return {str(n): value for n in range(4)}


def rows(world: World, **choices: str) -> list[tuple[str, str, float]]:
    table = build(world.store, records.task(baseline=None), "main", ORGANISER, **choices)  # type: ignore[arg-type]
    return [(row.team, row.software, round(row.values["ndcg"].mean, 4)) for row in table.rows]


def test_the_best_or_the_latest_run_of_a_team_or_of_a_software(world: World) -> None:
    for team, software, version, value in (
        ("a", "x", 1, 0.9), ("a", "x", 2, 0.5), ("a", "y", 1, 0.6), ("b", "z", 1, 0.7), ("b", "z", 2, 0.8),
    ):  # fmt: skip
        world.scored(team, software, version=version, scores=flat(value))
    assert rows(world) == [("b", "z", 0.8), ("a", "y", 0.6), ("a", "x", 0.5)]
    assert rows(world, pick="best") == [("a", "x", 0.9), ("b", "z", 0.8), ("a", "y", 0.6)]
    assert rows(world, unit="team") == [("b", "z", 0.8), ("a", "y", 0.6)]
    assert rows(world, unit="team", pick="best") == [("a", "x", 0.9), ("b", "z", 0.8)]
    for wrong in ({"unit": "person"}, {"pick": "worst"}):
        with pytest.raises(RunnerError) as caught:
            rows(world, **wrong)
        assert caught.value.code == "E101"


def test_the_best_is_the_lowest_where_lower_is_better_and_the_latest_of_equal_ones(world: World) -> None:
    first = world.scored("a", "x", version=1, scores=flat(0.2))
    world.scored("a", "x", version=2, scores=flat(0.7))
    made = build(world.store, records.task(baseline=None, direction="lower"), "main", ORGANISER, pick="best")
    assert [row.submission for row in made.rows] == [first]
    again = world.scored("a", "x", version=3, scores=flat(0.2))
    made = build(world.store, records.task(baseline=None, direction="lower"), "main", ORGANISER, pick="best")
    assert [row.submission for row in made.rows] == [again]


def named(world: World, submission: str) -> None:
    world.commit("submission-chosen", submission=submission)


def test_the_one_that_a_team_named_last_and_else_the_latest(world: World) -> None:
    first, _, third = (
        world.scored("a", "x", version=n + 1, scores=flat(value)) for n, value in enumerate((0.1, 0.9, 0.5))
    )
    other = world.scored("a", "y", scores=flat(0.3))
    world.scored("b", "z", version=1, scores=flat(0.8))
    world.scored("b", "z", version=2, scores=flat(0.2))
    named(world, first)
    assert rows(world, pick="chosen") == [("a", "y", 0.3), ("b", "z", 0.2), ("a", "x", 0.1)]
    assert rows(world, unit="team", pick="chosen") == [("b", "z", 0.2), ("a", "x", 0.1)]
    named(world, third)
    assert rows(world, pick="chosen")[0] == ("a", "x", 0.5)
    named(world, other)
    assert rows(world, unit="team", pick="chosen") == [("a", "y", 0.3), ("b", "z", 0.2)]
    assert rows(world)[0] == ("a", "x", 0.5) and rows(world, pick="best")[0] == ("a", "x", 0.9)
    named(world, first)
    world.commit("submission-withdrawn", submission=first, reason="")
    assert rows(world, unit="team", pick="chosen") == [("a", "y", 0.3), ("b", "z", 0.2)]  # named before it


def test_what_was_named_and_has_no_valid_run_is_said(world: World) -> None:
    failed = world.register("a", "x", version=1)
    world.attempt(failed, verdict="run-error")
    world.scored("a", "x", version=2, scores=flat(0.4))
    named(world, failed)
    made = build(world.store, records.task(baseline=None), "main", PUBLIC, pick="chosen")
    assert [(row.team, row.values["ndcg"].mean) for row in made.rows] == [("a", 0.4)]
    assert any(failed in note for note in made.notes)
    plain = build(world.store, records.task(baseline=None), "main", PUBLIC)
    assert not any(failed in note for note in plain.notes)


def test_a_submission_is_named_until_the_deadline(world: World) -> None:
    one, two = (world.scored("a", "x", version=n, scores=flat(n / 10)) for n in (1, 2))
    task = replace(records.task(baseline=None), definition={"closes": "2026-02-01 12:00 UTC"})
    late = FixedClock(datetime(2026, 2, 1, 12, 1, tzinfo=UTC))
    with pytest.raises(RunnerError) as over:
        choose(world.store, task, one, clock=late)
    assert over.value.code == "E210" and rows(world, pick="chosen")[0][2] == 0.2
    assert choose(world.store, task, one, clock=FixedClock(late.at - timedelta(seconds=1))).id == one
    assert rows(world, pick="chosen")[0][2] == 0.1
    world.commit("submission-withdrawn", submission=two, reason="")
    for wrong in (two, "nobody.x.12345678"):
        with pytest.raises(RunnerError) as refused:
            choose(world.store, task, wrong, clock=world.clock)
        assert refused.value.code == "E102"


def test_in_a_round_what_was_named_in_time_counts(world: World) -> None:
    one, two = (world.scored("a", "x", version=n, scores=flat(n / 10)) for n in (1, 2))
    plain = records.task(baseline=None)
    for at, mean in (("2026-02-01 12:00 UTC", 0.2), ("2026-02-01 12:01 UTC", 0.1)):
        task = replace(plain, definition={"rounds": [{"id": "r", "at": at}]})
        if mean == 0.2:
            world.clock.at = datetime(2026, 2, 1, 11, 1, tzinfo=UTC)  # each event is an hour later
            named(world, one)
        else:
            named(world, two)  # too late for both, and so is naming the first again
            named(world, one)
        (row,) = board(world.store, task, "r", None, ORGANISER, pick="chosen").rows
        assert row.values["ndcg"].mean == mean


def test_what_is_named_counts_on_the_datasets_that_are_open_then(world: World) -> None:
    cells = (Cell("dev"), Cell("test"))
    one, _ = (
        world.scored("a", "x", version=n, scores=flat(n / 10), datasets=("dev", "test")) for n in (1, 2)
    )
    plain = records.task(baseline=None, cells=cells)
    datasets = [{"id": "dev", "closes": "2026-01-31 23:59 UTC"}, {"id": "test"}]
    task = replace(plain, definition={"closes": "2026-02-01 12:00 UTC", "datasets": datasets})
    world.clock.at = datetime(2026, 2, 1, 10, tzinfo=UTC)
    choose(world.store, task, one, clock=world.clock)
    (row,) = build(world.store, task, "main", ORGANISER, pick="chosen").rows
    assert [(cell.dataset, cell.value) for cell in row.cells] == [("dev", 0.2), ("test", 0.1)]


def test_commands_choose_a_run_and_how_runs_are_picked(tmp_path: Path) -> None:
    records.write_project(tmp_path)
    world = World.make(tmp_path)
    at = At(tmp_path, world)
    one, _ = (world.scored("a", "x", version=n, scores=flat(n / 10)) for n in (1, 2))
    world.scored("a", "y", version=2, scores=flat(0.05))
    chosen = at.run("choose", one)
    assert chosen.exit_code == 0 and one in chosen.text
    made = json.loads(at.run("leaderboard", "toy", "--pick", "chosen", "--format", "json").out)
    assert schemas.validate(made, "leaderboard") == []
    assert made["pick"] == "chosen" and made["rows"][0]["submission"] == one and len(made["rows"]) == 2
    best = json.loads(at.run("leaderboard", "toy", "--pick", "best", "--unit", "team", "--json").out)
    assert [row["scores"]["ndcg"]["mean"] for row in best["rows"]] == [0.2] and best["unit"] == "team"
    wide = at.run("leaderboard", "toy", "--unit", "team", "--wide").out
    assert "a software" in wide and "0.0500" in wide
    wrong = at.run("leaderboard", "toy", "--pick", "worst").error
    assert wrong.code == "E101" and "worst" in wrong.what


def test_the_best_of_each_cell_and_what_failed_later(world: World) -> None:
    cells = (Cell("dev"), Cell("test"))
    one = world.register("a", "x", version=1)
    two = world.register("a", "x", version=2)
    for submission, dev, test in ((one, 0.9, 0.1), (two, 0.2, 0.8)):
        for dataset, value in (("dev", dev), ("test", test)):
            world.evaluation(
                world.attempt(submission, dataset=dataset), {"ndcg": flat(value), "rr": flat(value)}
            )
    world.attempt(world.register("a", "x", version=3), verdict="run-error")
    task = records.task(baseline=None, cells=cells)
    made = build(world.store, task, "main", ORGANISER, pick="best")
    assert made.rows[0].values["ndcg"].mean == pytest.approx(0.85)
    assert [cell.submission for cell in made.rows[0].cells] == [one, two]
    assert len(made.notes) == 1 and [row.outcome for row in made.unranked] == ["failed"]


def test_a_table_of_the_task_chooses_and_exports_keep_it(world: World) -> None:
    world.scored("a", "x", version=1, scores=flat(0.9))
    world.scored("a", "x", version=2, scores=flat(0.5))
    records.write_project(world.config.root)
    path = world.config.root / "tasks" / records.TASK / "task.yaml"
    data = json.loads(path.read_text())
    data["tables"][0] |= {"unit": "team", "pick": "best"}
    path.write_text(json.dumps(data))
    made = build(world.store, load_task(world.config, records.TASK), None, ORGANISER)
    assert (made.unit, made.pick, made.rows[0].values["ndcg"].mean) == ("team", "best", 0.9)
    written = json.loads(export(made, "json"))
    assert schemas.validate(written, "leaderboard") == [] and from_dict(written, "organiser") == made
    data["tables"][0]["pick"] = "bset"
    path.write_text(json.dumps(data))
    with pytest.raises(RunnerError) as caught:
        load_task(world.config, records.TASK)
    assert caught.value.code == "E401" and "`best`" in str(caught.value.problems[0])


def on_both(world: World, version: int, dev: float | None, test: float | None) -> str:
    """A submission of a/x with flat scores; None: it failed there."""
    id = world.register("a", "x", version=version)
    for dataset, value in (("dev", dev), ("test", test)):
        if value is None:
            world.attempt(id, dataset=dataset, verdict="run-error")
        else:
            world.evaluation(world.attempt(id, dataset=dataset), {"ndcg": flat(value), "rr": flat(value)})
    return id


def best_on_dev(direction: str = "higher") -> Task:
    task = records.task(baseline=None, direction=direction)
    return replace(task, tables={"main": replace(task.tables["main"], pick="best", best_on="dev")})


@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_on_a_public_dataset_counts_on_the_hidden_one(world: World, sign: int) -> None:
    task = best_on_dev("higher" if sign > 0 else "lower")

    def counts() -> tuple[str, list[str]]:
        made = build(world.store, task, None, PUBLIC)
        return made.rows[0].submission, [note for note in made.notes if "dev" in note]

    first = on_both(world, 1, 0.5 + sign * 0.4, 0.5)
    on_both(world, 2, 0.5, 0.5 + sign * 0.4)  # better on test: nobody asks
    assert counts() == (first, [])
    equal = on_both(world, 3, 0.5 + sign * 0.4, 0.1)
    assert counts() == (equal, [])  # of equal ones the latest
    failed = on_both(world, 4, None, 0.5 + sign * 0.4)
    counted, (why,) = counts()
    assert counted == equal and failed in why
    better = on_both(world, 5, 0.5 + sign * 0.45, None)
    counted, (note, again) = counts()
    assert counted == equal and better in note and again == why


def test_what_was_handed_in_for_each_dataset_by_itself_is_known_by_its_image(world: World) -> None:
    """As where the hidden dataset requires the public one: the same software with the same image was scored there before."""

    def hand_in(version: int, dataset: str, value: float, image: str) -> str:
        cells = [[dataset, "default"]]
        id = world.register("a", "x", version=version, cells=cells, image={"id": f"sha256:{image * 64}"})
        world.evaluation(world.attempt(id, dataset=dataset), {"ndcg": flat(value), "rr": flat(value)})
        return id

    hand_in(1, "dev", 0.9, "1")
    best = hand_in(2, "test", 0.5, "1")
    hand_in(3, "dev", 0.4, "2")
    hand_in(4, "test", 0.8, "2")
    made = build(world.store, best_on_dev(), None, PUBLIC)
    assert made.rows[0].submission == best and not [note for note in made.notes if "dev" in note]
    unknown = hand_in(5, "test", 0.9, "3")
    made = build(world.store, best_on_dev(), None, PUBLIC)
    assert made.rows[0].submission == best and any(unknown in note for note in made.notes)


def test_with_nothing_on_the_public_dataset_the_latest_counts(world: World) -> None:
    on_both(world, 1, None, 0.9)
    latest = on_both(world, 2, None, 0.1)
    made = build(world.store, best_on_dev(), None, ORGANISER)
    assert [row.submission for row in made.rows] == [latest] and made.notes == ()


def test_boards_and_exports_show_which_submission_counts(
    world: World, golden: Callable[[str, str], None]
) -> None:
    task = records.task(baseline=None)
    on_both(world, 1, 0.9, 0.5)
    alone = build(world.store, task, None, ORGANISER)
    assert "latest" not in export(alone, "table")  # nothing to choose from
    on_both(world, 2, 0.1, 0.9)
    latest = build(world.store, task, None, ORGANISER)
    made = build(world.store, best_on_dev(), None, ORGANISER)
    chosen = build(world.store, task, None, ORGANISER, pick="chosen", unit="team")
    golden("board-picks.txt", "\n".join(export(one, "table") for one in (latest, made, chosen)))
    for form in ("table", "markdown", "latex", "html"):
        shown = " ".join(export(made, form).split())
        assert "best" in shown and " dev" in shown, form
    data = json.loads(export(made, "json"))
    assert schemas.validate(data, "leaderboard") == [] and (data["pick"], data["best_on"]) == ("best", "dev")
    assert from_dict(data, "organiser") == made
    pick = next(csv.DictReader(io.StringIO(export(made, "csv"))))["pick"]
    assert pick.split()[::2] == ["best", "dev"]
    own = build(world.store, best_on_dev(), None, ORGANISER, pick="best")
    assert (own.best_on, own.rows[0].values["ndcg"].mean) == (None, 0.9)
    for table in (alone, latest, own):
        assert "best_on" not in export(table, "json")


@pytest.fixture
def uploads(world: World) -> LeaderboardTable:
    """Twelve run files of six teams; their names are as long as names are."""
    for n in range(12):
        software = f"dense-retrieval-with-feedback-{n:02}"
        id = world.register(
            f"team-with-a-name-{n % 6}", software, image=None, workflow="upload",
            cells=[["test", "default"]], description=EVIL,
        )  # fmt: skip
        scores = flat(0.3 + n / 40)
        world.evaluation(world.attempt(id, workflow="upload", wall=0.01), {"ndcg": scores, "rr": scores})
    bad = world.register("late", "x", image=None, workflow="upload", cells=[["test", "default"]])
    world.evaluation(world.attempt(bad, workflow="upload"), status="invalid", findings=[])
    return build(world.store, records.task(baseline=None), "main", ORGANISER)


def test_columns_with_one_value_are_left_out_and_named_below(uploads: LeaderboardTable) -> None:
    assert "answered" in export(uploads, "table").splitlines()[2], "missing answers stay next to the scores"
    uploads = replace(uploads, rows=tuple(replace(row, covered=row.topics) for row in uploads.rows))
    for form in ("table", "markdown", "html"):
        lines = export(uploads, form).splitlines()
        head = next(line for line in lines if ("rank" in line and "software" in line) or "<th" in line)
        for name in ("time", "memory", "tag", "kind", "answered"):
            assert name not in head, (form, name)
        assert any("uploaded" in line and "4/4" in line.replace("\\", "") for line in lines), form
    assert all(row.wall_seconds is None for row in uploads.rows)
    assert next(csv.DictReader(io.StringIO(export(uploads, "csv"))))["wall_seconds"] == ""
    first = replace(uploads.rows[0], how="executed", wall_seconds=1.0)
    head = export(replace(uploads, rows=(first, *uploads.rows[1:])), "table").splitlines()[2]
    assert "kind" in head and "time" in head


def test_runs_and_descriptions_are_in_wide_html_and_csv(uploads: LeaderboardTable) -> None:
    first = uploads.rows[0]
    plain, wide = io.StringIO(), io.StringIO()
    print_table(uploads, plain, color=False)
    print_table(uploads, wide, color=False, wide=True)
    assert first.runs[0] not in plain.getvalue() and "bold" not in plain.getvalue()
    line = next(line for line in wide.getvalue().splitlines() if first.runs[0] in line)
    assert "=1+1 <b>bold</b>" in line and "\x1b" not in line and len(wide.getvalue().splitlines()) < 30
    page = export(uploads, "html")
    assert first.runs[0] in page and "&lt;b&gt;bold" in page and "<b>bold" not in page
    row = next(csv.DictReader(io.StringIO(export(uploads, "csv"))))
    assert row["runs"] == first.runs[0] and row["description"].startswith("'=1+1 <b>bold</b>")
    assert json.loads(export(uploads, "json"))["rows"][0]["description"].startswith("=1+1")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_lines(table: LeaderboardTable, color: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines that a terminal of 80 columns shows, without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    print_table(table, stream, color=color)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    return lines


@pytest.mark.parametrize("color", [True, False])
def test_the_board_and_its_legend_fit_eighty_columns(
    uploads: LeaderboardTable, color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = terminal_lines(uploads, color, monkeypatch)
    assert sum("dense-retrieval" in line for line in lines) == 12
    wide = Terminal()
    print_table(uploads, wide, color=color, wide=True)
    assert all(row.runs[0] in wide.getvalue() for row in uploads.rows)


@pytest.mark.parametrize("color", [True, False])
def test_the_longest_names_wrap_and_are_not_cut(
    world: World, color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [(f"t{n}" + "m" * 38, f"s{n}" + "w" * 38) for n in range(3)]
    world.scored("baselines", "bm25", mean=0.5)
    for team, software in names:
        world.scored(team, software, mean=0.7)
    lines = terminal_lines(build(world.store, records.task(), "main", ORGANISER), color, monkeypatch)
    for team, software in names:
        [place] = [n for n, line in enumerate(lines) if f"{team}/" in line]
        assert re.search(r"0\.\d{4}", lines[place]) and lines[place + 1].strip() == software
    assert any("baselines/bm25" in line for line in lines)


def test_outcomes_have_colours_on_terminals_only(
    uploads: LeaderboardTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    print_table(uploads, stream)
    assert re.search(r"\x1b\[33m✗ invalid", stream.getvalue()), stream.getvalue()[-600:]
    monkeypatch.setenv("NO_COLOR", "1")
    for quiet in (Terminal(), io.StringIO()):
        print_table(uploads, quiet)
        assert "invalid" in quiet.getvalue() and "\x1b" not in quiet.getvalue()
    monkeypatch.delenv("NO_COLOR")
    output.table(("run", "outcome"), [("a", "failed")])
    assert "failed" in (said := capsys.readouterr().out) and "\x1b" not in said
