"""Debates as JSON Lines (``simulations.jsonl``), and the records beside them: turns, and what the index served.

The forms of a line are those of :mod:`schemas.debates`. Files are streamed, plain or gzip; everything wrong is reported
with its line, and nothing that a participant can write raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, Unknown, show
from evaluator.formats.files import Damaged, Source, Unreadable, plain_or_gzip
from evaluator.formats.lines import BROKEN, numbered, parse_or_report, reporting
from evaluator.formats.lines import parse as parse_json
from evaluator.formats.mistaken import no_json_lines
from schemas.debates import Debate, Fault, clean, parse

MAX_LINE = 32 << 20  # bytes of one debate
MAX_RECORD = 1 << 20  # bytes of one line of a record
MAX_SERVED = 5_000_000  # ids that are remembered
MAX_CLAIMS = 100_000
FAILURES = {  # what a driver notes of a turn that has no answer, and what that means
    "timeout": "no answer in time",
    "connection": "the connection broke",
    "status": "a status other than 200",
    "empty": "an empty answer",
    "too-large": "the answer was too large",
    "not-json": "the answer was not JSON",
    "wrong-type": "a value of the wrong type",
    "no-content": "no content",
    "run-limit": "the run's time was over",
    "server-ended": "the server had ended",
}
_FAULTS = {
    "form": "F214",
    "argument": "F213",
    "text": "F211",
    "differs": "F219",
    "size": "F216",
}
_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]*)"')


class Claim(NamedTuple):
    """What a debate is about. ``topic`` is unique in the dataset: the id, and a number if several lines share it."""

    topic: str
    id: str
    text: str


class Read(NamedTuple):
    """One line's debate. ``line`` counts from 1; ``place`` counts debates from 1."""

    line: int
    place: int
    debate: Debate
    faults: Sequence[Fault]


class Held(NamedTuple):
    """A claim of the dataset and the debate about it, if the run has one."""

    claim: Claim
    read: Read | None


class TurnRecord(NamedTuple):
    """What the driver noted about a turn. ``failure`` is the class of the failure, or ""; times are in milliseconds."""

    answered: bool
    failure: str
    detail: str
    system_ms: float | None
    target: int | None


class Served(NamedTuple):
    """The ids of the arguments that the index returned to this run, and whether the record ends too early."""

    ids: frozenset[str]
    cut: bool


def read_debates(path: str | Path, log: Log, *, max_bytes: int | None = None) -> list[Read]:
    """The debates of a file, in its order; everything that is wrong with the file's form goes to ``log``."""
    reads: list[Read] = []
    with reporting(log, max_bytes), Source(path, max_bytes) as source:
        if said := no_json_lines(path):
            log.add("F101", 1, said)
            if log.invalid:
                return []
        lines = numbered(source.read, log, MAX_LINE, too_long="F215", gaps=True)
        # A line that cannot be read keeps its place: those behind it are still about their own claims.
        for at, (number, line) in enumerate(lines, 1):
            read = _debate(line, number, at, log) if line else None
            if read is not None:
                reads.append(read)
            if len(reads) > MAX_CLAIMS:
                what = f"the file holds more than {MAX_CLAIMS:,} debates; the rest was not read"
                log.add("F027", number, what)
                break
    if not reads and not log.invalid and log.counts.keys().isdisjoint(("F002", "F030")):
        log.add("F001", None, "the file holds no debate")
    return reads


def _debate(line: bytes, number: int, place: int, log: Log) -> Read | None:
    data = parse_or_report(line, number, log)
    if data is BROKEN:
        return None
    debate, faults = parse(data)
    if debate is None:
        log.add("F214", number, faults[0].what if faults else "it is none")
        return None
    return Read(number, place, debate, faults)


def report_faults(read: Read, topic: str, log: Log) -> None:
    """Put what :func:`schemas.debates.parse` found wrong with one debate into ``log``."""
    for fault in read.faults:
        code = _FAULTS[fault.kind]
        if fault.turn is None:
            log.add(code, read.line, fault.what, topic.encode())
        else:
            log.add(code, read.line, f"turn {fault.turn}: {fault.what}", turn_key(topic, fault.turn))


def turn_key(topic: str, turn: int) -> bytes:
    """What findings about one turn name as their topic; a defect of it sets that turn to 0, not the debate."""
    return f"{topic}, turn {turn}".encode()


