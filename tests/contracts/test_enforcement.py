"""What the sandbox holds back, seen from inside it. Real containers, a few of them, many attacks in each."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from runner.engines import sandbox
from runner.engines.base import Cancelled, ContainerSpec, Mount
from runner.engines.docker.engine import DockerEngine
from runner.model.container import Collected, Exit, ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB, Exceptions, Limits

pytestmark = pytest.mark.engine

LIMITS = Limits(
    loopback=True,
    memory=192 * MIB,
    pids=48,
    wall_clock=40,
    output=4 * MIB,
    tmp=8 * MIB,
    shm=4 * MIB,
    log=64 * 1024,
)
PROBES = Path(__file__).with_name("probes.py").read_text(encoding="utf-8")


@dataclass
class Result:
    exit: Exit
    stdout: bytes
    stderr: bytes
    out: Collected
    seconds: float
    inspected: dict[str, Any]


@pytest.fixture(scope="module")
def run(
    engine: DockerEngine, scratch_image: ImageRef, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Result]:
    """Run a command (or Python text) under the sandbox with a read-only /in and a writable /out."""

    def go(what: str | tuple[str, ...] | None, *, image: ImageRef = scratch_image, **changes: Any) -> Result:
        command = ("python3", "-c", what) if isinstance(what, str) else what
        limits = changes.pop("limits", LIMITS)
        dest = tmp_path_factory.mktemp("out")
        with engine.session(f"test-{dest.parent.name}-{dest.name}-1") as session:
            given = session.output_volume("in", bytes=MIB, inodes=8)
            out = session.output_volume("output", bytes=limits.output, inodes=64)
            session.copy_in(given, {"queries.txt": b"1 a query\n"})
            mounts = (Mount(given, "/in"), Mount(out, "/out", read_only=False))
            handle = session.start(ContainerSpec("software", image, command, limits, mounts, **changes))
            ended = handle.wait(limits.wall_clock)
            seconds = time.monotonic() - handle.clock
            facts = engine.clients.get().inspect_container(handle.id) if handle.id else {}
            logs = handle.logs("stdout", 60_000), handle.logs("stderr", 60_000)
            got = session.copy_out(
                out, dest, allowed=lambda n: n == "run.txt", max_bytes=limits.output, max_files=4
            )
        return Result(ended, *logs, got, seconds, facts)

    return go


@pytest.fixture(scope="module")
def probe(run: Callable[..., Result]) -> dict[str, Any]:
    """One container that tries everything it should not be able to do, and reports."""
    result = run(PROBES)
    assert result.exit.code == 0, result.stderr.decode(errors="replace")
    found: dict[str, Any] = json.loads(result.stdout)
    return found | {"_result": result}


def test_who_it_is(probe: dict[str, Any]) -> None:
    assert probe["uid"] >= sandbox.FIRST_UID and probe["uid"] == probe["gid"]
    assert probe["groups"] in ([], [probe["gid"]])
    status = probe["status"]
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == int(status["CapPrm"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert (probe["hostname"], probe["home"]) == ("sandbox", "/tmp")
    assert probe["setuid_program"] != 0


@pytest.mark.parametrize(
    "path", ["/x", "/etc/passwd", "/usr/x", "/in/x", "/in/queries.txt", "/dev/x", "/sys/x", "/run/x"]
)
def test_what_it_cannot_write(probe: dict[str, Any], path: str) -> None:
    assert probe["write"][path] in (errno.EROFS, errno.EACCES, errno.EPERM)


def test_no_network(probe: dict[str, Any]) -> None:
    assert probe["interfaces"] == ["lo"]
    for address, error in probe["connect"].items():
        assert error == errno.ENETUNREACH, address


@pytest.mark.parametrize("family", ["netlink", "vsock", "packet", "alg", "raw"])
def test_sockets_that_it_cannot_make(probe: dict[str, Any], family: str) -> None:
    assert probe["sockets"][family] == errno.EPERM


@pytest.mark.parametrize("protocol", ["mptcp", "mptcp6", "udplite", "ping", "ping6"])
def test_protocols_that_nobody_needs_are_not_supported(probe: dict[str, Any], protocol: str) -> None:
    assert probe["sockets"][protocol] == errno.EPROTONOSUPPORT
    assert probe["sockets"]["sctp"] == probe["sockets"]["netlink with a bit that is not read"] == errno.EPERM
    assert probe["sockets"]["mptcp with a bit that is not read"] == errno.EPROTONOSUPPORT


def test_sockets_hold_no_programs_and_no_keys(probe: dict[str, Any]) -> None:
    options = dict(probe["options"])
    assert options.pop("SO_RCVBUF") == 0
    groups = [options.pop(name) for name in ("IP_ADD_MEMBERSHIP", "MCAST_JOIN_GROUP", "IPV6_JOIN_GROUP")]
    assert groups == [errno.ENODEV] * 3
    assert set(options.values()) == {errno.ENOPROTOOPT}, options


def test_the_page_cache_cannot_be_asked_or_emptied(probe: dict[str, Any]) -> None:
    assert probe["mincore"] == [0, True]  # Java survives nothing else
    assert probe["absent"]["cachestat"] == errno.ENOSYS
    refused = dict.fromkeys(("8", "128", "136"), errno.EOPNOTSUPP)
    assert probe["preadv2"] == {"0": 0, "64": errno.EPERM} | refused
    assert {
        probe["quiet"][name]
        for name in ("fadvise64", "readahead", "madvise(MADV_PAGEOUT)", "madvise(MADV_COLD)")
    } == {0}


def test_no_order_reaches_a_disk(probe: dict[str, Any]) -> None:
    assert set(probe["quiet"].values()) == {0}, probe["quiet"]
    assert probe["sync"] < 2


def test_the_contexts_of_the_machine_for_asynchronous_io_are_out_of_reach(probe: dict[str, Any]) -> None:
    assert {probe["absent"][name] for name in ("io_setup", "io_submit", "io_getevents")} == {errno.ENOSYS}


def test_counters_of_the_kernel_cannot_be_asked_for(probe: dict[str, Any]) -> None:
    """A later run would read there how far an earlier one moved them; see ``tests/attacks/test_counters.py``."""
    assert probe["absent"]["pidfd_open"] == errno.ENOSYS
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


def test_it_gets_no_news_of_files_that_others_use(probe: dict[str, Any]) -> None:
    """Locks stay: git, SQLite and pip do not work without."""
    found = dict(probe["fcntl"])
    assert found.pop("F_GETFL") == found.pop("flock") == 0
    assert set(found.values()) == {errno.EINVAL}, found


def test_the_accounts_of_the_machine_are_hidden(probe: dict[str, Any]) -> None:
    # what this kernel does not have, or root alone may read, tells nothing either
    told = {
        path: size for path, size in probe["seen"].items() if size not in (0, -errno.ENOENT, -errno.EACCES)
    }
    assert told == {}


def test_queues_signals_and_locked_memory_are_bounded(probe: dict[str, Any]) -> None:
    assert probe["rlimits"] == {
        "MSGQUEUE": 0, "SIGPENDING": 4096, "MEMLOCK": MIB, "CORE": 0, "NOFILE": LIMITS.open_files
    }  # fmt: skip


@pytest.mark.parametrize(
    "call",
    ["io_uring_setup", "unshare", "setns", "ptrace", "keyctl", "bpf", "userfaultfd", "mount", "perf_event_open",
     "clone_newuser", "setuid", "mknod", "shmget", "personality", "open_by_handle_at"],
)  # fmt: skip
def test_system_calls_that_it_cannot_make(probe: dict[str, Any], call: str) -> None:
    assert probe["calls"][call] == errno.EPERM


def test_clone3_is_absent_so_that_libraries_fall_back(probe: dict[str, Any]) -> None:
    assert probe["calls"]["clone3"] == errno.ENOSYS


def test_memory_file_systems_are_bounded(probe: dict[str, Any]) -> None:
    # /tmp is as large as the largest file may be here, so either wall may be the first
    assert probe["fill"]["/tmp"] in ([LIMITS.tmp, errno.ENOSPC], [LIMITS.tmp, errno.EFBIG])
    assert probe["fill"]["/dev/shm"] == [LIMITS.shm, errno.ENOSPC]
    for place in ("/tmp", "/dev/shm"):
        count, error = probe["many"][place]
        assert error == errno.ENOSPC and count <= 2048
    assert probe["exec_tmp"] == errno.EACCES


def test_the_output_is_bounded(probe: dict[str, Any]) -> None:
    assert probe["fill"]["/out"] == [LIMITS.output, errno.ENOSPC]
    count, error = probe["many"]["/out"]
    assert error == errno.ENOSPC and count < 64
    assert probe["exec_out"] == errno.EACCES


def test_no_file_grows_past_its_limit(probe: dict[str, Any]) -> None:
    assert probe["sparse"] == errno.EFBIG


def test_processes_and_files_are_bounded(probe: dict[str, Any]) -> None:
    count, error = probe["forks"]
    assert error == errno.EAGAIN and count < LIMITS.pids
    count, error = probe["threads"]
    assert error and count < LIMITS.pids
    count, error = probe["files"]
    assert error == errno.EMFILE and count <= LIMITS.open_files


def test_it_sees_nobody_else(probe: dict[str, Any]) -> None:
    assert all("docker-init" in name or "python" in name for name in probe["processes"])
    assert probe["docker_socket"] is False


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


def test_ordinary_software_goes_on(run: Callable[..., Result]) -> None:
    """What is denied is answered in a way that software survives; benchmarks/software.py tries much more of it."""
    for limits in (LIMITS, replace(LIMITS, loopback=False)):
        result = run(ORDINARY, limits=limits)
        assert result.stdout == b"True True (7,)\n", result.stderr


def test_nasty_output_is_refused(probe: dict[str, Any]) -> None:
    out: Collected = probe["_result"].out
    assert out.files == ()
    refused = dict(out.refused)
    assert refused["run.txt"] == "a symbolic link"
    assert refused["pipe"] == "not a regular file"
    assert refused["deep"] == "a folder"
    assert "a hard link" in (refused["hard"], refused["setuid"])
    assert (
        refused["line\\x0abreak\\x1b[31m"] == refused["\\udcff\\udcfe"] == "not a file name that is accepted"
    )
    assert len(refused) == 7


def test_every_option_is_on_the_container(
    engine: DockerEngine, run: Callable[..., Result], scratch_image: ImageRef, probe: dict[str, Any]
) -> None:
    facts = probe["_result"].inspected
    spec = ContainerSpec("software", scratch_image, ("python3", "-c", PROBES), LIMITS)
    body = sandbox.container_options(spec, 1)
    host = body.pop("HostConfig")
    for option in ("Mounts", "CgroupParent"):
        host.pop(option)
    assert {k: facts["HostConfig"][k] for k in host} == host
    assert facts["HostConfig"]["Binds"] in (None, [])
    assert facts["HostConfig"]["CgroupParent"].startswith("/proctor/") or not engine.local
    mounts = {m["Destination"]: m for m in facts["Mounts"]}
    assert {path: m["RW"] for path, m in mounts.items()} == {
        "/in": False,
        "/out": True,
        "/etc/passwd": False,
        "/etc/group": False,
    }
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


def test_a_memory_bomb(run: Callable[..., Result]) -> None:
    result = run("x = bytearray(600 << 20)")
    assert (result.exit.code, result.exit.oom_killed, result.exit.killed) == (137, True, None)
    assert result.seconds < 60
    usage = result.exit.resources
    if usage.memory_source == "exact":
        assert (
            usage.memory_peak is not None
            and LIMITS.memory * 0.9 < usage.memory_peak < LIMITS.memory + 8 * MIB
        )


def test_a_child_that_is_the_bomb(run: Callable[..., Result]) -> None:
    result = run(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'x = bytearray(600 << 20)'])\n"
        "open('/out/run.txt', 'w').write('1 Q0 d 1 1.0 t')"
    )
    assert result.exit.code == 0
    assert result.exit.oom_killed
    assert result.out.files == ("run.txt",)


def test_memory_file_systems_count_as_memory(run: Callable[..., Result]) -> None:
    limits = replace(LIMITS, memory=48 * MIB, tmp=128 * MIB, output=128 * MIB)
    result = run(
        "open('/tmp/x', 'wb').write(bytes(1 << 20)); [open('/tmp/x', 'ab').write(bytes(1 << 20)) for _ in range(100)]",
        limits=limits,
    )
    assert (result.exit.code, result.exit.oom_killed) == (137, True)


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


@pytest.mark.parametrize("kind", HOLD)
def test_the_kernel_holds_no_memory_for_it_beyond_its_limit(run: Callable[..., Result], kind: str) -> None:
    """300 MiB and more in buffers, at a limit of 64 MiB."""
    limits = replace(LIMITS, memory=64 * MIB, tmp=MIB, shm=MIB)
    start = "import fcntl, os, socket, time\nkept, held, chunk = [], 0, bytes(1 << 20)\n"
    result = run(start + HOLD[kind] + "print(held)", limits=limits)
    if not result.exit.oom_killed:
        assert result.exit.code == 0, result.stderr
        assert int(result.stdout) < limits.memory + sandbox.socket_memory(limits)
    if kind in ("tcp", "udp"):
        assert result.exit.code == 0, "what sockets may hold is bounded on its own: the software goes on"


def test_a_bounded_loopback_is_still_a_loopback(run: Callable[..., Result]) -> None:
    """A server of the software's own moves far more through its sockets than they may hold at a time."""
    code = (
        "import socket, threading\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "def serve():\n"
        "    c, _ = s.accept()\n"
        "    for _ in range(256): c.sendall(bytes(1 << 20))\n"
        "    c.close()\n"
        "threading.Thread(target=serve).start()\n"
        "c = socket.create_connection(s.getsockname())\n"
        "n = 0\n"
        "while data := c.recv(1 << 20): n += len(data)\n"
        "print(n >> 20)"
    )
    assert run(code, limits=replace(LIMITS, memory=64 * MIB, tmp=MIB, shm=MIB)).stdout == b"256\n"


