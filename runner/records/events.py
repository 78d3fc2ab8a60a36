"""The event log: what people and the platform did, append-only and hash-chained.

One JSON object a line: ``{seq, time, type, actor, data, prev, hash}``, and ``person`` where somebody gave a command. ``hash`` is the SHA-256 of the
canonical JSON of the rest, ``prev`` the hash of the line before ("" for the first), so that no line can be
changed, moved or taken out of the middle unseen. An event is there when its line ends with a newline: what a
crash left behind the last newline was never acknowledged to anybody, and the next append cuts it off.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.config import Config, Person
from runner.model.errors import PlatformError, Problem
from runner.records.appending import WHAT, Addition, added, locked, opened
from runner.records.files import on_disk

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

# What happened, by the type of the event.
TYPES: Mapping[str, str] = {
    "submission-registered": "a bundle was registered",
    "submission-withdrawn": "a submission was taken off the leaderboard; `uncharged` is true where its place in the quota was given back",
    "submission-chosen": "a team named the submission that counts where a table's `pick` is `chosen`",
    "display-name-set": "a team, or one of its softwares, was given another display name (empty: none)",
    "texts-cleared": "descriptions, display names and other texts of a team were removed from what is shown",
    "quota-extended": "a team was given more submissions",
    "deadline-extended": "a team was given a later deadline",
    "limits-extended": "the softwares of a team were given other limits of time or memory than the task's",
    "dataset-paused": "a dataset, or a whole task, takes no submissions for now, and none of its runs is begun",
    "dataset-resumed": "it does again",
    "attempt-committed": "an execution was sealed in the archive",
    "evaluation-committed": "an evaluation was sealed in the archive; `proposed` is true where it differs from the one that counts, and waits to be accepted",
    "evaluations-discarded": "evaluations that waited never count (`runner reevaluate --discard`); with the reason",
    "evaluations-accepted": "evaluations that waited count from now on, in the place of older ones (`runner reevaluate --accept`); with the reason",
    "run-cancelled": "a person stopped a run",
    "run-restarted": "a person wants a run executed once more, whatever became of it",
    "dataset-published": "the scores on a blinded dataset were opened; `publish_at` where this was due by that date",
    "dataset-unpublished": "they were closed again",
    "key-drawn": "a random key of a task was drawn, which says which of its topics are public and makes up names; only the organiser may see it",
    "names-opened": "the names of a task's teams are shown to everybody from now on, as they were due",
    "run-released": "one attempt on a blinded dataset was opened to its team: logs, findings, exact figures",
    "run-closed": "it was closed again",
    "run-verified": "a run's software was executed again, apart from what counts: whether it was the same, how many topics differ, how far each measure moved, and the host of the cluster that executed it",
    "round-frozen": "a round was frozen; its snapshot's SHA-256",
    "labels-imported": "people's labels or a judge's scores were put into the truths; the file's SHA-256 and how many",
    "run-reviewed": "a person approved or flagged one attempt, or took that back",
    "log-excerpt-released": "lines of the log of a run on a blinded dataset were given to its team: the text without hidden data, its bytes and SHA-256",
    "run-commented": "a person commented a run, for the organisers or for its team, too",
    "policy-changed": "the rules of a task were noted: for the first time, or because they are others than those noted last",
    "results-exported": "results were written out for an audience: a leaderboard, plot, run, page or comparison, and its SHA-256",
    "request-decided": "a request that came through the front was done or refused, once; with the opaque id of the account that asked",
    "proposal-decided": "what was proposed on the web (`request-decided` of the kind `propose`, by its number) was approved and done, or rejected",
    "account-added": "somebody may sign in from now on; accounts have opaque ids, and who is behind them stands in no event",
    "token-replaced": "an account was given a new token; the ones before open nothing any more",
    "token-added": "somebody made a token of their account with another one, or with a one-time link",
    "link-made": "a one-time link was made for an account, which asks for a token once",
    "account-tied": "somebody may sign in at a provider (OpenID Connect) for an account; who that is stands in no event",
    "account-untied": "nobody may any more",
    "account-closed": "an account opens nothing any more",
    "account-reopened": "it may be given tokens again; those of before stay revoked",
    "account-erased": "what was known of the people behind an account was erased, or of one member",
    "loss-accepted": "what was lost of this log was given up for good (`runner store rebuild --accept-loss`)",
}
MAX_LINE = 256 * 1024
LOCK_SECONDS = 60.0
COORDINATOR = "runner"  # the actor of what nobody commands: commits, and what is due by a date
_KEYS = {"seq", "time", "type", "actor", "data", "prev", "hash"}
_PERSON = {"name", "named_by"}


@dataclass(frozen=True)
class Event:
    """One line of the log. ``time`` is UTC (ISO 8601); ``data`` depends on ``type``.

    ``actor`` says in which role something was done (``organiser``, a team, or the platform's :data:`COORDINATOR`), ``person``
    who gave the command; None where nobody did, and in events of before persons were noted.
    """

    seq: int
    time: str
    type: str
    actor: str
    data: Mapping[str, Any]
    prev: str
    hash: str
    person: Person | None = None

    def as_dict(self) -> dict[str, Any]:
        """The event as it is written, key by key."""
        person = {} if self.person is None else {"person": vars(self.person)}
        return {key: getattr(self, key) for key in _KEYS} | {"data": dict(self.data)} | person

    @classmethod
    def read(cls, line: Any) -> Event | None:
        """The event that a line of the log says (JSON data), whether or not its hash fits; None when it says none."""
        if (
            not isinstance(line, dict)
            or line.keys() - {"person"} != _KEYS
            or not isinstance(line["data"], dict)
        ):
            return None
        who = line.get("person")
        if "person" in line and not (
            isinstance(who, dict)
            and who.keys() == _PERSON
            and all(isinstance(one, str) for one in who.values())
        ):
            return None
        return cls(**{**line, "person": None if who is None else Person(**who)})


@dataclass(frozen=True)
class Position:
    """A place in the log right behind an event: its ``seq`` and ``hash``, and the byte ``offset`` after it."""

    seq: int = 0
    hash: str = ""
    offset: int = 0


class EventLog:
    """The event log at ``path``. Many processes may read and append; appends are serialised by a lock file."""

    def __init__(
        self, path: Path, *, clock: Clock | None = None, person: Person | None = None, request: str = ""
    ) -> None:
        self.path = path
        self.person = person  # who gives the commands whose events are appended
        self.request = request  # of the web, by which they were given; noted with what was done
        self._clock = clock or SystemClock()

    @classmethod
    def of(cls, config: Config) -> EventLog:
        """The event log of a data directory; what is appended names the person who gave the command."""
        return cls(config.events, person=config.person)

    def asked_for(self, person: Person, request: str) -> EventLog:
        """The same log for what ``person`` asked for on the web by the ``request`` of that id."""
        return EventLog(self.path, clock=self._clock, person=person, request=request)

    def append(self, type: str, data: Mapping[str, Any], *, actor: str) -> Event:
        """Add one event.

        Args:
            type: One of :data:`TYPES`.
            data: JSON data, as the type asks for it.
            actor: In which role it was done; what :data:`COORDINATOR` does names no person.

        Returns:
            The event, once it is on the disk.

        Raises:
            ValueError: For an unknown type, data that is no JSON, or more than :data:`MAX_LINE` bytes of it.
            PlatformError: E306, when the log cannot be written; E307, when its end is damaged.
        """
        return self.append_all([(type, data)], actor=actor)[0]

    def append_all(self, said: Sequence[tuple[str, Mapping[str, Any]]], *, actor: str) -> list[Event]:
        """As :meth:`append` of each in turn (type and data), with one write: all of them are on the disk, or none if it refuses one."""
        with self.appending(said, actor=actor) as (events, _):
            return events

    @contextmanager
    def appending(
        self,
        said: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        actor: str,
        before: Callable[[Sequence[Event]], None] = lambda _: None,
    ) -> Iterator[tuple[list[Event], Addition]]:
        """Append events for the block, which excludes other writers. Raises as :meth:`append`.

        They are taken back if the block raises, unless their addition is kept. ``before`` is called with them before they are
        written; if it raises, nothing is written.
        """
        for type, _ in said:
            if type not in TYPES:
                raise ValueError(f"unknown event type {type!r}")
        with locked(self.path, LOCK_SECONDS), opened(self.path) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise self._damaged(1, "the log is not a regular file")
            size = self._repair(descriptor)
            last, events, lines = self._last(descriptor, size), list[Event](), b""
            for type, data in said:
                last = self._next(last, type, data, actor)
                line = schemas.canonical(last.as_dict()) + b"\n"
                if len(line) > MAX_LINE:
                    raise ValueError(f"an event may have {MAX_LINE} bytes, this one has {len(line)}")
                events.append(last)
                lines += line
            before(events)
            with added(descriptor, self.path, lines) as addition:
                yield events, addition

    def _next(self, last: Event | None, type: str, data: Mapping[str, Any], actor: str) -> Event:
        """The event after ``last``."""
        body: dict[str, Any] = {
            "seq": (last.seq if last else 0) + 1,
            "time": stamp(self._clock.now()),
            "type": type,
            "actor": actor,
            "data": {**data, **({"request": self.request} if self.request else {})},
            "prev": last.hash if last else "",
        }
        if self.person is not None and actor != COORDINATOR:
            body["person"] = vars(self.person)
        return Event(**{**body, "person": self.person if "person" in body else None}, hash=_hash(body))

    def _repair(self, descriptor: int) -> int:
        """Cut off an incomplete last line (a crash in the middle of an append); returns the log's size."""
        size = os.fstat(descriptor).st_size
        if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
            return size
        tail = os.pread(descriptor, min(size, MAX_LINE), max(0, size - MAX_LINE))
        end = tail.rfind(b"\n")
        if end < 0 and size > MAX_LINE:
            raise self._damaged(None, "its last line is longer than any event")
        keep = size - len(tail) + end + 1
        with on_disk(WHAT, self.path):
            os.ftruncate(descriptor, keep)
            os.fsync(descriptor)
        return keep

    def _last(self, descriptor: int, size: int) -> Event | None:
        if size == 0:
            return None
        tail = os.pread(descriptor, min(size, MAX_LINE + 1), max(0, size - MAX_LINE - 1))
        start = tail.rfind(b"\n", 0, len(tail) - 1) + 1
        if start == 0 and size > len(tail):
            raise self._damaged(None, "its last line is longer than any event")
        return self._parse(tail[start:], None)

    def __iter__(self) -> Iterator[Event]:
        return (event for event, _ in self.after(Position()))

    def after(self, position: Position) -> Iterator[tuple[Event, Position]]:
        """Every event behind ``position`` with the position behind it, the chain checked on the way.

        An incomplete last line is not an event (yet). Raises E307 at the first line that does not fit.
        """
        size = self.path.stat().st_size if self.path.exists() else 0
        if size < position.offset:
            raise self._damaged(None, "it is shorter than it was")
        for number, line in enumerate(self._lines(position.offset), position.seq + 1):
            if not line.endswith(b"\n"):
                raise self._damaged(number, "is longer than any event")
            event = self._parse(line, number)
            if event.seq != number or event.prev != position.hash:
                raise self._damaged(number, "does not follow the event before it")
            position = Position(event.seq, event.hash, position.offset + len(line))
            yield event, position

    def verify(self) -> list[Problem]:
        """Walk the whole chain; returns what is wrong (at most the first break, nothing can be said behind it)."""
        try:
            for _ in self:
                pass
        except PlatformError as error:
            return [Problem(str(self.path), error.why, error.fix)]
        return []

    def survey(self) -> tuple[list[Event], list[Problem]]:
        """Every line that can still be read as an event, and every line that is wrong. For looking into damage.

        An event of a line that is wrong is among them as it stands there now: believe none of them if there are problems.
        """
        events: list[Event] = []
        problems: list[Problem] = []
        before: str | None = ""
        for number, line in enumerate(self._lines(), start=1):
            try:
                event = self._parse(line, number)
                if event.seq != number or before not in (None, event.prev):
                    raise self._damaged(number, "does not follow the event before it")
            except PlatformError as error:
                why = error.why.removeprefix(f"{self.path}:{number} ")
                problems.append(Problem(f"{self.path.name}:{number}", why, error.fix))
                loose = _loosely(line)
                before = loose.hash if loose else None
                events += [loose] if loose else []
                continue
            before = event.hash
            events.append(event)
        return events, problems

    def _lines(self, start: int = 0) -> Iterator[bytes]:
        """The whole lines of the log from a byte on, or as much of one as no event has; what a crash left behind the last
        newline is none."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            stream.seek(start)
            while line := stream.readline(MAX_LINE + 1):
                if line.endswith(b"\n") or len(line) > MAX_LINE:
                    yield line

    def feed(self, digest: Hash, start: int, end: int) -> None:
        """Feed the bytes from ``start`` to ``end`` to ``digest``. Raises E307 when the log ends before that."""
        left = end - start
        if left <= 0:
            return
        try:
            with self.path.open("rb") as stream:
                stream.seek(start)
                while left and (part := stream.read(min(left, 1024 * 1024))):
                    digest.update(part)
                    left -= len(part)
        except FileNotFoundError:
            pass
        if left:
            raise self._damaged(None, "it is shorter than it was")

    def end(self) -> Position:
        """The position behind the last event; walks the whole chain."""
        position = Position()
        for _, behind in self.after(Position()):
            position = behind
        return position

    def _parse(self, line: bytes, number: int | None) -> Event:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            raise self._damaged(number, "is not JSON") from None
        event = Event.read(data)
        if event is None:
            raise self._damaged(number, "is not an event")
        if _hash({k: v for k, v in data.items() if k != "hash"}) != event.hash:
            raise self._damaged(number, "was changed: its hash does not match")
        return event

    def _damaged(self, line: int | None, what: str) -> PlatformError:
        place = f"{self.path}:{'' if line is None else line}"
        return PlatformError(
            "the event log was changed or damaged",
            why=f"{place} {what}.",
            fix="runner store verify lists everything that is wrong; restore events.jsonl from a backup, then runner store rebuild",
            code="E307",
        )


def _loosely(line: bytes) -> Event | None:
    """What a line says, whether or not its hash fits; None when it cannot be read as an event."""
    try:
        event = Event.read(json.loads(line))
        return event if event and isinstance(event.seq, int) and event.type in TYPES else None
    except (ValueError, RecursionError, TypeError):
        return None


def _hash(body: Mapping[str, Any]) -> str:
    try:
        return schemas.digest(body)
    except (ValueError, UnicodeEncodeError):  # NaN or half of a surrogate pair in a forged line
        return ""
