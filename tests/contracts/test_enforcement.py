"""What the sandbox holds back, seen from inside it. Real containers, a few of them, many attacks in each."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest

from runner.engines import sandbox
from runner.engines.base import Cancelled, ContainerSpec, Mount
from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.model.limits import MIB
from tests.contracts.conftest import LIMITS as SHARED_LIMITS
from tests.contracts.conftest import Ran, run_at_once, run_software

pytestmark = pytest.mark.engine

LIMITS = replace(SHARED_LIMITS, pids=48, wall_clock=40, tmp=8 * MIB, shm=4 * MIB)
PROBES = Path(__file__).with_name("probes.py").read_text(encoding="utf-8")
BUSY = ("python3", "-c", "while True: pass")


@pytest.fixture(scope="module")
def run(
    engine: DockerEngine, scratch_image: ImageRef, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Ran]:
    """Run a command, or Python text, under the sandbox."""

    def go(command: Any, **changes: Any) -> Ran:
        limits = replace(LIMITS, **changes)
        return run_software(engine, scratch_image, command, tmp_path_factory.mktemp("out"), limits)

    return go


@pytest.fixture(scope="module")
def result(run: Callable[..., Ran]) -> Ran:
    """One container that tries everything it should not be able to do, and reports."""
    result = run(PROBES)
    assert result.exit.code == 0, result.stderr.decode(errors="replace")
    return result


@pytest.fixture(scope="module")
def probe(result: Ran) -> dict[str, Any]:
    """The report."""
    return dict(json.loads(result.stdout))


def test_the_user_has_no_rights(probe: dict[str, Any]) -> None:
    assert probe["uid"] >= sandbox.FIRST_UID and probe["uid"] == probe["gid"]
    assert probe["groups"] in ([], [probe["gid"]])
    status = probe["status"]
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == int(status["CapPrm"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert (probe["hostname"], probe["home"]) == ("sandbox", "/tmp")
    assert probe["setuid_program"] != 0


@pytest.mark.parametrize(
    ("section", "count", "errors"),
    [
        ("write", 8, {errno.EROFS, errno.EACCES, errno.EPERM}),
        ("connect", 4, {errno.ENETUNREACH}),
        ("calls", 15, {errno.EPERM}),
    ],
)
def test_refused_attempts(probe: dict[str, Any], section: str, count: int, errors: set[int]) -> None:
    answers = dict(probe[section])
    if section == "calls":
        assert answers.pop("clone3") == errno.ENOSYS, "libraries fall back then"
    assert len(answers) == count and set(answers.values()) <= errors, answers


def test_sockets_that_cannot_be_made(probe: dict[str, Any]) -> None:
    unsupported = ("mptcp", "mptcp6", "udplite", "ping", "ping6", "mptcp, high bit")
    denied = ("netlink", "vsock", "packet", "alg", "raw", "sctp", "netlink, high bit")
    expected = dict.fromkeys(unsupported, errno.EPROTONOSUPPORT) | dict.fromkeys(denied, errno.EPERM)
    assert probe["sockets"] == expected
    assert probe["interfaces"] == ["lo"]


def test_sockets_hold_no_programs_and_no_keys(probe: dict[str, Any]) -> None:
    options = dict(probe["options"])
    assert options.pop("SO_RCVBUF") == 0
    groups = [options.pop(name) for name in ("IP_ADD_MEMBERSHIP", "MCAST_JOIN_GROUP", "IPV6_JOIN_GROUP")]
    assert groups == [errno.ENODEV] * 3
    assert set(options.values()) == {errno.ENOPROTOOPT}, options


def test_the_page_cache_and_the_disk_are_out_of_reach(probe: dict[str, Any]) -> None:
    assert probe["mincore"] == [0, True]  # Java survives nothing else
    refused = dict.fromkeys(("8", "128", "136"), errno.EOPNOTSUPP)
    assert probe["preadv2"] == {"0": 0, "64": errno.EPERM} | refused
    assert set(probe["quiet"].values()) == {0}, probe["quiet"]
    assert probe["sync"] < 2
    absent = ("io_setup", "io_submit", "io_getevents", "cachestat", "pidfd_open")
    assert probe["absent"] == dict.fromkeys(absent, errno.ENOSYS)


def test_counters_of_the_kernel_cannot_be_read(probe: dict[str, Any]) -> None:
    """A later run would read there how far an earlier one moved them; see ``tests/attacks/test_counters.py``."""
    refused = probe["counters"]
    options = [name for name in refused if name.startswith("SO_")]
    assert {refused.pop(name) for name in options} == {errno.ENOPROTOOPT}
    watches = [name for name in refused if name.startswith("IN_")]
    # programs poll when there are too many watches already
    assert {refused.pop(name) for name in watches} == {errno.ENOSPC}
    assert {refused.pop(name) for name in ("NS_GET_MNTNS_ID", "NS_GET_ID")} == {errno.ENOTTY}
    assert refused.pop("STATX_MNT_ID_UNIQUE") == errno.EINVAL
    assert set(refused.values()) <= {errno.EPERM, errno.ENOSYS}, refused
    assert probe["allowed"].pop("terminal") == errno.ENOTTY
    assert set(probe["allowed"].values()) == {0}, probe["allowed"]


def test_leases_and_notices_of_files_are_refused(probe: dict[str, Any]) -> None:
    """Locks stay: git, SQLite and pip do not work without."""
    calls = dict(probe["fcntl"])
    assert calls.pop("F_GETFL") == calls.pop("flock") == 0
    assert set(calls.values()) == {errno.EINVAL}, calls


def test_the_machine_and_other_processes_are_hidden(probe: dict[str, Any]) -> None:
    # what this kernel does not have, or root alone may read, tells nothing either
    silent = (0, -errno.ENOENT, -errno.EACCES)
    assert {path: size for path, size in probe["seen"].items() if size not in silent} == {}
    assert all("docker-init" in name or "python" in name for name in probe["processes"])
    assert probe["docker_socket"] is False


def test_resources_are_bounded(probe: dict[str, Any]) -> None:
    assert probe["rlimits"] == {
        "MSGQUEUE": 0, "SIGPENDING": 4096, "MEMLOCK": MIB, "CORE": 0, "NOFILE": LIMITS.open_files
    }  # fmt: skip
    # /tmp is as large as the largest file may be here, so either limit may be the first
    assert probe["fill"]["/tmp"] in ([LIMITS.tmp, errno.ENOSPC], [LIMITS.tmp, errno.EFBIG])
    assert probe["fill"]["/dev/shm"] == [LIMITS.shm, errno.ENOSPC]
    assert probe["fill"]["/out"] == [LIMITS.output, errno.ENOSPC]
    for place, most in (("/tmp", 2048), ("/dev/shm", 2048), ("/out", 63)):
        count, error = probe["many"][place]
        assert error == errno.ENOSPC and count <= most
    assert probe["exec_tmp"] == probe["exec_out"] == errno.EACCES
    assert probe["sparse"] == errno.EFBIG
    count, error = probe["forks"]
    assert error == errno.EAGAIN and count < LIMITS.pids
    count, error = probe["threads"]
    assert error and count < LIMITS.pids
    count, error = probe["files"]
    assert error == errno.EMFILE and count <= LIMITS.open_files


def test_honest_work_is_possible(probe: dict[str, Any]) -> None:
    assert probe["pool"] == [0, 1, 4]
    assert probe["loopback"] == "pong"
    assert probe["read"] == "1 a query\n"


ORDINARY = r"""
import concurrent.futures, fcntl, mmap, os, sqlite3, subprocess
os.chdir("/tmp")
tools = "seq 50000 > a && cp a b && cat b > c && sort -o d c && dd if=d of=e conv=fsync bs=64k && cmp d e && sync && sync -f e"
subprocess.run(tools, shell=True, check=True, capture_output=True)
base = sqlite3.connect("base")
assert base.execute("pragma journal_mode=wal").fetchone() == ("wal",)
base.executescript("pragma synchronous=full; create table t(a); insert into t values (7); vacuum")
with open("m", "wb+") as file:
    file.write(bytes(1 << 20)); file.flush(); os.fsync(file.fileno()); os.fdatasync(file.fileno())
    fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX)
    for advice in range(6):
        os.posix_fadvise(file.fileno(), 0, 0, advice)
    with mmap.mmap(file.fileno(), 0) as mapped:
        mapped[5] = 9
        for advice in (mmap.MADV_RANDOM, mmap.MADV_SEQUENTIAL, mmap.MADV_WILLNEED, mmap.MADV_NORMAL):
            mapped.madvise(advice)
        mapped.flush()
    assert os.pread(file.fileno(), 1, 5) == b"\x09" and os.preadv(file.fileno(), [bytearray(9)], 0) == 9
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, 2])) == [1, 2]
print(os.cpu_count() > 0, len(os.sched_getaffinity(0)) > 0, base.execute("select a from t").fetchone())
"""


@pytest.mark.parametrize("loopback", [True, False])
def test_ordinary_software_works(run: Callable[..., Ran], loopback: bool) -> None:
    """Refusals are answered in a way that software survives; benchmarks/software.py tries much more of it."""
    result = run(ORDINARY, loopback=loopback)
    assert result.stdout == b"True True (7,)\n", result.stderr


def test_hostile_names_and_links_in_the_output_are_refused(result: Ran) -> None:
    """The wording of the reasons is pinned in test_lifecycle.py."""
    assert result.out.files == ()
    reasons = dict(result.out.refused)
    assert len(result.out.refused) == len(reasons)
    evil = [reasons.pop("line\\x0abreak\\x1b[31m"), reasons.pop("\\udcff\\udcfe")]
    assert evil[0] == evil[1]
    # The archive holds the two names of one file as a file and as a hard link, in any order.
    assert reasons.keys() == {"hard", "setuid", "run.txt", "pipe", "deep"}
    assert len({*reasons.values(), *evil}) == 6, "each kind has its own reason"


def test_every_option_is_on_the_container(
    engine: DockerEngine, scratch_image: ImageRef, result: Ran, probe: dict[str, Any]
) -> None:
    facts = result.inspected
    spec = ContainerSpec("software", scratch_image, ("python3", "-c", PROBES), LIMITS)
    body = sandbox.container_options(spec, 1)
    host = body.pop("HostConfig")
    wanted = {k: v for k, v in host.items() if k not in ("Mounts", "CgroupParent")}
    assert {k: facts["HostConfig"][k] for k in wanted} == wanted
    assert facts["HostConfig"]["Binds"] in (None, [])
    assert facts["HostConfig"]["CgroupParent"].startswith("/proctor/") or not engine.local
    writable = {m["Destination"]: m["RW"] for m in facts["Mounts"]}
    assert writable == {"/in": False, "/out": True, "/etc/passwd": False, "/etc/group": False}
    volumes = [m for m in facts["HostConfig"]["Mounts"] if m["Type"] == "volume"]
    assert [m["VolumeOptions"] for m in volumes] == [{"NoCopy": True}] * 2
    user, environment = body.pop("User"), body.pop("Env")
    assert user == "1:1" and set(environment) <= set(facts["Config"]["Env"])
    assert facts["Config"]["User"] == f"{probe['uid']}:{probe['gid']}"
    labels = body.pop("Labels")
    assert labels == dict.fromkeys(scratch_image.labels, "")
    assert facts["Config"]["Labels"]["proctor.role"] == "software"
    assert body.pop("Image") == facts["Image"] == facts["Config"]["Image"]
    body["Cmd"] = facts["Config"]["Cmd"] or []
    assert {k: facts["Config"].get(k) for k in body} | {"Cmd": body["Cmd"]} == body
    assert facts["NetworkSettings"]["Networks"].keys() == {"none"}


# Each ends at the memory limit: the first program itself, a child of it, and files in memory.
MEMORY_BOMBS = {
    "itself": ("x = bytearray(600 << 20)", 137),
    "child": (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'x = bytearray(600 << 20)'])\n"
        "open('/out/run.txt', 'w').write('1 Q0 d 1 1.0 t')",
        0,
    ),
    "files": ("[open('/tmp/x', 'ab').write(bytes(1 << 20)) for _ in range(100)]", 137),
}


@pytest.mark.parametrize("name", MEMORY_BOMBS)
def test_a_memory_bomb_is_killed(run: Callable[..., Ran], name: str) -> None:
    code, expected = MEMORY_BOMBS[name]
    more = {"memory": 48 * MIB, "tmp": 128 * MIB, "output": 128 * MIB} if name == "files" else {}
    result = run(code, **more)
    assert (result.exit.code, result.exit.oom_killed, result.exit.killed) == (expected, True, None)
    assert result.out.files == (("run.txt",) if name == "child" else ())
    assert result.seconds < 60
    usage = result.exit.resources
    if name == "itself" and usage.memory_source == "exact":
        assert usage.memory_peak is not None
        assert LIMITS.memory * 0.9 < usage.memory_peak < LIMITS.memory + 8 * MIB


HOLD = {
    # Each opens receivers that nobody reads from, and reports the bytes that went into them.
    "tcp": """
