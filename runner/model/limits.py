"""Sizes, durations and limits as people write them in task.yaml."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

_SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip
_DURATIONS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400}
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([A-Za-z]{1,3})")


def _amount(text: str, units: Mapping[str, int]) -> float:
    match = _AMOUNT.fullmatch(text)
    if match is None or match[2] not in units:
        raise ValueError(f"not an amount with one of the units {', '.join(units)}")
    return float(match[1]) * units[match[2]]


def parse_size(value: int | str) -> int:
    """Bytes of ``64MiB``, ``2GB``, or a number of bytes. Raises ValueError for anything else and for nothing."""
    amount = value if isinstance(value, int) else _amount(value, _SIZES)
    size = int(amount) or math.ceil(amount)  # a part of a byte is a byte
    if size < 1:
        raise ValueError("must be at least 1 byte")
    return size


def parse_duration(value: float | str) -> float:
    """Seconds of ``90s``, ``10min``, ``1.5h``, or a number of seconds. Raises ValueError for anything else."""
    seconds = _amount(value, _DURATIONS) if isinstance(value, str) else float(value)
    if seconds <= 0:
        raise ValueError("must be more than 0 seconds")
    return seconds


LIMIT_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "memory": parse_size, "output": parse_size, "tmp": parse_size, "shm": parse_size, "log": parse_size,
    "wall_clock": parse_duration, "cpu_time": parse_duration, "cpus": float, "labels": tuple,
}  # fmt: skip


def parse_limits(data: Mapping[str, Any], default: Limits | None = None) -> Limits:
    """Limits from their schema-checked mapping; what is not given comes from ``default``. Raises ValueError."""
    parsed = {
        key: LIMIT_PARSERS[key](value) if key in LIMIT_PARSERS else value for key, value in data.items()
    }
    return replace(default or Limits(), **parsed)


# What of its limits a submission may choose, where the task gives a frame.
CHOOSABLE = ("memory", "cpus", "wall_clock", "cpu_time")


def framed(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """The limits of a task.yaml without their frames, and the most that a submission may ask for, by limit (bytes, seconds,
    processors). Raises ValueError."""
    plain = {key: value["default"] if isinstance(value, Mapping) else value for key, value in data.items()}
    most = {
        key: LIMIT_PARSERS[key](value["max"]) for key, value in data.items() if isinstance(value, Mapping)
    }
    return plain, most


def asked(data: Mapping[str, Any]) -> dict[str, float]:
    """What a submission.yaml asks for, in bytes, seconds and processors. Raises ValueError."""
    return {key: LIMIT_PARSERS[key](value) for key, value in data.items() if key in CHOOSABLE}


MIB = 1024 * 1024


GIB = 1024 * MIB


def in_units(count: int) -> str:
    """``256 KiB``, ``1 GiB``: bytes in the largest unit of which it is at least one, with at most two decimals."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if count >= unit:
            return f"{round(count / unit, 2):g} {name}"
    return f"{count:,} B"


@dataclass(frozen=True)
class Limits:
    """What one container may use. Bytes and seconds; the defaults are the strict ones of ``task.yaml``.

    ``cpu_time`` bounds what all its processes use of processors together; None: the wall clock alone bounds it. ``labels`` limit where it
    may be: on machines that are called all of them.
    """

    memory: int = 2 * GIB
    cpus: float = 1.0
    pids: int = 256
    wall_clock: float = 600.0
    cpu_time: float | None = None
    output: int = 64 * MIB
    output_files: int = 64
    tmp: int = 128 * MIB
    shm: int = 64 * MIB
    log: int = MIB
    open_files: int = 1024
    gpus: int = 0
    tmp_exec: bool = False
    loopback: bool = False  # False: no TCP or UDP sockets at all, not even inside the container
    pinned: bool = False  # on processors that no other pinned container has meanwhile
    labels: tuple[str, ...] = ()

    @property
    def processors(self) -> int:
        """How many processors a pinned container has: as many as it may use, whole ones."""
        return math.ceil(self.cpus)


def amount(key: str, value: float) -> str:
    """A limit of :data:`CHOOSABLE` in words: ``16 GiB of memory``."""
    if key == "memory":
        return f"{in_units(int(value))} of memory"
    return {
        "cpus": f"{value:g} processor{'' if value == 1 else 's'}",
        "wall_clock": f"{value:g} s of time",
        "cpu_time": f"{value:g} s of processor time",
    }[key]


