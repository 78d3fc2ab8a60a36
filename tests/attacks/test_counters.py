"""A blinded run moves the kernel's counters by hidden amounts; later public runs read the difference. Real containers.

The same hostile systems run with the remedy off and on. Off, the hidden amounts come out. On, the sandbox refuses some counters,
and the step that empties caches moves the others by random amounts. Reading a hidden amount then succeeds with a probability of
1/16 to 1/8, and in all four rounds of at most 1/4,096.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.engines import sandbox
from runner.engines.base import ContainerSpec, Mount
from runner.engines.docker import evict
from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.task import Visibility
from tests.attacks.counting import COUNTERS
from tests.contracts.conftest import guarded_engine

pytestmark = pytest.mark.engine

ROUNDS, VALUES = 4, 16  # four bits for each counter and round
LIMITS = Limits(memory=128 * MIB, pids=64, wall_clock=300, loopback=True)
PROGRAM = Path(__file__).with_name("counting.py").read_text(encoding="utf-8")
SENT_AS = {"pidfd inodes": "processes"}  # the same threads move both
NOISY = ("processes", "sessions", "packets", "pidfd inodes")  # programs outside the test move these, too
ABSENT = ("pidfd inodes", "sessions")  # before Linux 6.9; without CONFIG_SCHED_AUTOGROUP
REFUSED = ("pidfd inodes", "rename cookies", "socket cookies")
MOVED = ("inodes", "memory inodes", "processes", "sessions", "packets")
SECCOMP_PROFILE = sandbox.seccomp_profile
BY_ARGUMENT = ("clone", "getsockopt", "inotify_add_watch", "ioctl", "pidfd_open", "setsockopt", "statx")


@dataclass(frozen=True)
class Round:
    """The hidden values of one blinded run, and what public runs read before and after it."""

    values: dict[str, int]
    before: dict[str, int | None]
    after: dict[str, int | None]

    def moved(self, name: str) -> int | None:
        """Return how far the counter moved between the two public runs; None if they could not read it."""
        before, after = self.before[name], self.after[name]
        return None if before is None or after is None else after - before

    def sent(self, name: str) -> int:
        """Return the hidden value."""
        return self.values[SENT_AS.get(name, name)]

    def received(self, name: str) -> int | None:
        """Return the value that the reader takes for the hidden one."""
        amount = self.moved(name)
        if amount is None:
            return None
        if SENT_AS.get(name, name) == "processes":
            amount -= self.moved("sessions") or 0  # each session is a process, too
        return amount // COUNTERS[SENT_AS.get(name, name)][0] % VALUES

    def is_right(self, name: str) -> bool:
        """True if the reader found the hidden value."""
        return self.received(name) == self.sent(name)


def run(engine: DockerEngine, visibility: Visibility, image: ImageRef, word: str, hidden: Any = None) -> Any:
    """Run the hostile system; return the JSON that it prints."""
    with engine.session(f"test-{secrets.token_hex(6)}-1", visibility=visibility) as session:
        inputs = session.output_volume("hidden", bytes=MIB, inodes=8)
        session.copy_in(inputs, {"values": json.dumps(hidden).encode()})
        command = ("python3", "-c", PROGRAM, word)
        handle = session.start(ContainerSpec("software", image, command, LIMITS, (Mount(inputs, "/hidden"),)))
        ended = handle.wait(LIMITS.wall_clock)
        assert ended.code == 0, handle.logs("stderr", 2000).decode()
        text = handle.logs("stdout", 10_000)
    return json.loads(text) if text else None


def attack(engine: DockerEngine, image: ImageRef) -> list[Round]:
    """Alternate public and blinded runs."""
    rounds = []
    before = run(engine, "public", image, "read")
    for _ in range(ROUNDS):
        values = {name: secrets.randbelow(VALUES) for name in COUNTERS}
        run(engine, "blinded", image, "send", values)
        after = run(engine, "public", image, "read")
        rounds.append(Round(values, before, after))
        before = after
    return rounds


def profile_without_remedy(loopback: bool = True, disk: bool = False) -> str:
    """Return the profile without the refusals that this remedy adds."""
    profile = json.loads(SECCOMP_PROFILE(loopback, disk))
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in BY_ARGUMENT]
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"]]
    profile["syscalls"].append({"names": list(BY_ARGUMENT), "action": "SCMP_ACT_ALLOW"})
    return json.dumps(profile)


@pytest.fixture(scope="module")
def guarded(engine: DockerEngine) -> Iterator[DockerEngine]:
    with guarded_engine(engine) as guarded:
        yield guarded


@pytest.fixture(scope="module")
def off(guarded: DockerEngine, scratch_image: ImageRef) -> list[Round]:
    """The attack where caches are emptied, counters are not moved, and no call is refused by its arguments."""
    program = evict.PROGRAM.replace("= move_counters()", "= {}")
    assert program != evict.PROGRAM
    judge: Callable[[dict[str, Any]], str] = evict.judge
    unmoved = {"processors": 1, "inodes": 1, "memory_inodes": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "seccomp_profile", profile_without_remedy)
        patch.setattr(evict, "PROGRAM", program)
        patch.setattr(evict, "judge", lambda said: judge(said | {"counters": unmoved}))
        return attack(guarded, scratch_image)


@pytest.fixture(scope="module")
def on(guarded: DockerEngine, scratch_image: ImageRef, off: object) -> list[Round]:
    """The same attack with the remedy."""
    return attack(guarded, scratch_image)


def check_attack(rounds: list[Round], name: str) -> None:
    """Assert that the attack works without the remedy. Only the counters in ``ABSENT`` may be missing in a kernel."""
    print(f"{name}: {[(round_.received(name), round_.sent(name)) for round_ in rounds]}")
    if {round_.moved(name) for round_ in rounds} <= {None, 0}:
        assert name in ABSENT, f"the attack no longer reads or moves the counter of {name}"
        return
    right = sum(round_.is_right(name) for round_ in rounds)
    assert right >= (ROUNDS // 2 if name in NOISY else ROUNDS), "the attack itself does not work any more"


@pytest.mark.parametrize("name", MOVED)
def test_amounts_come_out_without_the_remedy_and_not_with_it(
    name: str, off: list[Round], on: list[Round]
) -> None:
    check_attack(off, name)
    print(f"with the remedy: {[(round_.received(name), round_.sent(name)) for round_ in on]}")
    assert not all(round_.is_right(name) for round_ in on)


@pytest.mark.parametrize("name", REFUSED)
def test_counters_that_nobody_needs_cannot_be_read(name: str, off: list[Round], on: list[Round]) -> None:
    check_attack(off, name)
    assert {round_.after[name] for round_ in on} == {None}


@pytest.mark.parametrize("name", [*MOVED, *REFUSED])
@pytest.mark.parametrize("reading", [None, 0])
def test_a_counter_that_is_never_moved_fails_its_attack(name: str, reading: int | None) -> None:
    silent = dict.fromkeys(COUNTERS, reading)
    rounds = [Round(dict.fromkeys(COUNTERS, 0), silent, silent)] * ROUNDS
    with nullcontext() if name in ABSENT else pytest.raises(AssertionError):
        check_attack(rounds, name)
