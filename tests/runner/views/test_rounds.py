"""Openings, deadlines, extensions and frozen rounds, at both edges of every date."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.model.calendar import calendar, check_dates
from runner.model.clock import FixedClock
from runner.model.errors import RunnerError
from runner.model.task import Cell, Dataset, Task
from runner.records.snapshot import snapshot_path, verify
from runner.records.store import connect
from runner.records.store.queries import submissions
from runner.submissions.load import load_submission
from runner.submissions.pack import write
from runner.submissions.register import Receipt, register
from runner.views.audience import ORGANISER, PUBLIC
from runner.views.leaderboard.export import FORMATS, export
from runner.views.leaderboard.rounds import board, due, freeze, states
from runner.views.leaderboard.rows import LeaderboardTable
from runner.views.leaderboard.table import build
from tests.runner.execution.test_pool import World as Desk
from tests.runner.execution.test_pool import good
from tests.worlds import records
from tests.worlds.definitions import problems_of
from tests.worlds.mini import Project, Said, call_here
from tests.worlds.records import TASK, World, with_scores


def at(text: str) -> FixedClock:
    return FixedClock(datetime.fromisoformat(text).replace(tzinfo=UTC))


# Registration


@pytest.fixture
def desk(project: Project) -> Iterator[Desk]:
    project.write_task(
        opens="2026-03-04 00:00 CET",
        closes="2026-05-17 23:59 AoE",
        extensions={"late": "2026-05-20 12:00 Europe/Berlin"},
    )
    made = Desk(project)
    yield made
    made.close()


def hand_in(desk: Desk, team: str, clock: FixedClock, software: str = "one", **keys: Any) -> Receipt:
    desk.engine.script.setdefault(f"{team}/{software}", good)
    desk.project.software(software, team=team, image=f"{team}/{software}", **keys)
    submission = load_submission(desk.project.config, team, software)
    image = desk.engine.resolve(f"{team}/{software}")
    to = desk.project.home / "bundles" / f"{team}.{software}"
    bundle = write(submission, image, to, engine=desk.engine, check=None, with_archive=False)
    return register(desk.project.config, desk.store, desk.engine, desk.tasks, bundle.folder, clock=clock)


def refused(desk: Desk, team: str, clock: FixedClock, software: str = "one", **keys: Any) -> RunnerError:
    events = len(list(desk.store.log))
    with pytest.raises(RunnerError) as caught:
        hand_in(desk, team, clock, software, **keys)
    assert caught.value.code == "E210" and len(list(desk.store.log)) == events
    return caught.value


def scored(world: World, team: str, received: str, datasets: tuple[str, ...] = ("test", "late")) -> str:
    """A submission that was received at this time, with flat scores; events have a clock of their own."""
    submission = world.register(team, "x", received=received)
    for dataset in datasets:
        world.evaluation(world.attempt(submission, dataset=dataset), {"ndcg": flat(0.5), "rr": flat(0.5)})
    return submission


def test_it_opens_at_the_first_second(desk: Desk) -> None:
    error = refused(desk, "alpha", at("2026-03-03 22:59:59"))
    assert "2026-03-04 00:00 CET" in error.why and "2026-03-03 23:00 UTC" in error.why
    assert hand_in(desk, "alpha", at("2026-03-03 23:00:00")).new


def test_the_last_second_is_admitted_and_the_first_after_it_refused(desk: Desk) -> None:
    assert hand_in(desk, "alpha", at("2026-05-18 11:59:59")).new
    assert submissions(desk.store)[0].registered == "2026-05-18T11:59:59Z", "the time of receipt"
    error = refused(desk, "beta", at("2026-05-18 12:00:00"))
    dates = ("2026-05-17 23:59 AoE", "2026-05-18 11:59 UTC", "2026-05-18 12:00:00 UTC")  # the last: received
    assert all(date in error.why for date in dates) and error.fix
    assert not hand_in(desk, "alpha", at("2026-06-01 00:00:00")).new, "registered before"


def test_an_extension_of_the_task_is_for_that_team_only(desk: Desk) -> None:
    assert hand_in(desk, "late", at("2026-05-20 10:00:59")).new
    error = refused(desk, "late", at("2026-05-20 10:01:00"), "two")
    assert "2026-05-20 12:00 Europe/Berlin" in error.why and "late" in error.why
    refused(desk, "alpha", at("2026-05-20 10:00:00"))


def test_an_extension_by_event_comes_first(desk: Desk) -> None:
    def extend(team: str, until: str) -> None:
        data = {"task": "mini", "team": team, "until": until}
        desk.store.commit("deadline-extended", data, actor="organiser")

    extend("alpha", "2026-05-18 23:59 AoE")
    extend("alpha", "2026-05-18 20:00 UTC")
    assert hand_in(desk, "alpha", at("2026-05-18 20:00:59")).new
    refused(desk, "alpha", at("2026-05-18 20:01:00"), "two")
    extend("late", "2026-05-16 00:00 UTC")  # never earlier than everybody's deadline
    assert hand_in(desk, "late", at("2026-05-18 11:59:59")).new
    desk.store.replay()
    refused(desk, "beta", at("2026-05-18 12:00:00"))


FILES = {"topics": "queries.jsonl", "corpus": "documents.jsonl.gz"}
PHASES: dict[str, Any] = {
    "closes": "2026-05-31 23:59 UTC",
    "tables": [{"id": "main", "cells": [{"dataset": "dev"}, {"dataset": "test"}], "rank_by": "ndcg_10"}],
    "datasets": [
        {"id": "dev", "visibility": "public", "closes": "2026-04-30 23:59 UTC", "grace": "10min"} | FILES,
        {"id": "test", "visibility": "blinded", "opens": "2026-05-10 00:00 UTC"} | FILES,
    ],
}


def test_a_dataset_has_a_phase_of_its_own(desk: Desk) -> None:
    """What names no dataset is taken for those that are open when it is received, and nobody but the log has to know the time."""
    desk.project.write_task(**PHASES)
    early = hand_in(desk, "alpha", at("2026-04-30 23:59:59"))
    assert early.left_out == ("test",)
    # Ten minutes late is taken, to the last second; after that nothing is open until test opens.
    assert hand_in(desk, "alpha", at("2026-05-01 00:09:59"), "two").left_out == ("test",)
    error = refused(desk, "alpha", at("2026-05-01 00:10:00"), "three")
    assert "mini/dev" in error.what and "2026-04-30 23:59 UTC" in error.why
    refused(desk, "alpha", at("2026-05-09 23:59:59"), "three")
    assert hand_in(desk, "alpha", at("2026-05-10 00:00:00"), "three").left_out == ("dev",)
    # test closes with the task.
    assert hand_in(desk, "alpha", at("2026-05-31 23:59:59"), "four").new
    refused(desk, "alpha", at("2026-06-01 00:00:00"), "five")
    cells = {s.software: [c.dataset for c in s.cells or ()] for s in submissions(desk.store)}
    assert cells == {"one": ["dev"], "two": ["dev"], "three": ["test"], "four": ["test"]}
    desk.store.replay()
    assert {s.software: [c.dataset for c in s.cells or ()] for s in submissions(desk.store)} == cells


def test_the_organisers_baselines_come_before_a_task_opens(desk: Desk) -> None:
    """On all datasets, also one that requires another; after the closing date they are late as everybody is."""
    rows = [dict(row) for row in PHASES["datasets"]]
    rows[1]["requires"] = "dev"
    desk.project.write_task(**{**PHASES, "opens": "2026-04-01 00:00 UTC", "datasets": rows})
    early = at("2026-03-01 12:00:00")
    assert "mini/dev" in refused(desk, "alpha", early).what
    made = hand_in(desk, "baselines", early)
    assert made.new and not made.left_out
    refused(desk, "baselines", at("2026-06-01 00:00:00"), "two")


def test_a_dataset_that_is_named_must_be_open(desk: Desk) -> None:
    desk.project.write_task(**PHASES)
    error = refused(desk, "alpha", at("2026-04-01 12:00:00"), datasets=["dev", "test"])
    assert "mini/test" in error.what and "mini/dev" not in error.what


def test_an_extension_of_a_dataset_is_for_it_and_that_team_only(desk: Desk) -> None:
    desk.project.write_task(**PHASES)
    data = {"task": "mini", "team": "alpha", "until": "2026-05-05 12:00 UTC", "reason": "ill"}
    desk.store.commit("deadline-extended", data | {"dataset": "dev"}, actor="organiser")
    assert hand_in(desk, "alpha", at("2026-05-05 12:10:59")).left_out == ("test",)  # with the grace
    error = refused(desk, "alpha", at("2026-05-05 12:11:00"), "two")
    assert "2026-05-05 12:00 UTC" in error.why and "alpha" in error.why
    refused(desk, "beta", at("2026-05-05 12:00:00"))
    # One for the task does not move a dataset with a date of its own.
    later = data | {"team": "beta", "until": "2026-06-09 12:00 UTC"}
    desk.store.commit("deadline-extended", later, actor="organiser")
    refused(desk, "beta", at("2026-05-05 12:00:00"))
    assert hand_in(desk, "beta", at("2026-06-09 12:00:59")).left_out == ("dev",)


def test_what_is_paused_takes_nothing_until_it_is_resumed(desk: Desk) -> None:
    place = {"task": "mini", "dataset": "test"}
    reason = "a topic is wrong"
    desk.store.commit("dataset-paused", place | {"reason": reason}, actor="organiser")
    desk.store.replay()
    error = refused(desk, "alpha", at("2026-05-01 12:00:00"))
    assert "mini/test" in error.what and reason in error.why
    desk.store.commit("dataset-resumed", place | {"reason": ""}, actor="organiser")
    assert hand_in(desk, "alpha", at("2026-05-01 12:00:00")).new
    desk.store.commit("dataset-paused", place | {"dataset": "", "reason": ""}, actor="organiser")
    refused(desk, "alpha", at("2026-05-01 12:00:00"), "two")


@pytest.fixture
def run(project: Project, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Return a function that runs ``runner`` in this process."""

    def run(words: str, *more: str, expect: int = 0) -> Said:
        said = call_here(project, [*words.split(), *more], capsys)
        assert said.code == expect, said.all
        return said

    return run