def test_a_task_may_do_without_a_loopback(run: Callable[..., Result]) -> None:
    code = (
        "import errno, socket\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
        "        try: socket.socket(family, kind); print('made')\n"
        "        except OSError as e: print(errno.errorcode[e.errno])\n"
        "a, b = socket.socketpair(); a.send(b'unix'); print(b.recv(9).decode())"
    )
    result = run(code, limits=replace(LIMITS, loopback=False))
    assert result.stdout.decode().split() == ["EAFNOSUPPORT"] * 4 + ["EPERM"] * 2 + ["unix"]


@pytest.mark.parametrize(
    "line",
    [
        r"RUN for n in $(seq 20000 29000); do echo $n:x:0:; done >> /etc/group",
        r"RUN printf '\302\24020001:x:6:\n20001 :x:6:\n' >> /etc/group",
        "RUN for n in $(seq 20000 29000); do echo $n:x:0:0::/:/bin/sh; done >> /etc/passwd",
        "RUN mv /etc/group /etc/other && ln -s other /etc/group && echo 24001:x:0: >> /etc/other",
        "RUN rm /etc/group && mkfifo /etc/group",
        "RUN rm /etc/group && ln -s group /etc/group",
        "RUN rm /etc/group && ln -s /dev/zero /etc/group",
        # The daemon looks into the image's own root, below what is mounted at /in and /out.
        "RUN mkdir /in && mv /etc/group /in && ln -s /in/group /etc && echo 24001:x:0: >> /in/group",
        "RUN echo 24001:x:0: >> /etc/group && ln -s /etc /out",
    ],
)
def test_no_image_chooses_the_groups_of_its_software(
    run: Callable[..., Result], build_image: Callable[..., ImageRef], line: str
) -> None:
    """The runtime takes our numbers for names, when the image has such names."""
    result = run(("id",), image=build_image("proctor/test-groups", line))
    assert result.exit.code is None and "/etc/" in str(result.exit.start_error), result.stdout
    assert result.stdout == b""


