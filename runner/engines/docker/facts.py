"""What a Docker engine says of itself, and whether that is enough for the sandbox."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.engines import sandbox
from runner.engines.base import EngineInfo
from runner.engines.docker import meter, own_mounts
from runner.engines.docker.client import Clients
from runner.model.errors import PlatformError
from runner.model.limits import Limits

CARDS = Path("/proc/driver/nvidia/gpus")
LIMITS = {
    "MemoryLimit": "memory",
    "SwapLimit": "swap",
    "PidsLimit": "the number of processes",
    "CpuCfsQuota": "processor time",
}


class DockerFacts:
    """The engine at ``address``: its connections, and facts about it that are asked once.

    ``local`` False keeps it from reading this machine's control groups.
    """

    def __init__(self, address: str | None, local: bool | None = None) -> None:
        self.clients = Clients(address)
        self._local = local

    @cached_property
    def raw(self) -> dict[str, Any]:
        """The engine's answers to ``/info``, and to ``/version`` under the key ``_version``."""
        with self.clients.calling("asking for its abilities") as api:
            return dict(api.info()) | {"_version": dict(api.version())}

    @cached_property
    def local(self) -> bool:
        """Whether this machine's control groups, processes and mount points are the engine's."""
        return meter.is_local(self.clients, self.raw) if self._local is None else self._local

    @cached_property
    def mounts_memory(self) -> bool:
        """Whether this process mounts memory volumes, instead of a container that would have to be started for them."""
        return self.local and own_mounts.usable(self.clients.address)

    @property
    def own_profile(self) -> bool:
        """Whether containers get our seccomp profile (else the engine's default)."""
        return sandbox.own_seccomp(str(self.raw.get("Architecture", "")))

    def _security(self, word: str) -> bool:
        return any(f"name={word}" in option for option in self.raw.get("SecurityOptions") or [])

    @property
    def user_namespaces(self) -> bool:
        """Whether root in a container is nobody outside."""
        return self._security("userns")

    @property
    def uid_base(self) -> int:
        """What the engine adds to the user ids of containers (0 without user namespaces)."""
        found = re.search(r"/(\d+)\.\d+/?$", str(self.raw.get("DockerRootDir", "")))
        return int(found[1]) if found and self.user_namespaces else 0

    @property
    def identity(self) -> str:
        """A token (24 hexadecimal digits) of this engine, the same for all who reach it, by whatever address."""
        # Daemons of one machine may have one ID (it comes from a file in /etc), but never one folder for their data.
        said = [str(self.raw.get(key, "")) for key in ("ID", "Name", "DockerRootDir")]
        return hashlib.sha256("|".join(said).encode()).hexdigest()[:24]

    @cached_property
    def processors(self) -> tuple[str, tuple[int, ...]]:
        """The engine's machine, as locks on its processors name it, and the numbers of those that can be used."""
        if self.local:
            return "processor", tuple(sorted(os.sched_getaffinity(0)))
        return f"processor-{self.identity}", tuple(range(self.info().cpus))

    def make_meter(self) -> meter.Meter:
        """A meter for one container."""
        return meter.make(self.clients, self.raw, self.local)

    def info(self) -> EngineInfo:
        """Facts about the engine; E301 when it does not answer."""
        return self._info

    @cached_property
    def _info(self) -> EngineInfo:
        raw, version = self.raw, self.raw["_version"]
        components = [str(c.get("Name", "")) for c in version.get("Components") or []]
        machine = str(raw.get("Architecture", ""))
        driver, groups = str(raw.get("CgroupDriver", "")), str(raw.get("CgroupVersion", "1"))
        root = Path(str(raw.get("DockerRootDir") or "/nonexistent"))
        with self.clients.calling("asking for its networks") as api:
            networks = sorted(str(network["Name"]) for network in api.networks())
        return EngineInfo(
            name="podman" if _podman(components) else "docker",
            version=str(raw.get("ServerVersion", "")),
            api_version=str(version.get("ApiVersion", "")),
            cgroup_version=groups,
            cgroup_driver=driver,
            cpus=int(raw.get("NCPU") or 0),
            memory=int(raw.get("MemTotal") or 0),
            platform=f"{raw.get('OSType', 'linux')}/{ {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(machine, machine) }",
            storage_driver=str(raw.get("Driver", "")),
            rootless=self._security("rootless"),
            gpus=(gpus := _gpus(raw, self.local)),
            gpu_kinds=gpu_kinds() if gpus and self.local else (),
            missing=tuple(missing(raw, components)),
            swap=raw.get("SwapLimit") is True,
            exact_memory=self.local,
            filters_calls=self._security("seccomp"),
            seccomp=self.own_profile and self._security("seccomp"),
            user_namespaces=self.user_namespaces,
            counts_sockets=groups == "2" or (self.local and meter.counts_sockets_apart(driver, groups)),
            forwards=bool(raw.get("IPv4Forwarding", True)),
            networks=tuple(networks),
            clock=str(raw.get("SystemTime", "")),
            data_root=root if self.local and root.is_dir() else None,
        )

    def require(self, limits: Iterable[Limits] = ()) -> None:
        """Raise E302 when the engine ignores limits, E305 when its machine is too small for ``limits``."""
        info = self.info()
        if info.missing:
            raise PlatformError(
                "the container engine cannot enforce the limits",
                why=f"{info.name} {info.version} at {self.clients.address}: " + "; ".join(info.missing) + ".",
                fix="use Docker Engine as root (or with user namespaces), or a machine with cgroup v2; see runner doctor",
                code="E302",
            )
        for limit in limits:
            if limit.gpus > info.gpus:
                raise no_gpu()
            for have, want, what in (
                (info.memory, limit.memory, "bytes of memory"),
                (info.cpus, limit.cpus, "processors"),
            ):
                if want > have:
                    raise PlatformError(
                        "this machine cannot give what the task asks for",
                        why=f"The task asks for {want:g} {what}; the engine's machine has {have:g}.",
                        fix="use a larger machine, or lower the limits in task.yaml",
                        code="E305",
                    )


