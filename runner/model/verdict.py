"""How an attempt ended, and whose fault it was: one table, decided in order, first match wins (design.md 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runner.model.container import Exit
from runner.model.limits import Limits
from schemas.details import Detail
from schemas.details import read as read_detail

# On a machine that has less than FREE of its processors' time free, who ran into the wall clock with less than PART of the
# processor time that it may use, and was ready to use more for the rest of the time, is not blamed for it.
FREE, PART = 0.05, 0.8
LOST = 2.0  # seconds at least: to wait a moment until it begins is no reason

Blame = Literal["participant", "platform", "none"]


@dataclass(frozen=True)
class VerdictKind:
    """A row of the verdict table: who is to blame, one sentence, and what to do next.

    ``with_log`` is what to do next for those who may read the software's log, where that is something else; ``organiser`` for organisers.
    """

    blame: Blame
    says: str
    next: str
    with_log: str = ""
    organiser: str = ""


TABLE: dict[str, VerdictKind] = {
    "platform-error": VerdictKind(
        "platform",
        "Our side failed; the software is not to blame.",
        "Nothing to do: registered runs are tried again, and then held for the organiser.",
    ),
    "cancelled": VerdictKind(
        "none",
        "A person stopped the run.",
        "Nothing to do: the organiser can have it executed again. It costs nothing.",
        organiser="Start it again with runner evaluate --run RUN --force.",
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
        "Make it faster, or ask the organiser for a longer limit; runner task show has the limits.",
    ),
    "cpu-limit": VerdictKind(
        "participant",
        "The software used more processor time than the limit.",
        "Make it do less; how busy the machine was does not count.",
    ),
    "memory-limit": VerdictKind(
        "participant",
        "The software was killed because it used more memory than the limit.",
        "Use less memory; /tmp and /dev/shm count as memory too.",
    ),
    "output-limit": VerdictKind(
        "participant",
        "The software failed, and its output directory was full.",
        "Write less to the output directory, and caches to /tmp; check that the loop that writes the run ends.",
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
        "Try it on public data with runner try, which shows its log.",
        "Read the last log lines, correct it, and see with runner try that it ends well.",
    ),
    "no-output": VerdictKind(
        "participant",
        "The software ended well but left no run file.",
        "Write the run file into $outputDir under the name the task asks for.",
    ),
    "ok": VerdictKind("none", "The software ended well and left a run file.", ""),
}

_NOT_STARTED = (
    "There is no log: correct what is started, as the reason says, and see with runner try that it starts."
)


def next_with_log(verdict: str, detail: Detail | None) -> str:
    """What to do next for those who may read the log, where that is something else: what was never started has none."""
    if detail is not None and detail.kind == "not-started":
        return _NOT_STARTED
    return TABLE[verdict].with_log


@dataclass(frozen=True)
class Verdict:
    """How one attempt ended: the table's row by name, the fact that decided, and warnings."""

    name: str
    detail: Detail | None = None
    warnings: tuple[Detail, ...] = ()

    @property
    def blame(self) -> Blame:
        """Whose fault it was."""
        return TABLE[self.name].blame

    def as_dict(self) -> dict[str, Any]:
        """As ``run.json`` has it: the details, and their words for readers of the file."""
        return {
            "name": self.name,
            "blame": self.blame,
            "detail": "" if self.detail is None else str(self.detail),
            "warnings": [str(warning) for warning in self.warnings],
            "details": {
                "reason": None if self.detail is None else self.detail.as_dict(),
                "warnings": [warning.as_dict() for warning in self.warnings],
            },
        }


def read_verdict(stored: Mapping[str, Any]) -> Verdict:
    """The verdict that ``run.json`` has; the details of one from before there were kinds are texts."""
    text, lines = stored.get("detail") or "", stored.get("warnings") or []
    if (details := stored.get("details")) is None:
        details = {"reason": None, "warnings": [None] * len(lines)}
    return Verdict(
        stored["name"],
        read_detail(details["reason"], text) if text else None,
        tuple(map(read_detail, details["warnings"], lines)),
    )


@dataclass(frozen=True)
class Facts:
    """What the verdict is decided from. ``platform`` is a failure of ours, if there was one.

    Of servers: ``disputed`` says how a server of ours that the software can reach failed, ``unhealthy`` why the
    software was never ready. After it was ``ready``, how its container ended decides nothing any more: what it did
    not answer is a defect of those turns. ``notes`` become warnings.
    """

    exit: Exit | None
    output_present: bool
    output_full: bool
    refused: tuple[tuple[str, str], ...] = ()
    platform: Detail | None = None
    unhealthy: Detail | None = None
    disputed: Detail | None = None
    ready: bool = False
    notes: tuple[Detail, ...] = ()