def test_images_with_ordinary_accounts_or_none_run(
    run: Callable[..., Result], build_image: Callable[..., ImageRef]
) -> None:
    for line in (
        "RUN echo 7zip:x:0: >> /etc/group && echo 20001:x:20001: >> /etc/group",
        "RUN rm /etc/group /etc/passwd",
    ):
        result = run(("sh", "-c", "id -G"), image=build_image("proctor/test-accounts", line))
        assert result.exit.code == 0 and len(result.stdout.split()) == 1
        assert int(result.stdout) >= sandbox.FIRST_UID


def test_labels_of_an_image_are_not_ours(
    engine: DockerEngine, run: Callable[..., Result], build_image: Callable[..., ImageRef]
) -> None:
    image = build_image(
        "proctor/test-labels",
        "LABEL proctor.attempt=mine proctor.owner='x|y|1|' proctor.role=keeper proctor.data=0 proctor.more=x other=y",
    )
    labels = run(("true",), image=image).inspected["Config"]["Labels"]
    assert labels["proctor.role"] == "software" and labels["proctor.attempt"].startswith("test-")
    assert labels["proctor.owner"] != "x|y|1|"
    assert labels["proctor.data"] == labels["proctor.more"] == labels["other"] == ""


def test_the_wall_clock_ends_everything(run: Callable[..., Result]) -> None:
    """SIGTERM ignored, children in sessions of their own, a storm of forks."""
    result = run(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0:\n"
        "            os.setsid()\n"
        "    except OSError:\n"
        "        time.sleep(0.01)\n",
        limits=replace(LIMITS, wall_clock=1.5),
    )
    assert (result.exit.killed, result.exit.code) == ("time", 137)
    assert result.seconds < 40
    assert result.stdout.startswith(b"begun")


