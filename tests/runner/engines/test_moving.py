"""A client that stalls while it fills a volume is given up, and holds up nobody."""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.engines.moving import moving
from runner.model.container import ImageRef
from runner.model.errors import PlatformError


def test_what_moves_comes_through_unchanged() -> None:
    chunks = [bytes([n]) * n for n in range(100)]
    assert list(moving(iter(chunks), "x", seconds=60)) == chunks
    slowly = (time.sleep(0.05) or b"x" for _ in range(10))
    assert b"".join(moving(slowly, "x", stall=60, seconds=100)) == b"x" * 10


def test_a_source_that_hangs_is_given_up_and_its_thread_ends() -> None:
    go_on = threading.Event()
    done: list[str] = []

    def hangs() -> Iterator[bytes]:
        try:
            yield b"a"
            go_on.wait(60)
            yield b"b"
            yield b"c"
        finally:
            done.append("closed")

    stream = moving(hangs(), "filling a data volume", stall=0.3, seconds=60)
    assert next(stream) == b"a"
    with pytest.raises(PlatformError) as caught:
        next(stream)
    assert "0.3 s" in caught.value.why
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "reads ahead":
            thread.join(60)
            assert not thread.is_alive()


def test_the_whole_has_a_time_too() -> None:
    def for_ever() -> Iterator[bytes]:
        while True:
            time.sleep(0.05)
            yield b"x"

    began = time.monotonic()
    with pytest.raises(PlatformError) as caught:
        list(moving(for_ever(), "x", stall=30, seconds=0.5))
    assert time.monotonic() - began < 20 and "0.5 s" in caught.value.why


def test_errors_of_the_source_are_raised_where_it_is_used() -> None:
    def broken() -> Iterator[bytes]:
        yield b"a"
        raise PlatformError("run.txt", why="gone")

    with pytest.raises(PlatformError) as caught:
        list(moving(broken(), "x", seconds=60))
    assert caught.value.what == "run.txt"


@pytest.mark.slow
@pytest.mark.engine
def test_a_stalled_filler_leaves_the_engine_to_others(
    engine: DockerEngine, scratch_image: ImageRef, tmp_path: Path
) -> None:
    """Its file is a pipe that nobody writes to: the client gives up, and nothing of it stays."""
    pipe, good = tmp_path / "pipe", tmp_path / "good"
    os.mkfifo(pipe)
    good.write_bytes(b"x" * (3 << 20))
    mine = DockerEngine(engine.clients.host, stall=2.0, engine_for="both-without-eviction")
    digest = hashlib.sha256(secrets.token_bytes(8)).hexdigest()
    try:
        with pytest.raises(PlatformError) as caught:
            mine.data_volume(digest, lambda: [(PurePosixPath("a"), good), (PurePosixPath("b"), pipe)])
        assert "2 s" in caught.value.why
        api = engine.clients.get()
        assert not api.volumes(filters={"label": [f"proctor.data={digest}"]})["Volumes"]
        assert not api.containers(all=True, filters={"label": [f"proctor.data={digest}"]})
        assert engine.data_volume(digest, lambda: [(PurePosixPath("a"), good)]).name
    finally:
        mine.close()
        _drop(engine, digest)


@pytest.mark.engine
def test_nobody_waits_for_ever_for_a_process_that_was_stopped(engine: DockerEngine, tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_bytes(b"x")
    digest = hashlib.sha256(secrets.token_bytes(8)).hexdigest()
    locks = tmp_path / "locks"
    mine = DockerEngine(engine.clients.host, locks=locks, patience=1.0, engine_for="both-without-eviction")
    locks.mkdir(mode=0o700)
    code = (
        "import sys, time; from filelock import FileLock\n"
        "with FileLock(sys.argv[1]): print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(locks / f"data-{digest[:32]}.lock")], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert mine.data_volume(digest, lambda: [(PurePosixPath("a"), good)]).name
    finally:
        holder.kill()
        holder.wait()
        mine.close()
        _drop(engine, digest)


def _drop(engine: DockerEngine, digest: str) -> None:
    api = engine.clients.get()

    def labelled(label: str) -> list[str]:
        return [v["Name"] for v in api.volumes(filters={"label": [label]})["Volumes"] or []]

    for volume in labelled(f"proctor.data={digest}"):
        for name in (*labelled(f"proctor.ready={volume}"), volume):
            api.remove_volume(name)