def read_claims(path: Path, broken: Callable[[EvaluatorError], None] | None = None) -> list[Claim]:
    """The claims of a dataset (``id``, ``claim``), in the order of the file. Raises :class:`EvaluatorError`.

    ``broken`` is told what is wrong with a line, if there is one; else that is raised.
    """
    claims: list[Claim] = []
    topics: set[str] = set()
    path = plain_or_gzip(path)
    for number, line in organisers_lines(path, "the claims"):
        try:
            data = organisers_object(path, number, line)
            name, text = data.get("id"), data.get("claim")
            if not isinstance(text, str) or not text.strip():
                fix = 'give every line "id" and "claim"'
                raise EvaluatorError(f"{path.name}:{number} has no claim", fix=fix)
        except EvaluatorError as error:
            if broken is None:
                raise
            broken(error)
            continue
        label = name if isinstance(name, str) and name else str(number)
        claims.append(Claim(distinct(label, topics), name if isinstance(name, str) else "", text))
        if len(claims) > MAX_CLAIMS:
            raise EvaluatorError(f"{path.name} has more than {MAX_CLAIMS:,} claims")
    if not claims:
        raise EvaluatorError(f"{path.name} holds no claims")
    return claims


def distinct(name: str, taken: set[str]) -> str:
    """``name``, or ``name#2`` and so on if it is in ``taken``; the result is added there."""
    made, n = name, 1
    while made in taken:
        n += 1
        made = f"{name}#{n}"
    taken.add(made)
    return made


def place(reads: Sequence[Read], claims: Sequence[Claim], log: Log, *, public: bool = False) -> list[Held]:
    """Each claim with its debate. A debate belongs to the claim in its place unless its own id or claim says otherwise.

    Debates of no claim, of a claim that is taken, out of order, and missing ones are reported to ``log``, which names
    claims of the dataset only if it is ``public``.
    """
    ours = [claim.id or claim.text for claim in claims]
    unknown = Unknown(log, "F204", "debates", "the dataset", (lambda: ours) if public else None)
    slots: list[Read | None] = [None] * len(claims)
    by_id: dict[str, list[int]] = {}
    by_text: dict[str, list[int]] = {}
    for n, claim in enumerate(claims):
        if claim.id:
            by_id.setdefault(claim.id, []).append(n)
        by_text.setdefault(_folded(claim.text), []).append(n)
    later: list[Read] = []
    for read in reads:
        debate, here = read.debate, read.place - 1
        if debate.id:
            fitting = by_id.get(debate.id)
        elif debate.claim:
            fitting = by_text.get(_folded(debate.claim))
        else:  # nothing but its place says which claim it is about
            later.append(read)
            continue
        if fitting is None:
            said = debate.id or debate.claim
            log.add("F204", read.line, f"there is no claim {show(said)}{unknown.add(said)}")
            continue
        free = [n for n in fitting if slots[n] is None]
        slot = here if here in free else next(iter(free), None)
        if slot is None:
            log.add(
                "F205", read.line, f"{show(debate.id or debate.claim)} has been debated in an earlier line"
            )
            continue
        slots[slot] = read
        if slot != here and log.once("F206"):
            log.add("F206", read.line, f"this is the debate of claim {slot + 1:,} of the dataset")
    for read in later:
        here = read.place - 1
        if here < len(slots) and slots[here] is None:
            slots[here] = read
        elif not read.debate.failed:
            log.add(
                "F205", read.line, "nothing says which claim it is about, and the claim in its place is taken"
            )
    unknown.summarise(len(reads) - unknown.count)
    if reads and not any(slots) and not log.invalid:
        log.add("F028", None, "no debate of the run is about a claim of the dataset")
    for claim, slot_read in zip(claims, slots, strict=True):
        if slot_read is None and reads:
            log.add("F203", None, f"there is no debate about claim {show(claim.topic)}", claim.topic.encode())
    return [Held(claim, read) for claim, read in zip(claims, slots, strict=True)]


def unplaced(reads: Sequence[Read]) -> list[Held]:
    """Debates of a file by itself: each is its own topic, by its id or else its line."""
    taken: set[str] = set()
    return [
        Held(Claim(distinct(r.debate.id or str(r.line), taken), r.debate.id, r.debate.claim), r)
        for r in reads
    ]


