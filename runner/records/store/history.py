"""What is remembered of the event log outside it: so that a log that was cut or exchanged is noticed.

The last known head (number and hash of the last event) stands in the database and in every frozen round; receipts
carry it to the teams. The archive remembers too: no run can be older than its submission's registration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from runner.model.config import Config
from runner.model.errors import PlatformError, Problem
from runner.records.archive import RunArchive
from runner.records.events import Event, EventLog, Position

MAX_LISTED = 1000
_HEAD = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Lost:
    """One thing that was in the log once and is not now: who remembers it, and its number and hash where known."""

    where: str
    what: str
    seq: int = 0
    hash: str = ""

    def problem(self) -> Problem:
        """For the list of what is wrong."""
        return Problem(self.where, self.what, "restore events.jsonl from a backup")


def check_complete(config: Config, log: EventLog, last: Position = Position()) -> None:
    """Raise E307 when the log holds less than is known to have been there."""
    gone = lost(config, log, last)
    if gone:
        error = PlatformError(
            "the event log is shorter than it was",
            why="The store would forget what was recorded once.",
            fix="restore events.jsonl from a backup, or give up what is lost with runner store rebuild --accept-loss",
            code="E307",
        )
        error.problems = tuple(one.problem() for one in gone)
        raise error


def lost(config: Config, log: EventLog, last: Position = Position()) -> list[Lost]:
    """What the database (``last``: the position up to which it was filled), frozen rounds and the archive remember, and
    the log does not hold. Empty when nothing is missing. Raises E307 when the chain of the log is broken."""
    heads = known_heads(config, last)
    archive = RunArchive(config.archive)
    runs = archive.runs()
    return missing(list(log), heads, archive, runs) if heads or runs else []


def missing(
    events: Iterable[Event],
    heads: Mapping[str, tuple[int, str]],
    archive: RunArchive,
    runs: Iterable[tuple[str, str]],
) -> list[Lost]:
    """As :func:`lost`, of events that were read already, and of the ``runs`` that the ``archive`` had before they were.

    What an event says was given up is not listed again.
    """
    chain: dict[int, str] = {}
    known: set[str] = set()
    committed: set[tuple[str, str]] = set()
    given_up: set[str] = set()
    for event in events:
        chain[event.seq] = event.hash
        if event.type == "submission-registered":
            known.add(str(event.data.get("submission")))
        elif event.type == "attempt-committed":
            committed.add((str(event.data.get("task")), str(event.data.get("run"))))
        elif event.type == "loss-accepted":
            given_up |= _names(event.data)
    end = max(chain, default=0)
    found = [
        Lost(
            where,
            f"remembers event {seq} ({hash[:16]}); the event log "
            + (f"ends at event {end}" if seq > end else f"has another event {seq}"),
            seq,
            hash,
        )
        for where, (seq, hash) in heads.items()
        if seq and chain.get(seq) != hash and hash not in given_up
    ]
    orphans = sorted(
        {
            f"{task}/{submission}"
            # What an event names has its registration before it, or cannot be applied; the others' locks are read.
            for task, run in runs
            if (task, run) not in committed
            and (submission := _submission(archive, task, run)) not in known
            and f"{task}/{submission}" not in given_up
        }
    )
    return found + [
        Lost(f"archive/{name}", "has runs, and the event log does not know of its registration")
        for name in orphans
    ]


def _names(data: Mapping[str, Any]) -> set[str]:
    """What an event ``loss-accepted`` says was given up: hashes of events, and submissions in the archive."""
    listed = data.get("lost")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    return {str(row.get("hash") or row.get("where", "")).removeprefix("archive/") for row in rows}


def accepted(gone: Iterable[Lost]) -> dict[str, Any]:
    """The data of the event that gives up what is lost."""
    rows = [{"where": one.where, "seq": one.seq, "hash": one.hash} for one in gone]
    return {"lost": rows[:MAX_LISTED], "count": len(rows)}


def _submission(archive: RunArchive, task: str, run: str) -> str:
    """The submission of a run, as the lock of its first attempt says that can be read; the run's id where none can."""
    for attempt in archive.attempts(task, run):
        with suppress(PlatformError):
            return attempt.submission()
    return run


def known_heads(config: Config, last: Position) -> dict[str, tuple[int, str]]:
    """Which event (number and hash) the database (``last``) and each frozen round saw last; unreadable files say nothing."""
    heads = {"the database": (last.seq, last.hash)} if last.seq else {}
    for path in sorted((config.home / "snapshots").glob("*/*.json")):
        try:
            events = json.loads(path.read_bytes())["events"]
            seq, hash = events["seq"], events["hash"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(seq, int) and isinstance(hash, str) and _HEAD.fullmatch(hash):
            heads[f"snapshots/{path.parent.name}/{path.name}"] = (seq, hash)
    return heads
