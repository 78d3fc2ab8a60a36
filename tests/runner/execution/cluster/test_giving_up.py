"""What a coordinator gives up leaves nothing, unreadable deliveries are kept, and its secret is whole or refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.execution.attempt import perform
from runner.execution.cluster.executor import ClusterExecutor
from runner.execution.cluster.keys import home_of, key_for, key_of
from runner.execution.cluster.line import Line
from runner.execution.cluster.software import Software
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.stores import Stores
from runner.execution.cluster.storage.sweeping import OLD, sweep
from runner.execution.executors.base import Host, Lost
from runner.execution.executors.local import LocalExecutor
from runner.execution.plan import Planned, plan
from runner.execution.pool import Control
from runner.model.errors import PlatformError
from runner.model.outcome import UNSETTLED
from runner.model.run import Selection
from runner.model.verdict import Verdict
from runner.records.archive import Attempt, RunArchive
from runner.records.contents import Content
from runner.records.files import walk
from tests.e2e.test_server import until
from tests.runner.execution.test_pool import World

HOST = Host("tls://127.0.0.1:9", 1e12, 8.0, 2, label="h1", role="software", hidden=True)


def planned_and_executor(world: World, store: Artefacts) -> tuple[Planned, ClusterExecutor]:
    """A run to execute, and an executor whose scheduler never answers."""
    world.hand_in("team0")
    desk = world.desk()
    (planned,) = plan(desk, Selection()).work
    absent = world.project.home / "no-certificates"  # nothing is ever sent
    line = Line("tls://127.0.0.1:9", absent, lambda _: None)
    local = LocalExecutor(world.engine, desk, Control.of(world.project.config))
    return planned, ClusterExecutor(local, Software(local, Stores(store)), line)


class Waiting(Artefacts):
    """A store that says that it was asked to keep an order, and then lets it wait."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.asked, self.go = threading.Event(), threading.Event()

    def put(self, what: Path | bytes) -> Content:
        if isinstance(what, bytes):
            self.asked.set()
            assert self.go.wait(60)
        return super().put(what)


def test_an_attempt_that_is_given_up_before_it_was_ordered_leaves_nothing(
    world: World, tmp_path: Path
) -> None:
    store = Waiting(f"file://{tmp_path / 'store'}")
    planned, executor = planned_and_executor(world, store)
    with executor:
        executor.begin(planned, HOST)
        assert store.asked.wait(60) and world.store.archive.live()
        leaving = threading.Thread(target=executor.__exit__, args=(None, None, None))
        leaving.start()
        until(lambda: refuses(executor, planned), every=0.01)
        store.go.set()
        leaving.join(60)
    ended = executor.ended(0)
    assert ended is not None and isinstance(ended[1], KeyboardInterrupt)
    assert world.store.archive.live() == {} and not list(world.store.archive.tmp.glob("a~*"))


def refuses(executor: ClusterExecutor, planned: Planned) -> bool:
    """Whether an executor takes no more: it is being left."""
    try:
        executor.begin(planned, HOST)
    except RuntimeError:
        return True
    return False


class Flaky(Artefacts):
    """A store from which nothing can be taken until it is ``well``."""

    well = False

    def take(self, name: str, files: Mapping[str, Content], folder: Path) -> None:
        if not self.well:
            raise PlatformError("the store cannot be read", code="E313")
        super().take(name, files, folder)


def test_a_delivery_that_cannot_be_read_now_is_taken_later(world: World, tmp_path: Path) -> None:
    store = Flaky(f"file://{tmp_path / 'store'}")
    planned, executor = planned_and_executor(world, store)
    name = deliver(world, planned, store, tmp_path / "left")
    with executor:
        executor.begin(planned, HOST)
        first = executor.ended(60)
        assert first is not None and isinstance(first[1], Lost) and store.attempts() == [name]
        store.well = True
        executor.begin(planned, HOST)
        again = executor.ended(60)
        assert again is not None and isinstance(again[1], Attempt) and store.attempts() == []


