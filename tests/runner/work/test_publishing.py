"""What is published: by the audience rules, and nothing to the front that nobody may see."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.published import Published, Publisher, View
from runner.model.clock import FixedClock
from runner.model.errors import RunnerError
from runner.records.store.connect import open_store
from runner.tasks.load import load_tasks
from runner.work.publishing import Desk
from tests.runner.execution.test_pool import World
from tests.worlds import records
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import TASK, Project, call

__all__ = ["cli"]

CANARY = "canary-5521"


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    made = World(project)
    yield made
    made.close()


def talkative(mounts: Any, out: Path) -> None:
    """A software that writes what it read of hidden inputs into its log."""
    from tests.runner.execution.test_pool import good

    mounts.say(f"the hidden topic is {CANARY}")
    good(mounts, out)


def publish(world: World, *expected: str) -> Published:
    root = world.project.config.published
    problems: list[RunnerError] = []
    Desk(world.store, world.tasks, Publisher(root), problems.append).publish(["alpha", "beta"])
    assert [error.code for error in problems] == list(expected)
    return Published(root)


def paths(view: View, prefix: str = "") -> set[str]:
    return {one.path for one in view.below(prefix)}


def everything(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def test_each_team_gets_its_own_runs_and_the_public_none(world: World) -> None:
    mine, theirs = world.hand_in("alpha", script=talkative), world.hand_in("beta")
    world.work()
    seen = publish(world)
    for team, run in (("alpha", mine), ("beta", theirs)):
        assert paths(seen.view(f"team:{team}"), "runs/") == {f"runs/{run}"}
        standing = seen.view(f"team:{team}").get("standing/mini")
        assert standing is not None and seen.view(f"team:{team}").data(standing)["team"]["team"] == team
    assert paths(seen.view("public"), "runs") == set() and paths(seen.view("public"), "standing") == set()
    organiser = seen.view("organiser")
    assert {f"runs/{mine}", f"runs/{theirs}"} <= paths(organiser)
    found = seen.view("team:alpha").get(f"runs/{mine}")
    assert found is not None and organiser.get(f"runs/{mine}") == found, (
        "the organiser's part holds what teams have"
    )
    assert seen.view("team:alpha").data(found)["run"] == mine


def test_ir_metadata_goes_to_whoever_may_have_the_files_of_a_run(tmp_path: Path) -> None:
    made = records.World.make(tmp_path)
    for name in ("dev", "test"):
        made.scored("alpha", name, scores={"1": 0.5}, datasets=(name,))
    to = Publisher(tmp_path / "published")
    Desk(made.store, {"toy": records.task()}, to, pytest.fail).publish(["alpha"])
    view = Published(tmp_path / "published").view("team:alpha")
    [found] = view.below("metadata/")
    assert found.path.endswith(".dev") and "alpha" in view.data(found)["yaml"], "none of the blinded run"
    pages = {one.path: view.text(one) for one in view.below("runs/")}
    with_link = {path for path, text in pages.items() if "ir-metadata.yml" in text}
    assert len(pages) > 1 and with_link == {found.path.replace("metadata/", "runs/")}


def test_nothing_of_a_blinded_run_that_its_team_may_not_see_reaches_the_front(world: World) -> None:
    world.hand_in("alpha", script=talkative, description="mine")
    world.work()
    publish(world)
    assert CANARY.encode() in everything(world.project.home / "archive"), "the log is kept"
    published = everything(world.project.config.published)
    assert CANARY.encode() not in published
    hidden = (world.project.private / "mini/test/inputs/queries.jsonl").read_bytes().splitlines()[0]
    assert hidden not in published


def test_an_assistant_sees_no_more_of_hidden_data_than_everybody(world: World) -> None:
    """Outcomes of all runs; neither what was opened to a team alone, nor scores before they are everybody's."""
    run = world.hand_in("alpha", script=talkative)
    world.work()
    released = {"task": "mini", "run": run, "attempt": 1, "reason": ""}
    world.store.commit("run-released", released, actor="organiser")
    seen = publish(world)
    assistant, organiser = seen.view("assistant"), seen.view("organiser")
    assert paths(assistant, "runs") == {"runs"} and f"runs/{run}" in paths(organiser)
    assert paths(assistant, "standing") == set() and paths(assistant, "tasks") == paths(
        seen.view("public"), "tasks"
    )
    found = assistant.get("runs")
    assert found is not None
    [row] = assistant.data(found)
    assert row["run"] == run and row["resources"]["wall_seconds"] is None and CANARY not in str(row)
    opened = {"task": "mini", "dataset": "test"}
    world.store.commit("dataset-published", opened, actor="organiser")
    world.store.commit("run-closed", {"task": "mini", "run": run, "attempt": 1}, actor="organiser")
    publish(world)
    assert f"runs/{run}" in paths(seen.view("assistant"))


