"""What the coordinator of a large cluster takes: a slice of ``benchmarks.scale``, and what must not grow with the number of runs."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import planning, scale
from runner.execution.cluster.places import over_hosts
from runner.execution.executors.local import LocalExecutor
from runner.execution.pool import Control
from runner.records.store.connect import open_store
from runner.records.store.queries import find_run, submissions
from runner.tasks.load import load_tasks
from tests.runner.execution.test_coordinator import Lines
from tests.runner.execution.test_pool import World
from tests.worlds.mini import Project

GROSS = 150.0  # processor ms a run: thirty times the goal, since this machine may do anything else meanwhile


@pytest.mark.slow
def test_a_slice_of_the_benchmark_keeps_far_below_what_would_be_a_defect() -> None:
    """Every run is scored once, which :func:`benchmarks.scale.measure` checks; its memory and time are of the right size."""
    found = scale.measure(slots=24, runs=48, hosts=2, mean=0.5)
    assert found["own"] / 48 * 1000 < GROSS
    assert found["memory"]["end"] < 1.3 * found["memory"]["half"]
    assert found["makespan"] > 0.9 * found["bound"]


@pytest.mark.slow
def test_looking_a_run_up_costs_the_same_among_many(tmp_path: Path) -> None:
    """Also of one that was never begun."""
    counts = []
    for runs in (5, 50):
        root = tmp_path / str(runs)
        root.mkdir()
        planning.write_project(root, runs, teams=2)
        config = planning.configuration(root)
        tasks = load_tasks(config)[0]
        with open_store(config) as store:
            wanted = f"{submissions(store)[0].id}.test"
            found = find_run(store, wanted, tasks.values())  # what is asked first is known then
            with Lines() as lines:
                assert find_run(store, wanted, tasks.values()) == found
            counts.append(lines.count)
    assert counts[0] == counts[1]


def test_as_many_attempts_are_under_way_as_files_may_be_open(project: Project, tmp_path: Path) -> None:
    """Each keeps a lock open; a system lets a process have a thousand files open unless it asks for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    world, least = World(project), 512
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))
        config = replace(project.config, cluster="tcp://127.0.0.1:1", artefacts=f"file://{tmp_path}")
        local = LocalExecutor(world.engine, world.desk(), Control.of(project.config))
        assert over_hosts(config, local, lambda _: None) is not local
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard > least
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        world.close()


def test_list_scheduling_is_the_least_that_the_slots_allow() -> None:
    assert scale.list_schedule([3, 1, 1, 1], 2) == pytest.approx(3)
    assert scale.list_schedule([1, 1, 1, 3], 2) == pytest.approx(4)
