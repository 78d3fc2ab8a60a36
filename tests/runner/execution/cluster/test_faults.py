"""Hosts that are slow, full, told to end twice, or whose clock is off: every run ends exactly once, and nobody is charged."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.cli import context
from runner.execution.cluster import evaluations, software
from runner.execution.cluster.host import CoordinatorsTime
from runner.execution.cluster.storage.delivery import Mismatch
from runner.execution.coordinator import EvaluationRequest
from runner.execution.pool import LOSSES
from runner.model.clock import STAMP, SystemClock, stamp
from runner.model.outcome import TRIES
from runner.records.store.charges import quota
from tests.e2e.test_server import until
from tests.runner.execution.cluster.test_hosts import (
    at_both,
    carried_out,
    coordinated,
    ended_once,
    machine,
    tried,
)
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import World
from tests.worlds.cluster import KEEP, Cluster, cluster
from tests.worlds.mini import Project, call_here
from tests.worlds.small_disk import small_disk

LIMIT = 2.0  # seconds


@pytest.mark.slow
def test_a_host_that_is_slow_holds_up_its_own_runs_and_charges_nobody(
    project: Project, sound: Cluster
) -> None:
    project.write_task_only(limits={"wall_clock": f"{LIMIT:.0f}s"})
    world, held = World(project), sound.folder / KEEP.format("h1")
    runs = [world.hand_in(f"team{n}") for n in range(6)]
    held.touch()

    def sealed() -> int:
        return sum(bool(world.store.archive.attempts("mini", run)) for run in runs)

    def meanwhile() -> None:
        began = time.monotonic()
        try:
            until(lambda: sealed() == 4)  # all but the two that h1 took
            until(lambda: time.monotonic() > began + 2 * LIMIT)  # longer than software may take
        finally:
            held.unlink()

    carried_out(world, sound, meanwhile)
    assert ended_once(world, runs) == {"h1", "h2"} and not sound.left()
    at = [world.store.archive.attempt("mini", run, 1).record()["placed"]["host"] for run in runs]
    assert sorted(at) == ["h1"] * 2 + ["h2"] * 4
    world.close()


@pytest.mark.slow
def test_a_host_without_room_is_given_no_more_that_does_not_fit_and_says_so(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(tmp_path / "cluster", "h2") as hosts, small_disk(hosts.folder / "h1", 4) as disk:
        hosts.start_host("h1")
        disk.fill()
        runs, notes = [world.hand_in(f"team{n}") for n in range(4)], Notes()
        result = tried(world, notes, hosts)
        assert not result.undone and ended_once(world, runs) == {"h2"} and not hosts.left(), notes.lines
        told = [line for line in notes.lines if line.startswith("h1 ")]
        assert 1 <= len(told) <= 2 and "/h1/" in told[0], "what it was at was told, and no more tried"
        where = machine(world, hosts)
        monkeypatch.setattr(context, "config", lambda *_: where.config)
        monkeypatch.setattr(context, "machine", lambda *_: where)
        listed = call_here(world.project, ["cluster", "show", "--json"], capsys).json
        shown = {one["name"]: one for one in listed}
        assert shown["h1"]["room"] < 4096 and "/h1/" in shown["h1"]["full"]
        assert shown["h2"]["room"] > 4096 and shown["h2"]["full"] == ""
        assert call_here(world.project, ["cluster", "show"], capsys).code == 0
        disk.free()
        again = [world.hand_in(f"team{n}", "slow") for n in range(4, 8)]
        carried_out(world, hosts, lambda: at_both(hosts))
        assert ended_once(world, again) == {"h1", "h2"} and not hosts.left()
        hosts.close()  # before its disk goes


@pytest.mark.slow
def test_full_hosts_are_no_losses_however_many_there_are(project: Project, tmp_path: Path) -> None:
    """A run that found three of them is executed by the fourth; where there is no fourth, it is said of each, once."""
    project.write_task_only(limits={"memory": "12GiB"})  # two at once of a host
    world, notes, names = World(project), Notes(), ("h1", "h2", "h3")
    with ExitStack() as disks, cluster(tmp_path / "cluster", "h4") as hosts:
        busy, run = [world.hand_in(f"team{n}", "slow") for n in range(2)], world.hand_in("team2")
        for disk in [disks.enter_context(small_disk(hosts.folder / name, 4)) for name in names]:
            disk.fill()

        def told(times: int) -> list[str]:
            lines = [line for line in notes.lines if line.startswith(names)]
            return sorted(line[:2] for line in lines) if len(lines) >= times else []

        def meanwhile() -> None:
            hosts.begun(2)
            for name in names:
                hosts.start_host(name)
            until(lambda: told(3))
            hosts.go()

        with coordinated(world, notes, hosts) as coordinator, ThreadPoolExecutor(1) as thread:
            other = thread.submit(meanwhile)
            result = coordinator.run(coordinator.plan(EvaluationRequest()), EvaluationRequest())
            other.result()
        assert not result.undone and ended_once(world, [*busy, run]) == {"h4"} and told(3) == [*names], notes
        hosts.kill("h4")
        another = world.hand_in("team3")
        result = tried(world, notes, hosts)
        assert told(6) == sorted(2 * names)
        assert all(name in result.undone[another].why for name in names)
        hosts.close()  # before their disks go
    world.close()


@pytest.mark.slow
def test_clocks_of_hosts_that_are_off_date_nothing(world: World, tmp_path: Path) -> None:
    year = timedelta(days=400)
    with cluster(tmp_path / "cluster") as hosts:
        hosts.start_host("h1", year)
        hosts.start_host("h2", -year)
        runs = [world.hand_in(f"team{n}", "slow") for n in range(4)]
        before = datetime.now(UTC) - timedelta(seconds=6)
        carried_out(world, hosts, lambda: at_both(hosts))
        after = datetime.now(UTC) + timedelta(seconds=6)
        assert ended_once(world, runs) == {"h1", "h2"}
    for run in runs:
        record = world.store.archive.attempt("mini", run, 1).record()
        assert stamp(before) <= record["started"] <= record["finished"] <= stamp(after)
        assert record["resources"]["wall_seconds"] < 60


def test_a_clock_that_is_set_while_software_runs_dates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    ahead = now + timedelta(days=3)
    monkeypatch.setattr(SystemClock, "now", lambda _: ahead)
    clock = CoordinatorsTime(now.timestamp())
    back = {"started": stamp(ahead), "finished": stamp(ahead - timedelta(days=9)), "host": "x"}
    facts = clock.dated({"record": back, "asked": "y", "ended": {"started": "", "finished": ""}})
    same = {"host": "x", "started": stamp(now), "finished": stamp(now)}  # it was set back by nine days
    assert facts == {"record": same, "asked": "y", "ended": {"started": "", "finished": ""}}
    dated = clock.dated({"record": {**back, "finished": stamp(ahead + timedelta(days=9))}})["record"]
    assert now <= datetime.strptime(dated["finished"], STAMP).replace(tzinfo=UTC) < now + timedelta(minutes=5)
    monkeypatch.setattr(SystemClock, "now", lambda _: now + timedelta(seconds=2))
    right = {"record": {"started": stamp(now), "finished": stamp(now + timedelta(seconds=1))}}
    assert CoordinatorsTime(now.timestamp()).dated(right) == right, "clocks that are right stay as they are"


@pytest.mark.slow
def test_who_is_told_to_end_twice_ends_at_once_and_its_runs_begin_anew_elsewhere(
    world: World, hosts: Cluster
) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(4)]

    def fault() -> None:
        hosts.begun(4)
        hosts.processes["h1"].terminate()
        hosts.said("h1", "2 still running")
        hosts.processes["h1"].terminate()
        assert hosts.processes["h1"].wait(60) == 0
        assert not list(hosts.folder.glob("h1/attempt-*"))
        hosts.begun(4)
        hosts.go()

    carried_out(world, hosts, fault)
    assert ended_once(world, runs) == {"h2"} and not hosts.left()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["software", "evaluations"])
def test_what_hosts_deliver_and_nobody_can_take_is_ordered_three_times_and_then_held(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Also over several rounds of the coordinator; a host that delivered such a thing is not ordered the same again while there is another."""
    module, name = {
        "software": (software, "take_in"),
        "evaluations": (evaluations, "take_in_evaluation"),
    }[what]
    by = list[str]()

    def refuse(*of: Any) -> Any:
        by.append(str(of[-1]))
        raise Mismatch("home/one, which a host delivered, is not taken", why="Its lock is another one.")

    monkeypatch.setattr(module, name, refuse)
    run = world.hand_in("team0")
    with cluster(tmp_path / "cluster", "h1", "h2", role=what) as hosts:
        for _ in range(2):
            result = tried(world, Notes(), hosts)
            assert not result.undone
        assert not hosts.left()
    assert len(by) == TRIES and set(by) == {"h1", "h2"}
    outcome = world.outcome(run)
    assert outcome.name == "held" and "home/one" in outcome.reason and outcome.blame == "platform"
    assert quota(world.store, world.tasks["mini"], "team0").used == 0
    assert world.store.archive.live() == {} and not world.store.archive.sweep()


