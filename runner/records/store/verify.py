"""Look for damage: event log, archive, frozen rounds and database against each other, and against the last known head.

Nothing is changed, and nothing is believed: the database is not opened as a store (which would catch up with the log) but
compared, row by row, with one that is made anew from log and archive for that. Everything that is wrong is listed at once.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import schemas
from runner.model.config import Config
from runner.model.errors import PlatformError, Problem, RunnerError
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.records.archive_lock import COORDINATOR_LOCK, is_held
from runner.records.events import Event, EventLog, Position
from runner.records.integrity import uncommitted, verify_bundles
from runner.records.integrity import verify as verify_archive
from runner.records.sealing import MANIFEST
from runner.records.snapshot import verify as verify_rounds
from runner.records.store.compare import compare, names_its_files, try_events, verify_schema
from runner.records.store.database import Recorded, read_recorded
from runner.records.store.history import known_heads, missing

RECORDING_SECONDS = 600  # within which a running command records what it sealed
_HEAD = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True)
class Verified:
    """What was found: the number of ``events``, the ``head`` (hash of the last one, empty for none), what is wrong, and
    remarks that are no fault."""

    events: int
    head: str
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        rows = [{"where": p.where, "what": p.what, "fix": p.fix} for p in self.problems]
        return {"events": self.events, "head": self.head, "problems": rows, "notes": list(self.notes)}


def verify(config: Config, heads: Sequence[str] = ()) -> Verified:
    """Compare everything with everything. ``heads`` are hashes (12 digits or more) that must be on the chain.

    Reads the whole archive. Raises E101 for a head that is no hash.
    """
    for head in heads:
        if not _HEAD.fullmatch(head):
            raise RunnerError(
                "E101",
                f"{schemas.show(head, 80)} is no head of the event log",
                why="It is the hash of an event: 64 hexadecimal digits in lower case, or the first 12 or more of them.",
                fix="copy it from a receipt or from runner round show",
            )
    # In this order, so that records that a running command adds meanwhile are not reported as damage: a command seals an
    # attempt in the archive, then appends its event to the log, then fills the database.
    running = is_held(config.locks / COORDINATOR_LOCK)
    archive = RunArchive(config.archive)
    runs = archive.runs()
    sealed = {attempt.key for attempt in archive.sealed()}
    recorded = read_recorded(config)
    log = EventLog(config.events)
    events, problems = log.survey()
    broken = bool(problems)
    problems += _heads(config, events, recorded.position, archive, runs, broken=broken)
    problems += [_unknown(head) for head in heads if not any(e.hash.startswith(head) for e in events)]
    of_archive = verify_archive(archive, _usable(events), registered=config.registered)
    unrecorded = [one for one in uncommitted(archive, _usable(events)) if one.key in sealed]
    running = running or is_held(config.locks / COORDINATOR_LOCK)
    under_way = [one for one in unrecorded if running and time.time() - _sealed_at(one) < RECORDING_SECONDS]
    of_archive += _unrecorded(archive, [one for one in unrecorded if one not in under_way])
    problems += of_archive + verify_rounds(config.home, _whole_rounds(events))
    problems += verify_bundles(config.registered, events)
    problems += _of_rounds(config, events)
    if recorded.state == "usable":
        problems += verify_schema(config)
    more, notes = _database(config, recorded, events, archive, broken or bool(of_archive))
    if under_way:
        notes.append(f"sealed by the command that is running, and not recorded yet: {len(under_way)}")
    return Verified(
        len(events), events[-1].hash if events else "", tuple(dict.fromkeys([*problems, *more])), tuple(notes)
    )


def _heads(
    config: Config,
    events: list[Event],
    last: Position,
    archive: RunArchive,
    runs: list[tuple[str, str]],
    *,
    broken: bool,
) -> list[Problem]:
    """The last known heads that are not on the chain, and runs that are older than the log."""
    found = missing(events, known_heads(config, last), archive, runs)
    if broken:  # a line that cannot be read is named already; what hangs on it is not listed again
        found = [one for one in found if one.seq > max((e.seq for e in events), default=0)]
    return [one.problem() for one in found]


def _unknown(head: str) -> Problem:
    return Problem(
        f"head {head}",
        "is not on the chain: the event log was cut or exchanged after this head was given out",
        "restore events.jsonl from a backup",
    )


def _sealed_at(one: Attempt | Evaluation) -> float:
    """Return when it was sealed, in seconds since 1970; 0 if its manifest is missing."""
    try:
        return (one.path / MANIFEST).stat().st_mtime
    except OSError:
        return 0.0


def _unrecorded(archive: RunArchive, unrecorded: Sequence[Attempt | Evaluation]) -> list[Problem]:
    """Return one problem for each attempt and evaluation that no event names."""
    fix = (
        "runner evaluate takes it over if a command was killed just before; else the log was cut: restore it"
    )
    return [
        Problem(str(one.path.relative_to(archive.root)), "is in the archive, but no event names it.", fix)
        for one in unrecorded
    ]


def _usable(events: list[Event]) -> list[Event]:
    """The events of which the archive can be asked whether it has what they name; the others are found by applying them."""
    return [e for e in events if not e.type.endswith("-committed") or names_its_files(e)]


def _whole_rounds(events: list[Event]) -> list[Event]:
    keys = ("task", "round", "sha256")
    return [
        e for e in events if e.type == "round-frozen" and all(isinstance(e.data.get(k), str) for k in keys)
    ]


def _of_rounds(config: Config, events: list[Event]) -> list[Problem]:
    """Evaluations that a frozen round counted and the log does not know as it did."""
    from runner.records.files import read_json

    committed = {
        (d["task"], d["run"], d["attempt"], d["evaluation"]): d["manifest"]
        for d in (e.data for e in _usable(events) if e.type == "evaluation-committed")
        if "evaluation" in d
    }
    found = []
    for event in _whole_rounds(events):
        task, name = event.data["task"], event.data["round"]
        try:
            listed = read_json(config.home / "snapshots" / task / f"{name}.json", None)["evaluations"]
            wrong = [
                e
                for e in listed
                if committed.get((task, e["run"], e["attempt"], e["evaluation"])) != e["manifest"]
            ]
        except (RunnerError, KeyError, TypeError):
            continue  # what is wrong with the file is said elsewhere
        found += [
            Problem(
                f"snapshots/{task}/{name}.json",
                f"counts evaluation {e['evaluation']} of {schemas.show(e['run'], 200)}, which the event log does not hold so",
                "restore events.jsonl from a backup",
            )
            for e in wrong
        ]
    return found


def _database(
    config: Config, recorded: Recorded, events: list[Event], archive: RunArchive, damaged: bool
) -> tuple[list[Problem], list[str]]:
    """How the rows of the database differ from what log and archive make, and remarks."""
    if recorded.state == "unusable":
        return [Problem("the database", recorded.why or "cannot be read", "runner store rebuild")], []
    if recorded.state in ("none", "other"):
        why = {
            "none": "there is no database yet",
            "other": "the database was filled by another version of this program",
        }
        with tempfile.TemporaryDirectory(prefix="verify-") as folder:
            problems = try_events(config, Path(folder), events, archive)
        return problems, [f"{why[recorded.state]}: it is made from log and archive by the next command"]
    last = recorded.position
    chain = {e.seq: e for e in events}
    differs = last.seq in chain and chain[last.seq].hash != last.hash
    if not damaged and not differs and last.seq in chain:
        import hashlib

        digest = hashlib.sha256()
        EventLog(config.events).feed(digest, 0, last.offset)
        if recorded.prefix is not None and digest.hexdigest() != recorded.prefix:
            return [
                Problem(
                    "events.jsonl",
                    f"is not the file that the database was made from up to event {last.seq}",
                    "restore events.jsonl from a backup",
                )
            ], []
    with tempfile.TemporaryDirectory(prefix="verify-") as folder:
        try:
            return compare(config, Path(folder), events, archive), []
        except PlatformError as error:  # such as a missing table
            return [Problem("the database", error.why or error.what, error.fix)], []


def verify_backed_up(config: Config) -> list[Problem]:
    """Compare what a backup holds, and the schema of the database, with the event log.

    Rows of the database are not compared: no backup holds them. A run without an event is not a problem, because a run may be sealed
    while the archive is read.
    """
    events, problems = EventLog(config.events).survey()
    problems += verify_archive(RunArchive(config.archive), _usable(events), registered=config.registered)
    problems += verify_rounds(config.home, _whole_rounds(events))
    problems += verify_bundles(config.registered, events)
    if read_recorded(config).state == "usable":
        problems += verify_schema(config)
    return list(dict.fromkeys(problems))


def damage_found(problems: Sequence[Problem], what: str) -> RunnerError:
    """Return the error (E307) for records that are not as they were written."""
    why = f"Event log, archive, bundles, rounds and database are not as they were recorded: {len(problems)} problems."
    fix = "restore from a backup what is named; runner store rebuild makes the database again"
    return RunnerError("E307", what, why=why, fix=fix, problems=problems)
