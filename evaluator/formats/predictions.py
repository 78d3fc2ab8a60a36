"""Ranked candidates as JSON Lines: one ``{"query_id": 0, "relevant_candidates": [2019017, ...]}`` per query.

The file is streamed, and everything wrong in it is reported with its line. A JSON array of the same objects is
accepted as well. ``schemas/diversity-prediction.schema.json`` describes one object; the checks here are made
by hand because a schema validator takes a hundred times as long, and a test proves that both agree.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.findings import Log, Unknown, show
from evaluator.formats.files import Source
from evaluator.formats.lines import BROKEN, numbered, parse_or_report, reporting
from evaluator.formats.mistaken import no_json_lines
from schemas.jsonarray import array_rows
from schemas.jsonl import Rules as Strictness
from schemas.jsonl import Twice, decoder, kind_of

KEY, ALIAS = "relevant_candidates", "retrieved_candidates"
MAX_LINE = 4 << 20  # bytes of one object
CHUNK = 1 << 20
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class Rules(NamedTuple):
    """What predictions are checked against.

    ``queries``: ids to be answered; ``candidates``: ids that may be listed; ``kept``: how many candidates of a list
    are returned; ``least``: shorter lists get a warning; ``most``: longer ones are cut, with a warning; ``repeats``:
    whether repeated candidates are scored, not refused; ``suggest``: name the id that was probably meant (public
    data only).
    """

    queries: frozenset[int]
    candidates: frozenset[int]
    kept: int
    least: int
    most: int
    repeats: bool = False
    suggest: bool = False


def read_predictions(
    path: str | Path, rules: Rules, log: Log, *, max_bytes: int | None = None
) -> dict[int, list[int]]:
    """Return the first ``kept`` candidates of every query that is answered; report everything wrong to ``log``.

    Never raises for anything a participant can write. Queries without an answer are missing in the result.
    """
    reader = _Predictions(rules, log)
    with reporting(log, max_bytes):
        if said := no_json_lines(path, arrays=True):
            log.add("F101", 1, said)
            if log.invalid:
                return {}
        with Source(path, max_bytes) as source:
            reader.read(source.read)
        if not reader.objects:
            log.add("F001", None, "the file holds no prediction")
        else:
            reader.summarise()
            if not reader.broken:
                reader.missing()
            reader.unmatched()
    return reader.found


class _Predictions:
    """Checks objects one by one and keeps the beginning of every list."""

    def __init__(self, rules: Rules, log: Log) -> None:
        self.rules, self.log = rules, log
        self.found: dict[int, list[int]] = {}
        self.first: dict[int, int] = {}  # query -> line of its first answer
        self.objects = 0
        self.broken = False  # what follows could not be read, so nobody knows what is missing
        self.listed = 0  # candidates, each once a query
        ours = (lambda: self._texts(rules.queries), lambda: self._texts(rules.candidates))
        queries, candidates = ours if rules.suggest else (None, None)
        self._queries = Unknown(log, "F109", "queries", "the dataset", queries)
        self._candidates = Unknown(log, "F111", "candidates", "the corpus", candidates)
        self._known: dict[frozenset[int], list[str]] = {}

    def read(self, read: Callable[[int], bytes]) -> None:
        """Check what ``read(size)`` gives."""
        head = b""
        while len(head) < 4 or not head.strip():  # up to the first character that says what this is
            piece = read(CHUNK)
            if not piece:
                break
            head += piece
            if len(head) > MAX_LINE:
                break
        if head.startswith(codecs.BOM_UTF8):
            self.log.add("F118", 1, "the file begins with a byte order mark")
            head = head[3:]
        if head.lstrip()[:1] == b"[":
            self._array(head, read)
        else:
            self._lines(head, read)

    def _lines(self, head: bytes, read: Callable[[int], bytes]) -> None:
        pieces = chain((head,), iter(partial(read, CHUNK), b""))
        for number, line in numbered(
            lambda _: next(pieces, b""), self.log, MAX_LINE, too_long="F117", gaps=True
        ):
            self.objects += 1
            if not line:
                continue  # it was too long
            data = parse_or_report(line, number, self.log, _decoder.decode)
            if data is not BROKEN:
                self.one(data, number)

    def _array(self, head: bytes, read: Callable[[int], bytes]) -> None:
        pieces = chain((head,), iter(partial(read, CHUNK), b""))
        for line, value, fault in array_rows(lambda _: next(pieces, b""), MAX_LINE, _STRICTNESS):
            self.log.lines = line
            self.objects += 1
            if fault is None:
                self.one(value, line)
            elif fault.kind == "encoding":
                self.broken = True
                self.log.add("F005", line, "the file is not UTF-8 from about here on")
            elif fault.kind == "syntax":
                self.broken = True
                self.log.add("F101", line, f"the array is broken from here on: {show(fault.detail)}")
            else:
                self.log.add(
                    "F101", line, "the entry holds a number that is none of JSON, or is nested too deeply"
                )

    def one(self, data: Any, line: int) -> None:
        """Check one object and keep the beginning of its list."""
        log = self.log
        if not isinstance(data, dict):
            log.add("F102", line, f"there is {kind_of(data)}")
            return
        if isinstance(data, Twice) and (doubled := sorted(data.doubled & {"query_id", KEY, ALIAS})):
            log.add("F105", line, f"the key {doubled[0]} is there twice")
        query, refused = _integer(data.get("query_id")), ""
        topic = None if query is None else str(query).encode()
        if query is None:
            there = f"query_id is {_show(data['query_id'])}" if "query_id" in data else "there is no query_id"
            log.add("F103", line, there)
        if KEY in data and ALIAS in data:
            log.add("F105", line, f"there are both {KEY} and {ALIAS}", topic)
        listed = data.get(KEY, data.get(ALIAS))
        if not isinstance(listed, list):
            there = f"{KEY} is {kind_of(listed)}" if KEY in data or ALIAS in data else f"there is no {KEY}"
            log.add("F104", line, there, topic)
            listed = None
        if query is not None and topic is not None:
            refused = self._refused(query, line, topic)
        if listed is None or (refused and log.severity[refused] != "error"):
            return  # it is left out; of predictions that are not scored everything is said
        numbers = self._integers(listed, line, topic)
        if query is None or topic is None:
            return
        checked = self._checked(query, numbers, len(listed), line, topic)
        if not refused:
            self.found[query] = checked

    def _refused(self, query: int, line: int, topic: bytes) -> str:
        """The code of the finding for which an answer is left out, which is reported; "" for an answer that counts."""
        if query not in self.rules.queries:
            self.log.add(
                "F109", line, f"there is no query {_id(query)}{self._queries.add(str(query))}", topic
            )
            return "F109"
        if query in self.first:
            what = f"query {query} was answered in line {self.first[query]:,} already"
            self.log.add("F108", line, what, topic)
            return "F108"
        self.first[query] = line
        return ""

    def _integers(self, listed: list[Any], line: int, topic: bytes | None) -> list[int]:
        """The candidates as integers; those that are none are reported and left out."""
        if set(map(type, listed)) <= {int}:
            return listed
        numbers: list[int] = []
        broken = texts = 0
        first = ""
        for rank, value in enumerate(listed, 1):
            number = _integer(value)
            if number is None:
                broken += 1
                first = first or f"the candidate at rank {rank:,} is {_show(value)}"
                continue
            if isinstance(value, str):
                texts += 1
            numbers.append(number)
        if broken:
            self.log.add("F106", line, first, topic, times=broken)
        if texts:
            self.log.add(
                "F107", line, f"{texts:,} candidate{' is' if texts == 1 else 's are'} written as text", topic
            )
        return numbers

    def _checked(self, query: int, numbers: list[int], written: int, line: int, topic: bytes) -> list[int]:
        """The beginning of a query's list, of which ``written`` candidates stand in the file."""
        log, rules = self.log, self.rules
        if len(numbers) > rules.most:
            log.add("F116", line, f"query {query} has {len(numbers):,} candidates: only the first {rules.most:,} count", topic)  # fmt: skip
            numbers = numbers[: rules.most]
        if not written:
            log.add("F115", line, f"query {query} has no candidate", topic)
        elif written < rules.least:
            count = "one candidate" if written == 1 else f"{written} candidates"
            log.add("F114", line, f"query {query} has {count}, the largest cut-off is {rules.least}", topic)
        distinct = set(numbers)
        self.listed += len(numbers)
        if not rules.candidates >= distinct:
            self._unknown(query, numbers, line, topic)
        if len(distinct) != len(numbers):
            self._repeated(query, numbers, line, topic)
            if not rules.repeats:
                numbers = list(dict.fromkeys(numbers))
        return numbers[: rules.kept]

    def _unknown(self, query: int, numbers: list[int], line: int, topic: bytes) -> None:
        for rank, number in enumerate(numbers, 1):
            if number in self.rules.candidates:
                continue
            message, near = "", self._candidates.add(str(number))
            if self.log.wants("F111"):
                message = f"there is no argument {_id(number)} (rank {rank:,} of query {query}){near}"
            self.log.add("F111", line, message, topic)

    def _texts(self, ids: frozenset[int]) -> list[str]:
        if ids not in self._known:
            self._known[ids] = list(map(str, sorted(ids)))
        return self._known[ids]

    def summarise(self) -> None:
        """Say first what unknown queries and candidates come to."""
        self._queries.summarise(len(self.first))
        self._candidates.summarise(max(0, self.listed - self._candidates.count))

    def _repeated(self, query: int, numbers: list[int], line: int, topic: bytes) -> None:
        first: dict[int, int] = {}
        for rank, number in enumerate(numbers, 1):
            if first.setdefault(number, rank) == rank:
                continue
            message = (
                f"argument {number} of query {query} is at rank {first[number]:,} and again at rank {rank:,}"
            )
            self.log.add("F113" if self.rules.repeats else "F112", line, message, topic)

    def missing(self) -> None:
        """Report the queries that nobody answered."""
        for query in sorted(self.rules.queries - self.first.keys()):
            self.log.add("F110", None, f"query {query} is not answered", str(query).encode())

    def unmatched(self) -> None:
        """Report predictions that have nothing to do with the dataset, where the task tolerates each of them."""
        if self.log.invalid:
            return
        if not self.first:
            self.log.add("F028", None, "no query of the dataset is answered")
        elif self.listed and self._candidates.count >= self.listed:
            self.log.add("F029", None, "no candidate of the run is in the corpus")


def _id(number: int) -> str:
    """An integer, shortened."""
    text = str(number)
    return text if len(text) <= 30 else f"{text[:30]}..."


def _integer(value: Any) -> int | None:
    """The integer that a JSON value stands for: itself, an equal float, or digits in quotes."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return None


_STRICTNESS = Strictness(duplicates="mark", bounded=False)
_decoder = decoder(_STRICTNESS)


def _show(value: Any) -> str:
    if isinstance(value, list | dict | bool) or value is None:
        return kind_of(value)
    return show(str(value)) if isinstance(value, str) or abs(value) < 1e30 else "a number too large"