def missing(raw: Mapping[str, Any], components: Iterable[str]) -> Iterator[str]:
    """What the engine cannot enforce, in words: from its ``/info`` and the names of its components."""
    rootless = any("name=rootless" in option for option in raw.get("SecurityOptions") or [])
    if _podman(components):
        yield "Podman cannot limit the size of output volumes"
    if raw.get("CgroupDriver") == "none" or (rootless and str(raw.get("CgroupVersion", "1")) == "1"):
        yield "without control groups (rootless on cgroup v1) every limit is ignored"
    for key, what in LIMITS.items():
        # Some versions spell it CPUCfsQuota.
        if raw.get(key, raw.get("CPUCfsQuota") if key == "CpuCfsQuota" else None) is not True:
            yield f"it does not limit {what} ({key} is off)"
    if raw.get("OSType", "linux") != "linux":
        yield "it does not run Linux containers"


def no_gpu() -> PlatformError:
    """E305 for a task that wants GPUs."""
    return PlatformError(
        "this machine has not the GPUs that the task asks for",
        why="The container engine offers fewer GPUs than limits.gpus.",
        fix="use a machine with GPUs and the engine's GPU runtime, or set limits.gpus to 0",
        code="E305",
    )


def _podman(components: Iterable[str]) -> bool:
    return any("podman" in name.lower() for name in components)


def gpu_kinds(cards: Path = CARDS) -> tuple[str, ...]:
    """The kinds of GPUs that the driver of this machine knows, as words; none where it says nothing."""
    found = set()
    for card in cards.glob("*/information"):
        with suppress(OSError):
            if model := re.search(r"^Model:\s*(.+)$", card.read_text(errors="replace"), re.MULTILINE):
                found.add(re.sub(r"[^a-z0-9]+", "-", model[1].lower()).strip("-")[:40].strip("-"))
    return tuple(sorted(found))


def _gpus(raw: Mapping[str, Any], local: bool) -> int:
    """How many GPUs the engine can hand out: its runtimes say whether, the driver of this machine how many."""
    if "nvidia" not in (raw.get("Runtimes") or {}):
        return 0
    return len(list(CARDS.iterdir())) if local and CARDS.is_dir() else 1
