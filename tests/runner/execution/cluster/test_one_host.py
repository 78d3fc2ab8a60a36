"""``runner verify --on``: a run is executed again at the host that is named, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.cli import context
from runner.engines.fake import Mounts
from runner.execution.machine import Machine
from runner.execution.trials.verify import Verified, verify
from runner.model.errors import RunnerError
from runner.records.store.run_detail import detail
from runner.views.audience import ORGANISER
from tests.runner.execution.cluster.test_hosts import machine
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.runner.execution.test_verify_run import last_event, scoring
from tests.worlds.cluster import Cluster, good
from tests.worlds.mini import call_here


def another(mounts: Mounts, out: Path) -> None:
    out.joinpath("run.txt").write_text("1 Q0 d 1 0.25 tag\n")


def verified(world: World, run: str, where: Machine, host: str) -> Verified:
    found = detail(world.store, run, world.tasks.values())
    return verify(where, world.store, world.tasks, found, ORGANISER, host=host)


@pytest.fixture
def run(world: World) -> str:
    """A run that was executed and scored on this machine."""
    world.engine.script[EVALUATOR] = scoring
    made = world.hand_in("team0", "slow", script=good)
    world.work()
    return made


@pytest.mark.slow
def test_the_named_host_executes_it_again_and_nothing_else_does(
    world: World,
    sound: Cluster,
    run: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = world.hand_in("team1", "slow", script=another)  # than hosts give
    world.work()
    where, here = machine(world, sound), len(world.engine.started)
    before = sorted(path.name for path in world.project.home.iterdir())
    sound.go()
    found = verified(world, other, where, "h2")
    assert (found.same, found.identical, found.files, found.host) == (False, False, ("run.txt",), "h2")
    (begun,) = sound.folder.glob("begun-*")
    assert int(begun.name.split("-")[1]) == sound.processes["h2"].pid
    assert {spec.role for spec in world.engine.started[here:]} == {"evaluator"}
    assert (last_event(world).type, last_event(world).data["host"]) == ("run-verified", "h2")
    assert sorted(path.name for path in world.project.home.iterdir()) == before
    assert not list((sound.folder / "store" / "attempts").glob("*/*"))
    (attempt,) = world.store.archive.attempts("mini", other)
    assert world.outcome(other).attempt == attempt.number == 1
    monkeypatch.setattr(context, "machine", lambda *_: where)
    said = call_here(world.project, ["verify", run, "--on", "h1"], capsys)
    assert said.code == 0 and "h1" in said.out and "h1" in said.err, said
    pids = {int(path.name.split("-")[1]) for path in sound.folder.glob("begun-*")}
    assert pids == {sound.processes[name].pid for name in ("h1", "h2")}
    said = call_here(world.project, ["verify", run, "--on", "h9", "--dry-run"], capsys)
    assert said.code == 2 and "h1, h2" in said.err, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "host", "code", "says"),
    [
        ({"cluster": None}, "h1", "E101", "RUNNER_CLUSTER "),
        ({"artefacts": None}, "h1", "E101", "RUNNER_ARTEFACTS "),
        ({}, "h3", "E102", "h1, h2"),
        ({"artefacts": "file:///elsewhere"}, "h1", "E305", "artefacts"),
        ({"cluster": "tls://127.0.0.1:9"}, "h1", "E301", "tls://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_executed(
    world: World, sound: Cluster, run: str, change: dict[str, Any], host: str, code: str, says: str
) -> None:
    where = machine(world, sound)
    where = Machine(replace(where.config, **change), engine=world.engine, images={"evaluator": EVALUATOR})
    begun = len(world.engine.started)
    with pytest.raises(RunnerError) as error:
        verified(world, run, where, host)
    assert error.value.code == code and says in f"{error.value.what}. {error.value.why}"
    assert error.value.fix and len(world.engine.started) == begun and sound.begun(0) == 0
