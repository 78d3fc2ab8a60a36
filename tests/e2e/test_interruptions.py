"""Whatever stops the coordinator, nothing is half-done, nothing is left behind, and the next call goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import docker
import pytest

from runner.records.archive import RunArchive
from runner.records.events import EventLog
from tests.e2e.test_server import until
from tests.worlds.mini import GOOD, SLEEPER, TASK, Project, cli

pytestmark = pytest.mark.engine
WAIT = 120.0
# Sleeps on its first start only, so that the second one ends soon: the wall clock of the two cannot be told apart
# from inside, so it sleeps for long and the tests stop it.
LIMITS = {"memory": "64MiB", "pids": 32, "wall_clock": "25s", "output": "4MiB", "tmp": "8MiB", "shm": "8MiB"}


@pytest.fixture
def began(live: Project) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``runner`` and waits until the system of that name runs; kills the process at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(name: str, *arguments: str) -> subprocess.Popen[str]:
        process = live.start(*arguments)
        started.append(process)
        until(lambda: _runs_software(live, name) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WAIT)
    cli(live, "gc", expect=None)


def _labelled(live: Project, kind: str) -> list[Any]:
    """Return the containers or volumes of this project's attempts: run ids begin with the name of the team."""
    client = docker.DockerClient(base_url=live.docker_host, timeout=60)
    try:
        if kind == "containers":
            found = client.containers.list(
                all=True, filters={"label": "proctor.attempt"}, ignore_removed=True
            )
            labels = [(one, one.labels) for one in found]
        else:
            found = client.volumes.list(filters={"label": "proctor.attempt"})
            labels = [(one, one.attrs["Labels"] or {}) for one in found]
    finally:
        client.close()
    return [one for one, its in labels if its.get("proctor.attempt", "").startswith(_team(live))]


def _runs_software(live: Project, name: str) -> bool:
    """True if a container of the system with this name runs."""
    return any(
        one.status == "running"
        and one.labels.get("proctor.role") == "software"
        and one.labels["proctor.attempt"].startswith(f"{_team(live)}.{name}")
        for one in _labelled(live, "containers")
    )


def _team(live: Project) -> str:
    """A team that no other test has: its containers are told apart by their names."""
    return "t" + live.home.parent.name[-12:].strip("_").replace("_", "-").lower() + f"-{os.getpid()}"


def _left(live: Project) -> list[str]:
    return [one.name for kind in ("containers", "volumes") for one in _labelled(live, kind)]


def _submit(live: Project, name: str, code: str = GOOD, **keys: object) -> str:
    live.software(name, code, team=_team(live), **keys)
    said = cli(live, "submit", "-t", _team(live), "-s", name, "--no-check", "--json")
    return str(said.json[0]["submission"]) + ".test"


def _outcomes(live: Project) -> dict[str, str]:
    rows = cli(live, "runs", "--json").json
    return {row["software"]: row["outcome"]["name"] for row in rows}


def _attempts(live: Project) -> dict[str, list[int]]:
    archive = RunArchive(live.home / "archive")
    softwares = {archive.attempts(*key)[0].lock()["software"]: key for key in archive.runs()}
    return {name: [a.number for a in archive.attempts(*key)] for name, key in softwares.items()}


def _nothing_left(live: Project) -> None:
    """No container, volume, folder of a check or half-made file outlasts a command."""
    assert _left(live) == []
    _no_stagings(live)
    assert not [path for path in live.home.iterdir() if path.name.startswith(("check-", ".new"))]
    assert not [path for path in (live.home / "submissions").iterdir() if path.name.startswith(".")]


def _no_stagings(live: Project) -> None:
    tmp = live.home / "archive" / ".tmp"
    assert [p.name for p in tmp.iterdir() if p.is_dir()] == []


NAPS = "import time; print('asleep', flush=True); time.sleep(6)\n" + GOOD


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again(
    live: Project, began: Callable[..., subprocess.Popen[str]]
) -> None:
    _submit(live, "naps", NAPS)
    _submit(live, "good")
    process = began("naps", "evaluate", "--all", "--jobs", "1")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=WAIT)
    assert _left(live), "a killed process cannot tidy up"
    assert _outcomes(live) == {"naps": "pending", "good": "pending"}
    said = cli(live, "evaluate", "--all", "--json")
    assert _outcomes(live) == {"naps": "scored", "good": "scored"}
    assert _attempts(live) == {"naps": [1], "good": [1]}
    assert not said.json["unsettled"]
    assert _left(live) == []
    _no_stagings(live)
    cli(live, "store", "verify")
    types = [e.type for e in EventLog(live.config.events)]
    assert types.count("attempt-committed") == types.count("evaluation-committed") == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_order(
    number: int, live: Project, began: Callable[..., subprocess.Popen[str]]
) -> None:
    _submit(live, "naps", NAPS)
    process = began("naps", "evaluate", "--all")
    process.send_signal(number)
    out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 130 and "Traceback" not in err, out + err
    assert _left(live) == []
    _no_stagings(live)
    assert _attempts(live) == {}
    assert _outcomes(live) == {"naps": "pending"}
    cli(live, "evaluate", "--all")
    assert _outcomes(live) == {"naps": "scored"}
    assert _attempts(live) == {"naps": [1]}


@pytest.mark.slow
def test_a_local_check_that_is_terminated(live: Project, began: Callable[..., subprocess.Popen[str]]) -> None:
    live.write_task(limits={**TASK["limits"], "wall_clock": "300s"})
    live.software("naps", SLEEPER, team=_team(live))
    process = began("naps", "try", "-t", _team(live), "-s", "naps")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 130, out + err
    assert _left(live) == []
    assert not list(live.home.glob("check-*"))


