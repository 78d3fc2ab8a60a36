"""How much memory and processor time a container used.

Exact where the engine runs on this machine and we may read its control groups: the container is put under a
group of its own, whose peak and total outlive it. Elsewhere the engine's once-a-second statistics are
sampled. Which of the two it was is part of the result.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from runner.engines.docker.client import Clients
from runner.engines.docker.owner import alive, me
from runner.model.errors import PlatformError

CGROUPS = Path("/sys/fs/cgroup")
PARENT = "proctor"
MOST_LOOKED_AT = 64  # processes of a container, and threads of each, whose waiting is looked at
SOCKETS = "memory.kmem.tcp.limit_in_bytes"  # of TCP and of UDP, whatever its name

Source = Literal["exact", "sampled", "none"]
Usage = tuple[int | None, float | None, Source]  # peak bytes, seconds, how the peak was read


class Meter:
    """Measures one container; this one measures nothing."""

    parent = ""  # the control group to create the container under; empty for the engine's default
    delay = 0.0  # seconds for which the last look may not know of what was used

    def created(self, container: str, sockets: int) -> None:
        """The container is there and does not run yet: its sockets may hold ``sockets`` bytes."""

    def started(self, container: str) -> None:
        """The container runs now."""

    def poll(self) -> None:
        """Called a few times a second while the container runs."""

    def processor_time(self) -> float | None:
        """Seconds of processor time used until the last look; None where that is not known (yet)."""
        return None

    def waited(self) -> float | None:
        """Seconds for which its threads together were ready to run and had no processor, until the last look; None where that is
        not known."""
        return None

    def finish(self) -> Usage:
        """The container has ended: what it used."""
        return None, None, "none"

    def oom_kills(self) -> int:
        """How many processes were killed for memory, where that can be read from outside."""
        return 0

    def users(self) -> set[int]:
        """The user ids, as this machine counts them, of all processes in the container; empty where they cannot be read."""
        return set()

    def close(self) -> None:
        """Remove what was made for measuring."""


def is_local(clients: Clients, info: dict[str, Any]) -> bool:
    """Whether the engine's control groups are this machine's, and ours to read and remove."""
    local = clients.address.startswith(("unix://", "http+unix://"))
    local = local and info.get("Name") == socket.gethostname() and os.geteuid() == 0
    return local and info.get("CgroupDriver") in ("cgroupfs", "systemd") and CGROUPS.is_dir()


def counts_sockets_apart(driver: str, version: str, root: Path = CGROUPS) -> bool:
    """Whether the memory of sockets has a limit of its own here, which is ours to set (version 1, cgroupfs)."""
    return version == "1" and driver == "cgroupfs" and (root / "memory" / SOCKETS).is_file()


def make(clients: Clients, info: dict[str, Any], local: bool) -> Meter:
    """The best meter for this engine."""
    if local:
        return GroupMeter(driver=str(info.get("CgroupDriver")), version=str(info.get("CgroupVersion", "1")))
    return StatsMeter(clients)


class GroupMeter(Meter):
    """Reads a control group made for one container. Works with both drivers and both versions."""

    def __init__(self, *, driver: str, version: str, root: Path = CGROUPS) -> None:
        # The name holds the owner's process id for clean_up(); no hyphen, which means nesting to systemd.
        token = f"{os.getpid()}x{secrets.token_hex(6)}"
        self.version = version
        self._driver = driver
        self._root = root
        if driver == "systemd":
            self.parent = f"{PARENT}-{token}.slice"
            self._relative = Path(f"{PARENT}.slice") / self.parent
        else:
            self.parent = f"/{PARENT}/{token}"
            self._relative = Path(PARENT) / token
        self._last: tuple[int | None, float | None] = (None, None)
        self._waits: dict[str, int] = {}  # nanoseconds, by thread
        self._ended = False

    def created(self, container: str, sockets: int) -> None:
        """Bound what sockets hold, which version 1 does not count as memory (version 2 does).

        The engine's runtime has no word for it, so the container's own group is made and bounded before the
        runtime uses it: only sockets that are made afterwards count. Raises E303 when that fails.
        """
        if not counts_sockets_apart(self._driver, self.version, self._root):
            return
        group = self._root / "memory" / self._relative / container
        try:
            group.mkdir(parents=True, exist_ok=True)
            (group / SOCKETS).write_text(str(sockets), encoding="ascii")
        except OSError as error:
            raise PlatformError(
                "the memory of a container's sockets cannot be bounded", why=str(error)
            ) from error

    def poll(self) -> None:
        """Keep the latest values: systemd removes the group with its last process."""
        memory, cpu = self._read()
        if memory is not None:
            self._last = (memory, cpu)
        for pid in self._processes()[:MOST_LOOKED_AT]:
            with suppress(OSError):
                for task in list(Path(f"/proc/{pid}/task").iterdir())[:MOST_LOOKED_AT]:
                    self._waits[task.name] = int((task / "schedstat").read_text(encoding="ascii").split()[1])

    def waited(self) -> float | None:
        """As of the last poll."""
        return sum(self._waits.values()) / 1e9 if self._waits else None

    def processor_time(self) -> float | None:
        """As of the last poll."""
        return self._last[1]

    def finish(self) -> Usage:
        """What the group used, exactly; the last sample where the group is gone already."""
        memory, cpu = self._read()
        if memory is not None:
            return memory, cpu, "exact"
        memory, cpu = self._last
        return memory, cpu, "sampled" if memory is not None else "none"

    def oom_kills(self) -> int:
        """Version 2 counts the kills of the groups below; version 1 has them in those groups, which go with the container."""
        if self.version != "2":
            groups = (self._root / "memory" / self._relative).glob("*/memory.oom_control")
            return sum(_field(group, "oom_kill") or 0 for group in groups)
        return _field(self._root / self._relative / "memory.events", "oom_kill") or 0

    def users(self) -> set[int]:
        """The owners of the processes in the groups below; empty when one of them is gone meanwhile or cannot be seen."""
        try:
            return {Path(f"/proc/{pid}").stat().st_uid for pid in self._processes()}
        except OSError:
            return set()

    def _processes(self) -> list[str]:
        """The processes in the groups below, as this machine counts them; none where they cannot be read."""
        root = self._root if self.version == "2" else self._root / "memory"
        with suppress(OSError):
            groups = (root / self._relative).glob("*/cgroup.procs")
            return [pid for group in groups for pid in group.read_text(encoding="ascii").split()]
        return []

    def close(self) -> None:
        """Remove the group."""
        _remove(root / self._relative for root in _roots(self.version, self._root))

    def _read(self) -> tuple[int | None, float | None]:
        if self.version == "2":
            base = self._root / self._relative
            usec = _field(base / "cpu.stat", "usage_usec")
            return _number(base / "memory.peak"), usec / 1e6 if usec is not None else None
        nanoseconds = _number(self._root / "cpuacct" / self._relative / "cpuacct.usage")
        memory = _number(self._root / "memory" / self._relative / "memory.max_usage_in_bytes")
        return memory, nanoseconds / 1e9 if nanoseconds is not None else None


class StatsMeter(Meter):
    """Samples the engine's statistics stream in a thread; misses what is shorter than a second."""

    delay = 2.0  # a sample a second, which takes the engine up to a second

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._peak: int | None = None
        self._cpu: float | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._deadline: Any = None

    def started(self, container: str) -> None:
        """Begin to sample the container, in a thread of its own."""
        self._thread = threading.Thread(target=self._sample, args=(container,), daemon=True)
        self._thread.start()

    def _sample(self, container: str) -> None:
        # A failure to measure is no failure of the run: the result then says that there is no measurement.
        with (
            suppress(PlatformError),
            self._clients.streaming("sampling", 30 * 24 * 3600.0) as (client, deadline),
        ):
            self._deadline = deadline
            for stats in client.stats(container, stream=True, decode=True):
                memory = stats.get("memory_stats") or {}
                peak = max(memory.get("max_usage") or 0, memory.get("usage") or 0)
                if peak:
                    self._peak = max(self._peak or 0, peak)
                    self._cpu = (stats["cpu_stats"]["cpu_usage"]["total_usage"] or 0) / 1e9
                if self._stop.is_set():
                    return

    def processor_time(self) -> float | None:
        """As of the last sample."""
        return self._cpu

    def finish(self) -> Usage:
        """The highest samples so far."""
        self.close()
        return self._peak, self._cpu, "sampled" if self._peak is not None else "none"

    def close(self) -> None:
        """Stop sampling."""
        self._stop.set()
        if self._thread is not None:
            if self._deadline is not None:
                self._deadline.cut()
            self._thread.join(timeout=5)
            self._thread = None


def clean_up(info: dict[str, Any]) -> None:
    """Remove groups that dead processes of this machine left behind."""
    host, boot, _, _ = me().split("|")
    for root in _roots(str(info.get("CgroupVersion", "1")), CGROUPS):
        for child in (root / PARENT).glob("*x*"):
            pid = child.name.partition("x")[0]
            if pid.isdigit() and not alive(f"{host}|{boot}|{pid}|"):
                _remove([child])


def _roots(version: str, root: Path) -> list[Path]:
    """Where control groups are: in one tree in version 2, in one for each controller in version 1."""
    return [root] if version == "2" else [d for d in root.iterdir() if d.is_dir() and not d.is_symlink()]


def _remove(directories: Iterable[Path]) -> None:
    for directory in directories:
        with suppress(OSError):  # absent, or (for a moment) still busy: clean_up() comes by again
            for inner in directory.iterdir():
                if inner.is_dir():
                    inner.rmdir()
            directory.rmdir()


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return None


def _field(path: Path, name: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in path.read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return None
