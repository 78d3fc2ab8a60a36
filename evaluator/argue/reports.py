"""Reports in every form that is about, read into one model (:mod:`evaluator.argue.writing` writes one).

===================  ===========================================================================================
form                 shape
===================  ===========================================================================================
current              ``metadata``, ``responses`` of ``text`` and ``citations`` (ids, or an object id -> number)
TREC RAG             ``answer`` for ``responses``, ``narrative_id`` for ``topic_id``, citations as positions (from
                     0) in ``references``
TREC RAG 2024        the same with ``run_id`` and ``topic_id`` beside ``answer``, without ``metadata``
old                  ``request_id``, ``run_id``, ``sentences``
reference reports    ``request_id`` and ``report``, a list of ``[text, [ids]]`` pairs
===================  ===========================================================================================

The citation styles may even be mixed within a report. Nothing here raises for what a participant can write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluator.argue.lines import parse, parse_lines
from evaluator.argue.models import Document, Report, Sentence
from evaluator.findings import CODES, Log, show
from evaluator.formats.lines import reporting
from schemas.jsonl import kind_of

MAX_LINE = 32 << 20  # a report may carry its documents
MAX_SENTENCES = 5_000
MAX_CITATIONS = 1_000  # of one sentence
MAX_ID = 512  # characters
MAX_BROKEN = 1_000
KEYS = ("responses", "answer", "sentences", "report")
REFERENCE_RUN = "reference"  # the run id of reference reports, which have none

Say = Callable[[str, str], None]  # (finding code, message)


def read_reports(
    path: Path, log: Log, *, max_bytes: int | None = None, follow: bool = False
) -> Iterator[Report]:
    """The reports of a JSON Lines file, plain or gzip; everything wrong with the form goes to ``log``.

    A line with an error in its form yields what could be read of it, if it has a topic and sentences at all; the log
    is invalid then. Topics, limits and tracks are checked by :mod:`evaluator.argue.checking`. ``follow``: the file may be
    a link, because whoever reads it has named it.
    """
    broken = found = number = 0
    with reporting(log, max_bytes):
        for line in parse_lines(path, max_line=MAX_LINE, max_bytes=max_bytes, follow=follow):
            number = line.number
            if line.bom:
                log.add("F331", 1, "the file begins with a byte order mark")
            report = None
            if line.code:
                log.add(line.code, number, line.reason)
            else:
                report = parse_report(
                    line.value, partial(_note, log, number, _topic_bytes(line.value)), number
                )
            if report is not None:
                found += 1
                yield report
                continue
            broken += 1
            if broken >= MAX_BROKEN and not found:
                log.add("F335", number, f"none of the first {broken:,} lines is a report")
                break
        if not number:
            log.add("F001", None, "the file holds no report")
    log.lines = number


def _note(log: Log, line: int, topic: bytes | None, code: str, message: str) -> None:
    log.add(code, line, message, topic)


def report_of(data: Any) -> Report:
    """The report in one object. Raises :class:`ValueError` that lists everything that is an error."""
    problems: list[str] = []

    def say(code: str, message: str) -> None:
        if CODES[code].severity == "error":
            problems.append(f"{code}: {message}")

    report = parse_report(data, say)
    if problems or report is None:
        raise ValueError("; ".join(problems[:50]) or "no report")
    return report


def report_from_json(text: str | bytes) -> Report:
    """The report in one line. Raises :class:`ValueError`."""
    try:
        raw = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise ValueError("F301: the text has half of a surrogate pair") from None
    line = parse(0, raw)
    if line.code:
        raise ValueError(f"{line.code}: {line.reason}")
    return report_of(line.value)


def parse_report(data: Any, say: Say, line: int | None = None) -> Report | None:
    """The report in one JSON value, having told ``say`` what is wrong; None without a topic, run or sentences."""
    if not isinstance(data, dict):
        say("F302", f"there is {kind_of(data)}")
        return None
    metadata = data.get("metadata")
    key = _key(data, say)
    # The last is how runs of TREC RAG 2024 are written.
    old = "metadata" not in data and (
        key in ("sentences", "report") or (key == "answer" and "topic_id" in data)
    )
    if old:
        metadata = {k: v for k, v in data.items() if k not in (*KEYS, "references", "documents", "questions")}
        if "topic_id" not in metadata:
            metadata["topic_id"] = metadata.pop("request_id", None)
        if key == "report":
            metadata.setdefault("run_id", REFERENCE_RUN)
    elif not isinstance(metadata, dict):
        say("F303", "there is no metadata" if metadata is None else f"metadata is {kind_of(metadata)}")
        metadata = None
    topic = run = team = None
    if metadata is not None:
        topic = topic_id(metadata, say)
        run = _name(metadata, "run_id", say)
        team = "" if old and "team_id" not in metadata else _name(metadata, "team_id", say)
    references = _references(data, say)
    rows = data.get(key) if key else None
    if key and not isinstance(rows, list):
        say("F305", f"{key} is {kind_of(rows)}, not a list")
        rows = None
    if rows is None or topic is None or run is None or metadata is None:
        return None
    if len(rows) > MAX_SENTENCES:
        say("F333", f"the report has {len(rows):,} sentences; at most {MAX_SENTENCES:,} are read")
        rows = rows[:MAX_SENTENCES]
    reader = _Citations(references, say)
    sentences = [_sentence(row, i, key == "report", reader, say) for i, row in enumerate(rows, 1)]
    collections = metadata.get("collection_ids")
    return Report(
        topic_id=topic,
        run_id=run,
        sentences=tuple(s for s in sentences if s is not None),
        team_id=team or "",
        metadata=metadata,
        references=references,
        documents=_documents(data, say),
        collection_ids=_texts(collections),
        style="mixed" if len(reader.styles) > 1 else next(iter(reader.styles), "none"),
        key=key or KEYS[0],
        line=line,
    )


def topic_id(metadata: Mapping[str, Any], say: Say) -> str | None:
    """The topic of a report: ``topic_id``, ``narrative_id`` or ``request_id``; the first two have to agree."""
    found: dict[str, str] = {}
    for key in ("topic_id", "narrative_id", "request_id"):
        value = metadata.get(key)
        if isinstance(value, str) and value.strip():
            found[key] = value
        elif isinstance(value, int) and not isinstance(value, bool):
            found[key] = str(value)
        elif value is not None:
            say("F303", f"{key} is {'empty' if value == '' else kind_of(value)}")
            return None
    if not found:
        say("F303", "there is no topic_id in metadata")
        return None
    first = next(iter(found.values()))
    if found.get("narrative_id", first) != first:
        say("F304", f"topic_id is {show(first)}, but narrative_id is {show(found['narrative_id'])}")
        return None
    return _checked_id(first, "topic_id", say)


def _topic_bytes(data: Any) -> bytes | None:
    """The topic for findings, before anything is checked."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    found = topic_id(metadata, lambda *_: None) if isinstance(metadata, dict) else None
    return None if found is None else found.encode()