@pytest.mark.slow
def test_cancelled_from_another_process(live: Project, began: Callable[..., subprocess.Popen[str]]) -> None:
    live.write_task(limits={**TASK["limits"], "wall_clock": "300s"})
    runs = [_submit(live, name, SLEEPER) for name in ("first", "second")]
    process = began("first", "evaluate", "--all", "--jobs", "1")
    assert _outcomes(live) == {"first": "running", "second": "pending"}
    second = live.start("evaluate", "--all")
    out, err = second.communicate(timeout=WAIT)
    assert second.returncode == 3 and "E306" in err, "only one coordinator at a time"
    cli(live, "cancel", runs[1])  # waits in the other process's plan: never starts
    cli(live, "cancel", runs[0])  # runs: is stopped
    out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 0, out + err
    assert _outcomes(live) == {"first": "cancelled", "second": "cancelled"}
    assert _attempts(live) == {"first": [1]}
    rows = cli(live, "runs", "--json").json
    assert not any(row["outcome"]["costs_quota"] or row["outcome"]["ranked"] for row in rows)
    assert _left(live) == []
    said = cli(live, "evaluate", "--all", "--json")
    assert said.json["work"] == [], "a cancelled run is not repeated by itself"
    cli(live, "cancel", runs[0], expect=2)


@pytest.mark.slow
def test_done_work_is_never_done_twice(live: Project) -> None:
    run = _submit(live, "good")
    planned = cli(live, "evaluate", "--all", "--dry-run", "--json").json
    assert [p["run"] for p in planned["work"]] == [run]
    assert _attempts(live) == {}, "--dry-run does nothing"
    cli(live, "evaluate", "--all")
    _nothing_left(live)
    events = live.config.events.read_bytes()
    again = cli(live, "evaluate", "--all", "--json").json
    assert again["work"] == [] and [s["run"] for s in again["skipped"]] == [run]
    assert live.config.events.read_bytes() == events
    cli(live, "evaluate", "--run", run, "--force")
    assert _attempts(live) == {"good": [1, 2]}
    # A changed limit is other work: it is run again, and it says why.
    live.write_task(limits=LIMITS)
    planned = cli(live, "evaluate", "--all", "--dry-run", "--json").json
    assert [p["run"] for p in planned["work"]] == [run]
    assert "limits.wall_clock" in planned["work"][0]["why"]
    live.write_task()
    # Evaluating again runs nothing again.
    cli(live, "reevaluate", "--all")
    assert _attempts(live) == {"good": [1, 2]}
    [attempt] = RunArchive(live.config.archive).attempts("mini", run)[1:]
    assert len(attempt.evaluations()) == 2
    cli(live, "evaluate", "--all", "--dry-run")


@pytest.mark.slow
def test_what_is_broken_never_stops_the_others(live: Project) -> None:
    good, damaged, gone = (_submit(live, name) for name in ("good", "damaged", "gone"))
    live.write_task("badtask")
    live.software("stray", team=_team(live), task="badtask")
    cli(live, "submit", "-t", _team(live), "-s", "stray", "--no-check")
    (live.root / "tasks" / "badtask" / "task.yaml").write_text("id: [\n")
    (live.home / "submissions" / damaged.removesuffix(".test") / "bundle" / "bundle.json").write_text("{}")
    for file in (live.home / "submissions" / gone.removesuffix(".test") / "bundle").iterdir():
        file.unlink()
    said = cli(live, "evaluate", "--all", "--json")
    assert [row["run"] for row in said.json["done"]] == [good]
    assert "badtask/task.yaml:" in said.err and "E205" in said.err
    assert {s["run"]: s["blocked"] for s in said.json["skipped"]} == {damaged: True, gone: True}
    assert _outcomes(live)["good"] == "scored"
    # The same for a team's files: one bad submission.yaml is listed, the others are handed in.
    live.software("worse", team=_team(live), image=None)
    said = cli(live, "submit", "-t", _team(live), "--no-check", "--json", expect=None)
    assert said.code in (2, 4)
    assert "worse/submission.yaml" in said.err and len(said.json) == 3


def test_damaged_inputs_are_the_organisers_and_stop_only_their_task(live: Project) -> None:
    live.write_task("other")
    _submit(live, "good")
    live.software("elsewhere", team=_team(live), task="other")
    cli(live, "submit", "-t", _team(live), "-s", "elsewhere", "--no-check")
    (live.truths / "other" / "test" / "qrels.txt").unlink()
    said = cli(live, "evaluate", "--all", expect=3)
    assert "E402" in said.err or "E403" in said.err
    assert _outcomes(live) == {"good": "scored", "elsewhere": "pending"}


def test_sealed_but_not_recorded_is_taken_over(live: Project) -> None:
    """Killed between sealing and recording: the next call records it, and does not run it again."""
    run = _submit(live, "good")
    events = live.config.events.read_bytes()
    cli(live, "evaluate", "--all")
    live.config.events.write_bytes(events)  # as if the process had died before the first event
    for file in live.home.glob("store.sqlite*"):
        file.unlink()
    cli(live, "evaluate", "--all")
    assert _attempts(live) == {"good": [1]}
    assert _outcomes(live) == {"good": "scored"}
    assert cli(live, "show", run, "--json").json["outcome"]["name"] == "scored"
