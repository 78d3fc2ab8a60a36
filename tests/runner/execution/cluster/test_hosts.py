"""Software executed by hosts of a cluster: real Dask by TLS, scripted engines; whatever fails, every run ends exactly once."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from runner.engines.fake import FAKE, FakeEngine
from runner.execution.attempt import perform
from runner.execution.cluster.certificates import make
from runner.execution.cluster.executor import ClusterExecutor
from runner.execution.cluster.host import Station
from runner.execution.cluster.joining import Wanted, unfit
from runner.execution.cluster.keys import home_of, key_for, key_of
from runner.execution.cluster.line import AWAY, Line, check_address
from runner.execution.cluster.software import Software
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.cache import Cache
from runner.execution.cluster.storage.stores import Stores
from runner.execution.coordinator import Coordinator, EvaluationRequest, Result, coordinating
from runner.execution.executors.local import LocalExecutor
from runner.execution.machine import Machine
from runner.execution.plan import plan
from runner.execution.pool import Control, Pool
from runner.model.errors import PLATFORM, RunnerError
from runner.model.limits import GIB
from runner.model.run import Selection
from runner.records.files import walk
from tests.e2e.test_server import until
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.worlds.cluster import ROOT, Cluster, good
from tests.worlds.mini import Project


def machine(world: World, *clusters: Cluster) -> Machine:
    """The machine of a coordinator whose configuration names these clusters."""
    config = world.project.config
    for one in clusters:
        config = replace(config, **one.settings)
    return Machine(config, engine=world.engine, images={"evaluator": EVALUATOR})


def coordinated(world: World, notes: Notes, *clusters: Cluster) -> AbstractContextManager[Coordinator]:
    """A coordinator on that machine."""
    made = machine(world, *clusters)
    return coordinating(made.config, notes, machine=made)


def tried(world: World, notes: Notes, *clusters: Cluster) -> Result:
    """Do what can be done; runs may stay undone."""
    with coordinated(world, notes, *clusters) as coordinator:
        return coordinator.run(coordinator.plan(EvaluationRequest()), EvaluationRequest())


def carried_out(
    world: World,
    clusters: Cluster | Sequence[Cluster],
    meanwhile: Callable[[], object] = lambda: None,
    notes: Notes | None = None,
) -> Result:
    """Do all there is to do, and something ``meanwhile`` in another thread."""
    notes, clusters = notes or Notes(), [clusters] if isinstance(clusters, Cluster) else clusters
    with coordinated(world, notes, *clusters) as coordinator, ThreadPoolExecutor(1) as thread:
        todo = coordinator.plan(EvaluationRequest())
        other = thread.submit(meanwhile)
        try:
            result = coordinator.run(todo, EvaluationRequest())
        finally:
            clusters[0].go()
        other.result()
    assert not result.undone, (result.undone, notes.lines)
    return result


def at_both(hosts: Cluster) -> None:
    """Let softwares go on once two hosts are at work: the first that is known could do short ones alone."""
    hosts.begun(4)
    hosts.go()


def ended_once(world: World, runs: list[str]) -> set[str]:
    """Each run has one attempt, which was scored; returns the hosts. Nothing is left in the store of artefacts or begun."""
    archive = world.store.archive
    for run in runs:
        (attempt,) = archive.attempts("mini", run)
        assert attempt.record()["verdict"]["name"] == "ok" and world.outcome(run).name == "scored"
    assert archive.live() == {} and not archive.sweep()
    return {archive.attempt("mini", run, 1).record()["placed"]["host"] for run in runs}


@pytest.mark.slow
def test_softwares_are_executed_by_hosts_and_scored_here(world: World, sound: Cluster) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(6)]
    result = carried_out(world, sound, lambda: at_both(sound))
    assert sorted(result.done) == sorted(runs) and ended_once(world, runs) == {"h1", "h2"}
    assert not list((sound.folder / "store" / "attempts").glob("*/*")), "what was delivered was taken in"
    lock = world.store.archive.attempt("mini", runs[0], 1).lock()
    assert lock["digests"]["sandbox"], "the lock is that of any machine"
    kept = (sound.folder / "store" / "contents").rglob("*")
    brought = b"".join(path.read_bytes() for path in kept if path.is_file())
    truths = [path for path in world.project.truths.rglob("*") if path.is_file()]
    assert truths and all(path.read_bytes() not in brought for path in truths)
    assert str(world.project.truths).encode() not in brought


@pytest.mark.slow
def test_hosts_may_be_larger_than_the_coordinators_machine(project: Project, sound: Cluster) -> None:
    project.write_task_only(limits={"memory": "2GiB"})
    world = World(project, info=replace(FAKE, memory=1 * GIB))
    runs = [world.hand_in("team0")]
    carried_out(world, sound)
    assert ended_once(world, runs) <= {"h1", "h2"}
    world.close()


@pytest.mark.slow
def test_what_is_too_large_for_every_host_is_said_at_once(project: Project, sound: Cluster) -> None:
    project.write_task_only(limits={"memory": "48GiB"})
    world = World(project, info=replace(FAKE, memory=128 * GIB))
    run = world.hand_in("team0")
    result = tried(world, Notes(), sound)
    assert result.undone[run].exit_code == 3
    assert all(result.undone[run].why.count(part) == 2 for part in ("28.8 GiB", "48 GiB"))
    assert all(name in result.undone[run].why for name in ("h1", "h2"))
    world.close()


@pytest.mark.slow
def test_software_is_executed_on_hosts_that_have_the_labels_which_its_task_asks_for(
    project: Project, sound: Cluster
) -> None:
    """What nobody has is said at once, with what there is; labels change nothing that is locked."""
    project.write_task_only(limits={"labels": ["card-of-h2"]})
    world = World(project)
    runs = [world.hand_in(f"team{n}") for n in range(3)]
    carried_out(world, sound)
    assert ended_once(world, runs) == {"h2"}
    assert "labels" not in world.store.archive.attempt("mini", runs[0], 1).lock()["limits"]
    project.write_task_only(limits={"labels": ["card-of-h2", "no-such"]})
    late = world.hand_in("team4")
    result = tried(world, Notes(), sound)
    why = result.undone[late].why
    assert (why.count("no-such"), why.count("card-of-h2")) == (2, 1)
    world.close()


@pytest.mark.slow
def test_what_went_down_with_a_host_is_executed_again_elsewhere(world: World, hosts: Cluster) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(4)]

    def fault() -> None:
        hosts.begun(4)
        hosts.kill("h1")
        hosts.go()

    carried_out(world, hosts, fault)
    assert ended_once(world, runs) == {"h2"}
    hosts.start_host("h1")
    assert not hosts.left()


@pytest.mark.slow
def test_a_run_whose_host_dies_twice_is_executed_at_the_third(world: World, hosts: Cluster) -> None:
    """Each death is one loss: a host that is no more is not ordered anything."""
    run = world.hand_in("team0", "slow")

    def fault() -> None:
        for deaths in (1, 2):
            hosts.begun(deaths)
            at = {path.name.split("-")[1] for path in hosts.folder.glob("begun-*")}
            for name, process in hosts.processes.items():
                if str(process.pid) in at and process.poll() is None:
                    hosts.kill(name)
            if deaths == 2:
                hosts.start_host("h3")
        hosts.begun(3)
        hosts.go()

    carried_out(world, hosts, fault)
    assert ended_once(world, [run]) == {"h3"}


@pytest.mark.slow
def test_a_host_that_was_cut_off_and_comes_back_delivers_into_nothing(world: World, hosts: Cluster) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(2)]

    def fault() -> None:
        hosts.begun(2)
        hosts.kill("h1", signal.SIGSTOP)
        hosts.begun(3, 120)
        hosts.go()

    carried_out(world, hosts, fault)
    hosts.processes["h1"].send_signal(signal.SIGCONT)
    assert ended_once(world, runs) == {"h2"}
    until(lambda: list((hosts.folder / "store" / "attempts").glob("*/*/manifest.json")))
    runs.append(world.hand_in("team2"))
    carried_out(world, hosts)
    ended_once(world, runs)
    assert not hosts.left(), "nobody waits for what came late"


@pytest.mark.slow
def test_a_scheduler_that_is_killed_and_started_again(world: World, hosts: Cluster) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(3)]

    def fault() -> None:
        hosts.begun(3)
        hosts.kill("scheduler")
        hosts.start_scheduler()
        hosts.begun(6)
        hosts.go()

    carried_out(world, hosts, fault)
    assert ended_once(world, runs) <= {"h1", "h2"}


@pytest.mark.slow
def test_a_host_that_joins_late_and_one_that_is_drained(world: World, hosts: Cluster) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(7)]

    def fault() -> None:
        hosts.begun(4)
        hosts.kill("h2")
        hosts.start_host("h3")
        hosts.begun(6)
        hosts.processes["h1"].terminate()  # what it is at is done first
        hosts.go()

    carried_out(world, hosts, fault)
    assert ended_once(world, runs) == {"h1", "h3"}
    assert hosts.processes["h1"].wait(100) == 0


@pytest.mark.slow
def test_what_was_delivered_to_a_coordinator_that_was_killed_is_not_executed_again(
    world: World, sound: Cluster, tmp_path: Path
) -> None:
    run = world.hand_in("team0", "slow")
    (planned,) = plan(desk := world.desk(), Selection()).work
    (folder := tmp_path / "left").mkdir()
    sound.go()
    record = perform(desk.job(planned.run), None, 1, folder, FakeEngine({"team0/slow": good}))
    key = key_of(world.store.archive)
    name = f"{home_of(key)}/a~mini~{run}~1~0000abcd"
    own = key_for(key, name)
    facts = {"record": {**record, "placed": {"host": "gone"}}}
    Artefacts(sound.artefacts).deliver(name, dict(walk(folder)), facts, own)
    carried_out(world, sound)
    assert ended_once(world, [run]) == {"gone"} and sound.begun(0) == 0


@pytest.mark.slow
def test_a_run_that_is_cancelled_ends_at_its_host(world: World, sound: Cluster) -> None:
    run = world.hand_in("team0", "slow")

    def cancel() -> None:
        sound.begun(1)
        world.control.request(run)

    carried_out(world, sound, cancel)
    (attempt,) = world.store.archive.attempts("mini", run)
    assert attempt.record()["verdict"]["name"] == "cancelled"


@pytest.mark.slow
def test_everything_is_stopped_at_its_hosts_and_begins_anew_afterwards(world: World, sound: Cluster) -> None:
    runs = [world.hand_in(f"team{n}", "slow") for n in range(3)]
    control = Control.of(world.project.config)
    with coordinated(world, Notes(), sound) as coordinator, ThreadPoolExecutor(1) as thread:
        todo = coordinator.plan(EvaluationRequest())
        thread.submit(lambda: (sound.begun(3), control.stop.set()))
        with pytest.raises(KeyboardInterrupt):
            coordinator.run(todo, EvaluationRequest(), control=control)
    assert all(world.store.archive.attempts("mini", run) == [] for run in runs)
    sound.go()
    carried_out(world, sound)
    ended_once(world, runs)


def test_who_has_certificates_of_another_authority_has_no_part_in_it(tmp_path: Path, sound: Cluster) -> None:
    (stranger,) = make(tmp_path / "other", ["127.0.0.1"])
    line = Line(sound.address, stranger, (said := []).append)
    line.start((told := []).append, "home")
    try:
        until(lambda: said, 60)
    finally:
        line.close()
    assert told == [] or all(one == {"hosts": {}} for one in told)
    assert AWAY in said[0]


# Who has the scheduler sends every client a warning, which they unpickle: what is in it runs there, and tells what it could have.
SPY = """
import os, socket
def tried(what):
    try:
        return what()
    except OSError as error:
        return type(error).__name__