def test_processor_time_is_that_of_all_processes_together(run: Callable[..., Result]) -> None:
    """A storm of short children, none of which lives long; nothing outlives the limit, and nobody else is said to have ended it."""
    result = run(
        "import os, time\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        end = time.process_time() + 0.02\n"
        "        while time.process_time() < end: pass\n"
        "        os._exit(0)\n"
        "    os.wait()\n",
        limits=replace(LIMITS, cpu_time=1.0, wall_clock=120),
    )
    assert (result.exit.killed, result.exit.code, result.exit.outside) == ("processor", 137, None)
    assert result.exit.resources.cpu_seconds is not None and 1.0 <= result.exit.resources.cpu_seconds < 5
    assert result.stdout.startswith(b"begun")


def test_a_flood_of_logs(run: Callable[..., Result]) -> None:
    result = run(
        "import sys; sys.stderr.write('early\\n'); [print('x' * 999) for _ in range(8000)]; print('late')"
    )
    assert result.exit.code == 0 and result.exit.log_truncated
    assert len(result.stdout) <= LIMITS.log and result.stdout.endswith(b"late\n")


def test_what_an_image_declares(
    engine: DockerEngine, run: Callable[..., Result], build_image: Callable[..., ImageRef]
) -> None:
    """A VOLUME would be a disk without a limit, a HEALTHCHECK is code beside the job, USER and ENV are its wish."""
    image = build_image(
        "proctor/test-directives",
        "VOLUME /data /in",
        "HEALTHCHECK --interval=1s CMD touch /data/health",
        "USER root",
        "WORKDIR /work",
        "ENV NVIDIA_VISIBLE_DEVICES=all HOME=/root",
        'ENTRYPOINT ["python3", "-c", "import os, time\\n'
        "try:\\n f = open('/data/x', 'wb', 0)\\n while f.write(bytes(1 << 20)): pass\\n"
        "except OSError as e: print(e.errno)\\n"
        "time.sleep(1.5)\\n"
        "print(f.tell(), os.getuid() > 0, os.path.exists('/data/health'), os.getcwd(), os.listdir('/in'), os.environ['HOME'], os.environ['NVIDIA_VISIBLE_DEVICES'])\"]",
    )
    assert image.volumes == ("/data", "/in") and image.has_healthcheck and image.workdir == "/work"
    result = run(None, image=image, limits=replace(LIMITS, output=64 * MIB))
    assert result.exit.code == 0, result.stderr
    assert result.stdout.decode().split("\n")[:2] == [
        str(errno.ENOSPC),
        f"{sandbox.VOLUME_COVER} True False /work ['queries.txt'] /root void",
    ]
    volumes = {m["Name"] for m in result.inspected["Mounts"] if m["Type"] == "volume"}
    kept = {v["Name"] for v in engine.clients.get().volumes().get("Volumes") or []}
    assert not volumes & kept


