"""Evaluations by hosts of a cluster of their own: truths go nowhere else, and whatever fails, every run is scored exactly once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from runner.execution.coordinator import EvaluationRequest, Result, coordinating
from runner.execution.machine import Machine
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.worlds.cluster import Cluster, cluster


@pytest.fixture
def judges(tmp_path: Path) -> Iterator[Cluster]:
    """Hosts that evaluate, which a test may break."""
    with cluster(tmp_path / "judges", "j1", "j2", role="evaluations") as made:
        yield made


def carried_out(
    world: World,
    judges: Cluster,
    hosts: Cluster | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Result:
    """Do all there is to do, and something ``meanwhile`` in another thread."""
    config, notes = replace(world.project.config, **judges.settings), Notes()
    if hosts is not None:
        config = replace(config, **hosts.settings)
    machine = Machine(config, engine=world.engine, images={"evaluator": EVALUATOR})
    with coordinating(config, notes, machine=machine) as coordinator, ThreadPoolExecutor(1) as thread:
        todo = coordinator.plan(EvaluationRequest())
        other = thread.submit(meanwhile)
        try:
            result = coordinator.run(todo, EvaluationRequest())
        finally:
            judges.go()
        other.result()
    assert not result.undone, (result.undone, notes.lines)
    return result


def scored_once(world: World, runs: list[str]) -> set[str]:
    """Each run has one attempt with one evaluation, which counts; returns where they were made. Nothing is left begun."""
    archive = world.store.archive
    for run in runs:
        (attempt,) = archive.attempts("mini", run)
        (evaluation,) = attempt.evaluations()
        assert evaluation.record()["status"] == "valid" and world.outcome(run).name == "scored"
    assert archive.live() == {} and not archive.sweep()
    records = [archive.attempt("mini", run, 1).evaluation(1).record() for run in runs]
    return {record["placed"]["host"] for record in records}


def contents(world: Cluster) -> list[bytes]:
    """What was laid down in the store of a cluster."""
    return [path.read_bytes() for path in (world.folder / "store").rglob("*") if path.is_file()]


def test_software_and_evaluations_by_hosts_that_have_nothing_in_common(
    world: World, judges: Cluster, tmp_path: Path
) -> None:
    runs = [world.hand_in(f"team{n}") for n in range(4)]
    with cluster(tmp_path / "hosts", "h1", "h2") as hosts:
        carried_out(world, judges, hosts)
        assert scored_once(world, runs) == {"j1", "j2"}
        placed = {world.store.archive.attempt("mini", run, 1).record()["placed"]["host"] for run in runs}
        assert placed == {"h1", "h2"}
        truths = [path.read_bytes() for path in world.project.truths.rglob("*") if path.is_file()]
        assert truths and all(truth in contents(judges) for truth in truths)
        assert not any(truth in brought for truth in truths for brought in contents(hosts))
        for store in (hosts, judges):
            assert not list((store.folder / "store" / "attempts").glob("*/*")), (
                "what was delivered was taken in"
            )
        here = str(world.project.root).encode()
        assert not any(here in brought for brought in contents(judges)), "no order says where truths lie here"


def test_evaluations_that_went_down_with_a_host_are_made_again_elsewhere(
    world: World, judges: Cluster
) -> None:
    runs = [world.hand_in(f"team{n}") for n in range(4)]
    judges.hold()

    def fault() -> None:
        judges.begun(4)
        judges.kill("j1")
        judges.go()

    carried_out(world, judges, None, fault)
    assert scored_once(world, runs) == {"j2"}


def test_a_host_that_was_cut_off_evaluates_into_nothing(world: World, judges: Cluster) -> None:
    runs = [world.hand_in(f"team{n}") for n in range(2)]
    judges.hold()

    def fault() -> None:
        judges.begun(2)
        judges.kill("j1", signal.SIGSTOP)
        judges.begun(3, 120)
        judges.go()

    carried_out(world, judges, None, fault)
    judges.processes["j1"].send_signal(signal.SIGCONT)
    assert scored_once(world, runs) == {"j2"}
