"""The seam between what is to be done and who does it.

The pool decides what begins when and where, and commits what comes back. An executor does single steps at its hosts and
touches no database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from runner.engines.base import Cancelled, Engine, EngineInfo
from runner.execution.plan import Planned
from runner.model.errors import PlatformError, RunnerError, disk_error, is_disk_error, kind_and_place
from runner.model.limits import Limits, in_units
from runner.model.task import Visibility
from runner.records.archive import Attempt, Evaluation

HERE = "this machine"
AT_ONCE = 8 * 10**6  # bytes of results and scores, about, that are committed at once


@dataclass(eq=False)
class Host:
    """A machine with an engine: what it has left (bytes of memory, processors, steps at once, GPUs), and what it is at now.

    ``holds`` are the digests of images and data that steps there needed, which it may yet lack, ``images`` those that it said it has when
    it came, ``avoid`` the runs that it failed to do, with why, ``no_room`` the digests of what it has no room for, and ``full`` the runs that
    it is not ordered again because of that; ``label`` is what people call it
    (``name`` is unique). ``role`` is what hosts of its cluster are for (empty: it is the coordinator's machine), ``hidden`` whether it is
    given work on hidden data, ``labels`` are words about it that a task may ask for, ``granted`` whether it has no credentials of stores and works by
    what it is granted.
    """

    name: str
    memory: float
    cpus: float
    slots: int
    gpus: int = 0
    active: Counter[Visibility] = field(default_factory=Counter)
    holds: set[str] = field(default_factory=set)
    avoid: dict[str, str] = field(default_factory=dict)
    no_room: set[str] = field(default_factory=set)
    full: set[str] = field(default_factory=set)
    label: str = ""
    role: str = ""
    hidden: bool = True
    labels: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    granted: bool = False

    @classmethod
    def of(cls, info: EngineInfo, jobs: int | None = None, name: str = HERE) -> Host:
        """The machine of an engine: a tenth of its memory is left to it. At most ``jobs`` steps at once, or as many as processors."""
        slots = max(1, jobs or int(info.cpus) or 1)
        labels = frozenset(info.gpu_kinds)
        return cls(name, info.memory * 0.9, float(info.cpus), slots, info.gpus, labels=labels)

    def fits(self, limits: Limits) -> bool:
        """Whether a step with these limits can start now."""
        large = limits.memory <= self.memory and limits.cpus <= self.cpus + 1e-9 and limits.gpus <= self.gpus
        return self.slots > 0 and large and self.labels.issuperset(limits.labels)

    def lacks(self, limits: Limits) -> str:
        """What of a demand it does not have, in words, where it is doing nothing; empty where it has all of it."""
        found = [f"is not labelled {one}" for one in limits.labels if one not in self.labels]
        if limits.gpus > self.gpus:
            found.append(f"has {self.gpus} of {limits.gpus} GPUs")
        if limits.cpus > self.cpus + 1e-9:
            found.append(f"has {self.cpus:g} of {limits.cpus:g} processors")
        if limits.memory > self.memory:
            found.append(f"gives {in_units(int(self.memory))} of {in_units(limits.memory)} of memory")
        return ", ".join(found)

    def not_done(self, run: str) -> str:
        """That it did not do a run, and why where that is known."""
        if run in self.full:
            return "had no room for it on its disk"
        return f"did not do it ({self.avoid[run]})" if run in self.avoid else "did not do it"

    def take(self, limits: Limits, visibility: Visibility, sign: int = 1) -> None:
        """Reserve what a step may use; with ``sign`` -1 give it back."""
        self.memory -= sign * limits.memory
        self.cpus -= sign * limits.cpus
        self.gpus -= sign * limits.gpus
        self.slots -= sign
        self.active[visibility] += sign

    def turn(self) -> Visibility | None:
        """Of which visibility the data are that it works on now; None while it does nothing."""
        return next((visibility for visibility, number in self.active.items() if number), None)


class Lost(Exception):
    """A step went down with its host: nothing came of it, nobody is to blame, and it can begin again elsewhere."""


class Unheard(Lost):
    """Nothing is heard of a step, or of any other, since nobody is there who brings together hosts and coordinator: no host is to blame."""


class NoRoom(Lost):
    """A host has no room for what a step needs, and is not ordered that run again: others are, however many have none."""


class NotTaken(PlatformError):
    """What came of a step is not what was ordered: it was done, and nothing of it can be kept."""


Result = Attempt | Evaluation | BaseException


class Executor(Protocol):
    """Does steps. It is a context; leaving it ends whatever still runs."""

    fixed: bool  # whether hosts neither come nor go
    engine: Engine  # of this machine

    def __enter__(self) -> Self:
        """Make ready."""

    def __exit__(self, *_: object) -> None:
        """Wait until nothing of it runs any more. Who leaves because of an error has asked everything to stop before."""

    def hosts(self) -> Sequence[Host]:
        """The hosts that take work now, the same objects as long as they are there."""

    def takes(self, host: Host, planned: Planned) -> bool:
        """Whether a step may be done at a host, were it free."""

    def expects(self, waiting: Sequence[Planned]) -> bool:
        """Whether it is worth waiting for a host that takes some of the steps that wait, while nothing is being done."""

    def begin(self, planned: Planned, host: Host) -> None:
        """Begin a step at a host; what becomes of it is given out by :meth:`ended`."""

    def ended(self, timeout: float | None) -> tuple[Planned, Result] | None:
        """The next step that ended, and what came of it; None where none did within ``timeout`` seconds (None: wait)."""


def not_kept(result: Result) -> RunnerError | None:
    """Why nothing can be kept of a step that was done, or that a defect of ours broke off; None for any other result.

    What the machine lacks is no defect: memory, files, threads.
    """
    if isinstance(result, NotTaken):
        return result
    known = RunnerError | Lost | Cancelled | OSError | MemoryError
    if not isinstance(result, Exception) or isinstance(result, known) or "new thread" in str(result):
        return None
    return RunnerError("E308", "a defect of runner itself", why=kind_and_place(result), fix="report it")


def machine_error(result: Result, place: object) -> RunnerError | None:
    """Return the error for a step that failed because this machine lacks disk space, files, memory or threads; None for others.

    ``place`` is the folder whose disk is meant if the failure does not name a file.
    """
    if isinstance(result, OSError) and is_disk_error(result):
        return disk_error("the files of the run cannot be kept", result, place)
    if isinstance(result, MemoryError) or (isinstance(result, RuntimeError) and "new thread" in str(result)):
        what, why = "this machine lacks memory or threads", f"{type(result).__name__}: {result}."
        return PlatformError(
            what, why=why, fix="start it again with fewer steps at once (--jobs)", code="E305"
        )
    return None


def _size(result: Result) -> int:
    """The bytes of an evaluation's results and scores. Raises E307 where its list of files is none."""
    files = result.manifest() if isinstance(result, Evaluation) else {}
    return sum(files[name]["size"] for name in ("result.json", "scores.jsonl") if name in files)


def in_parts(ended: Sequence[tuple[Planned, Result]]) -> Iterator[list[tuple[Planned, Result]]]:
    """What came of steps in parts with about :data:`AT_ONCE` bytes of results and scores: nobody else writes to the store while one is
    committed, and its results are in memory. What cannot be read has the error in its place."""
    part, size = list[tuple[Planned, Result]](), 0
    for planned, result in ended:
        try:
            size += _size(result)
            part.append((planned, result))
        except RunnerError as error:
            part.append((planned, error))
        if size >= AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part