MOUNTED, WORKDIR, COMMAND = "take it out of the image", "correct WORKDIR", "correct it"
WITHOUT = "FROM scratch\nCOPY --from=0 /etc/hostname /data"  # neither sh nor anything else


@pytest.mark.parametrize(
    ("lines", "command", "says"),
    [
        ("VOLUME /proc", ("true",), MOUNTED),
        ("VOLUME /dev", ("true",), MOUNTED),
        ("VOLUME /proc/x", ("true",), MOUNTED),
        ("VOLUME /in/x", ("true",), MOUNTED),
        ("VOLUME data", ("true",), COMMAND),
        ("WORKDIR /proc/self/fd/6", ("true",), WORKDIR),
        ("RUN ln -s /proc /in", ("true",), MOUNTED),
        ("RUN ln -s /etc /in", ("true",), MOUNTED),
        ("RUN ln -s /sbin /in", ("true",), MOUNTED),
        ("RUN ln -s /dev /in", ("true",), MOUNTED),
        ("RUN ln -s out /out", ("true",), MOUNTED),
        ("RUN touch /out", ("true",), MOUNTED),
        ("RUN ln -s /etc/hosts /out", ("true",), MOUNTED),
        ("RUN rm -rf /tmp && ln -s /proc /tmp", ("true",), MOUNTED),
        ("RUN rm -rf /sbin && ln -s /proc/self /sbin", ("true",), MOUNTED),
        (WITHOUT, None, "No command specified"),
    ],
)
def test_what_an_image_makes_impossible_is_its_own_fault_and_says_how_to_mend_it(
    run: Callable[..., Result],
    build_image: Callable[..., ImageRef],
    lines: str,
    command: tuple[str, ...] | None,
    says: str,
) -> None:
    result = run(command, image=build_image("proctor/test-misled", lines))
    told = str(result.exit.start_error)
    assert result.exit.code is None and says in told, told
    assert "/overlay2/" not in told and "/volumes/" not in told, "the host's folders are nobody's business"


