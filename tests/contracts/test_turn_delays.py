"""When a public session may start after a blinded one: never soon after one with a loopback, and on a grid after a wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runner.engines import turns
from runner.engines.base import Cancelled, ContainerSpec
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.owner import boot_id, default_locks, private_folder
from runner.engines.turns import Board, Turns
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.task import Visibility
from tests.contracts.conftest import guarded_engine, kill_during_blinded_run

LIMITS = Limits(memory=64 * MIB, pids=16, wall_clock=60, loopback=True)


@dataclass
class Clock:
    """Stands in for the module ``time`` in ``turns``: sleeping takes no time."""

    now: float = 1_000_000_020.0  # a full minute
    sleeps: list[float] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


class Busy(Board):
    """A board that shows a blinded session until a given time."""

    def __init__(self, clock: Clock, until: float) -> None:
        super().__init__()
        self.mark()
        self._clock, self._until = clock, until

    def present(self, visibility: Visibility) -> list[str]:
        """Return the blinded session while it lasts."""
        return ["other-1"] if visibility == "blinded" and self._clock.now < self._until else []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock for :class:`Turns`, with the delays of the product."""
    clock = Clock()
    monkeypatch.setattr(turns, "time", clock)
    monkeypatch.setattr(turns, "LOOPBACK_SECONDS", 12.0)
    monkeypatch.setattr(turns, "START_GRID_SECONDS", 60.0)
    return clock


def start(board: Board, folder: Path, visibility: Visibility = "public") -> None:
    """Take a turn and give it back."""
    with Turns(board, lambda: folder / "turn.lock").take(visibility, "attempt-1"):
        pass


@pytest.mark.parametrize("busy_seconds", [0.5, 1.0, 17.3, 59.0])
def test_a_public_session_that_waited_starts_on_a_full_minute(
    clock: Clock, tmp_path: Path, busy_seconds: float
) -> None:
    """The start does not reveal the second in which the blinded session ended."""
    began = clock.now
    start(Busy(clock, clock.now + busy_seconds), tmp_path)
    assert clock.now == began + 60.0


def test_the_first_public_session_after_a_blinded_one_starts_on_a_full_minute(
    clock: Clock, tmp_path: Path
) -> None:
    """The server starts public runs after the blinded ones of a plan: they find the mark, and never wait at the engine."""
    board, began = Board(), clock.now
    start(board, tmp_path, "blinded")
    clock.now += 7.5
    start(board, tmp_path)
    assert clock.now == began + 60.0
    clock.now += 3.25
    start(board, tmp_path)
    assert clock.now == began + 63.25


def test_nothing_delays_public_sessions_alone_and_blinded_ones(clock: Clock, tmp_path: Path) -> None:
    board = Board()
    start(board, tmp_path)
    start(board, tmp_path)
    board.record_loopback()
    start(board, tmp_path, "blinded")
    assert clock.sleeps == []


def test_a_session_cancelled_in_its_delay_leaves_the_delay_to_the_next(clock: Clock, tmp_path: Path) -> None:
    board, began = Board(), clock.now
    start(board, tmp_path, "blinded")
    clock.now += 7.5
    cancelled = iter([False, False, True])
    with (
        pytest.raises(Cancelled),
        Turns(board, lambda: tmp_path / "turn.lock").take("public", "attempt-1", lambda: next(cancelled)),
    ):
        pass
    assert board.marked() and clock.now < began + 60.0
    start(board, tmp_path)
    assert clock.now == began + 60.0 and not board.marked()


# Seconds from the full minute to the loopback, from the loopback to the start, and of delay. Twelve seconds
# after the end alone would tell the end: a loopback late in a minute skips the next full minute.
DELAYS = [(0.0, 0.0, 60.0), (0.0, 11.5, 48.5), (0.0, 12.0, 0.0), (0.0, 3600.0, 0.0), (50.0, 0.0, 70.0)]


@pytest.mark.parametrize(("second", "age", "delay"), DELAYS)
def test_a_public_session_keeps_its_distance_to_a_loopback(
    clock: Clock, tmp_path: Path, second: float, age: float, delay: float
) -> None:
    board = Board()
    clock.now += second
    board.record_loopback()
    clock.now += age
    began = clock.now
    start(board, tmp_path)
    assert clock.now - began == pytest.approx(delay)


def test_a_clock_that_was_set_back_delays_no_longer_than_a_fresh_loopback(
    clock: Clock, tmp_path: Path
) -> None:
    board = Board()
    board.record_loopback()
    clock.now -= 86_400.0
    began = clock.now
    start(board, tmp_path)
    assert clock.now - began <= 72.0