def amounts(wanted: Mapping[str, float]) -> str:
    """Limits in words, in one line and always the same order."""
    return ", ".join(amount(key, wanted[key]) for key in CHOOSABLE if key in wanted)


def inner_amounts(limits: Limits) -> list[str]:
    """Return the limits that a system meets inside its container, in words: ``256 threads``."""
    return [
        f"{limits.pids:,} threads",
        f"{in_units(limits.tmp)} {'' if limits.tmp_exec else 'noexec '}/tmp",  # noqa: S108 (a path of the container)
        f"{in_units(limits.shm)} /dev/shm",
        "no network" if limits.loopback else "no network/loopback",
    ]


def beyond(
    limits: Limits, most: Mapping[str, float], wanted: Mapping[str, float]
) -> list[tuple[str, str, str]]:
    """What of the ``wanted`` limits is not in a task's frame, from its ``limits`` to the ``most``: each with what is wrong and
    what to do."""
    found = []
    for key, value in wanted.items():
        given = getattr(limits, key)
        if key not in most:
            fixed = "without a limit" if given is None else amount(key, given)
            found.append((key, f"{key} is the same for everybody: {fixed}", f"take {key} out"))
        elif not given <= value <= most[key]:
            frame = f"{amount(key, given)} to {amount(key, most[key])}"
            what = f"{amount(key, value)} is not in the frame, {frame}"
            found.append((key, what, "ask for an amount in the frame"))
    return found


def chosen(limits: Limits, most: Mapping[str, float], wanted: Mapping[str, float]) -> Limits:
    """The limits of a submission that asks for more than ``limits``: never above the frame, never below what all have."""
    own = {
        key: max(getattr(limits, key), min(value, most[key])) for key, value in wanted.items() if key in most
    }
    return replace(limits, **own)  # type: ignore[arg-type]


# What no container can have, or no task means: the least and the most of each limit. The least memory and processor time are
# those of Docker Engine.
_SENSIBLE: Mapping[str, tuple[float, float]] = {
    "memory": (6 * MIB, 64 * 1024 * GIB),
    "cpus": (0.01, 1024),
    "pids": (2, 1_000_000),
    "wall_clock": (1, 60 * 86400),
    "cpu_time": (1, 1024 * 60 * 86400),
    "output": (1024, 16 * 1024 * GIB),
    "tmp": (1024, 1024 * GIB),
    "shm": (1024, 1024 * GIB),
    "log": (1024, GIB),
}


def absurd(limits: Limits) -> list[tuple[str, str, str]]:
    """Limits that no software can work under, or that limit nothing: each with what is wrong and what to do."""
    found = []
    for key, (least, most) in _SENSIBLE.items():
        value = getattr(limits, key)
        if value is None:
            continue
        if value < least:
            found.append(
                (key, f"with a limit of {value:g} no software can work", f"write at least {least:g}")
            )
        elif value > most:
            found.append((key, f"{value:g} is no limit", f"write at most {most:g}"))
    if limits.cpu_time is not None and limits.cpu_time > (most := limits.wall_clock * limits.cpus):
        what = f"with {limits.cpus:g} processors nobody uses more than {most:g} s in wall_clock, so it limits nothing"
        found.append(("cpu_time", what, "give more wall_clock, or less cpu_time"))
    for key in ("output", "tmp", "shm"):
        value = getattr(limits, key)
        if limits.memory < value <= _SENSIBLE[key][1]:
            what = f"{value:,} bytes count as memory, of which there are {limits.memory:,}"
            found.append((key, what, "give more memory, or less of this"))
    return found


def as_record(limits: Limits) -> dict[str, Any]:
    """Limits as files keep them: without a limit that is not set, so that what was written before there was one stays valid; and without
    labels, since what comes of a run does not depend on where it was."""
    found = {key: value for key, value in asdict(limits).items() if value is not None and key != "labels"}
    return found if limits.pinned else {key: value for key, value in found.items() if key != "pinned"}


@dataclass(frozen=True)
class Exceptions:
    """What the organiser granted to one software beyond the strict sandbox; named on the run.

    ``writable`` are extra tmpfs paths (with ``writable_bytes`` each); ``root`` runs as uid 0, which is
    allowed only where the engine maps it away (user namespaces).
    """

    writable: tuple[str, ...] = ()
    writable_bytes: int = 64 * MIB
    root: bool = False
