"""A software that writes its log as fast as the engine takes it, for some seconds: memory and disk stay bounded, and so does what is followed."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Literal

import psutil
import pytest

from runner.engines import sandbox
from runner.engines.base import ContainerSpec, Mount
from runner.engines.docker.engine import DockerEngine
from runner.exchange import tails
from runner.execution.cluster.tails import AT_ONCE, BYTES, Tail
from runner.model.container import ImageRef
from runner.model.limits import MIB, Limits
from runner.model.verdict import Facts, decide
from runner.views.logs import Writing

pytestmark = pytest.mark.engine
SECONDS = 5
STREAMS: tuple[Literal["stdout", "stderr"], ...] = ("stdout", "stderr")
LIMITS = Limits(memory=192 * MIB, pids=16, wall_clock=60, output=4 * MIB, tmp=MIB, shm=MIB, log=MIB)
FLOOD = f"""
import os, time
block = b"".join(b"%06d " % n + b"x" * 92 + b"\\n" for n in range(10_000))
end, said = time.monotonic() + {SECONDS}, 0
while time.monotonic() < end:
    said += os.write(1 + said // len(block) % 2, block)
os.write(1, b"\\nthe end\\n")
open("/out/run.txt", "w").write(str(said))
"""


class Watch:
    """The most that this process and the engine's disk had of a container's log meanwhile, looked at ten times a second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.memory, self.disk = folder, 0, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self) -> None:
        process = psutil.Process()
        while not self.over.wait(0.1):
            self.memory = max(self.memory, process.memory_info().rss)
            sizes = []
            for path in self.folder.rglob("*"):
                try:
                    sizes.append(path.stat().st_size)
                except FileNotFoundError:  # the engine has begun another file
                    continue
            self.disk = max(self.disk, sum(sizes))

    def close(self) -> None:
        self.over.set()
        self.thread.join()


@pytest.mark.slow
def test_a_hundred_megabytes_of_log_in_a_second(
    engine: DockerEngine, scratch_image: ImageRef, tmp_path: Path, attempt: str
) -> None:
    """The engine keeps two files of it, this process no more than it may show, and its end is followed at a pace of its own."""
    with engine.clients.calling("asking where its files are") as api:
        containers = Path(api.info()["DockerRootDir"]) / "containers"
    before, place, places = psutil.Process().memory_info().rss, 0, list[int]()
    writing, name = Writing(tails.MOST), tails.new_name()
    with (
        engine.session(attempt) as session,
        closing(Tail(lambda cut: engine.follow(attempt, cut), (0.1, 0.2))) as tail,
    ):
        out = session.output_volume("output", bytes=LIMITS.output, inodes=8)
        mounts = (Mount(out, "/out", read_only=False),)
        command = ("python3", "-c", FLOOD)
        handle = session.start(ContainerSpec("software", scratch_image, command, LIMITS, mounts))
        begun = time.monotonic()
        with closing(Watch(containers / handle.id)) as watch:
            while not handle.ended():  # as work does for the page of a run
                first, data = tail.came(place)
                assert len(data) <= AT_ONCE
                place = first + len(data)
                places.append(place)
                writing.add(data)
                tails.write(tmp_path, name, tails.Tail(writing.first, writing.text))
                assert tails.place(tmp_path, name).stat().st_size <= 8 * tails.MOST
                time.sleep(0.2)
            seconds = time.monotonic() - begun
            ended = handle.wait(LIMITS.wall_clock)
            logs = [handle.logs(stream, LIMITS.log) for stream in STREAMS]
        copied = {"allowed": "run.txt".__eq__, "max_bytes": MIB, "max_files": 2}
        session.copy_out(out, tmp_path / "out", **copied)  # type: ignore[arg-type]
    said = int((tmp_path / "out/run.txt").read_text())
    assert said > 50 * LIMITS.log, "the machine is too slow for this test to say anything"
    assert ended.code == 0 and ended.log_truncated
    warnings = decide(Facts(ended, True, False, ()), LIMITS, "run.txt").warnings
    assert [one.kind for one in warnings] == ["log-cut"], "and it is said"
    assert all(len(log) <= LIMITS.log for log in logs) and logs[0].endswith(b"the end\n") and logs[1]
    assert 0 < watch.disk <= 2 * sandbox.log_file_size(LIMITS.log) + MIB
    assert watch.memory - before < 64 * MIB
    assert places[-1] > places[len(places) // 2] > 0, "it is followed to the end"
    assert places[-1] <= BYTES * (seconds + 2)
