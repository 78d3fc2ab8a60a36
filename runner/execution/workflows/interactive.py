"""The interactive workflow: the software is a server, and a driver of ours talks to it over sockets alone.

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
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import schemas
from runner.engines.base import Cancelled, Engine, Handle
from runner.execution.job import Executed, Job
from runner.execution.workflows.beside import SERVED, TURNS
from runner.execution.workflows.gateway import refusal
from runner.execution.workflows.servers import REPORT, Servers
from runner.execution.workflows.starting import WORDS, begin, conclude, keep_logs, unusable
from runner.model.container import Collected, Exit
from runner.model.errors import PlatformError
from runner.model.sidecars import SIDECARS
from schemas.details import Detail

POLL = 0.25  # seconds between looks at the containers
OUTAGE = 60.0  # seconds that the engine may be away
GRACE = 60.0  # seconds that the driver may take beyond the end of the run's time
JOIN = 15.0  # seconds for the driver to put together what it has, when it is stopped
TURN_BYTES = 256 * 1024

USER_READY = SIDECARS["user"].ready  # what the driver gives the user before the first debate


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
    started = begin(staging)
    facts, platform = _RunFacts(), None
    try:
        labels = {"run": job.run_id, "team": job.team}
        visibility = job.dataset.visibility
        with engine.session(attempt_id, labels=labels, visibility=visibility, cancelled=cancelled) as session:
            _execute(Servers(job, engine, session, cancelled), staging, facts)
    except Cancelled:
        facts.exit = Exit(code=None, killed="cancel")
    except PlatformError as error:
        if error.code in ("E301", "E305", "E311"):
            # An engine that is gone, or can never give what the task asks for, says nothing about this run.
            raise
        platform = Detail("platform", what=error.what, why=error.why)
        if error.code == "E402":
            # It would end in the same way again: the outcome is held for the organiser at once.
            why = error.why.rstrip(".")
            platform = Detail("task-files", what=error.what, why=why, fix=error.fix, then=_again(job))
        if cancelled() or (facts.exit is not None and facts.exit.killed == "cancel"):
            # What a killed run looks like to its other containers is no failure of ours.
            platform, facts.exit = None, Exit(code=None, killed="cancel")
    if facts.refusal is not None and facts.disputed is None:
        # Whatever it looked like to the others, the user could not go on: for a reason that the organiser has to correct.
        platform = facts.refusal
    known = {name: getattr(facts, name) for name in ("unhealthy", "disputed", "ready", "notes")}
    return conclude(job, started, facts.collected, facts.exit, platform=platform, **known)


def _again(job: Job) -> str:
    return f"runner evaluate --run {job.run_id} --force"


def _execute(servers: Servers, staging: Path, facts: _RunFacts) -> None:
    """Start all containers, wait for the driver, and take out what was written; whatever happens, keep the logs.

    Raises:
        Cancelled: A person stopped the run before there was a software.
        PlatformError: Something of ours failed. What is known by then is in ``facts``.
    """
    job, logs = servers.job, staging / "logs"
    software: Handle | None = None
    try:
        software = servers.start_software(servers.start_all())
        until = time.monotonic() + job.limits.wall_clock + USER_READY + GRACE
        driver = servers.start_driver(job.limits.wall_clock)
        try:
            facts.disputed = _watch(servers, software, until)
        except Cancelled:
            # Also when it had ended by itself a moment before.
            facts.exit = replace(software.wait(0, lambda: True), killed="cancel")
            return
        facts.exit = software.stop()
        if facts.exit.killed != "cancel":
            _conclude(servers, driver, staging, facts)
    finally:
        if software is not None:
            keep_logs(software, logs, job.limits.log)
        servers.keep_logs(logs)
        if servers.gateway is not None:
            asked = servers.gateway.finish(staging)
            facts.refusal = refusal(job.services["gateway"], asked, _again(job))


def _watch(servers: Servers, software: Handle, until: float) -> Detail | None:
    """Look after all containers until the driver has done its work. An engine that is away for a moment is waited for.

    Returns:
        None, or how a server that the software can reach has failed meanwhile.

    Raises:
        Cancelled: A person stopped the run.
        PlatformError: A part of ours failed, or the driver goes on after ``until`` (monotonic clock, seconds).
    """
    marked, away = False, None
    while True:
        servers.check_cancelled()
        try:
            ended = _ended(servers)
            if ended - {"driver"}:  # a consequence may be seen before its cause: look again
                time.sleep(POLL)
                ended = _ended(servers)
            if not marked and software.ended():
                if software.wait(0).killed == "cancel":
                    raise Cancelled
                servers.mark_ended()
                marked = True
            if dispute := _failed_part(servers, ended):
                return dispute
            if "driver" in ended:
                servers.check_cancelled()
                return None
            away = None
        except PlatformError as error:
            away = away or time.monotonic()
            if error.code != "E301" or time.monotonic() - away > OUTAGE:
                raise
        if time.monotonic() > until:
            why = "It went on long after the run's time was over."
            raise PlatformError("the driver did not end", why=why)
        time.sleep(POLL)


def _ended(servers: Servers) -> set[str]:
    """Return the names of the servers whose containers have ended."""
    return {name for name, handle in servers.handles.items() if handle.ended()}


def _failed_part(servers: Servers, ended: Set[str]) -> Detail | None:
    """How a server that the software can reach has failed, if one of those that have ended did.

    Raises:
        PlatformError: Another part of ours has ended, or such a server was ended from outside.
        Cancelled: A person stopped the run.
    """
    # Those that the software can reach come first: whatever else fails then may be a consequence. The user may end
    # because of the gateway, which therefore comes before it.
    order = sorted(
        ended - {"driver"},
        key=lambda name: (not SIDECARS[name].disputed, SIDECARS[name].program == "watch", name),
    )
    for name in order:
        title = servers.title(name.removesuffix("-relay"))
        if SIDECARS[name].program == "watch":
            return Detail("reachable-silent", part=title, **_facts(servers, name))
        if SIDECARS[name].disputed and servers.handles[name].wait(0).outside is None:
            return Detail("reachable-ended", part=title, **_facts(servers, name))
        if SIDECARS[name].disputed:  # not within the software's reach
            raise PlatformError(f"the {title} was ended from outside", why=_how(servers, name))
        if servers.refuses(name):
            raise unusable(title, servers.last_words(name, WORDS))
        raise PlatformError(f"the {title} ended while the run went on", why=_how(servers, name))
    return None


def _facts(servers: Servers, name: str) -> dict[str, Any]:
    """How a container of ours ended, and what it said last: fields of the details about it."""
    end = servers.handles[name].wait(0)
    if end.killed == "cancel":
        raise Cancelled
    return {"how": _end(end), "said": servers.last_words(name).strip(". ")}


def _how(servers: Servers, name: str) -> str:
    return str(Detail("ended", **_facts(servers, name)))


def _end(end: Exit) -> dict[str, Any]:
    return {"code": end.code, "memory": end.oom_killed, "outside": end.outside}


def _conclude(servers: Servers, driver: Handle, staging: Path, facts: _RunFacts) -> None:
    """Take out what was written and say what it means. Raises :class:`PlatformError` for a failure of ours."""
    end, task = driver.stop(JOIN), servers.job.task
    output, logs = staging / "output", staging / "logs"
    wanted = {task.output, TURNS, REPORT}
    found = servers.session.copy_out(
        servers.out, output, allowed=wanted.__contains__, max_bytes=servers.sizes.room, max_files=len(wanted)
    )
    if REPORT in found.files:
        shutil.move(output / REPORT, logs / REPORT)
    _collect_served(servers, staging)
    facts.collected = _collected(output)
    if facts.disputed is not None:
        return
    report = _report(logs / REPORT)
    if report is None:
        how = Detail("ended", how=_end(end), said=servers.last_words("driver"))
        raise PlatformError("the driver failed", why=str(how))
    if report["failure"] is not None:
        part, message = report["failure"]["part"], report["failure"]["message"]
        if part == "input":
            raise unusable("driver", message)
        raise PlatformError(f"the {SIDECARS[part].title} failed", why=message)
    facts.ready = report["ready"]
    facts.notes = tuple(_notes(report, output / TURNS))
    if not facts.ready:
        facts.unhealthy = _never_ready(servers, facts.exit)


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
            servers.log, Path(box), allowed=SERVED.__eq__, max_bytes=servers.sizes.log, max_files=1
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