@pytest.mark.parametrize(
    "lines",
    [
        "RUN ln -s /data /in",
        "RUN ln -s /out /in",
        "RUN ln -s /nowhere/there /out",
        "RUN rm -rf /tmp && ln -s /etc /tmp",
        "USER nobody-has-this-name:nor-this",
    ],
)
def test_links_and_users_that_do_no_harm(
    run: Callable[..., Result], build_image: Callable[..., ImageRef], lines: str
) -> None:
    result = run(("true",), image=build_image("proctor/test-misled", lines))
    assert (result.exit.code, result.exit.start_error) == (0, None)


@pytest.mark.parametrize("fd", [6, 7, 8, 9])
def test_no_working_directory_leads_to_the_host(run: Callable[..., Result], fd: int) -> None:
    """A file descriptor that a runtime forgot to close would be a door (CVE-2024-21626)."""
    result = run(("ls", "-a", "/proc/self/cwd/../../../../../../../.."), workdir=f"/proc/self/fd/{fd}")
    assert result.exit.start_error or result.exit.code or b"\nin\n" in result.stdout, result.stdout


def test_granted_exceptions(run: Callable[..., Result], engine: DockerEngine) -> None:
    granted = Exceptions(writable=("/var/cache/model",), writable_bytes=2 * MIB)
    code = "f = open('/var/cache/model/x', 'wb', 0)\nn = f.write(bytes(4 << 20))\nprint(n)"
    result = run(code, exceptions=granted)
    assert int(result.stdout) == 2 * MIB
    with pytest.raises(RunnerError) as caught:
        run("", exceptions=Exceptions(writable=("/in",)))
    assert caught.value.code == "E402"
    if not engine.user_namespaces:
        with pytest.raises(PlatformError) as failed:
            run("", exceptions=Exceptions(root=True))
        assert failed.value.code == "E302"


