"""A host that executes software and was taken over: its key, its certificate and its store open nothing but its own cluster."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from runner.execution.cluster.keys import home_of, key_for, key_of
from runner.execution.cluster.storage.artefacts import Artefacts
from tests.runner.execution.cluster.test_hosts import REFUSED, SPY, carried_out, ended_once
from tests.runner.execution.test_pool import World
from tests.worlds.cluster import ROOT, Cluster, cluster
from tests.worlds.mini import Project

# Asks peers of a cluster to run a function, and says what they gave: the process that ran it, or why nothing did.
STRANGER = """
import asyncio, json, os, sys
from distributed.core import rpc
from distributed.protocol import pickle
from runner.execution.cluster.client import security
async def asked(address, ask):
    peer = rpc(address, connection_args=security(sys.argv[1]).get_connection_args("client"), timeout=20)
    try:
        return await asyncio.wait_for(ask(peer), 30)
    except Exception as error:
        return type(error).__name__
    finally:
        await peer.close_rpc()
async def main(scheduler, *workers):
    pid = pickle.dumps(os.getpid)
    said = {scheduler: await asked(scheduler, lambda peer: peer.run_function(function=pid))}
    known = await asked(scheduler, lambda peer: peer.identity(n_workers=-1))
    for address in workers or known["workers"]:
        said[address] = await asked(address, lambda peer: peer.run(function=pid))
    return {address: one["result"] if isinstance(one, dict) else one for address, one in said.items()}
print(json.dumps(asyncio.run(main(*sys.argv[2:]))))
"""
# Has a host answer with an object that runs code where it is unpickled, once.
ANSWER = """
import sys
from distributed import Client
from runner.execution.cluster.client import security
code = r'''
import runner.execution.cluster.host as host
real = host.perform
class Bomb:
    def __reduce__(self):
        return exec, ({spy!r}, {{}})
def fake(message):
    host.perform = real
    return Bomb()
host.perform = fake
'''
def plant(code):
    exec(code, {{}})
with Client(sys.argv[1], security=security(sys.argv[2])) as stranger:
    stranger.run(plant, code)
"""


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A host that evaluates."""
    with cluster(tmp_path_factory.mktemp("apart") / "judges", "j1", role="evaluations") as made:
        yield made


def asked(certificates: Path, addresses: Sequence[str]) -> dict[str, Any]:
    """What peers at these addresses do for who has those certificates: the process that ran a function there, or why none did."""
    command = [sys.executable, "-c", STRANGER, str(certificates), *addresses]
    done = subprocess.run(command, cwd=ROOT, check=True, timeout=300, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_key_and_certificate_of_a_software_host_run_nothing_where_truths_are(
    sound: Cluster, judges: Cluster
) -> None:
    own = asked(judges.certificates, [judges.address])
    pids = {judges.processes[name].pid for name in ("scheduler", "j1")}
    assert set(own.values()) == pids, "the attack works"
    taken = asked(sound.certificates, list(own))
    assert taken.keys() == own.keys() and not any(isinstance(one, int) for one in taken.values()), taken


@pytest.mark.slow
def test_nothing_of_truths_is_where_software_is_executed(
    world: World, sound: Cluster, judges: Cluster
) -> None:
    """Neither what is hidden nor a way to it: not in a store, a cache, a log or the settings of a process of that cluster."""
    runs = [world.hand_in(f"team{n}") for n in range(2)]
    carried_out(world, [judges, sound])
    assert ended_once(world, runs) <= {"h1", "h2"}
    truths = [path.read_bytes() for path in world.project.truths.rglob("*") if path.is_file()]
    ways = [str(place).encode() for place in (judges.folder, judges.address, world.project.truths)]
    for path in (path for path in sound.folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        assert not any(hidden in data for hidden in (*truths, *ways)), path
    for process in sound.processes.values():
        facts = psutil.Process(process.pid)
        said = "\0".join([*facts.cmdline(), *facts.environ().values()]).encode()
        assert not any(way in said for way in ways)


@pytest.mark.slow
def test_what_a_software_host_signs_is_no_evaluation(world: World, judges: Cluster) -> None:
    """Were it to reach the store of evaluations: its key is of its attempt alone."""
    (run,) = [world.hand_in("team0")]
    key = key_of(world.store.archive)
    name = f"{home_of(key)}/e~mini~{run}~1~0000abcd"
    own = key_for(key, f"{home_of(key)}/a~mini~{run}~1~0000abcd")
    ended = {"status": "valid", "started": "", "finished": "", "final": False, "fault": None, "exit": None}
    Artefacts(judges.artefacts).deliver(name, {}, {"asked": "", "ended": ended}, own)
    carried_out(world, judges)
    (evaluation,) = world.store.archive.attempt("mini", run, 1).evaluations()
    assert evaluation.record()["placed"] == {"host": "j1"} and world.outcome(run).name == "scored"


@pytest.mark.slow
def test_what_a_host_answers_runs_nowhere_but_in_a_process_that_has_nothing(
    world: World, hosts: Cluster
) -> None:
    truths = next(path for path in world.project.truths.rglob("*") if path.is_file())
    run, heard, listening = world.hand_in("team0"), [], []
    facts = {"truths": str(truths), "home": str(world.project.home), "process": os.getpid()}
    with socket.create_server(("127.0.0.1", 0)) as ear:
        ear.settimeout(120)
        spy = SPY.format(**facts, ear=ear.getsockname())
        command = [sys.executable, "-c", ANSWER.format(spy=spy), hosts.address, str(hosts.certificates)]
        subprocess.run(command, cwd=ROOT, check=True, timeout=120)

        def listen() -> None:
            heard.append(ear.accept()[0].recv(10_000).decode())
            children = psutil.Process().children(recursive=True)
            lines = [one for one in children if "runner.execution.cluster.client" in one.cmdline()]
            listening.extend(len(lines) * ["line"])
            listening.extend(at for one in lines for at in one.net_connections() if at.status == "LISTEN")

        carried_out(world, hosts, listen)
    assert heard == [REFUSED]
    assert listening == ["line"], "the coordinator's line listens nowhere"
    assert ended_once(world, [run]) <= {"h1", "h2"}


@pytest.mark.slow
def test_hidden_data_go_to_hosts_that_have_their_store_and_nowhere_else(
    project: Project, tmp_path: Path
) -> None:
    cells = [{"dataset": "dev"}, {"dataset": "test"}]
    project.write_task_only(tables=[{"id": "main", "cells": cells, "rank_by": "ndcg_10"}])
    world, hosts = World(project), Cluster(tmp_path / "cluster")
    (tmp_path / "cluster" / "blinded").mkdir()
    hosts.blinded = f"file://{tmp_path / 'cluster' / 'blinded'}"
    try:
        hosts.start_scheduler()
        hosts.start_host("h1", hidden=False)
        hosts.start_host("h2")
        for n in range(4):
            world.hand_in(f"team{n}")
        done = carried_out(world, hosts).done
    finally:
        hosts.close()
    placed: dict[str, set[str]] = {"dev": set(), "test": set()}
    for run in done.values():
        record = world.store.archive.attempt("mini", run.id, 1).record()
        placed[run.dataset].add(record["placed"]["host"])
    assert placed == {"dev": {"h1", "h2"}, "test": {"h2"}}
    secret = (project.private / "mini" / "test" / "inputs" / "queries.jsonl").read_bytes()
    for place, brought in (("blinded", True), ("store", False), ("h1", False)):
        kept = [path for path in (hosts.folder / place).rglob("*") if path.is_file()]
        assert kept and any(secret in path.read_bytes() for path in kept) is brought
    world.close()