def test_pausing_on_the_command_line(run: Callable[..., Said]) -> None:
    def paused() -> object:
        return run("task show mini --as team:alpha --json").json["team"]["paused"]

    def events() -> int:
        return len(run("events --json").json)

    run("task pause mini test --reason wrong")
    before = events()
    assert paused() == {"test": "wrong"} and "wrong" in run("task show mini --as team:alpha").out
    run("task pause mini test")  # again, which changes nothing
    assert events() == before and paused() == {"test": "wrong"}
    for _ in range(2):
        run("task resume mini test")
        assert events() == before + 1 and paused() == {}
    assert "E102" in run("task pause mini tset", expect=2).err
    run("store rebuild")


def test_the_dates_of_a_demonstration_keep_nobody_out(project: Project) -> None:
    project.write_task(
        closes="2020-01-01 23:59 AoE", rounds=[{"id": "r", "at": "2020-01-01 23:59 AoE"}], demo=True
    )
    made = Desk(project)
    assert hand_in(made, "alpha", at("2026-05-18 12:00:00")).new
    assert due(made.tasks.values(), made.store) == []
    made.close()


# Rounds


def task(**definition: Any) -> Task:
    """The toy task with two test sets and two rounds; events happen an hour apart from 13:00 on."""
    one = records.task(cells=(Cell("test"), Cell("late")), baseline=None)
    here = one.folder
    late = Dataset("late", "blinded", here / "late", here / "late-truths", scores="public")
    main = one.tables["main"]
    tables = {
        "main": main,
        "test": replace(main, id="test", cells=(Cell("test"),)),
        "dev": replace(main, id="dev", cells=(Cell("dev"),)),
    }
    rounds = [
        {"id": "first", "at": "2026-01-05 18:59 UTC", "datasets": ["test"], "title": "First round"},
        {"id": "final", "at": "2026-01-06 23:59 UTC", "datasets": ["test", "late"]},
    ]
    given = {"rounds": rounds, "closes": "2026-01-06 23:59 UTC", **definition}
    return replace(one, datasets={**one.datasets, "late": late}, tables=tables, definition=given)