had = [tried(lambda: open({truths!r}).read()), tried(lambda: os.listdir({home!r})), tried(lambda: os.kill({process}, 0))]
socket.create_connection({ear!r}).sendall(repr(had).encode())
"""
REFUSED = repr(["PermissionError"] * 3)  # what it hears of code that could have nothing
ATTACK = """
import pickle, sys
from distributed import Client
from runner.execution.cluster.client import security
class Bomb:
    def __reduce__(self):
        return exec, (sys.argv[3],)
def tell(warning, dask_scheduler):
    dask_scheduler.log_event("warn", warning)
Client._default_event_handlers = {}
with Client(sys.argv[1], security=security(sys.argv[2])) as stranger:
    warning = {"message": pickle.dumps(Bomb()), "category": pickle.dumps(UserWarning)}
    stranger.run_on_scheduler(exec, sys.argv[3])
    stranger.run_on_scheduler(tell, warning)
"""


@pytest.mark.slow
def test_whoever_has_the_scheduler_reads_nothing_of_the_coordinators(world: World, sound: Cluster) -> None:
    """A scheduler runs what it is told, and Dask's client unpickles what a scheduler says: both in processes to which all else is closed."""
    truths = next(path for path in world.project.truths.rglob("*") if path.is_file())
    world.hand_in("team0", "slow")
    heard: list[str] = []

    def attack() -> None:
        sound.begun(1)
        with socket.create_server(("127.0.0.1", 0)) as ear:
            ear.settimeout(60)
            facts = {"truths": str(truths), "home": str(world.project.home), "process": os.getpid()}
            code = SPY.format(**facts, ear=ear.getsockname())
            command = [sys.executable, "-c", ATTACK, sound.address, str(sound.certificates), code]
            subprocess.run(command, cwd=ROOT, check=True, timeout=60)
            heard.extend(ear.accept()[0].recv(10_000).decode() for _ in range(2))
        sound.go()

    carried_out(world, sound, attack)
    assert heard == [REFUSED] * 2


