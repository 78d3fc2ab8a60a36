"""A blinded run leaves a message in the kernel's table of TCP source ports; the next public run reads it. Real containers.

Guessing gets X of 512 bits right, X binomial with p = 1/2: more than 60 % has a probability of 3e-6.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from runner.engines import turns
from runner.engines.base import ContainerSpec, Mount
from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.task import Visibility
from tests.contracts.conftest import guarded_engine

pytestmark = pytest.mark.engine

BITS = 512
LEAKED, CHANCE = 0.99 * BITS, 0.6 * BITS
WITHOUT_LOOPBACK = Limits(memory=128 * MIB, pids=32, wall_clock=60)
LIMITS = replace(WITHOUT_LOOPBACK, loopback=True)
PROGRAM = Path(__file__).with_name("source_ports.py").read_text(encoding="utf-8")


class Machine:
    """An engine that keeps the rules, and the hidden bits in a volume."""

    def __init__(self, engine: DockerEngine, image: ImageRef, folder: Path) -> None:
        self.engine, self.image = engine, image
        self.bits = "".join(secrets.choice("01") for _ in range(BITS))
        path = folder / hashlib.sha256(self.bits.encode()).hexdigest()
        path.write_text(self.bits, encoding="ascii")
        self.hidden = engine.data_volume(path.name, lambda: [(PurePosixPath("bits"), path)])

    def run(self, visibility: Visibility, limits: Limits, *words: str) -> tuple[int | None, bytes]:
        """Return the exit code and the output of the program; only a blinded run gets the hidden bits."""
        mounts = (Mount(self.hidden, "/hidden"),) if visibility == "blinded" else ()
        with self.engine.session(f"test-{secrets.token_hex(6)}-1", visibility=visibility) as session:
            command = ("python3", "-c", PROGRAM, *words)
            handle = session.start(ContainerSpec("software", self.image, command, limits, mounts))
            return handle.wait(limits.wall_clock).code, handle.logs("stdout", 65536)

    def read(self) -> int:
        """Return how many bits a public run with a loopback reads correctly."""
        code, output = self.run("public", LIMITS, "receive", str(BITS))
        assert code == 0
        return sum(a == b for a, b in zip(json.loads(output), self.bits, strict=True))


@pytest.fixture
def machine(engine: DockerEngine, scratch_image: ImageRef, tmp_path: Path) -> Iterator[Machine]:
    with guarded_engine(engine) as guarded:
        machine = Machine(guarded, scratch_image, tmp_path)
        yield machine
        for name in (machine.hidden.name, guarded.markers()[machine.hidden.name]):
            assert guarded.clients.remove_volume(name)


@pytest.mark.slow
def test_source_ports_carry_hidden_bits_only_without_the_wait(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "START_GRID_SECONDS", 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(turns, "LOOPBACK_SECONDS", 0.0)
        # Emptying caches does not stop the attack, and takes over ten seconds on a busy machine.
        patch.setattr(machine.engine.turns.board, "evict", lambda: None)
        assert machine.run("blinded", LIMITS, "send")[0] == 0
        leaked = machine.read()
    monkeypatch.setattr(turns, "LOOPBACK_SECONDS", 12.0)
    assert machine.run("blinded", LIMITS, "send")[0] == 0
    ended = time.monotonic()
    chance = machine.read()
    print(f"without the wait {leaked} of {BITS}, with it {chance}, after {time.monotonic() - ended:.1f} s")
    assert leaked >= LEAKED, "the attack itself does not work any more"
    assert chance <= CHANCE
    assert time.monotonic() - ended >= 12.0


@pytest.mark.slow
def test_source_ports_carry_nothing_without_a_loopback(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "START_GRID_SECONDS", 0.5)
    began = time.monotonic()
    code, _ = machine.run("blinded", WITHOUT_LOOPBACK, "send")
    assert code == 1, "the sender cannot open a socket"
    assert machine.read() <= CHANCE
    print(f"{time.monotonic() - began:.1f} s without a wait")
