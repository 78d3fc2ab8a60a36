"""The sandbox: the options of containers.

A session adds account files and the container's own host name (:mod:`runner.engines.docker.session`). Every function returns the body of the engine's "create container" call as plain data. Containers of
participants, evaluators, sidecars and gateways get the same walls; they differ in what is mounted, in their
user, and in the network: none, the loopback of a sidecar, or (gateways only) one of the engine's networks.
What each wall holds back is tested on real containers in ``tests/contracts/test_enforcement.py``.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from runner.engines.base import ROOM_TMP, ContainerSpec, Mount
from runner.engines.masks import READ_ONLY, masked
from runner.engines.roles import JOINERS, Sharing
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.model.limits import MIB, Limits

OPTIONS_VERSION = 3  # higher after a change that the options of the reference container do not show
FIRST_UID = 20_000
NOBODY = 65_534
PAGE = 4096
DISK_CALLS = ("fdatasync", "fsync", "sync", "sync_file_range", "syncfs")
INTERNET = (2, 10)  # address families: IPv4, IPv6
SIGNALS = 4096  # that wait at a time, of all processes of a user
SOCKETS_LEAST, SOCKETS_MOST = 4 * MIB, 256 * MIB
# What an image's own VOLUME path may hold: in memory, instead of on the disk without a limit.
VOLUME_COVER = 16 * MIB
COVER = f"rw,nosuid,nodev,noexec,size={VOLUME_COVER},nr_inodes=1024,mode=1777"
# Over a folder that nobody may write to, because what one program leaves there another one would find.
CLOSED = "ro,nosuid,nodev,noexec,size=4096,nr_inodes=2,mode=0555"
SECCOMP_MACHINES = ("x86_64", "amd64")  # the profile names x86-64 calls; elsewhere the engine's default holds

# What engines make read-only in every container, but for /proc/sys/vm. Folders that a kernel does not have are passed over.
EVICT_READ_ONLY = (
    *(f"/proc/{name}" for name in ("bus", "fs", "irq", "sysrq-trigger")),
    *(
        f"/proc/sys/{name}"
        for name in ("abi", "crypto", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user")
    ),
)

# Extra writable paths may not touch these, nor what lies in or above them.
PROTECTED = ("/in", "/inputs", "/truths", "/out", "/proc", "/sys", "/dev", "/tmp")  # noqa: S108


@cache
def seccomp_profile(loopback: bool = True, disk: bool = False) -> str:
    """The text of our seccomp profile, compact, as the engine takes it.

    Without ``loopback`` there are no sockets but Unix ones: others are "not supported" (EAFNOSUPPORT), as on a
    kernel without a network. With ``disk``, an order to write to the disk is carried out.
    """
    profile = json.loads(Path(__file__).with_name("seccomp.json").read_text(encoding="utf-8"))
    if not loopback:
        kept = [
            rule
            for rule in profile["syscalls"]
            if rule["names"] != ["socket"] or rule["args"][0]["valueTwo"] not in INTERNET
        ]
        kept += [
            {
                "names": ["socket"],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": errno.EAFNOSUPPORT,
                "args": [{"index": 0, "value": 0xFFFFFFFF, "valueTwo": family, "op": "SCMP_CMP_MASKED_EQ"}],
            }
            for family in INTERNET
        ]
        profile["syscalls"] = kept
    if disk:
        for rule in profile["syscalls"]:
            rule["names"] = [name for name in rule["names"] if name not in DISK_CALLS]
        profile["syscalls"].append({"names": list(DISK_CALLS), "action": "SCMP_ACT_ALLOW"})
    return json.dumps(profile, separators=(",", ":"))


def socket_memory(limits: Limits) -> int:
    """The bytes that all sockets of a container may hold in the kernel, in addition to its memory."""
    return min(max(limits.memory // 8, SOCKETS_LEAST), SOCKETS_MOST)


def own_seccomp(machine: str) -> bool:
    """Whether our profile fits an engine of this architecture (``x86_64``, ``aarch64`` …)."""
    return machine.lower() in SECCOMP_MACHINES


@cache
def sandbox_digest(own_profile: bool = True) -> str:
    """SHA-256 over the seccomp profile and the complete options of a reference container, for the lock.

    It changes whenever a wall changes, and with :data:`OPTIONS_VERSION`, which covers what a session adds: account files,
    host names and copies of an image's folders. ``own_profile`` False is the digest of the sandbox on
    machines where the engine's default profile has to do.
    """
    image = ImageRef(id="sha256:" + "0" * 64, volumes=("/volume",))
    spec = ContainerSpec("software", image, ("true",), Limits())
    body = container_options(spec, uid=FIRST_UID, own_profile=own_profile)
    text = json.dumps([OPTIONS_VERSION, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def container_options(
    spec: ContainerSpec,
    uid: int,
    *,
    joined: str | None = None,
    labels: Mapping[str, str] | None = None,
    own_profile: bool = True,
    cgroup_parent: str = "",
    processors: Sequence[int] = (),
) -> dict[str, Any]:
    """The options of one container; ``joined`` is the engine's id of the container behind ``spec.join``, ``processors`` are
    those that it runs on, where its limits want it pinned.

    Raises E402 when a granted exception would open one of the walls (only software has exceptions; a sidecar
    may have writable paths), ValueError for a network that is not for this role, and for processors that are not those wanted.
    """
    if spec.role != "software" and (
        spec.exceptions.root or (spec.exceptions.writable and spec.role != "sidecar")
    ):
        raise RunnerError(
            "E402",
            f"the role {spec.role} cannot be given exceptions",
            why="Exceptions from the sandbox are for one software, granted by the organiser.",
            fix="remove the exceptions",
        )
    Sharing().check(replace(spec, join=None))
    if (spec.join is None) != (joined is None) or (joined is not None and spec.role not in JOINERS):
        raise ValueError(f"a {spec.role} that joins {joined!r}")
    if len(set(processors)) != (spec.limits.processors if spec.limits.pinned else 0):
        raise ValueError(f"pinned to the processors {processors!r}")
    body = _container(spec, uid, labels or {}, own_profile, cgroup_parent)
    if processors:
        body["HostConfig"]["CpusetCpus"] = ",".join(map(str, processors))
    if joined is not None:
        body["HostConfig"]["NetworkMode"] = f"container:{joined}"
        del body["Hostname"]  # it is the joined container's, and engines refuse another
    elif spec.network is not None:
        body["HostConfig"]["NetworkMode"] = spec.network
    return body


def exec_options(command: Sequence[str], uid: int, env: Mapping[str, str]) -> dict[str, Any]:
    """The options of one program in a room, for the engine's "create exec" call of the SDK.

    Everything else is the container's: control group, capabilities, no new privileges, seccomp profile, resource limits.
    """
    return {
        "cmd": list(command),
        "user": f"{uid}:{uid}",
        "environment": {"HOME": ROOM_TMP, "TMPDIR": ROOM_TMP, **env},
        "workdir": ROOM_TMP,
        "privileged": False,
        "tty": False,
        "stdin": False,
    }


def keeper_options(
    image: ImageRef,
    mounts: Iterable[Mount],
    *,
    labels: Mapping[str, str] | None = None,
    own_profile: bool = True,
) -> dict[str, Any]:
    """The options of our own container that keeps session volumes alive (or, unstarted, fills a data volume).

    The content of a memory volume is lost when its last container stops, so this one sleeps next to the
    software for as long as the session lasts.
    """
    limits = Limits(memory=64 * MIB, pids=16, tmp=MIB, shm=MIB, log=64 * 1024)
    host = walls(limits, own_profile, "")
    host |= {
        "ReadonlyRootfs": True,
        "Mounts": [_mount(m) for m in mounts],
        "Tmpfs": _covers(image.volumes, [m.target for m in mounts]),
    }
    return _body(image, f"{NOBODY}:{NOBODY}", ["sleep", "infinity"], {}, "/", labels or {}, host)


def evict_options(
    image: ImageRef,
    command: Sequence[str],
    probe: Mount,
    *,
    labels: Mapping[str, str] | None = None,
    own_profile: bool = True,
    user_namespaces: bool = False,
) -> dict[str, Any]:
    """The options of our own container that empties the caches of the engine's machine.

    It is the only one with a user that is root outside, because the kernel's switch belongs to root; and the only one
    that may write below ``/proc/sys``, in the one folder that has the switch. It has no capability, no network, none
    of a participant's files, and runs nothing but ``command``, from an image of ours.
    """
    # Counters of packets are moved on the container's own loopback, those of processes by threads and children.
    limits = Limits(memory=128 * MIB, pids=256, tmp=MIB, shm=MIB, log=64 * 1024, loopback=True)
    host = walls(limits, own_profile, "", disk=True)  # a page that is not on the disk yet cannot be given up
    host |= {
        "ReadonlyRootfs": True,
        "ReadonlyPaths": list(EVICT_READ_ONLY),
        "Mounts": [_mount(probe)],
        "Tmpfs": _covers(image.volumes, [probe.target]),
    }
    if user_namespaces:
        host["UsernsMode"] = "host"
    return _body(image, "0:0", list(command), {}, "/", labels or {}, host)


def tmpfs_volume_options(*, size: int, inodes: int, uid: int, mode: str = "0700") -> dict[str, str]:
    """The driver options of a memory volume with a limit on bytes and on files, owned by ``uid``."""
    return {
        "type": "tmpfs",
        "device": "tmpfs",
        "o": f"{tmpfs_size(size, inodes)},mode={mode},uid={uid},gid={uid},nosuid,nodev,noexec",
    }


def tmpfs_size(size: int, inodes: int) -> str:
    """The options of a memory file system that limit its bytes and files."""
    return f"size={-(-size // PAGE) * PAGE},nr_inodes={inodes}"


def _container(
    spec: ContainerSpec, uid: int, labels: Mapping[str, str], own_profile: bool, cgroup_parent: str
) -> dict[str, Any]:
    limits = spec.limits
    targets = [m.target for m in spec.mounts]
    noexec = ",exec" if limits.tmp_exec else ",noexec"  # the engine adds noexec when neither is said
    tmpfs = _covers(spec.image.volumes, targets, CLOSED if spec.stays else COVER)
    for path in spec.exceptions.writable:
        # Where the image has the folder, engines give the new file system that folder's mode: it needs an owner.
        owner = 0 if spec.exceptions.root else uid
        options = (
            f"rw,nosuid,nodev{noexec},size={spec.exceptions.writable_bytes},nr_inodes=16384"
            f",mode=1777,uid={owner},gid={owner}"
        )
        tmpfs[_granted(path, targets)] = options
    tmpfs |= {
        "/tmp": f"rw,nosuid,nodev{noexec},size={limits.tmp},nr_inodes={inodes(limits.tmp)},mode=1777",  # noqa: S108
        "/dev/shm": f"rw,nosuid,nodev,noexec,size={limits.shm},nr_inodes={inodes(limits.shm)},mode=1777",  # noqa: S108
    }
    if spec.stays:
        tmpfs |= {"/tmp": CLOSED, "/dev/shm": CLOSED}  # noqa: S108
    host = walls(limits, own_profile, cgroup_parent)
    largest = max(limits.output, limits.tmp, limits.shm)
    if spec.exceptions.writable:
        largest = max(largest, spec.exceptions.writable_bytes)
    host["Ulimits"].append({"Name": "fsize", "Soft": largest, "Hard": largest})
    host |= {"ReadonlyRootfs": True, "Mounts": [_mount(m) for m in spec.mounts], "Tmpfs": tmpfs}
    if limits.gpus:
        host["DeviceRequests"] = [{"Driver": "", "Count": limits.gpus, "Capabilities": [["gpu"]]}]
    user = "0:0" if spec.exceptions.root else f"{uid}:{uid}"
    env = {"HOME": "/tmp"}  # noqa: S108
    if not limits.gpus:
        # An image may ask a GPU runtime for devices through this variable.
        env["NVIDIA_VISIBLE_DEVICES"] = "void"
    env |= dict(spec.env)
    command = list(spec.command) if spec.command else None
    workdir = spec.workdir or spec.image.workdir or "/"
    return _body(spec.image, user, command, env, workdir, labels, host)


def inodes(size: int) -> int:
    """How many files fit into a memory file system of ``size`` bytes: each costs kernel memory too."""
    return min(max(size // (16 * 1024), 2048), 65_536)


def _body(
    image: ImageRef,
    user: str,
    command: list[str] | None,
    env: Mapping[str, str],
    workdir: str,
    labels: Mapping[str, str],
    host: dict[str, Any],
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "Image": image.id,
        "User": user,
        "Env": [f"{name}={value}" for name, value in sorted(env.items())],
        "WorkingDir": workdir,
        # The engine copies an image's labels, ours may be among them: they are emptied.
        "Labels": dict.fromkeys(image.labels, "") | dict(labels),
        "Hostname": "sandbox",
        "Healthcheck": {"Test": ["NONE"]},  # an image's health check is code that runs next to the job
        "StopSignal": "SIGTERM",
        "Tty": False,
        "OpenStdin": False,
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "HostConfig": host,
    }
    if command is not None:
        body |= {"Entrypoint": command, "Cmd": []}
    return body


def walls(limits: Limits, own_profile: bool, cgroup_parent: str, *, disk: bool = False) -> dict[str, Any]:
    """What every container gets, ours included."""
    security = ["no-new-privileges"]
    if own_profile:
        security.append("seccomp=" + seccomp_profile(limits.loopback, disk))
    return {
        "NetworkMode": "none",
        "IpcMode": "none",
        "CapDrop": ["ALL"],
        "SecurityOpt": security,
        "MaskedPaths": masked(limits.gpus),
        "ReadonlyPaths": list(READ_ONLY),
        "Privileged": False,
        "Init": True,
        "Memory": limits.memory,
        "MemorySwap": limits.memory,  # equal to memory: no swap
        "NanoCpus": round(limits.cpus * 1_000_000_000),
        "PidsLimit": limits.pids,
        "OomScoreAdj": 500,
        "Ulimits": [
            {"Name": "nofile", "Soft": limits.open_files, "Hard": limits.open_files},
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "memlock", "Soft": MIB, "Hard": MIB},
            {"Name": "msgqueue", "Soft": 0, "Hard": 0},
            {"Name": "sigpending", "Soft": SIGNALS, "Hard": SIGNALS},
        ],
        # Two files, because the engine drops the older one when the newer one is full: the last bytes stay.
        "LogConfig": {
            "Type": "local",
            "Config": {"max-size": f"{log_file_size(limits.log)}b", "max-file": "2", "compress": "false"},
        },
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "AutoRemove": False,  # it would race with reading the state and the logs
        "CgroupParent": cgroup_parent,
    }


def log_file_size(log: int) -> int:
    """The size in bytes at which the engine starts a new log file, for a limit of ``log`` bytes a stream."""
    return max(5 * log // 2, 64 * 1024)


def _mount(mount: Mount) -> dict[str, Any]:
    if mount.source is not None:
        return {
            "Type": "bind",
            "Source": mount.source,
            "Target": mount.target,
            "ReadOnly": mount.read_only,
        }
    return {
        "Type": "volume",
        "Source": mount.volume.name,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        "VolumeOptions": {"NoCopy": True},
    }


def _covers(volumes: Iterable[str], targets: Iterable[str], options: str = COVER) -> dict[str, str]:
    """Small memory file systems over the paths that an image declares as VOLUME."""
    taken = {str(PurePosixPath(t)) for t in targets}
    return {path: options for path in volumes if str(PurePosixPath(path)) not in taken}


def _granted(path: str, targets: Iterable[str]) -> str:
    pure = PurePosixPath(path)
    plain = path.startswith("/") and not path.startswith("//") and ".." not in pure.parts
    # The engine splits its options at these characters.
    plain = plain and len(pure.parts) > 1 and not any(c in path for c in ",:\0\n")
    apart = (PurePosixPath(other) for other in (*PROTECTED, *targets))
    if not plain or any(pure.is_relative_to(other) or other.is_relative_to(pure) for other in apart):
        raise RunnerError(
            "E402",
            f"the path {path[:200]!r} cannot be made writable",
            why=f"It must be absolute and apart from {', '.join(PROTECTED)} and what is mounted.",
            fix="name another path in the exception, or have the software write to /tmp",
        )
    return str(pure)