def test_nothing_listens_without_tls_but_on_loopback(sound: Cluster) -> None:
    places = {}
    for name, process in sound.processes.items():
        listening = [one for one in psutil.Process(process.pid).net_connections() if one.status == "LISTEN"]
        places[name] = [one.laddr for one in listening]
    assert set(places) == {"scheduler", "h1", "h2"} and all(places.values())
    for ip, port in (place for found in places.values() for place in found if place[0] != "127.0.0.1"):
        with (
            pytest.raises(ssl.SSLCertVerificationError),
            socket.create_connection(("127.0.0.1", port), 10) as plain,
        ):
            ssl.create_default_context().wrap_socket(plain, server_hostname=ip)


UNENCRYPTED = (
    "10.0.0.1:8786 ws://0.0.0.0:8786 tcp://10.0.0.1:8786 tls://10.0.0.1 tls://:8786 tcp:// tls://[::1"
)


@pytest.mark.parametrize("address", [*UNENCRYPTED.split(), ""])
def test_addresses_that_would_not_be_encrypted_are_refused(address: str, sound: Cluster) -> None:
    with pytest.raises(RunnerError) as error:
        check_address(address, sound.certificates)
    assert error.value.code == "E101" and error.value.fix


@pytest.mark.slow
def test_a_host_whose_engine_fails_is_given_no_more_and_others_do_its_runs(
    world: World, sound: Cluster
) -> None:
    runs = [world.hand_in(f"team{n}", "sick") for n in range(2)]  # one for each; at h1 the engine is gone
    carried_out(world, sound)
    assert ended_once(world, runs) == {"h2"}


