"""What every engine promises, on the scripted and on the real one."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from runner.engines.base import BuildSpec, Mount, Volume
from runner.engines.docker.engine import DockerEngine
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB
from tests.contracts.conftest import raises_in, run_at_once

Inputs = list[tuple[PurePosixPath, Path]]


def fresh_digest() -> str:
    return hashlib.sha256(secrets.token_bytes(8)).hexdigest()


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    source = tmp_path / "source.txt"
    source.write_text("q1\nq2\n")
    return [(PurePosixPath("deep/queries.txt"), source)]


@pytest.fixture
def data(world: Any, inputs: Inputs) -> Any:
    """A data volume that goes away with the test."""
    digest = fresh_digest()
    yield world.engine.data_volume(digest, lambda: inputs)
    drop(world, [digest])


def drop(world: Any, digests: Sequence[str]) -> None:
    """Collect the garbage of these digests, as if the engine held no other data volume."""
    mine = {d[:32] for d in digests}
    if not world.real:
        world.engine.gc(keep_digests=[d for d in world.engine._data if d[:32] not in mine])
        return
    ready = {v: m for v, m in world.engine.markers().items() if v.split("-")[2] in mine}
    alone = DockerEngine(world.engine.clients.host)
    alone.markers = lambda: ready  # type: ignore[method-assign]
    assert alone.gc(keep_digests=[], dry_run=True) == sorted(ready)
    assert alone.gc(keep_digests=digests) == []
    assert alone.gc(keep_digests=[]) == sorted(ready)
    alone.close()


@contextmanager
def started(
    world: Any, attempt: str, program: str, *mounts: Mount, bytes: int = 4 * MIB, **changes: Any
) -> Iterator[tuple[Any, Any, Volume]]:
    """Start a program with an output volume; yield the session, the handle and the volume."""
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=bytes, inodes=64)
        spec = world.spec(program, *mounts, Mount(out, "/out", read_only=False), **changes)
        yield session, session.start(spec), out


def test_a_run_from_inputs_to_output(world: Any, data: Volume, attempt: str, tmp_path: Path) -> None:
    with started(world, attempt, "copy", Mount(data, "/in")) as (session, handle, out):
        ended = handle.wait(100)
        got = session.copy_out(
            out, tmp_path / "out", allowed=lambda n: n == "run.txt", max_bytes=MIB, max_files=2
        )
        assert handle.logs("stdout", 1000) == b"hello\n"
        assert handle.logs("stderr", 3) == b"ed\n"
        assert handle.logs("stderr", 0) == b""
    assert (ended.code, ended.killed, ended.oom_killed, ended.start_error) == (0, None, False, None)
    assert ended.started and ended.finished and not ended.log_truncated
    assert (got.files, got.refused, got.bytes, got.full) == (("run.txt",), (), 6, False)
    assert (tmp_path / "out/run.txt").read_text() == "q1\nq2\n"


def test_an_exit_code_is_returned_by_every_wait(world: Any, attempt: str) -> None:
    with started(world, attempt, "fail") as (_, handle, _):
        assert handle.wait(100).code == 3
        assert handle.wait(100) is handle.wait(1)


def test_a_working_program_ends_at_its_processor_time(world: Any, attempt: str) -> None:
    limits = replace(world.spec("work").limits, cpu_time=0.7)
    with started(world, attempt, "work", limits=limits) as (_, handle, _):
        ended = handle.wait(120)
    assert (ended.killed, ended.code) == ("processor", 137)
    assert ended.resources.cpu_seconds is not None and ended.resources.cpu_seconds >= 0.7


@pytest.mark.slow
def test_a_waiting_program_ends_at_the_wall_clock(world: Any, attempt: str) -> None:
    limits = replace(world.spec("sleep").limits, cpu_time=0.7)
    with started(world, attempt, "sleep", limits=limits) as (_, handle, _):
        begun = time.monotonic()
        ended = handle.wait(3)
    assert (ended.killed, ended.code) == ("time", 137)
    assert time.monotonic() - begun < 40


def test_a_run_can_be_cancelled_by_its_process_and_by_another(world: Any, attempt: str) -> None:
    with started(world, attempt, "sleep") as (_, handle, _):
        assert handle.wait(100, lambda: True).killed == "cancel"
    assert world.engine.kill(attempt) is False
    with started(world, attempt, "sleep") as (_, handle, _), ThreadPoolExecutor(1) as pool:
        killed = pool.submit(world.engine.kill, attempt)
        ended = handle.wait(100)
        assert killed.result(60) is True
    assert ended.killed == "cancel"


def test_a_command_that_cannot_start_is_the_fault_of_the_software(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("absent"))
        ended = handle.wait(100)
        assert b"nope" in handle.logs("stderr", 1000), "the init process writes into the log of the software"
        refused = session.start(world.spec("refused")).wait(100)
    assert (ended.code, ended.start_error) == (127, None)
    assert refused.code is None and refused.start_error


def test_only_expected_regular_files_come_out(
    world: Any, attempt: str, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    with started(world, attempt, "odd") as (session, handle, out):
        handle.wait(100)
        got = session.copy_out(
            out, tmp_path / "out", allowed=lambda n: n != "extra.txt", max_bytes=MIB, max_files=9
        )
    assert got.files == ("good.txt",)
    assert {name for name, _ in got.refused} == {"run.txt", "folder", "evil\\x1b[2J\\x0a", "extra.txt"}
    golden("refused_files.txt", "".join(f"{name}: {reason}\n" for name, reason in sorted(got.refused)))
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["good.txt"]


def test_a_full_volume_is_reported(world: Any, attempt: str, tmp_path: Path) -> None:
    with started(world, attempt, "fill") as (session, handle, out):
        ended = handle.wait(100)
        got = session.copy_out(out, tmp_path / "out", allowed=bool, max_bytes=8 * MIB, max_files=9)
    assert (ended.code, got.full, got.bytes) == (1, True, 4 * MIB)


def test_a_long_log_keeps_its_end(world: Any, attempt: str) -> None:
    with started(world, attempt, "loud") as (_, handle, _):
        assert handle.wait(100).log_truncated
        log = handle.logs("stdout", 64 * 1024)
    assert len(log) == 64 * 1024
    assert log.endswith(b"the end\n")


def test_files_are_copied_in(world: Any, attempt: str, tmp_path: Path) -> None:
    source = tmp_path / "x"
    source.write_bytes(b"from a file")
    with world.engine.session(attempt) as session:
        given = session.output_volume("in", bytes=MIB, inodes=16)
        out = session.output_volume("output", bytes=MIB, inodes=16)
        session.copy_in(given, {"deep/queries.txt": source, "request.json": b"{}"})
        spec = world.spec("copy", Mount(given, "/in"), Mount(out, "/out", read_only=False))
        assert session.start(replace(spec, role="evaluator")).wait(100).code == 0
        got = session.copy_out(out, tmp_path / "out", allowed=bool, max_bytes=MIB, max_files=2)
        with raises_in("tarstream.py") as caught:
            session.copy_in(given, {"../x": b""})
        assert "'../x'" in str(caught.value)
    assert got.files == ("run.txt",)
    assert (tmp_path / "out/run.txt").read_bytes() == b"from a file"


def test_missing_images(world: Any) -> None:
    with pytest.raises(RunnerError) as caught:
        world.engine.resolve("proctor/there-is-no-such-image")
    assert caught.value.code == "E204"
    there = world.image("copy")
    assert world.engine.resolve(there.id).id == there.id


def test_gpus_that_are_not_there(world: Any, attempt: str) -> None:
    limits = replace(world.spec("copy").limits, gpus=1)
    if world.engine.info().gpus:
        limits = replace(limits, gpus=1000)
    with world.engine.session(attempt) as session, pytest.raises(PlatformError) as caught:
        session.start(world.spec("copy", limits=limits))
    assert caught.value.code == "E305"
    for wanted in (limits, replace(limits, gpus=0, memory=1 << 60)):
        with pytest.raises(PlatformError) as caught:
            world.engine.require([wanted])
        assert caught.value.code == "E305"


def test_a_data_volume_is_filled_once(world: Any, inputs: Inputs) -> None:
    digest = fresh_digest()
    fills: list[int] = []

    def fill() -> Inputs:
        fills.append(1)
        time.sleep(0.05)
        return inputs

    volumes = run_at_once(lambda _: world.engine.data_volume(digest, fill))
    assert len(fills) == 1 and len(set(volumes)) == 1
    assert world.engine.data_volume("sha256:" + digest, fill) == volumes[0]
    drop(world, [digest])
    assert world.engine.data_volume(digest, fill).name
    assert len(fills) == 2
    drop(world, [digest])


def test_a_broken_fill_leaves_nothing(world: Any, inputs: Inputs, tmp_path: Path) -> None:
    digest = fresh_digest()
    missing = [*inputs, (PurePosixPath("gone"), tmp_path / "gone")]
    with pytest.raises(PlatformError) as caught:
        world.engine.data_volume(digest, lambda: missing)
    assert "gone" in caught.value.what + caught.value.why
    fills: list[Inputs] = []
    world.engine.data_volume(digest, lambda: fills.append(inputs) or inputs)
    assert fills == [inputs]
    drop(world, [digest])


@pytest.mark.slow
def test_an_image_travels(world: Any, tmp_path: Path) -> None:
    image = world.image("copy")
    archive = tmp_path / "image.tar"
    world.engine.save(image, archive)
    assert world.engine.load(archive, max_bytes=1 << 30, expect=image.id).id == image.id
    broken = tmp_path / "broken.tar"
    broken.write_bytes(b"no image")
    for path, max_bytes, expect in (
        (archive, 10, None),
        (archive, 1 << 30, "sha256:" + "0" * 64),
        (broken, 1 << 30, None),
    ):
        with pytest.raises(RunnerError) as caught:
            world.engine.load(path, max_bytes=max_bytes, expect=expect)
        assert caught.value.code == "E205"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.tar", "image.tar"]


def test_a_build_that_fails(world: Any, tmp_path: Path) -> None:
    tmp_path.joinpath("Dockerfile").write_text(f"FROM {world.image('copy').id}\nRUN echo the-reason; false\n")
    lines: list[str] = []
    with pytest.raises(RunnerError) as caught:
        world.engine.build(BuildSpec(tmp_path, timeout=60), lines.append)
    assert caught.value.code == "E203"
    assert lines


def test_reaping_leaves_the_living_alone(world: Any, attempt: str) -> None:
    with started(world, attempt, "sleep") as (_, handle, _):
        assert attempt not in world.engine.reap(prefix=attempt)
        assert handle.wait(100, lambda: True).killed == "cancel"