s = socket.create_server(("127.0.0.1", 0), backlog=200)
for _ in range(90):
    a = socket.create_connection(s.getsockname()); b, _peer = s.accept(); kept += [a, b]
    a.setsockopt(1, socket.SO_SNDBUF, 8 << 20); b.setsockopt(1, socket.SO_RCVBUF, 8 << 20)
    a.setblocking(False)
    for _ in range(3):
        try:
            while True: held += a.send(chunk)
        except OSError: time.sleep(0.005)
""",
    "udp": """
w = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); w.setblocking(False)
for _ in range(150):
    r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); kept.append(r)
    r.setsockopt(1, socket.SO_RCVBUF, 8 << 20); r.bind(("127.0.0.1", 0)); r.setblocking(False)
    for _ in range(50):
        try: w.sendto(chunk[:60000], r.getsockname())
        except OSError: break
for r in kept:
    try:
        while True: held += len(r.recv(65536))
    except OSError: pass
""",
    "unix": """
for _ in range(400):
    a, b = socket.socketpair(); kept += [a, b]
    a.setsockopt(1, socket.SO_SNDBUF, 8 << 20); a.setblocking(False)
    try:
        while True: held += a.send(chunk[:200_000])
    except OSError: pass
""",
    "pipes": """
for _ in range(400):
    r, w = os.pipe(); kept += [r, w]; os.set_blocking(w, False)
    try:
        fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 1 << 20)
    except OSError: pass
    try:
        while True: held += os.write(w, chunk[:65536])
    except OSError: pass
