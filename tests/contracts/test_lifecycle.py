"""What every engine promises, on the scripted and on the real one."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from runner.engines.base import BuildSpec, Mount, Volume
from runner.engines.docker.engine import DockerEngine
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB

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


def test_a_run_from_inputs_to_output(world: Any, data: Volume, attempt: str, tmp_path: Path) -> None:
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=4 * MIB, inodes=64)
        handle = session.start(world.spec("copy", Mount(data, "/in"), Mount(out, "/out", read_only=False)))
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


def test_an_exit_code_is_no_exception(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("fail"))
        assert handle.wait(100).code == 3
        assert handle.wait(100) is handle.wait(1)


def test_the_processor_time(world: Any, attempt: str) -> None:
    """Who works ends at the limit, however long that takes; who waits does not."""
    limits = replace(world.spec("work").limits, cpu_time=0.7)
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=8)
        ended = session.start(world.spec("work", limits=limits)).wait(120)
        waiting = world.spec("sleep", Mount(out, "/out", read_only=False), limits=limits)
        waited = session.start(waiting).wait(3)
    assert (ended.killed, ended.code) == ("processor", 137)
    assert ended.resources.cpu_seconds is not None and ended.resources.cpu_seconds >= 0.7
    assert (waited.killed, waited.code) == ("time", 137)


def test_the_wall_clock(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=8)
        begun = time.monotonic()
        ended = session.start(world.spec("sleep", Mount(out, "/out", read_only=False))).wait(0.7)
    assert (ended.killed, ended.code) == ("time", 137)
    assert time.monotonic() - begun < 40


def test_cancelling(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=8)
        ended = session.start(world.spec("sleep", Mount(out, "/out", read_only=False))).wait(
            100, lambda: True
        )
    assert ended.killed == "cancel"


def test_cancelling_from_elsewhere(world: Any, attempt: str) -> None:
    assert world.engine.kill(attempt) is False
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=8)
        handle = session.start(world.spec("sleep", Mount(out, "/out", read_only=False)))
        killed: list[bool] = []
        other = threading.Thread(target=lambda: killed.append(world.engine.kill(attempt)))
        other.start()
        ended = handle.wait(100)
        other.join()
    assert killed == [True]
    assert ended.killed == "cancel"


def test_an_unknown_command_is_the_softwares_fault(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("absent"))
        ended = handle.wait(100)
        assert b"nope" in handle.logs("stderr", 1000), (
            "what the init process writes is in the log of the software"
        )
        refused = session.start(world.spec("refused")).wait(100)
    assert (ended.code, ended.start_error) == (127, None)
    assert refused.code is None and "too large" in str(refused.start_error)


def test_only_expected_regular_files_come_out(world: Any, attempt: str, tmp_path: Path) -> None:
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=32)
        session.start(world.spec("odd", Mount(out, "/out", read_only=False))).wait(100)
        got = session.copy_out(
            out, tmp_path / "out", allowed=lambda n: n != "extra.txt", max_bytes=MIB, max_files=9
        )
    assert got.files == ("good.txt",)
    assert dict(got.refused) == {
        "run.txt": "a symbolic link",
        "folder": "a folder",
        "evil\\x1b[2J\\x0a": "not a file name that is accepted",
        "extra.txt": "not a file that the task asks for",
    }
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["good.txt"]


def test_a_full_volume_is_seen(world: Any, attempt: str, tmp_path: Path) -> None:
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=4 * MIB, inodes=64)
        ended = session.start(world.spec("fill", Mount(out, "/out", read_only=False))).wait(100)
        got = session.copy_out(out, tmp_path / "out", allowed=lambda n: True, max_bytes=8 * MIB, max_files=9)
    assert ended.code == 1
    assert got.full
    assert got.bytes == 4 * MIB


def test_a_long_log_keeps_its_end(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        handle = session.start(world.spec("loud"))
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
        got = session.copy_out(out, tmp_path / "out", allowed=lambda n: True, max_bytes=MIB, max_files=2)
        with pytest.raises(ValueError, match="inside"):
            session.copy_in(given, {"../x": b""})
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
    with pytest.raises(PlatformError) as caught:
        world.engine.require([limits])
    assert caught.value.code == "E305"
    with pytest.raises(PlatformError) as caught:
        world.engine.require([replace(limits, gpus=0, memory=1 << 60)])
    assert caught.value.code == "E305"


def test_a_data_volume_is_filled_once(world: Any, inputs: Inputs) -> None:
    digest = fresh_digest()
    fills: list[int] = []

    def fill() -> Inputs:
        fills.append(1)
        time.sleep(0.05)
        return inputs

    found: list[Volume] = []
    threads = [
        threading.Thread(target=lambda: found.append(world.engine.data_volume(digest, fill)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fills) == 1
    assert len(found) == 3 and len(set(found)) == 1
    assert world.engine.data_volume("sha256:" + digest, fill) == found[0]
    drop(world, [digest])
    assert world.engine.data_volume(digest, fill).name
    assert len(fills) == 2
    drop(world, [digest])


def test_a_broken_fill_leaves_nothing(world: Any, inputs: Inputs, tmp_path: Path) -> None:
    digest = fresh_digest()
    missing = [*inputs, (PurePosixPath("gone"), tmp_path / "gone")]
    with pytest.raises(PlatformError, match="gone cannot be read"):
        world.engine.data_volume(digest, lambda: missing)
    fills: list[int] = []

    def fill() -> Inputs:
        fills.append(1)
        return inputs

    world.engine.data_volume(digest, fill)
    assert fills == [1]
    drop(world, [digest])


def test_an_image_travels(world: Any, tmp_path: Path) -> None:
    image = world.image("copy")
    archive = tmp_path / "image.tar"
    world.engine.save(image, archive)
    assert world.engine.load(archive, max_bytes=1 << 30, expect=image.id).id == image.id
    for wrong in ({"max_bytes": 10}, {"max_bytes": 1 << 30, "expect": "sha256:" + "0" * 64}):
        with pytest.raises(RunnerError) as caught:
            world.engine.load(archive, **wrong)
        assert caught.value.code == "E205"
    archive.write_bytes(b"no image")
    with pytest.raises(RunnerError) as caught:
        world.engine.load(archive, max_bytes=1 << 30)
    assert caught.value.code == "E205"
    assert [p.name for p in tmp_path.iterdir()] == ["image.tar"]


def test_a_build_that_fails(world: Any, tmp_path: Path) -> None:
    tmp_path.joinpath("Dockerfile").write_text(f"FROM {world.image('copy').id}\nRUN echo the-reason; false\n")
    lines: list[str] = []
    with pytest.raises(RunnerError) as caught:
        world.engine.build(BuildSpec(tmp_path, timeout=60), lines.append)
    assert caught.value.code == "E203"
    assert lines


def test_reaping_leaves_the_living_alone(world: Any, attempt: str) -> None:
    with world.engine.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=8)
        handle = session.start(world.spec("sleep", Mount(out, "/out", read_only=False)))
        assert attempt not in world.engine.reap(prefix=attempt)
        assert handle.wait(100, lambda: True).killed == "cancel"