def test_a_board_is_published_once_its_scores_are_and_only_then(world: World) -> None:
    world.hand_in("alpha")
    world.work()
    seen = publish(world)
    pointer = seen.pointer()
    assert "tasks/mini/main" not in paths(seen.view("public")) | paths(seen.view("team:alpha"))
    publish(world)
    assert seen.pointer() == pointer, "nothing happened, nothing is another"
    world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    publish(world)
    board = seen.view("public").get("tasks/mini/main")
    assert board is not None and seen.view("public").data(board)["rows"][0]["team"] == "alpha"
    assert "alpha" in seen.view("public").text(board) and "<html" not in seen.view("public").text(board)
    closed = {"task": "mini", "dataset": "test", "reason": ""}
    world.store.commit("dataset-unpublished", closed, actor="organiser")
    publish(world)
    assert seen.view("public").get("tasks/mini/main") is None


def test_what_is_damaged_of_one_run_stops_nothing_else(world: World) -> None:
    bad, good = world.hand_in("alpha", "bad"), world.hand_in("alpha", "good")
    world.work()
    record = world.project.home / "archive/mini" / bad / "attempts/1/run.json"
    record.chmod(0o644)
    record.write_text("{")
    seen = publish(world, "E307")
    assert paths(seen.view("team:alpha"), "runs/") == {f"runs/{good}"}
    assert seen.view("public").get("tasks/mini") is not None


def test_tokens_are_shown_once_and_kept_as_keys(project: Project, cli: Cli) -> None:
    token = call(project, "team", "add", "alpha").out.strip()
    listed = cli("team", "list", "--json").json
    assert [one["team"] for one in listed] == ["alpha"] and len(listed[0]["tokens"]) == 1
    secret = token.split("_", 2)[2]  # it may hold underscores itself
    for path in project.home.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path
    assert (project.home / "accounts.sqlite").stat().st_mode & 0o077 == 0
    assert "E101" in cli("team", "add", "alpha", expect=2).err
    assert "E215" in cli("team", "add", "Alpha", expect=None).err
    assert "E208" in cli("team", "add", "baselines", expect=None).err
    assert "E102" in cli("team", "rotate", "beta", expect=2).err
    assert cli("team", "rotate", "alpha").out.strip() != token
    cli("team", "close", "alpha")
    assert b'"grants":[]' in (project.config.published / "access.json").read_bytes()
    assert cli("team", "rotate", "alpha", expect=2).err.count("closed")


OPENS, JULY = "2026-06-01 12:00 UTC", "2026-07-01 12:00 UTC"
# Keys of the task; whether it is shown a second before, and then.
DATES: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "no dates": ({}, True, True),
    "before it opens": ({"opens": OPENS}, False, True),
    "at a date of its own": ({"announced": OPENS}, False, True),
    "before it opens, because it says so": ({"opens": JULY, "announced": OPENS}, False, True),
    "never": ({"announced": "never"}, False, False),
    "a demonstration": ({"opens": OPENS, "demo": True}, True, True),
    "a demonstration that says so": ({"announced": OPENS, "demo": True}, False, True),
    "by the first dataset that opens": ({"opens": JULY, "datasets": "one opens"}, False, True),
}


@pytest.mark.parametrize("case", DATES)
def test_a_task_is_on_the_web_from_its_time_on(project: Project, case: str) -> None:
    """Not its name stands anywhere before: neither for everybody, nor for a team or the organiser."""
    keys, before, then = DATES[case]
    if "datasets" in keys:
        first, *others = TASK["datasets"]
        keys = keys | {"datasets": [{**first, "opens": OPENS}, *others]}
    project.write_task(title="Coming soon", **keys)
    at = datetime(2026, 6, 1, 12, tzinfo=UTC)
    with open_store(project.config) as store:
        tasks = load_tasks(project.config)[0]
        for moment, expected in ((at - timedelta(seconds=1), before), (at, then)):
            root = project.home / f"published-{expected}-{moment:%H%M%S}"
            Desk(store, tasks, Publisher(root), fail_of, FixedClock(moment)).publish(["alpha"])
            for audience in ("public", "team:alpha", "organiser", "assistant"):
                shown = "tasks/mini" in paths(Published(root).view(audience))
                assert shown == expected, (audience, moment)
            assert (b"Coming soon" in everything(root)) == expected


