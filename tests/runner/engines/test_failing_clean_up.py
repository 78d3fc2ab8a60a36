"""A step of a clean-up that fails does not keep the other steps from being done."""

from __future__ import annotations

import errno
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import APIError
from filelock import FileLock
from requests import Response

from runner.engines.base import ContainerSpec
from runner.engines.docker import meter, own_mounts, owner
from runner.engines.docker.building import step
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.turns import DockerBoard
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import MIB, Limits

pytestmark = pytest.mark.engine


class StepFailure(Exception):
    """An error that is not translated."""


def refuse(*_: object, **__: object) -> None:
    """Raise as the engine does for something that it cannot do."""
    answer = Response()
    answer.status_code = 500
    raise APIError("refused", response=answer)


def names(engine: DockerEngine, label: str) -> set[str]:
    """Return the names of all containers and volumes with a label."""
    api = engine.clients.get()
    listed = api.containers(all=True, filters={"label": [label]})
    volumes = api.volumes(filters={"label": [label]}).get("Volumes") or []
    return {entry["Names"][0].strip("/") for entry in listed} | {volume["Name"] for volume in volumes}


@pytest.mark.parametrize(
    "error",
    [PlatformError("refused"), StepFailure("refused"), KeyboardInterrupt()],
    ids=lambda error: type(error).__name__,
)
def test_a_session_gives_back_its_locks_if_the_loopback_cannot_be_recorded(
    engine: DockerEngine,
    scratch_image: ImageRef,
    attempt: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # locks of its own
    answers: Iterator[BaseException | None] = iter([None, None, error])

    def record(_: DockerBoard) -> None:
        if (answer := next(answers)) is not None:
            raise answer

    monkeypatch.setattr(DockerBoard, "record_loopback", record)
    with pytest.raises(type(error)), engine.session(attempt, visibility="blinded") as session:
        uid = session.uid
        volume = session.output_volume("output", bytes=MIB, inodes=8)
        limits = Limits(memory=64 * MIB, pids=16, loopback=True)
        session.start(ContainerSpec("software", scratch_image, ("true",), limits)).wait(30)
    FileLock(owner.default_locks() / f"uid-{uid}.lock").acquire(timeout=0)
    assert names(engine, f"proctor.attempt={attempt}") == set()
    assert not list(own_mounts.folder().glob(f"*/{volume.name}")), "a file system is still mounted"


def test_a_session_gives_back_its_locks_if_a_meter_cannot_be_closed(
    engine: DockerEngine,
    scratch_image: ImageRef,
    attempt: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    closed: list[object] = []

    def close(self: object) -> None:
        closed.append(self)
        raise StepFailure

    with monkeypatch.context() as patch:
        patch.setattr("runner.engines.docker.handle.DockerHandle.close", close)
        with pytest.raises(StepFailure), engine.session(attempt) as session:
            uid = session.uid
            handles = [
                session.start(ContainerSpec("software", scratch_image, ("true",), Limits(memory=64 * MIB)))
                for _ in range(2)
            ]
    assert set(map(id, closed)) == set(map(id, handles))
    FileLock(owner.default_locks() / f"uid-{uid}.lock").acquire(timeout=0)
    for handle in handles:
        handle.close()


def test_a_loopback_is_recorded_before_and_after_the_removal_of_its_container(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    containers: list[bool] = []

    def record(_: DockerBoard) -> None:
        containers.append(
            bool(engine.clients.get().containers(all=True, filters={"label": [f"proctor.attempt={attempt}"]}))
        )

    monkeypatch.setattr(DockerBoard, "record_loopback", record)
    with engine.session(attempt, visibility="blinded") as session:
        limits = Limits(memory=64 * MIB, pids=16, loopback=True)
        session.start(ContainerSpec("software", scratch_image, ("true",), limits)).wait(30)
    assert containers == [False, True, False]


@pytest.mark.parametrize(("note", "volumes"), [(DockerBoard.record_loopback, 1), (DockerBoard.mark, 0)])
def test_a_disk_that_refuses_the_file_is_a_platform_error(
    engine: DockerEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    note: Callable[[DockerBoard], None],
    volumes: int,
) -> None:
    """The volume of the engine then records the loopback alone; without a mark no blinded session starts."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def is_full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    created: list[str] = []
    monkeypatch.setattr(engine.clients.get(), "create_volume", lambda name, **_: created.append(name))
    monkeypatch.setattr(Path, "touch", is_full)
    with pytest.raises(PlatformError) as caught:
        note(DockerBoard(engine))
    assert caught.value.code == "E306" and len(created) == volumes


@pytest.fixture
def dead(engine: DockerEngine, scratch_image: ImageRef, attempt: str) -> Iterator[dict[str, dict[str, str]]]:
    """Three containers, each with a volume, that a dead process left: the labels by the attempt."""
    process = owner.me().rpartition("|")[0] + "|1"
    left = {
        f"{attempt}{name}": {"proctor.attempt": attempt + name, "proctor.owner": process} for name in "abc"
    }
    api = engine.clients.get()
    for name, labels in left.items():
        api.create_volume(name, driver="local", labels=labels)
        api.create_container(scratch_image.id, ("true",), name=name, labels=labels)
    yield left
    engine.clients.sweep([{"attempt": name} for name in left])


@pytest.mark.parametrize("kind", ["container", "volume"])
def test_what_the_engine_cannot_remove_does_not_keep_the_rest(
    engine: DockerEngine,
    dead: dict[str, dict[str, str]],
    attempt: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    api = engine.clients.get()
    listed = {"container": names_of_containers(api, attempt), "volume": sorted(dead)}[kind]
    stuck = listed[0]  # the rest comes after it
    remove = getattr(api, f"remove_{kind}")
    identity = api.inspect_container(stuck)["Id"] if kind == "container" else stuck

    def remove_others(found: str, **options: Any) -> None:
        refuse() if found == identity else remove(found, **options)

    with monkeypatch.context() as patch:
        patch.setattr(api, f"remove_{kind}", remove_others)
        with pytest.raises(PlatformError):
            engine.reap(prefix=attempt)
        assert {name for name in dead if names(engine, f"proctor.attempt={name}")} == {stuck}
    engine.reap(prefix=attempt)
    assert not any(names(engine, f"proctor.attempt={name}") for name in dead)


def names_of_containers(api: Any, attempt: str) -> list[str]:
    """Return the names of this test's containers as the engine lists them."""
    containers = [entry["Names"][0].strip("/") for entry in api.containers(all=True)]
    return [name for name in containers if name.startswith(attempt)]


def test_reaping_goes_on_after_a_failed_sweep(engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    process = owner.me().rpartition("|")[0] + "|1"
    digest = secrets.token_hex(32)
    name = f"proctor-data-{digest[:24]}"
    labels = {"proctor.data": digest, "proctor.owner": process}
    engine.clients.get().create_volume(name, driver="local", labels=labels)
    done: list[str] = []

    def fail(step_name: str) -> Callable[..., None]:
        def run(*_: object) -> None:
            done.append(step_name)
            raise PlatformError(step_name)

        return run

    monkeypatch.setattr(engine.clients, "sweep", fail("sweep"))
    monkeypatch.setattr(meter, "clean_up", fail("groups"))
    monkeypatch.setattr(own_mounts, "clean_up", fail("mounts"))
    with pytest.raises(PlatformError):
        engine.reap()
    assert sorted(done) == ["groups", "mounts", "sweep"] if engine.local else done == ["sweep"]
    assert names(engine, f"proctor.data={digest}") == set()


@pytest.mark.slow
def test_a_build_step_is_ended_though_its_disk_cannot_be_measured(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two tries to end it fail, too."""
    api = engine.clients.get()
    container = api.create_container(scratch_image.id, ("sleep", "600"), labels={"proctor.attempt": attempt})[
        "Id"
    ]
    kill, tries = docker.APIClient.kill, []

    def kill_at_last(self: docker.APIClient, name: str, signal: str) -> None:
        tries.append(name)
        refuse() if len(tries) < 3 else kill(self, name, signal)

    try:
        watch = step.LayerWatch(engine, container, 1 << 30, 1000)
        api.start(container)

        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.ENOENT, "No such file or directory")

        monkeypatch.setattr(step.LayerWatch, "check", fail)
        monkeypatch.setattr(docker.APIClient, "kill", kill_at_last)
        with watch:
            deadline = time.monotonic() + 60
            while api.inspect_container(container)["State"]["Running"] and time.monotonic() < deadline:
                time.sleep(0.1)
        assert not api.inspect_container(container)["State"]["Running"]
        assert watch.exceeded and len(tries) == 3
    finally:
        api.remove_container(container, force=True)
