"""How an attempt ended, and whose fault it was: one table, decided in order, first match wins (design.md 7)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from runner.model.container import Exit
from runner.model.limits import Limits

Blame = Literal["participant", "platform", "none"]


@dataclass(frozen=True)
class VerdictKind:
    """A row of the verdict table: who is to blame, one sentence, and what to do next."""

    blame: Blame
    says: str
    next: str


TABLE: dict[str, VerdictKind] = {
    "platform-error": VerdictKind(
        "platform",
        "Our side failed; the software is not to blame.",
        "Nothing to do: it is run again, and then held for the organiser.",
    ),
    "cancelled": VerdictKind(
        "none", "A person stopped the run.", "Start it again with runner evaluate --run RUN --force."
    ),
    "killed-outside": VerdictKind(
        "platform",
        "The software was ended from outside: neither by us, nor by its own limits, nor by itself.",
        "Nothing to do: the organiser looks at what happened on the machine. It costs nothing.",
    ),
    "disputed": VerdictKind(
        "none",
        "A server of ours that the software can reach failed while it ran; either side may have caused it.",
        "Nothing to do: the organiser looks at it. It costs nothing, and is not run again by itself.",
    ),
    "time-limit": VerdictKind(
        "participant",
        "The software was still running at the wall-clock limit and was killed.",
        "Make it faster, or ask the organiser for a longer limit.",
    ),
    "memory-limit": VerdictKind(
        "participant",
        "The software was killed because it used more memory than the limit.",
        "Use less memory; /tmp and /dev/shm count as memory too.",
    ),
    "output-limit": VerdictKind(
        "participant",
        "The software failed, and its output directory was full.",
        "Write less to the output directory; keep caches in /tmp.",
    ),
    "unhealthy": VerdictKind(
        "participant", "The server never became ready.", "Listen on the task's port within the ready time."
    ),
    "signal": VerdictKind(
        "participant",
        "The software was killed by a signal that we did not send.",
        "Look for a crash (segmentation fault, abort) or a memory kill in a child process.",
    ),
    "run-error": VerdictKind(
        "participant",
        "The software ended with an error.",
        "Read the last log lines, and try it locally with runner try.",
    ),
    "no-output": VerdictKind(
        "participant",
        "The software ended well but left no run file.",
        "Write the run file into $outputDir under the name the task asks for.",
    ),
    "ok": VerdictKind("none", "The software ended well and left a run file.", ""),
}


@dataclass(frozen=True)
class Verdict:
    """How one attempt ended: the table's row by name, the facts in one line, and warnings beside it."""

    name: str
    detail: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def blame(self) -> Blame:
        return TABLE[self.name].blame

    @property
    def says(self) -> str:
        return TABLE[self.name].says

    @property
    def next(self) -> str:
        return TABLE[self.name].next

    @property
    def ok(self) -> bool:
        return self.name == "ok"


@dataclass(frozen=True)
class Facts:
    """What the verdict is decided from. ``platform`` is the text of a failure of ours, if there was one.

    Of servers: ``disputed`` says how a server of ours that the software can reach failed, ``unhealthy`` why the
    software was never ready. After it was ``ready``, how its container ended decides nothing any more: what it did
    not answer is a defect of those turns. ``notes`` become warnings.
    """

    exit: Exit | None
    output_present: bool
    output_full: bool
    refused: tuple[tuple[str, str], ...] = ()
    platform: str | None = None
    unhealthy: str | None = None
    disputed: str | None = None
    ready: bool = False
    notes: tuple[str, ...] = ()


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def decide(facts: Facts, limits: Limits, expected: str) -> Verdict:
    """The verdict of an attempt: design.md 7's table in its order, first match wins.

    ``expected`` is the name of the run file the task asks for. Everything that did not decide but is worth
    knowing (a memory-killed child, a full volume, a cut log, refused files) becomes a warning.
    """
    exit_ = facts.exit
    if facts.platform is not None or exit_ is None:
        return Verdict("platform-error", facts.platform or "the container never ran")
    warnings = list(_warnings(facts, exit_))
    if exit_.killed == "cancel":
        return Verdict("cancelled", "stopped by a person", tuple(warnings))
    if exit_.outside is not None:
        return Verdict("killed-outside", exit_.outside, tuple(warnings))
    if facts.disputed is not None:
        return Verdict("disputed", facts.disputed, tuple(warnings))
    if exit_.killed == "time":
        return Verdict("time-limit", f"killed after {limits.wall_clock:g} s", tuple(warnings))
    if exit_.start_error is not None:
        return Verdict("run-error", f"could not be started: {exit_.start_error}", tuple(warnings))
    if not (facts.ready or exit_.killed == "stop") and exit_.code != 0:
        code = exit_.code if exit_.code is not None else -1
        if exit_.oom_killed:
            return Verdict("memory-limit", f"exit code {code}; limit {_mib(limits.memory)}", tuple(warnings))
        if facts.output_full:
            return Verdict(
                "output-limit", f"exit code {code}; the output directory was full", tuple(warnings)
            )
        if code > 128:
            hint = " (SIGKILL that we did not send: often memory)" if code == 137 else ""
            return Verdict("signal", f"killed by signal {code - 128}{hint}", tuple(warnings))
        return Verdict("run-error", f"exit code {code}", tuple(warnings))
    if facts.unhealthy:
        return Verdict("unhealthy", facts.unhealthy, tuple(warnings))
    if not facts.output_present:
        return Verdict("no-output", _absent(facts, expected), tuple(warnings))
    return Verdict("ok", "", tuple(warnings))


def _warnings(facts: Facts, exit_: Exit) -> list[str]:
    found = list(facts.notes)
    if facts.ready and exit_.killed is None:
        how = " (memory)" if exit_.oom_killed else ""
        found.append(f"the server ended by itself during the run, with exit code {exit_.code}{how}")
    elif exit_.oom_killed and (exit_.code == 0 or exit_.killed == "stop"):
        found.append("a child process was killed for memory while the main process went on")
    if facts.output_full and exit_.code == 0:
        found.append("the output directory was full at the end: the run file may be cut off")
    if exit_.log_truncated:
        found.append("the log was longer than its limit and was cut")
    found += [f"not taken from the output directory: {name} ({why})" for name, why in facts.refused]
    return found


def _absent(facts: Facts, expected: str) -> str:
    for name, why in facts.refused:
        if re.sub(r"\.gz$", "", name) == re.sub(r"\.gz$", "", expected):
            return f"{name} is not usable: {why}"
    return f"{expected} (or {expected}.gz) is not in the output directory"