def decide(facts: Facts, limits: Limits, expected: str) -> Verdict:
    """The verdict of an attempt: design.md 7's table in its order, first match wins.

    ``expected`` is the name of the run file the task asks for. Everything that did not decide but is worth
    knowing (a memory-killed child, a full volume, a cut log, refused files) becomes a warning.
    """
    if facts.platform is not None or facts.exit is None:
        return Verdict("platform-error", facts.platform or Detail("never-ran"))
    name, detail = _decided(facts, facts.exit, limits, expected)
    return Verdict(name, detail, tuple(_warnings(facts, facts.exit, limits)))


def _decided(facts: Facts, exit_: Exit, limits: Limits, expected: str) -> tuple[str, Detail | None]:
    code = -1 if exit_.code is None else exit_.code
    if exit_.killed == "cancel":
        return "cancelled", Detail("stopped")
    if exit_.outside is not None:
        return "killed-outside", Detail("ended-outside", how=exit_.outside)
    if facts.disputed is not None:
        return "disputed", facts.disputed
    if exit_.killed == "time":
        if busy := _busy(exit_, limits):
            return "platform-error", busy
        return "time-limit", Detail("wall-clock", limit=limits.wall_clock)
    if over := _over(exit_, limits):
        return "cpu-limit", over
    if exit_.start_error is not None:
        return "run-error", Detail("not-started", error=exit_.start_error)
    if not (facts.ready or exit_.killed == "stop") and code != 0:
        return _failed(code, exit_.oom_killed, facts.output_full, limits)
    if facts.unhealthy is not None:
        return "unhealthy", facts.unhealthy
    return ("ok", None) if facts.output_present else ("no-output", _absent(facts, expected))


def _busy(exit_: Exit, limits: Limits) -> Detail | None:
    """That its processors had no free time while it ran, and it waited for them and did not get what it may use; None otherwise.

    What runs together here never may use more than there is. So where nothing was free and it had clearly less than its part,
    something else took the time, and whether it was too slow cannot be said. Who only sleeps waits for no processor.
    """
    used, most = exit_.resources.cpu_seconds, exit_.resources.wall_seconds * limits.cpus
    if exit_.idle is None or exit_.waited is None or used is None:
        return None
    lost = exit_.waited >= max(LOST, (1 - PART) * exit_.resources.wall_seconds)
    if exit_.idle >= FREE or used >= PART * most or not lost:
        return None
    return Detail("machine-busy", used=used, most=most, limit=limits.wall_clock)


def _over(exit_: Exit, limits: Limits) -> Detail | None:
    """That it used more processor time than it may, also where it ended before anybody looked; None where it did not."""
    limit, used = limits.cpu_time, exit_.resources.cpu_seconds
    if limit is None or not (exit_.killed == "processor" or (used is not None and used > limit)):
        return None
    return Detail("processor-time", used=limit if used is None else used, limit=limit)


def _failed(code: int, oom_killed: bool, output_full: bool, limits: Limits) -> tuple[str, Detail]:
    """Of a software that ended with another exit ``code`` than 0."""
    if oom_killed:
        return "memory-limit", Detail("memory", code=code, limit=limits.memory)
    if output_full:
        return "output-limit", Detail(
            "output-limit", code=code, limit=limits.output, files=limits.output_files
        )
    if code > 128:
        return "signal", Detail("killed" if code == 137 else "signal", signal=code - 128)
    return "run-error", Detail("exit-code", code=code)


def _warnings(facts: Facts, exit_: Exit, limits: Limits) -> Iterator[Detail]:
    yield from facts.notes
    if facts.ready and exit_.killed is None:
        kind = "server-ended-memory" if exit_.oom_killed else "server-ended"
        yield Detail(kind, code=-1 if exit_.code is None else exit_.code)
    elif exit_.oom_killed and (exit_.code == 0 or exit_.killed == "stop"):
        yield Detail("child-memory")
    if facts.output_full and exit_.code == 0:
        yield Detail("full-at-end")
    if exit_.log_truncated:
        yield Detail("log-cut")
    most = exit_.resources.wall_seconds * limits.cpus  # nobody can have used more
    if limits.cpu_time is not None and exit_.resources.cpu_seconds is None and most > limits.cpu_time:
        yield Detail("processor-unmeasured", limit=limits.cpu_time)
    for name, why in facts.refused:
        yield Detail("refused-file", file=name, why=why)


def _absent(facts: Facts, expected: str) -> Detail:
    wanted = expected.removesuffix(".gz")
    for name, why in facts.refused:
        if name.removesuffix(".gz") == wanted:
            return Detail("unusable-file", file=name, why=why)
    return Detail("no-file", file=expected)
