"""Memory volumes that this process mounts, beside those that the engine mounts for a keeper of ours."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.engines.base import ContainerSpec, Mount
from runner.engines.docker import own_mounts
from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import MIB
from tests.contracts.conftest import LIMITS, wait_for_line

pytestmark = pytest.mark.engine

# What is mounted and whose it is, what cannot be done there, and how much fits in: bytes, files.
FINDS = """
import os, stat
(mount,) = [line.split() for line in open("/proc/self/mounts") if line.split()[1] == "/out"]
facts = os.stat("/out")
print(mount[2], sorted({"nosuid", "nodev", "noexec", "rw"} & set(mount[3].split(","))), oct(facts.st_mode), facts.st_uid == os.getuid())
open("/out/program", "w").write("#!/bin/sh\\n"); os.chmod("/out/program", 0o755)
try: os.execv("/out/program", ["program"])
except OSError as error: print(error.errno)
written = 0
with open("/out/large", "wb", 0) as file:
    try:
        while n := file.write(b"x" * 4096): written += n
    except OSError as error: print(error.errno, written)
os.truncate("/out/large", 0)
for count in range(1000):
    try: open(f"/out/{count}", "w").close()
    except OSError as error: print(error.errno, count); break
"""


def said(engine: DockerEngine, image: ImageRef) -> str:
    """What a software says of its output."""
    attempt = f"test-{secrets.token_hex(6)}-1"
    with engine.session(attempt) as one:
        out = one.output_volume("output", bytes=2 * MIB, inodes=32)
        spec = ContainerSpec(
            "software", image, ("python3", "-c", FINDS), LIMITS, (Mount(out, "/out", False),)
        )
        handle = one.start(spec)
        assert handle.wait(60).code == 0, handle.logs("stderr", 2000)
        assert roles(engine, attempt) == {"software"} | (set() if engine.mounts_memory else {"keeper"})
        return handle.logs("stdout", 2000).decode()


def roles(engine: DockerEngine, attempt: str) -> set[str]:
    """What containers there are for an attempt."""
    found = engine.clients.get().containers(all=True, filters={"label": [f"proctor.attempt={attempt}"]})
    return {container["Labels"]["proctor.role"] for container in found}


def ours() -> list[Path]:
    """What this process has mounted."""
    return list(own_mounts.folder().glob(f"{os.getpid()}x*/*"))


@pytest.mark.slow
def test_a_software_finds_the_same_by_both_ways(
    engine: DockerEngine, keeper_engine: DockerEngine, scratch_image: ImageRef
) -> None:
    assert engine.mounts_memory, "the engine of these tests is on this machine, and we are root"
    found = said(engine, scratch_image)
    assert found == said(keeper_engine, scratch_image)
    assert found.splitlines() == [
        "tmpfs ['nodev', 'noexec', 'nosuid', 'rw'] 0o40700 True",
        str(errno.EACCES),
        f"{errno.ENOSPC} {2 * MIB - 4096}",  # the program has a page
        f"{errno.ENOSPC} 29",  # of 32: the folder and two files are there
    ]
    assert not ours(), "they go with the session"


def test_nothing_starts_where_the_engine_does_not_see_it(
    engine: DockerEngine, scratch_image: ImageRef
) -> None:
    """As one in a mount namespace of its own, which :func:`runner.engines.docker.own_mounts.usable` finds out before."""
    with engine.session(f"test-{secrets.token_hex(6)}-1") as one:
        out = one.output_volume("output", bytes=MIB, inodes=8)
        (mounted,) = ours()
        assert os.path.ismount(mounted)
        own_mounts.give_up(mounted)
        spec = ContainerSpec("software", scratch_image, ("true",), LIMITS, (Mount(out, "/out", False),))
        with pytest.raises(PlatformError) as caught:
            one.start(spec)
    assert caught.value.code == "E303"


def test_only_an_engine_that_sees_our_mounts_is_given_them(engine: DockerEngine, tmp_path: Path) -> None:
    assert own_mounts.usable(engine.clients.host or "")
    assert not own_mounts.usable(f"unix://{tmp_path / 'nothing'}")
    with socket.socket(socket.AF_UNIX) as proxy:  # of which nobody knows where it leads
        proxy.bind(str(tmp_path / "s"))
        proxy.listen()
        assert not own_mounts.usable(f"unix://{tmp_path / 's'}")


def test_a_process_with_mounts_of_its_own_mounts_none(engine: DockerEngine) -> None:
    """As one that systemd gave a private ``/tmp``, or that runs in a container: the engine would not see them."""
    asks = f"from runner.engines.docker import own_mounts; print(own_mounts.usable({engine.clients.host!r}))"
    for around, expected in (((), "True\n"), (("unshare", "--mount"), "False\n")):
        command = [*around, sys.executable, "-c", asks]
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == expected


def test_runners_that_begin_at_once_clean_up_without_each_other(engine: DockerEngine) -> None:
    """What dead processes left is found by all of them, and removed by one."""
    for number in range(200):
        (own_mounts.folder() / f"99999999x{number}").mkdir(mode=0o700, parents=True)
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(lambda _: own_mounts.clean_up(), range(4)))
    assert not list(own_mounts.folder().glob("99999999x*"))


def test_files_go_in_by_the_engine_and_nothing_stays_mounted(
    engine: DockerEngine, scratch_image: ImageRef
) -> None:
    """By a keeper that is not started; the software still runs when its session ends."""
    attempt = f"test-{secrets.token_hex(6)}-1"
    with engine.session(attempt) as one:
        volume = one.output_volume("in", bytes=MIB, inodes=8)
        one.copy_in(volume, {"word": b"hello\n"})
        assert roles(engine, attempt) == {"keeper"}
        command = ("sh", "-c", "cat /out/word; sleep 60")
        mounts = (Mount(volume, "/out", False),)
        wait_for_line(one.start(ContainerSpec("software", scratch_image, command, LIMITS, mounts)), "hello")
    assert not ours() and roles(engine, attempt) == set()
    assert not list(own_mounts.folder().glob(f"{os.getpid()}x*")), "nor their folder"
