"""The interactive workflow: the software is a server, and a driver of ours talks to it in a closed room.

What the software does ends in its turns' records and in the verdict. Three things are kept apart all the way: the
software's own failures; those of servers that it can reach (the argument index and the relay: ``disputed``,
because either side may have broken them); and those of parts that it cannot reach (driver, simulated user,
gateway, engine: ``platform-error``).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import schemas
from runner.engines.base import Cancelled, Engine, Handle, Session
from runner.execution.job import Executed, Job
from runner.execution.workflows.gateway import refusal
from runner.execution.workflows.servers import REPORT, SERVED, TURNS, USER_READY, Servers
from runner.execution.workflows.starting import PARTS, WORDS, refused, wait_ready
from runner.model.clock import SystemClock, stamp
from runner.model.container import Collected, Exit
from runner.model.errors import PlatformError
from runner.model.verdict import Facts, decide
from schemas.details import Detail

POLL = 0.25  # seconds between looks at the containers
OUTAGE = 60.0  # seconds that the engine may be away
GRACE = 60.0  # seconds that the driver may take beyond the end of the run's time
JOIN = 15.0  # seconds for the driver to put together what it has, when it is stopped
TURN_BYTES = 256 * 1024

REACHABLE = {"search": "argument index", "search-relay": "argument index", "relay": "relay"}
OURS = ("gateway", "user")  # the second may end because of the first


class _Cancelled(Exception):
    """A person stopped the run before there was a software to stop."""


class _Disputed(Exception):
    """A server that the software can reach has failed while the software ran; ``detail`` says how."""

    def __init__(self, detail: Detail) -> None:
        super().__init__(str(detail))
        self.detail = detail


@dataclass
class _RunFacts:
    """What is known of a run so far; filled in as it goes, so that nothing is lost when it breaks off."""

    exit: Exit | None = None
    collected: Collected = field(default_factory=Collected)
    disputed: Detail | None = None
    unhealthy: Detail | None = None
    ready: bool = False
    notes: tuple[Detail, ...] = ()
    refusal: Detail | None = None  # what the organiser has to correct before the gateway can be asked


def run(job: Job, engine: Engine, attempt_id: str, staging: Path, cancelled: Callable[[], bool]) -> Executed:
    """Execute ``job`` once and leave ``output/`` and ``logs/`` in ``staging``.

    ``output/`` has the run file that the task names, ``turns.jsonl`` (one line for each answer) and
    ``served.jsonl`` (what the argument index served). Raises E301 when the engine is gone, as the batch
    workflow does, E305 when it lacks the gateway's network, and E402 when files of the task are not there.
    """
    started = stamp(SystemClock().now())
    (staging / "output").mkdir()
    (staging / "logs").mkdir()
    course, platform = _RunFacts(), None
    try:
        labels = {"run": job.run_id, "team": job.team}
        visibility = job.dataset.visibility
        with engine.session(attempt_id, labels=labels, visibility=visibility, cancelled=cancelled) as session:
            _in_the_room(job, engine, session, staging, cancelled, course)
    except (_Cancelled, Cancelled):
        course.exit = Exit(code=None, killed="cancel")
    except PlatformError as error:
        if error.code in ("E301", "E305", "E311"):
            # An engine that is gone, or can never give what the task asks for, says nothing about this run.
            raise
        platform = Detail("platform", what=error.what, why=error.why)
        if error.code == "E402":
            # It would end in the same way again: the outcome is held for the organiser at once.
            then = f"runner evaluate --run {job.run_id} --force"
            why = error.why.rstrip(".")
            platform = Detail("task-files", what=error.what, why=why, fix=error.fix, then=then)
        if cancelled() or (course.exit is not None and course.exit.killed == "cancel"):
            # What a killed room looks like from inside is no failure of ours.
            platform, course.exit = None, Exit(code=None, killed="cancel")
    if course.refusal is not None and course.disputed is None:
        # Whatever it looked like from inside, the user could not go on: for a reason that the organiser has to mend.
        platform = course.refusal
    run_file = job.task.output if job.task.output in course.collected.files else None
    facts = Facts(
        exit=course.exit,
        output_present=run_file is not None,
        output_full=False,
        platform=platform,
        unhealthy=course.unhealthy,
        disputed=course.disputed,
        ready=course.ready,
        notes=course.notes,
    )
    verdict = decide(facts, job.limits, job.task.output)
    return Executed(verdict, course.exit, course.collected, run_file, started, stamp(SystemClock().now()))


def _in_the_room(
    job: Job,
    engine: Engine,
    session: Session,
    staging: Path,
    cancelled: Callable[[], bool],
    course: _RunFacts,
) -> None:
    servers = Servers(job, engine, session)
    software: Handle | None = None
    try:
        relay = _prepare(servers, cancelled)
        software = servers.start_software(relay)
        begun = time.monotonic()
        driver = servers.start_driver(job.limits.wall_clock)
        try:
            _Watch(servers, software, driver, begun, cancelled).until_done()
        except _Disputed as dispute:
            course.disputed = dispute.detail
        except _Cancelled:
            # Also when it had ended by itself a moment before.
            course.exit = replace(software.wait(0, lambda: True), killed="cancel")
            return
        course.exit = software.stop()
        if course.exit.killed != "cancel":
            _conclude(job, servers, driver, staging, course)
    finally:
        if software is not None:
            for stream in ("stdout", "stderr"):
                text = software.logs(stream, job.limits.log)  # type: ignore[arg-type]
                (staging / "logs" / f"{stream}.log").write_bytes(text)
        servers.keep_logs(staging / "logs")
        if servers.gateway is not None:
            facts = servers.gateway.finish(staging)
            course.refusal = refusal(
                job.services["gateway"], facts, f"runner evaluate --run {job.run_id} --force"
            )


def _prepare(servers: Servers, cancelled: Callable[[], bool]) -> Handle:
    """Everything that has to be there before the software; returns the relay."""

    def give_up() -> None:
        if cancelled():
            raise _Cancelled

    def wait(handle: Handle, what: str, seconds: float) -> None:
        name = next(name for name, one in servers.handles.items() if one is handle)
        words = "search" if name == "watch" else name
        wait_ready(handle, what, seconds, look, lambda: servers.last_words(words, WORDS))

    def look() -> None:
        """Whatever has ended by now is missing: not only the one that is waited for."""
        give_up()
        for name, handle in servers.handles.items():
            if handle.ended():
                if handle.wait(0).killed == "cancel":
                    raise _Cancelled
                raise servers.ended_early(name)

    try:
        give_up()
        servers.start_user()
        give_up()
        servers.start_search(wait)
        return servers.start_relay(wait)
    except PlatformError as error:
        if error.code != "E301":
            look()  # what is said of one that cannot be joined is less than why it has ended
        raise


class _Watch:
    """Looks after all containers until the driver has done its work."""

    def __init__(
        self, servers: Servers, software: Handle, driver: Handle, begun: float, cancelled: Callable[[], bool]
    ) -> None:
        self.servers, self.software, self.driver, self.cancelled = servers, software, driver, cancelled
        self.until = begun + servers.job.limits.wall_clock + USER_READY + GRACE
        self.marked = False
        self.away: float | None = None

    def until_done(self) -> None:
        """Return when the driver has ended. Raises :class:`_Cancelled`, :class:`_Disputed`, :class:`PlatformError`."""
        while not self._look():
            if self.cancelled():
                raise _Cancelled
            if time.monotonic() > self.until:
                raise PlatformError(
                    "the driver did not end", why="It went on long after the run's time was over."
                )
            time.sleep(POLL)
        if self.cancelled():
            raise _Cancelled

    def _look(self) -> bool:
        """One look at everything; whether the driver has ended. An engine that is away for a moment is waited for."""
        try:
            done = self._see()
        except PlatformError as error:
            if error.code != "E301":
                raise
            self.away = self.away or time.monotonic()
            if time.monotonic() - self.away > OUTAGE:
                raise
            return False
        self.away = None
        return done

    def _see(self) -> bool:
        ended = {name for name, handle in self.servers.handles.items() if handle.ended()}
        if not self.marked and self.software.ended():
            if self.software.wait(0).killed == "cancel":
                raise _Cancelled
            self.servers.mark_ended()
            self.marked = True
        # Those that the software can reach come first: whatever else fails then may be a consequence.
        for name in ended & REACHABLE.keys():
            if self.servers.handles[name].wait(0).outside is not None:
                # Not within the software's reach.
                raise PlatformError(f"the {REACHABLE[name]} was ended from outside", why=self._how(name))
            raise _Disputed(Detail("reachable-ended", part=REACHABLE[name], **self._facts(name)))
        if "watch" in ended:
            raise _Disputed(Detail("reachable-silent", **self._facts("watch")))
        for name in (one for one in OURS if one in ended):
            if self.servers.refuses(name):
                raise refused(PARTS[name], self.servers.last_words(name, WORDS))
            raise PlatformError(f"the {PARTS[name]} ended while the run went on", why=self._how(name))
        return "driver" in ended

    def _facts(self, name: str) -> dict[str, Any]:
        """How a container of ours ended, and what it said last: fields of the details about it."""
        end = self.servers.handles[name].wait(0)
        if end.killed == "cancel":
            raise _Cancelled
        return {"how": _end(end), "said": self.servers.last_words(name).strip(". ")}

    def _how(self, name: str) -> str:
        return str(Detail("ended", **self._facts(name)))


def _conclude(job: Job, servers: Servers, driver: Handle, staging: Path, course: _RunFacts) -> None:
    """Take out what was written and say what it means. Raises :class:`PlatformError` for a failure of ours."""
    end = driver.stop(JOIN)
    output, logs = staging / "output", staging / "logs"
    wanted = {job.task.output, TURNS, REPORT}
    found = servers.session.copy_out(
        servers.out, output, allowed=wanted.__contains__, max_bytes=servers.room, max_files=len(wanted)
    )
    if REPORT in found.files:
        shutil.move(output / REPORT, logs / REPORT)
    _collect_served(servers, staging)
    course.collected = _collected(output)
    if course.disputed is not None:
        return
    report = _report(logs / REPORT)
    if report is None:
        how = Detail("ended", how=_end(end), said=servers.last_words("driver"))
        raise PlatformError("the driver failed", why=str(how))
    if report["failure"] is not None:
        part, message = report["failure"]["part"], report["failure"]["message"]
        if part == "input":
            raise refused("driver", message)
        raise PlatformError(f"the {PARTS[part]} failed", why=message)
    course.ready = report["ready"]
    course.notes = tuple(_notes(report, output / TURNS))
    if not course.ready:
        course.unhealthy = _never_ready(servers, course.exit)


def _end(end: Exit) -> dict[str, Any]:
    return {"code": end.code, "memory": end.oom_killed, "outside": end.outside}


def _never_ready(servers: Servers, end: Exit | None) -> Detail:
    port = servers.talk.port
    if end is not None and end.killed is None and end.start_error is None:
        return Detail("ended-before-ready", code=-1 if end.code is None else end.code, port=port)
    return Detail("never-listened", port=port, seconds=servers.talk.ready)


def _collect_served(servers: Servers, staging: Path) -> None:
    if servers.log is None:
        return
    servers.handles["search"].stop()  # so that its log is whole
    with tempfile.TemporaryDirectory(dir=staging) as box:
        found = servers.session.copy_out(
            servers.log, Path(box), allowed=SERVED.__eq__, max_bytes=servers.log_bytes, max_files=1
        )
        if SERVED in found.files:
            shutil.move(Path(box) / SERVED, staging / "output" / SERVED)


def _collected(output: Path) -> Collected:
    """What lies in the output folder in the end: files of ours, so nothing of it is refused."""
    sizes = {path.name: path.stat().st_size for path in sorted(output.iterdir())}
    return Collected(files=tuple(sizes), bytes=sum(sizes.values()))


def _report(path: Path) -> dict[str, Any] | None:
    """The driver's report, when there is a whole one."""
    if not path.is_file():
        return None
    doc = schemas.load_json(path, max_bytes=64 * 1024)
    return None if schemas.validate(doc, "driver-report") else doc.data


def _notes(report: dict[str, Any], turns: Path) -> Iterator[Detail]:
    """What a team should know of a run that went well as a whole: how many answers failed, and how."""
    if not report["failed"]:
        return
    counts: Counter[str] = Counter()
    if turns.is_file():
        with turns.open("rb") as file:
            while line := file.readline(TURN_BYTES):
                doc = schemas.load_json(line, max_bytes=TURN_BYTES)
                row = doc.data if isinstance(doc.data, dict) else {}
                if isinstance(row.get("failure"), dict):
                    counts[schemas.show(row["failure"].get("class"), 20)] += 1
    yield Detail("answers-failed", failed=report["failed"], turns=report["turns"], classes=dict(counts))
