"""The Docker engine where it differs from the scripted one: kills half-way, clocks, refusals, addresses."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from runner.engines.base import BuildSpec, ContainerSpec, Mount, Volume
from runner.engines.docker import meter, own_mounts, owner
from runner.engines.docker.client import FRAME, STDERR, STDOUT, streams
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.facts import missing
from runner.engines.docker.handle import seconds_between
from runner.engines.docker.image_archives import Archive
from runner.engines.docker.images import reference
from runner.engines.docker.session import check_network
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB, Limits

LIMITS = Limits(memory=128 * MIB, wall_clock=30)

HALF_WAY = """
import signal, sys, time, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests
from pathlib import Path, PurePosixPath
from runner.engines.base import *
from runner.model.limits import *
from runner.engines.docker.engine import DockerEngine
from runner.engines import tarstream
host, attempt, digest, image = sys.argv[1:]
engine = DockerEngine(host, engine_for="both-without-eviction")

def slow(files, uid=0):
    yield from real(files[:1], uid=uid)
    print("filling", flush=True)
    time.sleep(60)

with engine.session(attempt) as session:
    out = session.output_volume("output", bytes=MIB, inodes=8)
    spec = ContainerSpec("software", engine.resolve(image), ("sleep", "60"), Limits(memory=64 * MIB), (Mount(out, "/out", False),))
    session.start(spec)
    real, tarstream.stream = tarstream.stream, slow
    engine.data_volume(digest, lambda: [(PurePosixPath("a"), Path("/etc/hostname"))] * 2)
"""


def everything(engine: DockerEngine, label: str) -> set[str]:
    api = engine.clients.get()
    found = {c["Id"] for c in api.containers(all=True, filters={"label": [label]})}
    return found | {v["Name"] for v in api.volumes(filters={"label": [label]}).get("Volumes") or []}


@pytest.mark.engine
def test_what_a_killed_process_leaves_is_reaped_and_never_used(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str, tmp_path: Path
) -> None:
    digest = hashlib.sha256(secrets.token_bytes(8)).hexdigest()
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_WAY, engine.clients.host, attempt, digest, scratch_image.id],
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"filling\n"
        # Software, volume, and the keeper of it where the process may not mount it itself.
        assert len(everything(engine, f"proctor.attempt={attempt}")) == 3 - engine.mounts_memory
        assert attempt not in engine.reap()  # it is alive
    finally:
        process.kill()
        process.wait()
    assert everything(engine, f"proctor.data={digest}")
    source = tmp_path / "x"
    source.write_text("x")
    volume = engine.data_volume(digest, lambda: [(PurePosixPath("x"), source)])
    # Other tests (and other people on this machine) reap too, so that it may be gone already.
    engine.reap()
    assert everything(engine, f"proctor.attempt={attempt}") == set()
    assert everything(engine, f"proctor.data={digest}") == {volume.name}
    assert not list(own_mounts.folder().glob(f"{process.pid}x*")), "a file system is still mounted"
    marker = engine.markers()[volume.name]
    assert engine.clients.remove_volume(volume.name) and engine.clients.remove_volume(marker)


@pytest.mark.engine
def test_what_the_dead_left_is_removed_whatever_uses_whose_volumes(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    """A run's container has a volume of the attempt that keeps volumes for several runs."""
    dead = owner.me().rpartition("|")[0] + "|1"
    own = {name: {"proctor.attempt": attempt + name, "proctor.owner": dead} for name in ("a", "b")}
    living = own["a"] | {"proctor.owner": owner.me()}
    volumes = [f"proctor-{attempt}{name}" for name in own]
    with engine.clients.calling("making what is left") as api:
        for name, labels in own.items():
            api.create_volume(f"proctor-{attempt}{name}", driver="local", labels=labels)
        binds = api.create_host_config(binds=[f"{volume}:/{volume}" for volume in volumes])
        for labels in (*own.values(), living):
            api.create_container(scratch_image.id, ("true",), host_config=binds, labels=labels)
    assert f"{attempt}a" in engine.reap(), "what a living process uses is no failure of whoever sweeps"
    assert everything(engine, f"proctor.owner={dead}") >= set(volumes)
    assert len(everything(engine, f"proctor.attempt={attempt}a")) == 2, "that container, and the volume"
    engine.clients.sweep([{"attempt": f"{attempt}a", "owner": owner.me()}])
    engine.reap()
    assert not [found for name in own for found in everything(engine, f"proctor.attempt={attempt}{name}")]