@pytest.mark.slow
def test_a_scheduler_that_is_lost_again_and_again_is_no_hosts_fault(world: World, hosts: Cluster) -> None:
    """No run is given up for that, no host is blamed, and it is said once that it is away and once that it is back."""
    runs, notes = [world.hand_in(f"team{n}", "slow") for n in range(4)], Notes()

    def faults() -> None:
        for times in range(1, LOSSES + 2):
            hosts.begun(4 * times)
            hosts.kill("scheduler", signal.SIGTERM if times == 1 else signal.SIGKILL)
            until(lambda times=times: said("nothing listens") == times, 30)
            hosts.start_scheduler()
        hosts.begun(4 * times + 4)
        hosts.go()

    def said(text: str) -> int:
        return sum(text in line for line in notes.lines)

    carried_out(world, hosts, faults, notes)
    ended_once(world, runs)
    assert said("nothing listens") == said("answers again") == LOSSES + 1
    assert not [line for line in notes.lines if line.startswith(("h1", "h2", "tls://"))], "no host is blamed"
    assert "Traceback" not in (hosts.folder / "scheduler.log").read_text()


@pytest.mark.slow
def test_who_is_told_to_end_while_the_scheduler_is_away_does_first_what_runs(
    world: World, hosts: Cluster
) -> None:
    run, process = world.hand_in("team0", "slow"), hosts.processes

    def faults() -> None:
        hosts.begun(1)
        hosts.kill("scheduler")
        for name in ("h1", "h2"):
            hosts.said(name, "does not answer")
            process[name].terminate()
        at_work = "h1" if "still running" in first_said(hosts, "still running") else "h2"
        idle = "h2" if at_work == "h1" else "h1"
        assert process[idle].wait(30) == 0 and process[at_work].poll() is None
        hosts.go()
        assert process[at_work].wait(30) == 0, "it has delivered by then"
        hosts.start_scheduler()
        hosts.start_host("h3")

    carried_out(world, hosts, faults)
    assert ended_once(world, [run]) <= {"h1", "h2", "h3"} and not hosts.left()


def first_said(hosts: Cluster, text: str) -> str:
    """What the first host has written that says something, once one does; empty where it is not the first."""
    logs = [hosts.folder / f"{name}.log" for name in ("h1", "h2")]
    until(lambda: any(text in log.read_text() for log in logs), 30)
    return logs[0].read_text()
