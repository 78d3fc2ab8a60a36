"""A submission may ask for memory, processors and time in the frame that the task gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runner.execution.plan import plan
from runner.execution.schedule import needs_of
from runner.model.errors import RunnerError
from runner.model.limits import GIB, MIB, Limits
from runner.model.run import Selection
from runner.records.store.connect import open_store, rebuild
from runner.records.store.queries import find_run, submissions
from runner.records.store.run_detail import detail
from runner.submissions.bundle import read_bundle, write_bundle
from runner.submissions.load import load_submission
from runner.submissions.register import register
from runner.tasks.load import load_task
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.formats.parts import legend
from runner.views.leaderboard.table import build
from runner.views.overview.facts import overview
from runner.views.overview.screen import lines
from runner.views.redact import redact_run
from runner.views.show.page import page
from tests.runner.execution.test_pool import World
from tests.worlds.mini import TASK, Project

FRAMES = {
    "memory": {"default": "64MiB", "max": "256MiB"},
    "cpus": {"default": 1, "max": 2},
    "wall_clock": {"default": "30s", "max": "2min"},
}
LIMITS: dict[str, Any] = TASK["limits"] | FRAMES


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task(limits=LIMITS)
    made = World(project)
    yield made
    made.close()


def _refused(project: Project, **keys: Any) -> str:
    project.software("one", image="alpha/one", **keys)
    with pytest.raises(RunnerError) as caught:
        load_submission(project.config, "alpha", "one")
    assert caught.value.code == "E207"
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("limits", "values"),
    [
        ({"memory": "257MiB"}, ("257 MiB", "64 MiB", "256 MiB")),
        ({"memory": "63MiB"}, ("63 MiB", "64 MiB", "256 MiB")),
        ({"cpus": 2.5}, ("2.5 ", "1 ", "2 ")),
        ({"wall_clock": 121}, ("121 s", "30 s", "120 s")),
        ({"cpu_time": "10s"}, ("cpu_time",)),
    ],
)
def test_limits_outside_the_frame(project: Project, limits: dict[str, Any], values: tuple[str, ...]) -> None:
    project.write_task(limits=LIMITS)
    text = _refused(project, limits=limits)
    assert all(value in text for value in values) and "submission.yaml:1" in text


def test_edges_of_the_frame_are_in_it(project: Project) -> None:
    project.write_task(limits=LIMITS)
    for limits in ({"memory": "64MiB", "cpus": 1}, {"memory": "256MiB", "wall_clock": "2min"}):
        project.software("one", image="alpha/one", limits=limits)
        assert load_submission(project.config, "alpha", "one").limits.keys() == limits.keys()


def test_without_a_frame_no_limit_can_be_changed(project: Project) -> None:
    project.write_task()
    assert "64 MiB" in _refused(project, limits={"memory": "65MiB"})


def test_run_files_ask_for_nothing(project: Project) -> None:
    project.write_task(limits=LIMITS, uploads=True)
    (project.root / "submissions/alpha/one").mkdir(parents=True)
    (project.root / "submissions/alpha/one/run.txt").write_text("x\n")
    runs = [{"file": "run.txt", "dataset": "test"}]
    project.software("one", image=None, command=None, run=runs, limits={"memory": "65MiB"})
    with pytest.raises(RunnerError) as caught:
        load_submission(project.config, "alpha", "one")
    assert caught.value.code == "E207" and "limits" in "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"default": "64MiB", "max": "64MiB"}, "memory"),
        ({"max": "64MiB"}, '"default"'),
        ({"default": "64MiB", "max": "1GiB", "least": 3}, '"least"'),
        ([1], "memory"),
    ],
)
def test_a_wrong_frame_is_refused_in_words(project: Project, frame: Any, said: str) -> None:
    project.write_task(limits=TASK["limits"] | {"memory": frame})
    with pytest.raises(RunnerError) as caught:
        load_task(project.config, "mini")
    assert caught.value.code == "E401" and said in "\n".join(map(str, caught.value.problems))


def test_what_was_asked_for_is_in_the_lock_and_nobody_elses(world: World) -> None:
    asked = {"memory": "128MiB", "cpus": 2, "wall_clock": "1min"}
    large, plain = world.hand_in("alpha", limits=asked), world.hand_in("beta")
    desk = world.desk()
    locks = {run.id: desk.job(run).lock["limits"] for run in desk.runs}
    assert [locks[large][key] for key in asked] == [128 * MIB, 2.0, 60.0]
    assert [locks[plain][key] for key in asked] == [64 * MIB, 1.0, 30.0]
    (bundle, _) = (desk.bundles[run.submission.id] for run in desk.runs)
    assert needs_of(desk.tasks["mini"], bundle, "execute").memory == 128 * MIB, "the machine must have it"
    assert "limits" not in desk.bundles[plain.removesuffix(".test")].data, "its identity is what it was"
    world.work()
    started = {spec.image.names[0]: spec.limits.memory for spec in world.engine.started}
    assert started["alpha/one"] == 128 * MIB and started["beta/one"] == 64 * MIB
    rebuild(world.project.config)
    with open_store(world.project.config) as again:
        assert submissions(again) == submissions(world.store)


def test_it_is_shown_on_the_board_the_run_and_the_task(world: World) -> None:
    run = world.hand_in("alpha", limits={"memory": "128MiB", "cpus": 2})
    world.work()
    world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    task = world.tasks["mini"]
    for audience in (ORGANISER, PUBLIC):
        notes = legend(build(world.store, task, None, audience))
        assert any("alpha/one: 128 MiB" in note for note in notes)
    view = redact_run(detail(world.store, run, [task]), Audience("team", "alpha"), task.datasets["test"])
    assert "128 MiB" in page(view)
    text = " ".join(lines(overview(task)))
    assert all(value in text for value in ("256 MiB", "120 s", "submission.yaml"))


def test_a_team_that_is_given_more_has_it_also_beyond_the_frame(world: World) -> None:
    run = world.hand_in("alpha", limits={"memory": "128MiB"})
    facts = {"task": "mini", "team": "alpha", "reason": "a large vocabulary"}
    world.store.commit("limits-extended", facts | {"memory": GIB}, actor="organiser")
    assert world.desk().job(world.desk().runs[0]).limits.memory == GIB
    world.store.commit("limits-extended", facts | {"memory": 100 * MIB}, actor="organiser")
    assert world.desk().job(world.desk().runs[0]).limits.memory == 128 * MIB
    world.work()
    frame = {"memory": {"default": "64MiB", "max": "110MiB"}}
    world.project.write_task_only(limits=LIMITS | frame)
    (planned,) = plan(world.desk(), Selection()).work
    assert (planned.run.id, planned.changed) == (run, "limits.memory")
    assert planned.job is not None and planned.job.limits.memory == 110 * MIB


def test_a_bundle_that_asks_for_more_is_refused_however_it_was_made(world: World) -> None:
    project = world.project
    world.hand_in("alpha", limits={"memory": "128MiB"})
    made = read_bundle(project.home / "bundles" / "alpha.one")
    for limits in ({"memory": 257 * MIB}, {"cpu_time": 5.0}):
        files = {"submission.yaml": made.folder / "submission.yaml"}
        bundle = write_bundle(project.home / "forged", made.data | {"limits": limits, "team": "beta"}, files)
        with pytest.raises(RunnerError) as caught:
            register(project.config, world.store, world.engine, world.tasks, bundle.folder)
        assert caught.value.code == "E207", caught.value
    with pytest.raises(RunnerError) as caught:
        write_bundle(project.home / "forged", made.data | {"limits": {"pids": 9}}, files)
    assert caught.value.code == "E205" and json.dumps(made.data["limits"]) == '{"memory": 134217728}'


def test_no_limit_of_the_defaults_is_lowered_by_a_frame(project: Project) -> None:
    project.write_task(limits=LIMITS)
    task = load_task(project.config, "mini")
    assert replace(task.limits, **task.frame) == replace(
        task.limits, memory=256 * MIB, cpus=2.0, wall_clock=120.0
    )
    assert isinstance(task.limits, Limits) and task.limits.memory == 64 * MIB


def test_the_store_knows_what_was_asked_for(world: World) -> None:
    run = world.hand_in("alpha", limits={"wall_clock": "2min"})
    assert find_run(world.store, run, world.tasks.values()).submission.limits == {"wall_clock": 120.0}