def deliver(world: World, planned: Planned, store: Artefacts, folder: Path, number: int = 1) -> str:
    """Deliver a run as a host does, whose coordinator was killed; returns the delivery's name."""
    folder.mkdir()
    record = perform(world.desk().job(planned.run), None, number, folder, world.engine)
    key = key_of(world.store.archive)
    name = f"{home_of(key)}/a~mini~{planned.run.id}~{number}~0000abcd"
    placed: dict[str, Any] = {"record": {**record, "placed": {"host": "h1"}}}
    store.deliver(name, dict(walk(folder)), placed, key_for(key, name))
    return name


@contextmanager
def executed(world: World) -> Iterator[Planned]:
    """A run that was executed; in the context it was planned again."""
    world.hand_in("team0")
    (planned,) = plan(world.desk(), Selection()).work
    world.work()
    yield planned


@pytest.mark.parametrize("verdict", UNSETTLED)
def test_an_evaluation_of_the_attempt_that_counts_is_not_swept(
    world: World, tmp_path: Path, verdict: str
) -> None:
    store, archive = Artefacts(f"file://{tmp_path / 'store'}"), world.store.archive
    with executed(world) as planned:
        staging, job = archive.begin("mini", planned.run.id), world.desk().job(planned.run)
        record = perform(job, None, 2, staging.path, world.engine)
    archive.seal(staging, {**record, "verdict": Verdict(verdict).as_dict()})
    key = key_of(archive)
    names = [f"{home_of(key)}/e~mini~{planned.run.id}~{n}~0000abcd" for n in (1, 2, 3)]
    for name, of in zip(names, (1, 1, 2), strict=True):
        store.deliver(name, {}, {"attempt": of}, key_for(key, name))
    assert sweep(store, key, archive, datetime.now(UTC)) == [names[0], names[2]]
    assert store.attempts() == [names[1]]


def test_what_nobody_waits_for_is_swept_and_nothing_else(world: World, tmp_path: Path) -> None:
    store, archive = Artefacts(f"file://{tmp_path / 'store'}"), world.store.archive
    with executed(world) as planned:
        late = deliver(world, planned, store, tmp_path / "late")
        waited_for = deliver(world, planned, store, tmp_path / "second", 2)
    half = Path(store.address.removeprefix("file://")) / "attempts" / ("0123" * 4) / "a~mini~x~1~00000000"
    half.mkdir(parents=True)
    (half / "lock.json").touch()  # somebody else's, who is at it
    (strange := half.parent / "strange").mkdir()
    key, home, now = key_of(archive), waited_for.partition("/")[0], datetime.now(UTC)
    judged, judging = (f"{home}/e~mini~{planned.run.id}~{n}~0000abcd" for n in (1, 2))
    for name in (judged, judging):
        store.deliver(name, {}, {"attempt": 1}, key_for(key, name))
    of_before = f"{home}/e~mini~{planned.run.id}~3~0000abcd"
    store.deliver(of_before, {}, {"attempt": 0}, key_for(key, of_before))
    forged = f"{home}/e~mini~{planned.run.id}~4~0000abcd"
    store.deliver(forged, {}, {"attempt": 0}, b"somebody else's")
    assert sorted(sweep(store, key, archive, now)) == [late, judged, of_before]
    assert {waited_for, judging, forged} < set(store.attempts()) and half.is_dir()
    gone = sweep(store, key, archive, now + OLD + timedelta(hours=1))
    assert set(gone) == {waited_for, judging, forged, f"{half.parent.name}/{half.name}"}
    assert not half.exists() and strange.is_dir()


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    archive = RunArchive(tmp_path / "archive")
    key = key_of(archive)
    assert len(key) == 32 and key_of(archive) == key
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", [b"", b"short"])
def test_what_a_crash_left_of_a_secret_signs_nothing(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "cluster.key").write_bytes(left)
    with pytest.raises(PlatformError) as error:
        key_of(RunArchive(tmp_path / "archive"))
    assert error.value.code == "E307" and error.value.fix