def test_programs_may_be_allowed_in_tmp(run: Callable[..., Result]) -> None:
    code = (
        "import os, shutil, subprocess; shutil.copy('/bin/true', '/tmp/t'); os.chmod('/tmp/t', 0o755);"
        "print(subprocess.run(['/tmp/t']).returncode)"
    )
    assert run(code).exit.code == 1
    assert run(code, limits=replace(LIMITS, tmp_exec=True)).stdout == b"0\n"


def test_commands_that_cannot_start(run: Callable[..., Result]) -> None:
    """What the init process writes looks like what any program can write, and is kept where that is: in the log."""
    for command, code in ((("no-such-program",), 127), (("/etc/passwd",), 126), (("/etc",), 126)):
        result = run(command)
        assert (result.exit.code, result.exit.start_error) == (code, None)
        assert command[0].encode() in result.stderr and result.exit.resources.wall_seconds < 40
    assert run(("sh", "-c", "exit 127")).exit.code == 127
    assert WORKDIR in str(run(("true",), workdir="/etc/passwd").exit.start_error)
    assert WORKDIR in str(run(("true",), workdir="/in/nothing").exit.start_error)
    assert "128 KiB" in str(run(("true", "x" * 200_000)).exit.start_error)
    assert "2 MiB" in str(run(("true", *["x" * 110_000] * 20)).exit.start_error)
    assert "null byte" in str(run(("true", "a\0b")).exit.start_error)


@pytest.mark.parametrize(
    ("lines", "command", "says"),
    [
        (f"{WITHOUT}\nCMD true", None, b"/bin/sh failed: No such file"),
        ("RUN ln -s loop /loop", ("/loop",), b"/loop failed: Too many levels"),
    ],
)
def test_what_cannot_be_begun_in_an_image_is_in_its_log(
    run: Callable[..., Result],
    build_image: Callable[..., ImageRef],
    lines: str,
    command: tuple[str, ...] | None,
    says: bytes,
) -> None:
    result = run(command, image=build_image("proctor/test-misled", lines))
    assert result.exit.code in (1, 127) and result.exit.start_error is None
    assert says in result.stderr, result.stderr


def test_an_output_that_is_mounted_over_everything_ends_as_the_softwares_fault(
    run: Callable[..., Result], build_image: Callable[..., ImageRef]
) -> None:
    """Which of two mounts is the first is the engine's choice: it cannot mount the second, or there is no command any more."""
    result = run(("true",), image=build_image("proctor/test-misled", "RUN ln -s / /out"))
    assert "o such file" in f"{result.exit.start_error} {result.stderr!r}"
    assert result.exit.code in (None, 127)


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("[FATAL tini (7)] exec /run failed: The platform has lost the inputs, run it again", 127),
        ("[FATAL tini (7)] exec /run failed: Permission denied", 126),
        ("exec /sbin/docker-init: argument list too long", 1),
        ("exec /sbin/docker-init: invalid argument", 1),
        ('OCI runtime create failed: runc create failed: exec: "x": executable file not found', 127),
    ],
)
def test_no_software_says_that_it_was_not_started(run: Callable[..., Result], says: str, code: int) -> None:
    """What it writes is its log, and an exit code of its own is one, whatever it writes beside it."""
    result = run(f"import sys; print({says!r}, file=sys.stderr); sys.exit({code})")
    assert (result.exit.code, result.exit.start_error) == (code, None)
    assert result.stderr.decode() == f"{says}\n"


