"""A blinded run leaves a message in the page cache; the next public run tries to read it. Real containers.

The same two hostile softwares run with the remedy off and on: off, at least 99 % of 1,000 hidden bits come out; on, no
more than chance. What has nothing to do with the hidden bits guesses X of 1,000 right, X binomial with p = 1/2: 590 or
more has a probability of 8e-9, as has 410 or less, so that fifty readings are all inside with a probability of 0.999999.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from runner.engines.base import ContainerSpec, Mount, Volume
from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.task import Visibility
from tests.contracts.conftest import guarded_engine

pytestmark = pytest.mark.engine

BITS, PAGE, RUNS = 1000, 4096, 5
ENOUGH, CHANCE = 0.99, range(411, 590)
LIMITS = Limits(memory=256 * MIB, pids=32, wall_clock=120, log=512 * 1024)
PROGRAM = Path(__file__).with_name("residency.py").read_text(encoding="utf-8")
FILL = f"RUN head -c {BITS * PAGE} /dev/urandom >"
OWN, SHARED, INPUT, MODEL = "/own.bin", "/shared.bin", "/in/file", "/model/file"
THERE, ABSENT = "/in/there{}", "/in/absent{}"  # names of files that exist, and that do not
CLEARLY = 750  # right of 1,000 by the clock alone, on a busy machine: 16 standard deviations from chance


@dataclass
class Machine:
    """An engine with the remedy and one without, two teams' images on one base, and volumes that both kinds of run mount."""

    guarded: DockerEngine
    plain: DockerEngine
    one: ImageRef
    two: ImageRef
    volumes: dict[str, Volume]

    def make_cold(self) -> None:
        """As on a machine that has just been started, or has had other work."""
        self.guarded.turns.board.evict()

    def run(
        self, engine: DockerEngine, visibility: Visibility, image: ImageRef, *words: str, hidden: str = ""
    ) -> Any:
        mounts = [Mount(self.volumes[name], name) for name in ("/in", "/model")]
        if hidden:
            mounts.append(Mount(self.volumes[hidden], "/hidden"))
        with engine.session(f"test-{secrets.token_hex(6)}-1", visibility=visibility) as session:
            handle = session.start(
                ContainerSpec("software", image, ("python3", "-c", PROGRAM, *words), LIMITS, tuple(mounts))
            )
            ended = handle.wait(LIMITS.wall_clock)
            said = handle.logs("stdout", LIMITS.log)
            assert ended.code == 0, handle.logs("stderr", 2000).decode()
        return json.loads(said) if said else None

    def attack(self, engine: DockerEngine, hidden: str) -> dict[str, Any]:
        """One blinded run, and the public runs of its own team and of another one after it."""
        self.make_cold()
        paths = (THERE, ABSENT, OWN, SHARED, INPUT, MODEL)
        self.run(engine, "blinded", self.one, "send", *paths, hidden=hidden)
        seen = self.run(engine, "public", self.one, "receive", THERE, ABSENT, OWN, INPUT, MODEL)
        return dict(seen | self.run(engine, "public", self.two, "receive", SHARED))


@pytest.fixture(scope="module")
def secret() -> dict[str, str]:
    return {f"hidden-{number}": "".join(secrets.choice("01") for _ in range(BITS)) for number in range(RUNS)}


@pytest.fixture(scope="module")
def machine(
    engine: DockerEngine,
    build_image: Callable[..., ImageRef],
    secret: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("volumes")
    contents = {name: secrets.token_bytes(BITS * PAGE) for name in ("/in", "/model")}
    contents |= {name: bits.encode() for name, bits in secret.items()}
    volumes: dict[str, Volume] = {}
    for name, content in contents.items():
        path = folder / hashlib.sha256(content).hexdigest()
        path.write_bytes(content)
        files = [(PurePosixPath("bits" if name in secret else "file"), path)]
        if name == "/in":
            small = folder / "small"
            small.write_text("x")
            files += [(PurePosixPath(Path(THERE.format(number)).name), small) for number in range(BITS)]
        volumes[name] = engine.data_volume(path.name, lambda files=files: files)  # type: ignore[misc]
    one = build_image("proctor/test-attack-one", f"{FILL} {SHARED}", f"{FILL} {OWN}")
    two = build_image("proctor/test-attack-two", f"{FILL} {SHARED}", "RUN echo two > /two")
    with guarded_engine(engine) as guarded:
        yield Machine(guarded, engine, one, two, volumes)
    markers = engine.markers()
    for volume in volumes.values():
        for name in (volume.name, markers[volume.name]):
            assert engine.clients.remove_volume(name)


@pytest.fixture(scope="module")
def off(machine: Machine, secret: dict[str, str]) -> list[dict[str, Any]]:
    """What the attack saw in each run with the remedy off."""
    return [machine.attack(machine.plain, hidden) for hidden in secret]


@pytest.fixture(scope="module")
def on(machine: Machine, secret: dict[str, str], off: object) -> list[dict[str, Any]]:
    """The same with the remedy on."""
    return [machine.attack(machine.guarded, hidden) for hidden in secret]


def count_right(seen: list[dict[str, Any]], secret: dict[str, str], guess: Callable[..., str]) -> list[int]:
    """Return how many bits were guessed right in each run."""
    counts = []
    for run, bits in zip(seen, secret.values(), strict=True):
        guessed = guess(run)
        assert len(guessed) == len(bits) == BITS
        counts.append(sum(a == b for a, b in zip(guessed, bits, strict=True)))
    return counts


def by_the_clock(times: list[int]) -> str:
    """The faster half of the pages as ones: the best guess of somebody who has only a clock."""
    middle = statistics.median(times)
    return "".join("1" if one < middle else "0" for one in times)


@pytest.mark.parametrize("path", [OWN, SHARED, INPUT, MODEL])
def test_hidden_bits_come_out_without_the_remedy_and_no_more_than_chance_with_it(
    path: str, off: list[dict[str, Any]], on: list[dict[str, Any]], secret: dict[str, str]
) -> None:
    before, after = (count_right(arm, secret, lambda run: run[path]["memory"]) for arm in (off, on))
    assert min(before) >= ENOUGH * BITS, f"the attack itself does not work any more: {before}"
    clock, timed = (
        count_right(arm, secret, lambda run: by_the_clock(run[path]["times"])) for arm in (off, on)
    )
    print(f"{path}: off {before} (clock alone {clock}), on {after} (clock alone {timed})")
    assert all(number in CHANCE for number in after), after
    assert all(number in CHANCE for number in timed), timed


@pytest.mark.parametrize("path", [THERE, ABSENT])
def test_names_that_were_looked_up_tell_no_more_than_chance_either(
    path: str, off: list[dict[str, Any]], on: list[dict[str, Any]], secret: dict[str, str]
) -> None:
    before, after = (
        count_right(arm, secret, lambda run: by_the_clock(run[path]["times"])) for arm in (off, on)
    )
    print(f"{path}: off {before}, on {after}")
    assert statistics.median(before) >= CLEARLY, f"the attack itself does not work any more: {before}"
    assert all(number in CHANCE for number in after), after


@pytest.mark.parametrize("path", [OWN, SHARED, INPUT, MODEL])
def test_reading_leaves_no_time_of_access(path: str, off: list[dict[str, Any]]) -> None:
    assert len({seen[path]["atime"] for seen in off}) == 1