""",
}


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("kind", HOLD)
def test_buffers_of_the_kernel_stay_within_the_memory_limit(run: Callable[..., Ran], kind: str) -> None:
    """300 MiB and more in buffers, at a limit of 64 MiB."""
    limits = replace(LIMITS, memory=64 * MIB, tmp=MIB, shm=MIB)
    start = "import fcntl, os, socket, time\nkept, held, chunk = [], 0, bytes(1 << 20)\n"
    result = run(start + HOLD[kind] + "print(held)", memory=64 * MIB, tmp=MIB, shm=MIB)
    if not result.exit.oom_killed:
        assert result.exit.code == 0, result.stderr
        assert int(result.stdout) < limits.memory + sandbox.socket_memory(limits)
    if kind in ("tcp", "udp"):
        assert result.exit.code == 0, "sockets have a limit of their own: the software goes on"


def test_a_bounded_loopback_is_still_a_loopback(run: Callable[..., Ran]) -> None:
    """A server of the software's own moves far more through its sockets than they may hold at a time."""
    code = """
import socket, threading
s = socket.create_server(('127.0.0.1', 0))
def serve():
    c, _ = s.accept()
    for _ in range(256): c.sendall(bytes(1 << 20))
    c.close()
threading.Thread(target=serve).start()
c = socket.create_connection(s.getsockname())
n = 0
while data := c.recv(1 << 20): n += len(data)
print(n >> 20)
"""
    assert run(code, memory=64 * MIB, tmp=MIB, shm=MIB).stdout == b"256\n"