def test_parallel_sessions_have_different_users(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    uids: list[int] = []
    inside = threading.Barrier(3, timeout=100)

    def one(number: int) -> None:
        with engine.session(f"{attempt}{number}") as session:
            inside.wait()
            handle = session.start(ContainerSpec("software", scratch_image, ("id", "-u"), LIMITS))
            handle.wait(100)
            uids.append(int(handle.logs("stdout", 99)))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(uids)) == 3


def leftovers(engine: DockerEngine, attempt: str) -> list[str]:
    api = engine.clients.get()
    filters = {"label": [f"proctor.attempt={attempt}"]}
    volumes = api.volumes(filters=filters).get("Volumes") or []
    return [c["Id"] for c in api.containers(all=True, filters=filters)] + [v["Name"] for v in volumes]


@pytest.fixture
def busy(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> Iterator[Callable[[BaseException], None]]:
    def go(error: BaseException) -> None:
        with engine.session(attempt) as session:
            out = session.output_volume("output", bytes=MIB, inodes=8)
            handle = session.start(
                ContainerSpec(
                    "software", scratch_image, ("sleep", "60"), LIMITS, (Mount(out, "/out", False),)
                )
            )
            assert handle.alive() and len(leftovers(engine, attempt)) == 3 - engine.mounts_memory
            raise error

    yield go


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x"), SystemExit(1)], ids=repr)
def test_nothing_is_left_behind(
    engine: DockerEngine, busy: Callable[[BaseException], None], attempt: str, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        busy(error)
    assert leftovers(engine, attempt) == []


def test_sampled_usage_without_control_groups(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str, tmp_path: Path
) -> None:
    """As on a remote engine."""
    far = DockerEngine(engine.clients.host, local=False, engine_for="both-without-eviction")
    with far.session(attempt) as session:
        out = session.output_volume("output", bytes=MIB, inodes=8)
        code = "x = bytearray(64 << 20); import time; time.sleep(5)"
        spec = ContainerSpec(
            "software", scratch_image, ("python3", "-c", code), LIMITS, (Mount(out, "/out", False),)
        )
        ended = session.start(spec).wait(100)
        got = session.copy_out(out, tmp_path / "out", allowed=bool, max_bytes=1, max_files=1)
    far.close()
    usage = ended.resources
    assert usage.memory_source == "sampled" and not got.full
    assert usage.memory_peak is not None and 64 * MIB < usage.memory_peak < LIMITS.memory
    assert usage.cpu_seconds


def test_processor_time_of_a_server_that_nobody_waits_for(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    """As in a debate: it is looked at now and then, and asked to end at last."""
    with engine.session(attempt) as session:
        limits = replace(LIMITS, cpu_time=0.7)
        spec = ContainerSpec("software", scratch_image, ("python3", "-c", "while True: pass"), limits)
        handle = session.start(spec)
        end = time.monotonic() + 120
        while not handle.ended() and time.monotonic() < end:
            time.sleep(0.1)
        ended = handle.stop()
    assert (ended.killed, ended.code) == ("processor", 137)


def test_processor_time_without_control_groups(
    engine: DockerEngine, scratch_image: ImageRef, attempt: str
) -> None:
    """As on a remote engine: what the engine says once a second counts."""
    far = DockerEngine(engine.clients.host, local=False, engine_for="both-without-eviction")
    limits = replace(LIMITS, cpu_time=1.0)
    with far.session(attempt) as session:
        spec = ContainerSpec("software", scratch_image, ("python3", "-c", "while True: pass"), limits)
        ended = session.start(spec).wait(120)
    far.close()
    assert (ended.killed, ended.code, ended.outside) == ("processor", 137, None)
    assert ended.resources.cpu_seconds is not None and ended.resources.cpu_seconds >= 1.0


def test_pinned_containers_never_share_a_processor(engine: DockerEngine, scratch_image: ImageRef) -> None:
    """What the created container says and what the kernel gives are the same; who finds none free waits, and can be stopped."""
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
