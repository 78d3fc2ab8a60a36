"""Whatever fails while hosts evaluate: every run is scored exactly once, and the leaderboard is that of one machine where nothing fails."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engines.fake import Mounts
from runner.execution import stop as at_stop
from runner.execution.cluster.host import SCRATCH
from runner.records.files import file_sha256
from tests.e2e.test_server import until
from tests.runner.execution.cluster.test_evaluation_hosts import scored_once
from tests.runner.execution.cluster.test_hosts import at_both, carried_out
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.runner.execution.test_verify_run import scoring
from tests.worlds.cluster import Cluster, Hurried
from tests.worlds.mini import call_here
from tests.worlds.tables import without_measured

Campaign = Callable[..., list[str]]


def writes(score: float) -> Callable[[Mounts, Path], None]:
    """A software that writes a run file whose score is this."""

    def script(mounts: Mounts, out: Path) -> None:
        (out / "run.txt").write_text(f"1 Q0 d 1 {score} tag\n")

    return script


@pytest.fixture
def handed_in(world: World, capsys: pytest.CaptureFixture[str]) -> Iterator[Campaign]:
    """Hands softwares in, which are executed here; in the end the leaderboard is that of a machine that evaluates itself, undisturbed."""
    alone = World(replace(world.project, home=world.project.home.with_name("alone")))
    worlds = (world, alone)
    for one in worlds:
        one.engine.script[EVALUATOR] = scoring

    def hand_in(*teams: int) -> list[str]:
        found = [[one.hand_in(f"team{n}", script=writes(n % 3 / 4)) for n in teams] for one in worlds]
        assert found[0] == found[1]
        return found[0]

    yield hand_in
    alone.work()
    tables = [
        without_measured(call_here(one.project, ["leaderboard", "mini", "--format", "csv"], capsys).out)
        for one in worlds
    ]
    assert tables[0] == tables[1] and len({row["ndcg_10"] for row in tables[0]}) > 1
    alone.close()


@pytest.mark.slow
def test_evaluations_that_went_down_with_a_host_are_made_again_elsewhere(
    world: World, judges: Cluster, handed_in: Campaign
) -> None:
    runs = handed_in(0, 1, 2, 3)
    judges.hold()

    def fault() -> None:
        judges.begun(4)
        judges.kill("j1")
        judges.go()

    carried_out(world, judges, fault)
    assert scored_once(world, runs) == {"j2"}
    judges.start_host("j1")
    assert not judges.left()


@pytest.mark.slow
def test_an_evaluating_host_that_was_cut_off_and_comes_back_delivers_into_nothing(
    world: World, judges: Cluster, handed_in: Campaign
) -> None:
    runs = handed_in(0, 1)
    judges.hold()

    def fault() -> None:
        judges.begun(2)
        judges.kill("j1", signal.SIGSTOP)
        judges.begun(3, 120)
        judges.go()

    carried_out(world, judges, fault)
    assert scored_once(world, runs) == {"j2"}
    judges.processes["j1"].send_signal(signal.SIGCONT)
    until(lambda: list((judges.folder / "store" / "attempts").glob("*/*/manifest.json")))
    runs += handed_in(2)
    carried_out(world, judges)
    scored_once(world, runs)
    until(lambda: not judges.left())


@pytest.mark.slow
def test_a_scheduler_that_is_killed_while_hosts_evaluate(
    world: World, judges: Cluster, handed_in: Campaign
) -> None:
    runs = handed_in(0, 1, 2)
    judges.hold()

    def fault() -> None:
        judges.begun(3)
        judges.kill("scheduler")
        until(lambda: not list((judges.folder / "tmp").glob("scheduler-*")))
        judges.start_scheduler()
        judges.begun(6)
        judges.go()

    carried_out(world, judges, fault)
    assert scored_once(world, runs) <= {"j1", "j2"}
    until(lambda: not judges.left())


@pytest.mark.slow
def test_a_store_that_is_away_for_a_minute_has_nothing_evaluated_twice(
    world: World, judges: Cluster, handed_in: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_stop, "time", Hurried(judges.folder))
    runs = handed_in(0, 1, 2)
    judges.hold()

    def fault() -> None:
        judges.begun(3)
        judges.take_store_away()
        judges.go()

    carried_out(world, judges, fault)
    assert scored_once(world, runs) <= {"j1", "j2"} and judges.begun(0) == 3
    assert (judges.folder / "store").resolve() == judges.folder / "away" and not judges.left()


@pytest.mark.slow
def test_what_was_damaged_in_the_cache_of_a_host_is_fetched_again(
    world: World, judges: Cluster, handed_in: Campaign
) -> None:
    runs = handed_in(0, 1)
    carried_out(world, judges)
    for name in ("j1", "j2"):
        judges.kill(name)
        for path in (damaged := list(judges.folder.glob(f"{name}/cache/*"))):
            path.write_bytes(b"9" * path.stat().st_size)
        assert damaged
        judges.start_host(name)  # with an engine that has no volume
    runs += handed_in(3, 4, 6, 7)  # with run files that are there, damaged
    judges.forget()
    judges.hold()
    carried_out(world, judges, lambda: at_both(judges))
    assert scored_once(world, runs) == {"j1", "j2"} and not judges.left()
    truths = {file_sha256(path) for path in world.project.truths.rglob("*") if path.is_file()}
    kept = [path for path in judges.folder.glob("*/cache/*") if path.name in truths]
    assert kept and all(file_sha256(path) == path.name for path in kept)


@pytest.mark.slow
@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "under-way"])
def test_a_coordinator_that_is_killed_while_hosts_evaluate(
    world: World, judges: Cluster, handed_in: Campaign, delivered: bool
) -> None:
    """What was delivered since is taken in; what is under way when the next one starts is dropped, and made again."""
    runs = handed_in(0, 1)
    judges.hold()
    killed = multiprocessing.get_context("fork").Process(target=carried_out, args=(world, judges))
    killed.start()
    judges.begun(2, 120)
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    killed.join(60)
    if delivered:
        judges.go()
        until(lambda: len(list((judges.folder / "store" / "attempts").glob("*/e~*/manifest.json"))) == 2)
    carried_out(world, judges, lambda: None if delivered else (judges.begun(4), judges.go()))
    assert scored_once(world, runs) <= {"j1", "j2"} and judges.begun(0) == (2 if delivered else 4)
    until(lambda: not judges.left())
    assert not list(judges.folder.glob(f"j?/{SCRATCH}*"))