@pytest.mark.slow
def test_what_fails_at_one_host_is_done_by_others_and_that_host_does_not_empty_the_queue(
    world: World, sound: Cluster
) -> None:
    runs = [world.hand_in(f"team{n}", "unknown") for n in range(8)]  # at h1 nothing of it can be had
    carried_out(world, sound, notes=(notes := Notes()))
    assert ended_once(world, runs) == {"h2"}
    failed = [line for line in notes.lines if line.startswith("h1 ")]
    assert failed and all("registry" in line for line in failed)
    assert len(failed) == len({*failed}), "none twice"


@pytest.mark.slow
def test_what_fails_at_every_host_says_why(world: World, hosts: Cluster) -> None:
    run = world.hand_in("team0", "unknown")
    hosts.kill("h2")
    result = tried(world, Notes(), hosts)
    assert "registry" in result.undone[run].why
    assert world.outcome(run).name == "pending"


@pytest.mark.slow
def test_a_store_that_is_away_for_a_while_costs_nobody_anything(world: World, sound: Cluster) -> None:
    run = world.hand_in("team0", "slow")
    store, away = sound.folder / "store", sound.folder / "away"

    def fault() -> None:
        sound.begun(1)
        store.rename(away)
        store.touch()  # so that nobody makes it anew
        sound.go()
        time.sleep(3)  # the host has tried to deliver by then
        store.unlink()
        away.rename(store)

    carried_out(world, sound, fault)
    ended_once(world, [run])


@pytest.mark.parametrize(
    "change",
    [{"version": "0.0.9"}, {"sandbox": "0" * 64}, {"artefacts": "file:///elsewhere"}, {"protocol": 0}, {"memory": 10**400},
     {"cpus": float("inf")}, {"cpus": True}, {"steps": -1}, {"role": "evaluations"}, {"blinded": "file:///elsewhere"}, {"error": {"what": "x", "why": "y"}}],
)  # fmt: skip
def test_what_is_no_host_for_this_is_given_no_work(change: dict[str, Any], sound: Cluster) -> None:
    store = Artefacts(sound.artefacts)
    station = Station("h", FakeEngine({}), store, Cache(sound.folder / "one-more", store, 1))
    said = station.describe()
    wanted = Wanted("software", said["sandbox"], Stores(store))
    assert unfit(said, wanted) == ""
    assert unfit({**said, **change}, wanted)


def test_without_any_host_runs_wait_and_are_then_said_to(
    project: Project, world: World, sound: Cluster
) -> None:
    run = world.hand_in("team0")
    line = Line("tls://127.0.0.1:9", sound.certificates, lambda _: None)
    control, desk = Control.of(project.config), world.desk()
    local = LocalExecutor(world.engine, desk, control)
    duty = Software(local, Stores(Artefacts(sound.artefacts)))
    pool = Pool(ClusterExecutor(local, duty, line, wait=0.5), desk, control)
    pool.run(plan(desk, Selection()))
    assert pool.failed.keys() == {run} and pool.failed[run].exit_code == PLATFORM