def fail_of(error: RunnerError) -> None:
    pytest.fail(error.what)


def test_a_team_is_told_how_many_runs_are_before_its_own(world: World) -> None:
    world.hand_in("beta")
    world.work()
    for team, software in (("beta", "a"), ("alpha", "b"), ("beta", "c"), ("alpha", "d")):
        world.hand_in(team, software)
    seen = publish(world)
    told = {}
    for team in ("alpha", "beta"):
        found = seen.view(f"team:{team}").get("queue")
        assert found is not None
        told[team] = seen.view(f"team:{team}").data(found)
    assert told == {"alpha": {"all": 4, "own": 2, "before": 1}, "beta": {"all": 4, "own": 2, "before": 0}}
    assert seen.view("public").get("queue") is None


def test_a_board_is_made_once_for_all_who_see_the_same(tmp_path: Path) -> None:
    made = records.World.make(tmp_path)
    records.write_project(made.config.root)
    for team in ("alpha", "beta"):
        made.scored(team, "y", datasets=("dev", "test"))
    tasks, to = load_tasks(made.config)[0], Publisher(tmp_path / "published")
    Desk(made.store, tasks, to, fail_of).publish(["alpha", "beta", "gamma"])
    seen = Published(tmp_path / "published")
    audiences = ("public", "organiser", "assistant", "team:alpha", "team:gamma")
    assert len({seen.view(one).get("tasks/toy/main") for one in audiences}) == 1


def test_two_tasks_of_one_title_and_the_same_rows_stop_nothing(tmp_path: Path) -> None:
    """Their plots have one name, which is their content's: it is published once, and both pages lead to it."""
    made = records.World.make(tmp_path)
    records.write_project(made.config.root)
    shutil.copytree(made.config.root / "tasks/toy", made.config.root / "tasks/twin")
    _write(made, "tasks/twin/task.yaml", '"id": "toy"', '"id": "twin"')
    begun = made.clock.at
    for version, name in enumerate(("toy", "twin"), 1):
        made.of, made.clock.at = name, begun
        made.scored("alpha", "y", version=version, tag="y", scores={"1": 0.25, "2": 0.5})
    Desk(made.store, load_tasks(made.config)[0], Publisher(tmp_path / "published"), fail_of).publish(
        ["alpha"]
    )
    view = Published(tmp_path / "published").view("public")
    pages = [view.get(f"plots-of/{name}") for name in ("toy", "twin")]
    of_toy, of_twin = ({one["digest"] for one in view.data(page)} for page in pages if page is not None)
    assert of_toy & of_twin and all(view.get(f"plots/{one}") for one in of_toy | of_twin)


def test_made_up_names_are_apart_for_every_team(tmp_path: Path) -> None:
    made = records.World.make(tmp_path)
    records.write_project(made.config.root)
    path = made.config.root / "tasks/toy/task.yaml"
    path.write_text(json.dumps({**json.loads(path.read_text()), "anonymous": {"until": "published"}}))
    for team in ("alpha", "beta"):
        made.scored(team, "y", datasets=("dev", "test"))
    made.commit("key-drawn", task="toy", key="11" * 32)
    Desk(made.store, load_tasks(made.config)[0], Publisher(tmp_path / "published"), fail_of).publish(
        ["alpha", "beta"]
    )
    seen = Published(tmp_path / "published")
    named = {}
    for audience in ("public", "team:alpha", "team:beta"):
        found = seen.view(audience).get("tasks/toy/main")
        assert found is not None
        text = seen.view(audience).text(found) + json.dumps(seen.view(audience).data(found))
        named[audience] = {team for team in ("alpha", "beta") if team in text}
    assert named == {"public": set(), "team:alpha": {"alpha"}, "team:beta": {"beta"}}


def _write(made: records.World, name: str, old: str, new: str) -> None:
    path = made.config.root / name
    path.write_text(path.read_text().replace(old, new))