@pytest.mark.engine
def test_a_volume_that_vanished_is_our_failure(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    name = f"proctor-gone-{secrets.token_hex(4)}"
    spec = ContainerSpec("software", scratch_image, ("true",), LIMITS, (Mount(Volume(name), "/in"),))
    with engine.session(attempt) as session, pytest.raises(PlatformError) as caught:
        session.start(spec)
    assert caught.value.code == "E303" and name in f"{caught.value.what} {caught.value.why}"
    engine.clients.remove_volume(name)


@pytest.mark.engine
def test_a_build_that_takes_too_long_is_stopped(
    engine: DockerEngine, base_image: ImageRef, tmp_path: Path
) -> None:
    """The build of a trusted image; those of teams are tested with isolated builds."""
    lines = f"FROM {base_image.id}\nRUN echo {secrets.token_hex(4)}; sleep 60\n"
    tmp_path.joinpath("Dockerfile").write_text(lines)
    start = time.monotonic()
    with pytest.raises(RunnerError) as caught:
        engine.build(BuildSpec(tmp_path, timeout=2))
    assert caught.value.code == "E203" and "2 s" in caught.value.why and time.monotonic() - start < 15


@pytest.mark.engine
def test_a_root_file_system_becomes_an_image(engine: DockerEngine, tmp_path: Path) -> None:
    tmp_path.joinpath("hello").write_bytes(os.urandom(5 << 20))  # more than one piece of what is sent
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.add(tmp_path / "hello", "hello")
    name = f"proctor/test-root:{secrets.token_hex(4)}"
    image = engine.import_root(tmp_path / "root.tar", name, ["LABEL proctor.test=yes", "ENV WHO=us"])
    try:
        with engine.clients.calling("looking at an image") as api:
            assert api.inspect_image(name)["Id"] == image.id
            assert "WHO=us" in api.inspect_image(name)["Config"]["Env"]
            assert api.inspect_image(name)["Size"] == 5 << 20
    finally:
        with engine.clients.calling("removing an image") as api:
            api.remove_image(name)


@pytest.mark.engine
def test_a_build_has_no_network_and_little_memory(
    engine: DockerEngine, base_image: ImageRef, tmp_path: Path
) -> None:
    tmp_path.joinpath("Dockerfile").write_text(
        f"FROM {base_image.id}\nRUN test \"$(ls /sys/class/net)\" = lo && python3 -c 'bytearray(300 << 20)'\n"
    )
    with pytest.raises(RunnerError) as caught:
        engine.build(BuildSpec(tmp_path, memory=64 * MIB, timeout=60))
    assert caught.value.code == "E203" and "137" in caught.value.why


@pytest.mark.slow
@pytest.mark.engine
def test_a_tag_in_an_archive_changes_nothing(
    engine: DockerEngine, scratch_image: ImageRef, tmp_path: Path
) -> None:
    engine.save(scratch_image, tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None and b'"RepoTags":null' in manifest.read()
        assert "repositories" not in tar.getnames()
    with Archive(tmp_path / "image.tar", max_bytes=1 << 30) as checked:
        assert checked.image_id == scratch_image.id


def test_nobody_answers(tmp_path: Path) -> None:
    for host in (f"unix://{tmp_path}/none.sock", "tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(PlatformError) as caught:
            DockerEngine(host).info()
        assert caught.value.code == "E301"
        assert "make setup" in caught.value.fix


@pytest.mark.engine
def test_no_proxy_is_asked_on_the_way_to_a_socket(
    engine: DockerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor looked for: in the environment and in files, at each request, that takes a third of its processor time."""
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    client = engine.clients.new()
    try:
        assert client.ping() and not client.trust_env
    finally:
        client.close()


@pytest.mark.engine
@pytest.mark.parametrize("name", ["", "-x", "a b", "x\x1b[2J", "x" * 600, "../x", "proctor/none", "none"])
def test_names_that_are_no_images(engine: DockerEngine, name: str) -> None:
    with pytest.raises(RunnerError) as caught:
        engine.resolve(name)
    assert caught.value.code == "E204"
    assert caught.value.what.isprintable()


@pytest.mark.engine
@pytest.mark.parametrize(
    "name", ["Python:3", "foo::bar", "foo/Bar", "reg.invalid/UP:1", "reg.invalid/x@sha256:abc", "foo@bar"]
)
def test_a_wrong_reference_is_the_teams_error(engine: DockerEngine, name: str) -> None:
    with pytest.raises(RunnerError) as caught:
        engine.resolve(name)
    assert (caught.value.code, caught.value.exit_code) == ("E204", 2)
    assert caught.value.why and caught.value.fix


@pytest.mark.engine
def test_our_own_image_is_missing(engine: DockerEngine, attempt: str) -> None:
    other = DockerEngine(
        engine.clients.host, keeper_image="proctor/never-built", engine_for="both-without-eviction"
    )
    with pytest.raises(PlatformError) as caught, other.session(attempt) as session:
        session.copy_in(session.output_volume("in", bytes=MIB, inodes=8), {"x": b""})
    assert caught.value.code == "E304"
    other.close()


GOOD: dict[str, Any] = {
    "MemoryLimit": True, "SwapLimit": True, "PidsLimit": True, "CpuCfsQuota": True,
    "CgroupDriver": "cgroupfs", "CgroupVersion": "1", "OSType": "linux", "SecurityOptions": ["name=seccomp"],
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"MemoryLimit": False}, {"SwapLimit": False}, {"PidsLimit": None}, {"CpuCfsQuota": False},
     {"CgroupDriver": "none"}, {"SecurityOptions": ["name=rootless"]}, {"OSType": "windows"}],
    ids=str,
)  # fmt: skip
def test_engines_that_ignore_limits(change: dict[str, Any]) -> None:
    assert list(missing(GOOD, ["Engine"])) == []
    assert len(list(missing(GOOD | change, ["Engine"]))) == 1


def test_podman_is_named() -> None:
    assert "Podman" in next(iter(missing(GOOD, ["Podman Engine"])))


def test_user_ids_under_user_namespaces() -> None:
    engine = DockerEngine("unix:///nowhere")
    raw = GOOD | {"SecurityOptions": ["name=userns"], "DockerRootDir": "/var/lib/docker/100000.100000"}
    engine.raw = raw
    assert engine.user_namespaces and engine.uid_base == 100_000


def test_an_image_reference() -> None:
    config = {"Entrypoint": None, "Cmd": ["x"], "Volumes": {"/d": {}}, "Healthcheck": {"Test": ["NONE"]}}
    facts = {"Id": "sha256:1", "Os": "linux", "Architecture": "arm64", "Variant": "v8", "Config": config}
    facts["RepoDigests"] = ["a@sha256:2", "reg.example:5000/b@sha256:3"]
    found = reference(facts, "reg.example:5000/b:tag")
    assert found.repo_digest == "reg.example:5000/b@sha256:3"
    assert (found.platform, found.has_healthcheck) == ("linux/arm64/v8", False)
    assert (found.cmd, found.volumes) == (("x",), ("/d",))


def test_time_stamps_of_engines() -> None:
    assert seconds_between("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:06.750000001Z") == 1.25
    assert seconds_between("2026-01-02T03:04:05Z", "2026-01-02T05:04:05+01:00") == 3600
    assert seconds_between("0001-01-01T00:00:00Z", "") == 0


def test_an_engine_that_takes_a_network_and_gives_none() -> None:
    """Seen with --bridge none: the container starts, and has a loopback only."""
    check_network("bridge", {"NetworkSettings": {"Networks": {"bridge": {}}}})
    check_network("host", {"NetworkSettings": {"Networks": {"host": {}}}})
    for networks in ({}, None, {"none": {}}):
        with pytest.raises(PlatformError) as caught:
            check_network("bridge", {"NetworkSettings": {"Networks": networks}})
        assert caught.value.code == "E305" and "host" in caught.value.fix


def test_who_is_alive() -> None:
    assert owner.alive(owner.me())
    host, boot, pid, started = owner.me().split("|")
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not owner.alive(f"{host}|{boot}|{child.pid}|1")
    assert not owner.alive(f"{host}|{boot}|{pid}|{int(started or 1) + 1}")
    assert not owner.alive(f"{host}|another-boot|{pid}|{started}")
    assert owner.alive(f"elsewhere|{boot}|{child.pid}|1")
    assert owner.alive("garbage")


def test_a_lock_folder_that_is_not_ours(tmp_path: Path) -> None:
    tmp_path.joinpath("real").mkdir()
    tmp_path.joinpath("link").symlink_to("real")
    with pytest.raises(PlatformError) as caught:
        owner.private_folder(tmp_path / "link")
    assert caught.value.code == "E306"


@pytest.fixture
def groups(tmp_path: Path) -> Callable[[str, dict[str, str]], None]:
    def write(folder: str, files: dict[str, str]) -> None:
        path = tmp_path / folder
        path.mkdir(parents=True)
        for name, text in files.items():
            path.joinpath(name).write_text(text)

    return write


def test_control_groups_version_2(tmp_path: Path, groups: Callable[[str, dict[str, str]], None]) -> None:
    gauge = meter.GroupMeter(driver="systemd", version="2", root=tmp_path)
    assert gauge.finish() == (None, None, "none")
    assert gauge.parent.startswith("proctor-") and gauge.parent.endswith(".slice")
    files = {"memory.peak": "4096\n", "memory.events": "oom 1\noom_kill 2\n"}
    files["cpu.stat"] = "usage_usec 1500000\nuser_usec 1\n"
    groups(f"proctor.slice/{gauge.parent}", files)
    gauge.poll()
    assert gauge.finish() == (4096, 1.5, "exact")
    assert gauge.oom_kills() == 2
    for path in (tmp_path / "proctor.slice" / gauge.parent).iterdir():
        path.unlink()
    assert gauge.finish() == (4096, 1.5, "sampled")  # systemd removed the group
    gauge.close()
    assert not (tmp_path / "proctor.slice" / gauge.parent).exists()


def test_control_groups_version_1(tmp_path: Path, groups: Callable[[str, dict[str, str]], None]) -> None:
    gauge = meter.GroupMeter(driver="cgroupfs", version="1", root=tmp_path)
    groups("memory" + gauge.parent, {"memory.max_usage_in_bytes": "4096"})
    groups("cpuacct" + gauge.parent, {"cpuacct.usage": "2000000000"})
    assert gauge.finish() == (4096, 2.0, "exact")
    assert gauge.oom_kills() == 0
    groups(f"memory{gauge.parent}/container", {"memory.oom_control": "under_oom 0\noom_kill 3\n"})
    assert gauge.oom_kills() == 3


@pytest.mark.parametrize("version", ["1", "2"])
def test_whose_processes_run_in_a_container(
    version: str, tmp_path: Path, groups: Callable[[str, dict[str, str]], None]
) -> None:
    gauge = meter.GroupMeter(driver="cgroupfs", version=version, root=tmp_path)
    assert gauge.users() == set()
    group = f"{'memory' if version == '1' else ''}{gauge.parent}/container".lstrip("/")
    groups(group, {"cgroup.procs": f"{os.getpid()}\n{os.getppid()}\n"})
    assert gauge.users() == {Path(f"/proc/{pid}").stat().st_uid for pid in (os.getpid(), os.getppid())}
    (tmp_path / group / "cgroup.procs").write_text(f"{os.getpid()}\n{2**22 + 1}\n")
    assert gauge.users() == set()  # one that cannot be looked at: nothing is certain


@pytest.mark.engine
def test_interrupting_a_process_cleans_up(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    code = HALF_WAY.replace(
        "    engine.data_volume", "    print('begun', flush=True); time.sleep(60)\n    engine.data_volume"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, engine.clients.host, attempt, "0" * 64, scratch_image.id],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) != 0
    finally:
        process.kill()  # else it goes on to fill a volume, and stalls there
        process.wait()
    assert everything(engine, f"proctor.attempt={attempt}") == set()


def test_both_streams_of_a_log_come_apart_and_no_other_one_counts() -> None:
    pieces = [(STDOUT, b"a\n"), (STDERR, b"\x01\0\0\0\0\0\0\x02no"), (3, b"engine"), (STDOUT, b"b")]
    said = b"".join(FRAME.pack(stream, len(text)) + text for stream, text in pieces)
    assert streams(said) == {"stdout": b"a\nb", "stderr": b"\x01\0\0\0\0\0\0\x02no"}
    assert streams(said[:-1]) == {"stdout": b"a\n", "stderr": b"\x01\0\0\0\0\0\0\x02no"}
    assert streams(b"") == {"stdout": b"", "stderr": b""}