def _key(data: Mapping[str, Any], say: Say) -> str | None:
    there = [key for key in KEYS if key in data]
    if len(there) > 1:
        say("F305", f"there are both {there[0]} and {there[1]}")
    elif not there:
        say("F305", "there are no responses")
    return there[0] if len(there) == 1 else None


def _name(metadata: Mapping[str, Any], key: str, say: Say) -> str | None:
    value = metadata.get(key)
    if isinstance(value, str) and value.strip():
        return _checked_id(value, key, say)
    if value is None:
        say("F303", f"there is no {key} in metadata")
    else:
        say("F303", f"{key} is {'empty' if isinstance(value, str) else kind_of(value)}")
    return None


def _checked_id(value: str, what: str, say: Say) -> str | None:
    if len(value) > MAX_ID:
        say("F333", f"{what} has {len(value):,} characters; at most {MAX_ID} are read")
        return None
    if not value.isprintable():
        say("F333", f"{what} {show(value)} has a control character")
        return None
    return value


def _references(data: Mapping[str, Any], say: Say) -> tuple[str, ...] | None:
    listed = data.get("references")
    if listed is None:
        return None
    if not isinstance(listed, list):
        say("F338", f"references is {kind_of(listed)}, not a list")
        return None
    wrong = next((i for i, r in enumerate(listed) if not isinstance(r, str)), None)
    if wrong is not None:
        say("F338", f"references holds {kind_of(listed[wrong])} at position {wrong}")
    return tuple(r if isinstance(r, str) else "" for r in listed)  # positions stay what they are