def _folded(text: str) -> str:
    return " ".join(text.split())


def organisers_lines(path: Path, what: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file of the organiser that are not blank. Raises :class:`EvaluatorError`."""
    log = Log(path.name)
    try:
        with Source(path, follow=True) as source:
            for number, line in numbered(source.read, log, MAX_RECORD, too_long="F215"):
                if log.invalid:
                    break
                yield number, line
    except (Unreadable, Damaged) as error:
        raise EvaluatorError(f"{what} cannot be read", f"{path.name}: {error}") from None
    if log.invalid:
        raise EvaluatorError(f"{what} cannot be read", f"{path.name} has a line of over {MAX_RECORD:,} bytes")


def organisers_object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """The object of such a line. Raises :class:`EvaluatorError`."""
    try:
        data = parse_json(line)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise EvaluatorError(f"{path.name}:{number} is not a JSON object", fix="mend the line")
    return data


def read_turns(path: Path, log: Log) -> dict[tuple[int, int], TurnRecord]:
    """The driver's records by (place of the debate, turn), both from 1; empty if there is no such file.

    A line that is none is reported once, and left out.
    """
    found: dict[tuple[int, int], TurnRecord] = {}
    for number, data in records_of(path):
        debate, turn = (data.get("debate"), data.get("turn")) if data is not None else (None, None)
        if data is None or type(debate) is not int or type(turn) is not int:
            if log.once("F221"):
                log.add("F221", None, f"{path.name}:{number} is not a record of a turn")
            continue
        failure = data.get("failure")
        failure = failure if isinstance(failure, dict) else {}
        ms = data.get("system_ms")
        target = data.get("target")
        found[debate, turn] = TurnRecord(
            data.get("outcome") == "answered",
            _short(failure.get("class")),
            _short(failure.get("detail")),
            float(ms) if isinstance(ms, int | float) and type(ms) is not bool and 0 <= ms < 1e12 else None,
            target if type(target) is int else None,
        )
    return found


def _short(value: Any) -> str:
    return clean(value[:200]) if isinstance(value, str) else ""


def records_of(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Lines of a record beside the run: objects, or None for what is none. Nothing if the file cannot be read."""
    number, log = 0, Log(path.name)
    try:
        with Source(path) as source:
            for number, line in numbered(source.read, log, MAX_RECORD, too_long="F215"):
                try:
                    data = parse_json(line)
                except ValueError:
                    data = None
                yield number, data if isinstance(data, dict) else None
    except Unreadable:
        return
    except Damaged:
        yield number + 1, None
    if log.invalid:
        yield number + 1, None


def read_served(path: Path) -> Served | None:
    """What the index returned to this run, or None if there is no record. Unreadable lines count as cut."""
    if not path.exists():
        return None
    ids: set[str] = set()
    cut = False
    for _, data in records_of(path):
        hits = data.get("hits", []) if data is not None else None
        if data is None or not isinstance(hits, list) or data.get("truncated"):
            cut = True
            continue
        if len(ids) > MAX_SERVED:
            return Served(frozenset(ids), True)
        ids.update(hit for hit in hits if isinstance(hit, str))
    return Served(frozenset(ids), cut)


def index_file(folder: Path) -> Path | None:
    """``arguments.jsonl`` or ``arguments.jsonl.gz`` of a folder, or None."""
    path = plain_or_gzip(folder / "arguments.jsonl")
    return path if path.is_file() else None


def read_index(path: Path, wanted: Collection[str]) -> dict[str, str]:
    """The texts of the ``wanted`` arguments that are in the index, by id. Raises :class:`EvaluatorError`.

    The file is read once and only what is wanted is kept: an index of 300,000 arguments costs no memory.
    """
    found: dict[str, str] = {}
    raw = {one.encode() for one in wanted}
    for number, line in organisers_lines(path, "the index's arguments"):
        match = _ID.match(line)
        if match is not None and match[1] not in raw:
            continue
        data = organisers_object(path, number, line)
        name, text = data.get("id", data.get("_id")), data.get("text")
        if not isinstance(text, str):
            raise EvaluatorError(f"{path.name}:{number} is not an argument", fix="mend the index's data")
        if isinstance(name, str) and name in wanted:
            found.setdefault(name, clean(text))
    return found
