"""Who ended a container that we did not end: the facts that nobody inside the container can make up.

Three of them, each read from outside after the end:

- the engine's own events: ``kill`` and ``pause`` are recorded for calls to the engine's API alone;
- how the container's first process (our init) ended: the kernel drops a SIGKILL that is sent to it from inside, so
  one that killed it came from the machine, or from the kernel at the memory limit (or at a limit on processor time,
  which our filter of system calls lets nobody set);
- the kernel's log of memory kills, which names the control group of the victim and whether the whole machine was
  out of memory or only that group.

And how much of the machine's processor time was free while it ran: who runs into the wall clock on a machine that others keep
busy cannot be told from who was too slow.

The last two of the three need an engine on this machine, the second also Linux 6.15. What cannot be distinguished: a SIGKILL from the
machine to a *child* of the init, which is the software itself, looks exactly like one that it sent to itself.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

KMSG = Path("/dev/kmsg")
STAT = Path("/proc/stat")
_TICKS = 8  # of a processor: user, nice, system, idle, iowait, irq, softirq, steal (what follows is in these already)
SIGKILL = 9
PAUSED = "somebody had the container engine pause it"
_ENDING = ("1", "2", "3", "9", "15")  # signals that are sent to end something; others may be meant otherwise
# Linux 6.15: ioctl PIDFD_GET_INFO on a struct pidfd_info of 64 bytes, and the bit that asks for the exit code.
_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_EXIT = 1 << 3
_CODE_AT = 60  # bytes before exit_code in the struct
_NO_CPU_LIMIT = re.compile(r"^Max cpu time +unlimited +unlimited", re.MULTILINE)
_RECORD = 8192  # bytes; one record of the kernel's log is shorter
_OF_THE_MACHINE = re.compile(rb";oom-kill:constraint=[^,]*,[^;\n]*?,global_oom,task_memcg=(/[^,\n]*),")


class Witness:
    """Watches the first process of one container of this machine. Never raises: what it cannot see it leaves open."""

    def __init__(self, kmsg: Path = KMSG, *, processors: Collection[int] = (), stat: Path = STAT) -> None:
        """``processors`` are those that the container is pinned to; none: it may run on all."""
        self._stat, self._processors = stat, processors
        self._before = self._ticks()
        self._process: int | None = None
        self._pid = 0
        self._tampered = False
        self._log: int | None = None
        with suppress(OSError):
            self._log = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._log, 0, os.SEEK_END)  # only what is said from now on

    def started(self, pid: int, container: str) -> None:
        """The container runs; ``pid`` is its first process as the engine's machine counts."""
        with suppress(OSError, AttributeError):
            if pid <= 0:
                return
            process = os.pidfd_open(pid)
            # An engine with a process table of its own names other processes than we see.
            if container not in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace"):
                os.close(process)
                return
            self._process, self._pid = process, pid

    def poll(self) -> None:
        """Called a few times a second: where our filter of system calls is not in force, a limit on processor time can
        be set from inside, and kills in nobody's name."""
        if self._process is not None and not self._tampered:
            with suppress(OSError):
                limits = Path(f"/proc/{self._pid}/limits").read_text(encoding="ascii")
                self._tampered = _NO_CPU_LIMIT.search(limits) is None

    def first_process_killed(self) -> bool:
        """Whether the first process was ended by SIGKILL; False also where that cannot be read."""
        if self._process is None or self._tampered:
            return False
        answer = bytearray(64)
        struct.pack_into("=Q", answer, 0, _EXIT)
        with suppress(OSError):
            fcntl.ioctl(self._process, _GET_INFO, answer)
            (mask,) = struct.unpack_from("=Q", answer, 0)
            (status,) = struct.unpack_from("=i", answer, _CODE_AT)
            return bool(mask & _EXIT) and os.WIFSIGNALED(status) and os.WTERMSIG(status) == SIGKILL
        return False

    def machine_out_of_memory(self, container: str) -> bool:
        """Whether the machine as a whole was out of memory and its kernel chose a process of ``container``."""
        if self._log is None:
            return False
        wanted = container.encode()
        while True:
            try:
                record = os.read(self._log, _RECORD)
            except BrokenPipeError:  # records were overwritten before they were read: go on with the oldest
                continue
            except OSError:
                return False
            if not record:
                return False
            found = _OF_THE_MACHINE.search(record)
            if found is not None and wanted in found[1]:
                return True

    def idle(self) -> float | None:
        """The share of the time of the container's processors that nobody has used since this watch began; None where that
        cannot be read. What the machine's own host took away counts as used."""
        now = self._ticks()
        if self._before is None or now is None or now[1] <= self._before[1]:
            return None
        return min(1.0, max(0.0, (now[0] - self._before[0]) / (now[1] - self._before[1])))

    def _ticks(self) -> tuple[int, int] | None:
        """Ticks without work, and all of them, since the machine was started."""
        names = {f"cpu{number}" for number in self._processors} or {"cpu"}
        free = every = 0
        with suppress(OSError, ValueError):
            for line in self._stat.read_text(encoding="ascii").splitlines():
                name, *words = line.split()
                if name in names:
                    ticks = [int(word) for word in words[:_TICKS]]
                    free, every = free + sum(ticks[3:5]), every + sum(ticks)
        return (free, every) if every else None

    def close(self) -> None:
        """Give up the watch."""
        for descriptor in (self._process, self._log):
            if descriptor is not None:
                os.close(descriptor)
        self._process = self._log = None


def recorded_event(
    api: Any, container: str, action: str, since: str, until: str, linger: float
) -> str | None:
    """What the engine's API was asked to do to a container (``kill`` or ``pause``); None when nothing is recorded.

    Only for containers that we did not do the same to. The engine has one lock for a container: it records what it was
    asked to do before it records the end, so nothing is waited for behind that (``die``). Where the end is not recorded, ``linger``
    is how many seconds after ``until`` are looked at. Engines remember their last few hundred events, so ask at once.
    """
    for event in api.events(
        since=_moment(since),
        until=_moment(until, linger),
        filters={"type": ["container"], "container": [container], "event": [action, "die"]},
        decode=True,
    ):
        if event.get("Action") == "die":
            return None
        signal = str(((event.get("Actor") or {}).get("Attributes") or {}).get("signal", ""))
        if event.get("Action") == "kill" and signal in _ENDING:
            return f"somebody had the container engine send it signal {signal}"
        if event.get("Action") == "pause":
            return PAUSED
    return None


def _moment(stamp: str, later: float = 0.0) -> str:
    """A time stamp of the engine as seconds and nanoseconds, the form that its lists of events take."""
    from datetime import datetime

    found = re.fullmatch(r"(.{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", stamp)
    if found is None:
        return "0"
    whole = int(datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00")).timestamp())
    nanoseconds = int((found[2] or "0").ljust(9, "0")) + round(later * 1e9)
    return f"{whole + nanoseconds // 10**9}.{nanoseconds % 10**9:09d}"