def _documents(data: Mapping[str, Any], say: Say) -> dict[str, Document]:
    """The documents that the report itself carries."""
    carried = data.get("documents")
    if carried is None:
        return {}
    if not isinstance(carried, dict):
        say("F336", f"documents is {kind_of(carried)}, not an object")
        return {}
    found: dict[str, Document] = {}
    broken: list[str] = []
    for name, value in carried.items():
        text = value.get("text") if isinstance(value, dict) else value
        title = value.get("title") if isinstance(value, dict) else None
        if isinstance(text, str) and len(name) <= MAX_ID:
            found[name] = Document(name, text, title if isinstance(title, str) else "")
        else:
            broken.append(name)
    if broken:
        say("F336", f"{len(broken):,} of the documents have no text, the first is {show(broken[0])}")
    return found


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _sentence(row: Any, at: int, pairs: bool, reader: _Citations, say: Say) -> Sentence | None:
    if pairs:
        legal = isinstance(row, list) and len(row) == 2
        row = {"text": row[0], "citations": row[1]} if legal else row
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        there = "has no text" if isinstance(row, dict) else f"is {kind_of(row)}"
        say("F306", f"sentence {at} {there}")
        return None
    return reader.sentence(row, at)


class _Citations:
    """Reads the citations of one report's sentences, in any style."""

    def __init__(self, references: tuple[str, ...] | None, say: Say) -> None:
        self.references = references
        self.say = say
        self.styles: set[str] = set()

    def sentence(self, row: Mapping[str, Any], at: int) -> Sentence:
        if "citations" not in row:
            self.say("F307", f"sentence {at} has no citations")
        cited = row.get("citations", [])
        scores: dict[str, float] = {}
        if isinstance(cited, dict):
            ids = self._scored(cited, at, scores)
        elif isinstance(cited, list):
            ids = self._listed(cited, at)
        else:
            self.say("F307", f"the citations of sentence {at} are {kind_of(cited)}")
            ids = []
        distinct = tuple(dict.fromkeys(ids))
        if len(distinct) != len(ids):
            seen: set[str] = set()
            twice = next(d for d in ids if d in seen or seen.add(d))  # type: ignore[func-returns-value]
            self.say("F327", f"sentence {at} cites {show(twice)} more than once")
        if len(distinct) > MAX_CITATIONS:
            self.say(
                "F333", f"sentence {at} has {len(distinct):,} citations; at most {MAX_CITATIONS:,} are read"
            )
            distinct = distinct[:MAX_CITATIONS]
        return Sentence(row["text"], distinct, scores)

    def _scored(self, cited: Mapping[str, Any], at: int, scores: dict[str, float]) -> list[str]:
        if cited:
            self.styles.add("scores")
        ids = []
        for name, value in cited.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                self.say("F309", f"the score of citation {show(name)} in sentence {at} is {kind_of(value)}")
            else:
                scores[name] = value
            if self._legal(name, at):
                ids.append(name)
        return ids

    def _listed(self, cited: Sequence[Any], at: int) -> list[str]:
        ids = []
        for one in cited:
            if isinstance(one, str):
                self.styles.add("list")
                if self._legal(one, at):
                    ids.append(one)
            elif isinstance(one, int) and not isinstance(one, bool):
                self.styles.add("index")
                if (found := self._position(one, at)) is not None:
                    ids.append(found)
            else:
                self.say("F307", f"sentence {at} has {kind_of(one)} as a citation")
        return ids

    def _position(self, position: int, at: int) -> str | None:
        if self.references is None:
            self.say("F308", f"sentence {at} cites position {_short(position)}, but there are no references")
            return None
        if not 0 <= position < len(self.references):
            count = len(self.references)
            self.say(
                "F308", f"sentence {at} cites position {_short(position)} of {count:,} references (from 0)"
            )
            return None
        return self.references[position] or None  # an empty one was reported already

    def _legal(self, name: str, at: int) -> bool:
        if name.strip() == "":
            self.say("F307", f"sentence {at} cites an empty document id")
            return False
        return _checked_id(name, f"a document id in sentence {at}", self.say) is not None


def _short(number: int) -> str:
    text = str(number)
    return text if len(text) <= 20 else f"{text[:20]}..."