AFTER_FIRST = "2026-01-05 19:00:00"
AFTER_FINAL = "2026-01-07 00:00:00"


def frozen(world: World, one: Task, name: str, when: str, **more: Any) -> None:
    _, new = freeze(world.config, world.store, one, name, clock=at(when), **more)
    assert new


def rows(table: LeaderboardTable) -> list[tuple[str, float]]:
    return [(r.submission, r.values["ndcg"].mean) for r in table.rows]


def show(world: World, one: Task, name: str, table: str | None = None) -> LeaderboardTable:
    return board(world.store, one, name, table, ORGANISER)


def flat(value: float) -> dict[str, float]:
    return {str(n): value for n in range(4)}


def test_a_round_cannot_be_frozen_before_its_last_minute_is_over(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    with pytest.raises(RunnerError) as caught:
        freeze(world.config, world.store, one, "first", clock=at("2026-01-05 18:59:59"))
    dates = ("2026-01-05 18:59 UTC", "2026-01-05 19:00:00 UTC", "2026-01-05 18:59:59 UTC")  # end, next, now
    assert caught.value.code == "E211" and all(date in caught.value.why for date in dates)
    assert not snapshot_path(world.config.home, TASK, "first").exists()
    frozen(world, one, "first", AFTER_FIRST)
    with pytest.raises(RunnerError) as caught:
        freeze(world.config, world.store, one, "frist\x1b", clock=at(AFTER_FIRST))
    assert caught.value.code == "E102" and "\x1b" not in caught.value.what


def test_what_was_received_in_time_counts(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    edge = scored(world, "a", "2026-01-05T18:59:59Z", ("test",))
    over = scored(world, "b", "2026-01-05T19:00:00Z", ("test",))
    frozen(world, one, "first", AFTER_FIRST)
    assert rows(show(world, one, "first")) == [(edge, 0.5)]
    assert {r.submission for r in show(world, one, "final", "test").rows} == {edge, over}


def test_later_submissions_evaluations_and_withdrawals_change_nothing(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    first = world.scored("a", "x", scores=flat(0.5))
    attempt = world.archive.attempt(TASK, f"{first}.test", 1)
    frozen(world, one, "first", AFTER_FIRST)
    before = {form: export(show(world, one, "first"), form) for form in FORMATS}
    world.evaluation(attempt, {"ndcg": flat(0.1), "rr": flat(0.1)})
    second = world.scored("a", "x", version=2, scores=flat(0.9))
    world.commit("submission-withdrawn", submission=first)
    assert rows(build(world.store, one, "test", ORGANISER)) == [(second, 0.9)]
    assert {form: export(show(world, one, "first"), form) for form in FORMATS} == before
    state, new = freeze(world.config, world.store, one, "first", clock=at(AFTER_FINAL))
    assert not new and state.frozen == "2026-01-05T19:00:00Z"
    world.store.replay()
    assert {form: export(show(world, one, "first"), form) for form in FORMATS} == before
    # The task's definition does not matter any more either.
    other = replace(one, tables={"new": replace(one.tables["dev"], id="new")}, title="Another")
    assert export(show(world, other, "first"), "json") == before["json"]


def test_an_invalid_upload_after_a_valid_one_does_not_displace_it(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    valid = world.scored("a", "x", scores=flat(0.5))
    bad = world.register("a", "x", version=2)
    world.evaluation(world.attempt(bad), status="invalid", codes={"F001": ("error", 1)})
    frozen(world, one, "first", "2026-01-05 19:00:00")
    table = show(world, one, "first")
    assert rows(table) == [(valid, 0.5)]
    [below] = table.unranked
    assert (below.submission, below.outcome) == (bad, "invalid")
    assert valid in below.reason
    assert valid in export(table, "html")


def test_the_rule_latest_per_team(world: World) -> None:
    one = task(round_rule="latest-per-team")
    one = replace(one, tables={n: replace(t, unit="team") for n, t in one.tables.items()})
    world.scored("a", "x", scores=flat(0.9))
    latest = world.scored("a", "y", scores=flat(0.2))
    frozen(world, one, "first", AFTER_FIRST)
    assert rows(show(world, one, "first")) == [(latest, 0.2)]
    text = snapshot_path(world.config.home, TASK, "first").read_text()
    assert json.loads(text)["rule"] == "latest-per-team"


def test_runs_that_could_still_count_are_waited_for(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    world.scored("a", "x", scores=flat(0.5))
    waiting = world.register("b", "x")
    with pytest.raises(RunnerError) as caught:
        freeze(world.config, world.store, one, "first", clock=at(AFTER_FIRST))
    assert caught.value.code == "E211"
    assert [p.where for p in caught.value.problems] == [f"{waiting}.test"]
    frozen(world, one, "first", AFTER_FIRST, anyway=True)
    data = json.loads(snapshot_path(world.config.home, TASK, "first").read_text())
    assert data["unsettled"] == [f"{waiting}.test"]
    assert schemas.validate(data, "snapshot") == []


def test_the_snapshot_says_which_evaluations_count(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    submission = world.register("a", "x")
    attempt = world.attempt(submission)
    world.evaluation(attempt, {"ndcg": flat(0.4), "rr": flat(0.4)})
    second = world.evaluation(attempt, {"ndcg": flat(0.5), "rr": flat(0.5)})
    frozen(world, one, "first", AFTER_FIRST)
    data = json.loads(snapshot_path(world.config.home, TASK, "first").read_text())
    assert data["evaluations"] == [
        {"run": attempt.run_id, "attempt": 1, "evaluation": 2, "manifest": second.manifest_digest()}
    ]
    assert set(data["tables"]) == {"main", "test"}
    assert [c["dataset"] for c in data["tables"]["main"]["cells"]] == ["test"]
    for table in data["tables"].values():
        assert schemas.validate(table, "leaderboard") == []


def test_an_extension_moves_the_final_round_only(world: World) -> None:
    one = task(extensions={"slow": "2026-01-08 12:00 UTC"})
    dates = calendar(one)
    assert dates.cutoff(dates.rounds["first"], "test", "slow").own == "2026-01-05 18:59 UTC"
    assert dates.cutoff(dates.rounds["final"], "test", "slow").own == "2026-01-08 12:00 UTC"
    assert dates.cutoff(dates.rounds["final"], "test", "quick").own == "2026-01-06 23:59 UTC"
    frozen(world, one, "first", AFTER_FIRST)
    ids = {team: scored(world, team, "2026-01-08T12:00:59Z") for team in ("slow", "quick")}
    with pytest.raises(RunnerError) as caught:
        freeze(world.config, world.store, one, "final", clock=at("2026-01-08 12:00:59"), anyway=True)
    assert "2026-01-08 12:00 UTC" in caught.value.why
    frozen(world, one, "final", "2026-01-08 12:01:00", anyway=True)
    assert rows(show(world, one, "final")) == [(ids["slow"], 0.5)]


def test_what_a_dataset_takes_late_counts_in_the_round_at_its_closing_date(world: World) -> None:
    """By its own extension, or within its grace; nothing is frozen before, and on other datasets nothing moves."""
    phase = {"id": "late", "closes": "2026-01-06 23:59 UTC", "grace": "2h"}
    one = task(datasets=[{"id": "test"}, phase])
    until = {"task": TASK, "team": "ill", "until": "2026-01-08 12:00 UTC"}
    world.commit("deadline-extended", **until, dataset="late", reason="ill")
    received = {"ill": "2026-01-08T14:00:59Z", "slow": "2026-01-07T01:59:59Z", "over": "2026-01-07T02:00:00Z"}
    ids = {team: scored(world, team, when) for team, when in received.items()}
    late = replace(one.tables["main"], id="late", cells=(Cell("late"),))
    one = replace(one, tables={**one.tables, "late": late})
    with pytest.raises(RunnerError) as caught:
        freeze(world.config, world.store, one, "final", clock=at("2026-01-08 14:00:59"), anyway=True)
    assert "2026-01-08 14:00 UTC" in caught.value.why
    frozen(world, one, "final", "2026-01-08 14:01:00", anyway=True)
    assert {id for id, _ in rows(show(world, one, "final", "late"))} == {ids["ill"], ids["slow"]}
    assert rows(show(world, one, "final", "test")) == []


def test_rounds_that_are_due_are_named(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()

    def names(when: str) -> list[str]:
        return [s.round.id for _, s in due([one], world.store, at(when))]

    assert names("2026-01-05 18:59:59") == []
    assert names(AFTER_FIRST) == ["first"]
    frozen(world, one, "first", AFTER_FIRST)
    assert names(AFTER_FIRST) == []
    assert names(AFTER_FINAL) == ["final"]
    assert [s.name for s in states(one, world.store, at(AFTER_FINAL))] == ["frozen", "due"]
    assert due([records.task()], world.store) == []


def test_a_round_that_is_not_frozen_is_provisional_in_every_format(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    world.scored("a", "x", scores=flat(0.5))
    open_ = show(world, one, "first")
    assert rows(open_) == rows(build(world.store, one, "test", ORGANISER))
    frozen(world, one, "first", AFTER_FIRST)
    done = show(world, one, "first")
    assert rows(done) == rows(open_)
    for form in FORMATS:
        assert "first" in export(open_, form)
        assert "2026-01-05T19:00:00Z" in export(done, form) and "2026-01-05T19" not in export(open_, form)
    for form in ("table", "markdown", "latex", "html"):
        assert "provisional" in export(open_, form) and "provisional" not in export(done, form)
        assert "First round" in export(done, form)
    [line] = csv.DictReader(io.StringIO(export(done, "csv")))
    assert (line["round"], line["frozen"]) == ("first", "2026-01-05T19:00:00Z")
    assert schemas.validate(json.loads(export(done, "json")), "leaderboard") == []


def test_a_frozen_round_has_an_audience_too(world: World) -> None:
    one = with_scores(task(), "test", "organiser")
    bad = world.register("a", "x")
    told = "a word of the software"
    world.attempt(bad, verdict="run-error", detail=f"exit code 3: {told}")
    world.scored("b", "x", scores=flat(0.5))
    frozen(world, one, "first", AFTER_FIRST)
    with pytest.raises(RunnerError) as caught:
        board(world.store, one, "first", None, PUBLIC)
    assert caught.value.code == "E103"
    world.commit("dataset-published", task=TASK, dataset="test")
    table = board(world.store, one, "first", None, PUBLIC)
    assert table.audience == "public" and len(table.rows) == 1
    assert told not in snapshot_path(world.config.home, TASK, "first").read_text()
    world.commit("dataset-unpublished", task=TASK, dataset="test", reason="")
    with pytest.raises(RunnerError) as closed:
        board(world.store, one, "first", None, PUBLIC)
    assert closed.value.code == "E103"


def test_a_changed_snapshot_is_found(tmp_path: Path) -> None:
    world, one = World.make(tmp_path), task()
    world.scored("a", "x", scores=flat(0.5))
    frozen(world, one, "first", AFTER_FIRST)
    path = snapshot_path(world.config.home, TASK, "first")
    good_bytes = path.read_bytes()
    assert verify(world.config.home, world.store.log) == []
    path.chmod(0o644)
    for changed in (good_bytes.replace(b"0.5", b"0.9"), good_bytes + b" ", b"{}", b""):
        path.write_bytes(changed)
        with pytest.raises(RunnerError) as caught:
            show(world, one, "first")
        assert caught.value.code == "E307"
        assert len(verify(world.config.home, world.store.log)) == 1
        with pytest.raises(RunnerError) as caught:
            world.store.replay()
        assert caught.value.code == "E307"
    path.unlink()
    with pytest.raises(RunnerError) as caught:
        show(world, one, "first")
    assert caught.value.code == "E307"
    path.write_bytes(good_bytes)
    connect.rebuild(world.config)
    assert rows(show(world, one, "first"))


def test_killed_before_the_event_it_is_frozen_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, one = World.make(tmp_path), task()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.store, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            freeze(world.config, world.store, one, "first", clock=at(AFTER_FIRST))
    assert snapshot_path(world.config.home, TASK, "first").exists()
    assert states(one, world.store, at(AFTER_FIRST))[0].name == "due"
    world.scored("a", "x", scores=flat(0.5))
    frozen(world, one, "first", AFTER_FIRST)
    assert rows(show(world, one, "first"))


# The definition


CLOSES, OPENS = {"closes": "2026-05-17 23:59 UTC"}, {"opens": "2026-05-18 00:00 UTC"}


@pytest.mark.parametrize(
    ("definition", "pointer"),
    [
        ({"closes": "2026-05-17 23:59"}, "/closes"),
        (CLOSES | OPENS, "/closes"),
        ({"extensions": {"a": "2026-05-17 23:59 UTC"}}, "/extensions/a"),
        (CLOSES | {"extensions": {"a": "2026-05-17 12:00 UTC"}}, "/extensions/a"),
        (CLOSES | {"datasets": [{"id": "test", **OPENS}]}, "/datasets/0/opens"),
        ({"datasets": [{"id": "test", "closes": "soon"}]}, "/datasets/0/closes"),
        ({"datasets": [{"id": "test", "grace": "1h"}]}, "/datasets/0/grace"),
        ({"rounds": [{"id": "r", "at": "soon"}]}, "/rounds/0/at"),
        (OPENS | {"rounds": [{"id": "r", "at": "2026-05-17 23:59 UTC"}]}, "/rounds/0/at"),
    ],
)
def test_wrong_dates_of_a_task(definition: dict[str, Any], pointer: str) -> None:
    found = problems_of(check_dates, {"datasets": [{"id": "test"}], **definition})
    assert [p.pointer for p in found] == [pointer]


def test_a_task_with_wrong_dates_is_refused_with_the_line(project: Project, run: Callable[..., Said]) -> None:
    project.write_task(closes="2026-02-30 12:00 UTC")
    error = run("task check mini", expect=4).err
    assert "E401" in error and "task.yaml:" in error and "2026-02-30 12:00 UTC" in error


# The command line


def test_rounds_on_the_command_line(project: Project, run: Callable[..., Said]) -> None:
    first, last = "2020-01-01 23:59 AoE", "2999-01-01 23:59 AoE"
    project.write_task(rounds=[{"id": "first", "at": first}, {"id": "last", "at": last}], closes=last)
    listed = run("round list --json").json
    assert [(r["round"], r["state"], r["at_utc"]) for r in listed] == [
        ("first", "due", "2020-01-02 11:59 UTC"),
        ("last", "open", "2999-01-02 11:59 UTC"),
    ]
    assert first in run("round list").out
    assert "provisional" in run("leaderboard mini --round first").out
    assert "E211" in run("round freeze mini last", expect=1).err
    assert [run("round freeze mini first --json").json["new"] for _ in range(2)] == [True, False]
    assert "frozen" in run("round show mini first").out
    assert run("round show mini first --json").json["snapshot"]["round"] == "first"
    board = run("leaderboard mini --round first --how executed --json").json
    assert board["round"]["frozen"] and board["filters"] == {"how": "executed"}
    assert "E102" in run("leaderboard mini --round x", expect=2).err
    assert "E101" in run("leaderboard mini --method x", expect=2).err
    run("store verify")
    path = snapshot_path(project.home, "mini", "first")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b" ")
    assert "E307" in run("store verify", expect=3).err


def test_extensions_on_the_command_line(project: Project, run: Callable[..., Said]) -> None:
    project.write_task(closes="2020-01-01 23:59 AoE")
    until, utc = "2020-01-03 12:00 CEST", "2020-01-03 10:00 UTC"
    said = run("extend mini alpha --until", until).err
    assert until in said and utc in said
    for date in ("2019-12-31 23:59 AoE", "2020-01-01 23:59 AoE", "tomorrow", "2020-01-05 12:00"):
        assert "E101" in run("extend mini alpha --until", date, expect=2).err
    for words in ("extend mini alpha", "extend mini alpha --dataset test -n 1"):
        assert "E101" in run(words, expect=2).err
    later = "2020-01-04 12:00 UTC"
    assert "mini/test" in run("extend mini alpha --dataset test --reason ill --until", later).err
    team = run("task show mini --as team:alpha --json").json["team"]
    assert team["deadline"] == "2020-01-03T10:00:00Z"
    assert team["closes"]["test"] == "2020-01-04T12:00:00Z" > team["closes"]["dev"]
    shown = run("task show mini --as team:alpha").out
    assert all(date in shown for date in (until, utc, later))


def test_limits_of_a_team_on_the_command_line(project: Project, run: Callable[..., Said]) -> None:
    def limits(team: str) -> tuple[float, int]:
        found = run(f"task show mini --as team:{team} --json").json["limits"]
        return found["wall_clock"], found["memory"]

    extend, more = "extend mini alpha", ("--time", "2h", "--memory", "8GiB", "--reason", "a slow machine")
    said = run(extend, *more).err
    assert limits("alpha") == (7200, 8 * 2**30) and limits("beta") == (30, 64 * 2**20)
    project.write_task_only(limits={"wall_clock": "30s", "cpu_time": "20s"})
    assert "20 s" in run(extend, *more).err and "20 s" not in said, "the limit that stays is named"
    project.write_task_only()
    for wrong in (("--time", "soon"), ("--memory", "1KiB"), ("--time", "0s"), ("--memory", "9")):
        assert "E101" in run(extend, *wrong, expect=2).err
    run("store rebuild")
    assert limits("alpha") == (7200, 8 * 2**30)


def test_what_counts_in_a_frozen_round_was_decided_then(tmp_path: Path) -> None:
    """A table that takes the best freezes it so; before that anybody may look at it the other way, afterwards nobody."""
    world, one = World.make(tmp_path), task()
    best = world.scored("a", "x", scores=flat(0.9))
    latest = world.scored("a", "x", version=2, scores=flat(0.5))
    assert rows(show(world, one, "first")) == [(latest, 0.5)]
    assert rows(board(world.store, one, "first", None, ORGANISER, pick="best")) == [(best, 0.9)]
    by_best = replace(one, tables={name: replace(t, pick="best") for name, t in one.tables.items()})
    frozen(world, by_best, "first", AFTER_FIRST)
    made = show(world, one, "first")
    assert rows(made) == [(best, 0.9)] and made.pick == "best"
    for choice in ({"pick": "latest"}, {"unit": "team"}):
        with pytest.raises(RunnerError) as caught:
            board(world.store, one, "first", None, ORGANISER, **choice)  # type: ignore[arg-type]
        assert caught.value.code == "E101"