def test_a_delayed_session_can_be_cancelled(clock: Clock, tmp_path: Path) -> None:
    board = Board()
    board.record_loopback()
    cancelled = Turns(board, lambda: tmp_path / "turn.lock").take("public", "attempt-1", lambda: True)
    with pytest.raises(Cancelled), cancelled:
        pass
    assert board.present("public") == []


# -- on the real engine ------------------------------------------------------------------------------------


@pytest.fixture
def guarded(engine: DockerEngine) -> Iterator[DockerEngine]:
    """An engine that keeps the rules, and where nothing was recorded."""
    with guarded_engine(engine) as guarded:
        forget(guarded)
        yield guarded
        forget(guarded)


def forget_volumes(engine: DockerEngine) -> None:
    """Remove the records of a loopback that the engine keeps."""
    for name in engine.clients.volumes(mark="loopback"):
        engine.clients.remove_volume(name)


def forget_file(_: DockerEngine) -> None:
    """Remove the record of a loopback on this machine."""
    (private_folder(default_locks()) / f"loopback-{boot_id()}").unlink(missing_ok=True)


def forget(engine: DockerEngine) -> None:
    """Remove every record of a loopback."""
    forget_volumes(engine)
    forget_file(engine)


def run(engine: DockerEngine, image: ImageRef, attempt: str, limits: Limits, visibility: Visibility) -> None:
    """Run a container that does nothing."""
    with engine.session(attempt, visibility=visibility) as session:
        session.start(ContainerSpec("software", image, ("true",), limits)).wait(30)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize(
    ("visibility", "loopback", "recorded"),
    [("blinded", True, True), ("blinded", False, False), ("public", True, False)],
)
def test_only_a_blinded_container_with_a_loopback_is_recorded(
    guarded: DockerEngine,
    scratch_image: ImageRef,
    attempt: str,
    visibility: Any,
    loopback: bool,
    recorded: bool,
) -> None:
    limits = Limits(memory=64 * MIB, pids=16, wall_clock=60, loopback=loopback)
    run(guarded, scratch_image, attempt, limits, visibility)
    since = guarded.turns.board.seconds_since_loopback()
    assert (since is not None) == recorded
    assert since is None or since < 30


@pytest.mark.slow
@pytest.mark.engine
def test_without_our_seccomp_profile_every_blinded_container_counts(
    guarded: DockerEngine, scratch_image: ImageRef, attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DockerEngine, "own_profile", False)
    run(guarded, scratch_image, attempt, Limits(memory=64 * MIB, pids=16, wall_clock=60), "blinded")
    assert guarded.turns.board.seconds_since_loopback() is not None


@pytest.mark.engine
@pytest.mark.parametrize("lose", [forget_volumes, forget_file])
def test_the_record_survives_the_loss_of_one_of_its_two_places(
    guarded: DockerEngine, lose: Callable[[DockerEngine], None]
) -> None:
    """The file also serves other engines of the same kernel."""
    board = guarded.turns.board
    board.record_loopback()
    board.record_loopback()
    assert len(guarded.clients.volumes(mark="loopback")) == 1
    lose(guarded)
    since = board.seconds_since_loopback()
    assert since is not None and since < 10


def _start_public(engine: DockerEngine, attempt: str) -> None:
    with engine.session(attempt):
        pass


def _reap(engine: DockerEngine, _: str) -> None:
    engine.reap()


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("remove", [_start_public, _reap])
@pytest.mark.parametrize("loopback", [True, False])
def test_a_container_that_outlived_its_process_counts_until_it_is_removed(
    guarded: DockerEngine,
    scratch_image: ImageRef,
    attempt: str,
    monkeypatch: pytest.MonkeyPatch,
    remove: Callable[[DockerEngine, str], None],
    loopback: bool,
) -> None:
    board = guarded.turns.board
    board.record_loopback()
    kill_during_blinded_run(guarded, f"{attempt}a", scratch_image, loopback=loopback, after=1.5)
    killed_at = time.monotonic()
    record, records = board.record_loopback, []
    monkeypatch.setattr(board, "record_loopback", lambda: records.append(record()))
    remove(guarded, f"{attempt}b")
    if loopback:  # another process that shares the engine may have removed the container just before
        since = board.seconds_since_loopback()
        assert since is not None and since < time.monotonic() - killed_at + 0.5
    else:
        assert not records
