"""Output and the files of a room, by each way of keeping a memory volume."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engines.base import ContainerSpec, Mount
from runner.engines.docker.engine import DockerEngine
from runner.model.container import Collected, ImageRef
from runner.model.limits import MIB
from tests.contracts.conftest import LIMITS

pytestmark = pytest.mark.engine

LEAVES = """
import os, socket
os.chdir("/out"); os.chmod(".", 0o777)
open("a.txt", "w").close(); open("b.txt", "wb").write(b"x" * 512); open("c.txt", "w").write("c")
os.link("c.txt", "d.txt"); os.symlink("/etc/passwd", "e.txt"); os.symlink("/proc/1/root/etc", "up"); os.mkfifo("f.txt")
os.makedirs("inner/deep"); open("inner/run.txt", "w").write("x")
open(b"\\xff\\x1b[2J" + b"n" * 120, "w").close(); socket.socket(socket.AF_UNIX).bind("s.txt")
open("large.txt", "wb").truncate(1 << 20)
for name in ("a.txt", "b.txt", "c.txt"): os.chmod(name, 0)
"""
WITHDRAWS = """
import os, shutil, sys
print(sorted(os.listdir("/room/out")), sorted(os.listdir("/room/tmp")), sorted(os.listdir("/room/in/run")), open("/room/in/run/word").read())
deep = "/room/out/" + "/".join("x" * 40); os.makedirs(deep)
os.symlink("/in", "/room/tmp/up"); os.symlink("/room/in", "/room/out/in"); os.chmod("/room/out/x", 0)
"""


PLAIN = """
import os
os.chdir("/out"); os.chmod(".", 0o777)
open("a.txt", "w").close(); open("b.txt", "wb").write(b"x" * 512); open("c.txt", "w").write("c")
open(b"\\xff\\x1b[2J" + b"n" * 120, "w").close(); open("large.txt", "wb").truncate(1 << 20)
for name in ("a.txt", "b.txt", "c.txt"): os.chmod(name, 0)
"""
INTO_A_FOLDER = """
import os
os.chdir("/out"); os.mkdir("a"); open("a/x", "w").write("x"); os.link("a/x", "run.txt")
"""
LARGE_IN_A_FOLDER = """
import os
os.chdir("/out"); os.mkdir("a"); open("a/x", "wb").truncate(3 << 20); open("run.txt", "w").write("x")
"""


def left(
    engine: DockerEngine, image: ImageRef, dest: Path, leaves: str
) -> tuple[Collected, dict[str, bytes]]:
    with engine.session(f"test-{secrets.token_hex(6)}-1") as one:
        out = one.output_volume("output", bytes=4 * MIB, inodes=64)
        spec = ContainerSpec(
            "software", image, ("python3", "-c", leaves), LIMITS, (Mount(out, "/out", False),)
        )
        handle = one.start(spec)
        assert handle.wait(60).code == 0, handle.logs("stderr", 2000)
        found = one.copy_out(out, dest, allowed=lambda n: n.endswith(".txt"), max_bytes=600, max_files=9)
    return found, {p.name: p.read_bytes() for p in dest.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaves", "files", "refused"),
    [(PLAIN, 3, 2), (LEAVES, 3, 7), (INTO_A_FOLDER, 0, 2), (LARGE_IN_A_FOLDER, 1, 1)],
)
def test_all_ways_take_the_same(
    engine: DockerEngine,
    far_engine: DockerEngine,
    keeper_engine: DockerEngine,
    scratch_image: ImageRef,
    tmp_path: Path,
    leaves: str,
    files: int,
    refused: int,
) -> None:
    assert engine.local and engine.mounts_memory, "this test compares with an engine on this machine"
    by_engine = left(far_engine, scratch_image, tmp_path / "far", leaves)
    assert left(keeper_engine, scratch_image, tmp_path / "kept", leaves) == by_engine
    here = left(engine, scratch_image, tmp_path / "here", leaves)
    assert here == by_engine
    assert len(here[0].refused) == refused, here[0].refused
    assert len(here[1]) == files and (
        files < 3 or here[1] == {"a.txt": b"", "b.txt": b"x" * 512, "c.txt": b"c"}
    )


def test_a_program_finds_nothing_of_the_one_before(
    engine: DockerEngine, scratch_image: ImageRef, tmp_path: Path
) -> None:
    spec = ContainerSpec("evaluator", scratch_image, None, replace(LIMITS, wall_clock=60))
    with engine.session(f"test-{secrets.token_hex(6)}-1", stays=True) as one:
        place = one.room(spec, given=MIB)
        for word in ("one", "two"):
            done = place.run(
                ("python3", "-c", WITHDRAWS), {"run/word": word.encode()}, tmp_path / word, env={}, deadline=60,
                cancelled=lambda: False, allowed=bool, max_bytes=1000, max_files=2,
            )  # fmt: skip
            assert done.exit.code == 0, done.stderr
            assert done.stdout.decode() == f"[] [] ['word'] {word}\n"