def test_a_task_may_do_without_a_loopback(run: Callable[..., Ran]) -> None:
    code = """
import errno, socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try: socket.socket(family, kind); print('made')
        except OSError as e: print(errno.errorcode[e.errno])
a, b = socket.socketpair(); a.send(b'unix'); print(b.recv(9).decode())
"""
    assert run(code, loopback=False).stdout.decode().split() == ["EAFNOSUPPORT"] * 4 + ["EPERM"] * 2 + [
        "unix"
    ]


@pytest.mark.slow
@pytest.mark.smoke
def test_the_wall_clock_ends_everything(run: Callable[..., Ran]) -> None:
    """SIGTERM ignored, children in sessions of their own, a storm of forks."""
    code = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('begun', flush=True)
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError:
        time.sleep(0.01)
"""
    result = run(code, wall_clock=1.5)
    assert (result.exit.killed, result.exit.code) == ("time", 137)
    assert result.seconds < 40
    assert result.stdout.startswith(b"begun")


def test_processor_time_is_that_of_all_processes_together(run: Callable[..., Ran]) -> None:
    """A storm of short children, none of which lives long; nothing outlives the limit."""
    code = """
import os, time
print('begun', flush=True)
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.02
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()
"""
    result = run(code, cpu_time=1.0, wall_clock=120)
    assert (result.exit.killed, result.exit.code, result.exit.outside) == ("processor", 137, None)
    assert result.exit.resources.cpu_seconds is not None and 1.0 <= result.exit.resources.cpu_seconds < 5
    assert result.stdout.startswith(b"begun")


def test_a_flood_of_logs(run: Callable[..., Ran]) -> None:
    result = run(
        "import sys; sys.stderr.write('early\\n'); [print('x' * 999) for _ in range(8000)]; print('late')"
    )
    assert result.exit.code == 0 and result.exit.log_truncated
    assert len(result.stdout) <= LIMITS.log and result.stdout.endswith(b"late\n")


def test_programs_may_be_allowed_in_tmp(run: Callable[..., Ran]) -> None:
    code = (
        "import os, shutil, subprocess; shutil.copy('/bin/true', '/tmp/t'); os.chmod('/tmp/t', 0o755);"
        "print(subprocess.run(['/tmp/t']).returncode)"
    )
    assert run(code).exit.code == 1
    assert run(code, tmp_exec=True).stdout == b"0\n"


def test_parallel_sessions_have_different_users(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    inside = Barrier(3, timeout=100)

    def user(number: int) -> bytes:
        with engine.session(f"{attempt}{number}") as session:
            inside.wait()
            handle = session.start(ContainerSpec("software", scratch_image, ("id", "-u"), LIMITS))
            handle.wait(100)
            return handle.logs("stdout", 99)

    assert len(set(run_at_once(user))) == 3


def leftovers(engine: DockerEngine, attempt: str) -> list[str]:
    api = engine.clients.get()
    filters = {"label": [f"proctor.attempt={attempt}"]}
    volumes = api.volumes(filters=filters).get("Volumes") or []
    return [c["Id"] for c in api.containers(all=True, filters=filters)] + [v["Name"] for v in volumes]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x"), SystemExit(1)], ids=repr)
def test_nothing_is_left_behind(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str, error: BaseException
) -> None:
    with pytest.raises(type(error)), engine.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=8)
        mounts = (Mount(out, "/out", False),)
        handle = session.start(ContainerSpec("software", scratch_image, ("sleep", "60"), LIMITS, mounts))
        assert handle.alive() and len(leftovers(engine, attempt)) == 3 - engine.mounts_memory
        raise error
    assert leftovers(engine, attempt) == []


@pytest.mark.slow
@pytest.mark.smoke
def test_usage_is_sampled_without_control_groups(
    far_engine: DockerEngine, scratch_image: ImageRef, tmp_path: Path
) -> None:
    """The engine reports the usage once a second."""
    code = "x = bytearray(64 << 20); import time; time.sleep(5)"
    result = run_software(far_engine, scratch_image, code, tmp_path / "one", LIMITS)
    usage = result.exit.resources
    assert usage.memory_source == "sampled" and not result.out.full
    assert usage.memory_peak is not None and 64 * MIB < usage.memory_peak < LIMITS.memory
    assert usage.cpu_seconds
    limits = replace(LIMITS, cpu_time=1.0, wall_clock=120)
    ended = run_software(far_engine, scratch_image, BUSY, tmp_path / "two", limits).exit
    assert (ended.killed, ended.code, ended.outside) == ("processor", 137, None)
    assert ended.resources.cpu_seconds is not None and ended.resources.cpu_seconds >= 1.0


def test_the_processor_time_of_a_server_ends_it_although_nobody_waits(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    """As in a debate: the server is looked at now and then, and asked to end at last."""
    with engine.session(attempt) as session:
        limits = replace(LIMITS, cpu_time=0.7)
        handle = session.start(ContainerSpec("software", scratch_image, BUSY, limits))
        end = time.monotonic() + 120
        while not handle.ended() and time.monotonic() < end:
            time.sleep(0.1)
        ended = handle.stop()
    assert (ended.killed, ended.code) == ("processor", 137)


def test_pinned_containers_never_share_a_processor(engine: DockerEngine, scratch_image: ImageRef) -> None:
    """Docker and the kernel agree on the processors. A session that finds none free waits, and can be cancelled."""
    code = "import os, time; print(*sorted(os.sched_getaffinity(0)), flush=True); time.sleep(30)"
    limits = replace(LIMITS, pinned=True, cpus=0.5)
    spec = ContainerSpec("software", scratch_image, ("python3", "-c", code), limits)
    _, there = engine.processors
    given: list[str] = []
    with ExitStack() as stack:
        for number in range(len(there)):
            session = stack.enter_context(engine.session(f"test-pinned-{uuid4().hex}-{number}"))
            handle = session.start(spec)
            asked = engine.clients.get().inspect_container(handle.id)["HostConfig"]["CpusetCpus"]
            while not (said := handle.logs("stdout", 100)):
                assert not handle.ended()
            assert said.decode().strip() == asked
            given.append(asked)
        assert len(set(given)) == len(there), given
        looks = iter([False, True])
        with (
            pytest.raises(Cancelled),
            engine.session(f"test-pinned-{uuid4().hex}-last", cancelled=lambda: next(looks, True)) as late,
        ):
            late.start(spec)
    with engine.session(f"test-pinned-{uuid4().hex}-free") as session:
        assert session.start(spec).alive(), "they are free again"


def test_no_machine_has_more_processors_than_it_has(engine: DockerEngine, scratch_image: ImageRef) -> None:
    limits = replace(LIMITS, pinned=True, cpus=4096)
    with (
        engine.session(f"test-pinned-{uuid4().hex}-many") as session,
        pytest.raises(PlatformError) as caught,
    ):
        session.start(ContainerSpec("software", scratch_image, ("true",), limits))
    assert caught.value.code == "E305" and "4096 processors" in caught.value.why
