"""The lines of one topic of a TREC run, checked together: duplicates, ranks, ties, unknown ids; and the ranks that count."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from itertools import compress, count, islice
from math import inf, isnan
from operator import eq, lt
from typing import TypeVar

from evaluator.findings import Log, Unknown, show
from evaluator.formats.ranked import NOTHING, Ranked, Rules, trec_rank

V = TypeVar("V")
RANK = re.compile(rb"[+-]?[0-9]{1,18}")


class Group:
    """The lines of one topic, as columns.

    Equal values of later parts are one object, so repeated lines need little memory.
    """

    def __init__(
        self, topic: bytes, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> None:
        self.topic, self.docs, self.ranks, self.scores, self.lines = topic, docs, ranks, scores, lines

    def extend(
        self, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> None:
        """Add lines behind those that are held."""
        self.docs += _shared(docs)
        self.ranks += _shared(ranks)
        self.scores += _shared(scores)
        if not isinstance(self.lines, array):
            self.lines = array("q", self.lines)
        self.lines.extend(lines)


class TopicReader:
    """Checks the lines of each topic against the rules and keeps the ranks of its judged documents."""

    def __init__(self, rules: Rules, log: Log) -> None:
        self.rules = rules
        self.log = log
        self.topics: dict[bytes, Ranked] = {}
        public = rules.suggest
        self.strange = Unknown(log, "F017", "topics", "the dataset", self._topic_ids if public else None)
        self.unlisted = Unknown(
            log, "F019", "documents", "the corpus", self._document_ids if public else None
        )
        self.listed = 0  # documents that were compared with the corpus
        self.unscored = False  # there were lines whose score is no number, in a run that is not scored
        self.ties: dict[str, tuple[int, str]] = {}  # code -> line and message of the first
        self._counting: list[bytes] = []
        self._known_ids: list[str] | None = None

    def take(
        self, topic: bytes, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> None:
        """Check the lines of one topic together, and keep the ranks of its judged documents."""
        rules = self.rules
        known = rules.topics is None or topic in rules.topics
        if not known:
            self.unknown_topic(topic, lines[0])
            if self.log.severity["F017"] != "error":
                return  # its lines are left out; of a run that is not scored everything is said
        first = self._first(docs, ranks) if rules.first and known else ()
        index = dict(zip(docs, range(n := len(docs)), strict=True))
        if len(index) != n:
            docs, ranks, scores, lines = self._duplicates(topic, docs, ranks, scores, lines)
            index = dict(zip(docs, range(n := len(docs)), strict=True))
        self._documents(topic, index, lines)
        if self.unscored and any(map(isnan, scores)):
            kept = [i for i, score in enumerate(scores) if not isnan(score)]
            docs, ranks, scores = _picked(docs, kept), _picked(ranks, kept), _picked(scores, kept)
            lines, n = _picked(lines, kept), len(kept)
            index = dict(zip(docs, range(n), strict=True))
        if not (ranks == self._counted(ranks, n) and scores == sorted(scores, reverse=True)):
            docs, scores, lines = self._by_rank(topic, docs, ranks, scores, lines)
            order = sorted(range(n), key=scores.__getitem__, reverse=True)  # stable: by score, then by rank
            if order != list(range(n)):
                docs, scores, lines = _picked(docs, order), _picked(scores, order), _picked(lines, order)
            index = dict(zip(docs, range(n), strict=True))
        keys = scores if rules.double else array("f", scores).tolist()
        self._ties(docs, scores, keys, lines)
        if known:
            judged = (doc for doc in rules.judged.get(topic, ()) if doc in index)
            ranked = {doc: trec_rank(index[doc], docs, keys) for doc in judged}
            untied = {doc: index[doc] + 1 for doc, rank in ranked.items() if rank != index[doc] + 1}
            exact = ranked if rules.double else {doc: trec_rank(index[doc], docs, scores) for doc in ranked}
            double = exact if exact != ranked else None
            self.keep(topic, Ranked(n, ranked or NOTHING, first, untied or NOTHING, double))

    def _documents(self, topic: bytes, index: Mapping[bytes, int], lines: Sequence[int]) -> None:
        """Report documents of one topic that the corpus does not have, and too many of them."""
        rules, n = self.rules, len(index)
        if rules.documents is not None:
            missing = rules.documents.missing(index)
            self.listed += n
            for doc in sorted(missing, key=index.__getitem__):
                self._unknown_document(topic, doc, lines[index[doc]])
        if rules.max_documents is not None and n > rules.max_documents:
            what = f"the topic {show(topic)} has {n:,} documents, at most {rules.max_documents:,} are allowed"
            self.log.add("F020", lines[rules.max_documents], what, topic)

    def _first(self, docs: list[bytes], ranks: list[bytes]) -> tuple[bytes, ...]:
        """The first documents by the rank column; equal ranks stay in the order of the file."""
        k = self.rules.first
        if ranks != self._counted(ranks, len(ranks)):
            numbers = _rank_numbers(ranks)
            docs = _picked(docs, sorted(range(len(docs)), key=numbers.__getitem__)[:k])
        return tuple(docs[:k])

    def keep(self, topic: bytes, found: Ranked) -> None:
        """Keep the result of one topic, cut to the allowed number of documents."""
        limit = self.rules.max_documents
        if limit is not None and found.retrieved > limit:
            double = None if found.double is None else _cut(found.double, limit)
            found = Ranked(limit, _cut(found.ranks, limit), found.first, double=double)
        self.topics[topic] = found

    def unknown_topic(self, topic: bytes, line: int) -> None:
        """Report a topic that the dataset does not have."""
        hint = self.strange.add(topic.decode("utf-8", "replace"))
        self.log.add("F017", line, f"the dataset has no topic {show(topic)}{hint}", topic)

    def _unknown_document(self, topic: bytes, doc: bytes, line: int) -> None:
        hint = self.unlisted.add(doc.decode("utf-8", "replace"))
        self.log.add("F019", line, f"the dataset has no document {show(doc)}{hint}", topic)

    def _topic_ids(self) -> list[str]:
        return [topic.decode("utf-8", "replace") for topic in self.rules.topics or ()]

    def _document_ids(self) -> list[str]:
        if self._known_ids is None and self.rules.documents is not None:
            ids = islice(self.rules.documents.ids(), 1_000_000)
            self._known_ids = [one.decode("utf-8", "replace") for one in ids]
        return self._known_ids or []

    def summarise(self) -> None:
        """Say first what unknown topics and documents come to."""
        self.strange.summarise(len(self.topics), len(self.strange.ids))
        self.unlisted.summarise(self.listed - self.unlisted.count)

    def _counted(self, ranks: list[bytes], n: int) -> list[bytes] | None:
        """The ranks 1..n or 0..n-1 as they are usually written, whichever begins as ``ranks`` do."""
        first = ranks[0] if ranks else b""
        if first not in (b"0", b"1"):
            return None
        counting = self._counting
        if len(counting) <= n:
            counting.extend(str(i).encode() for i in range(len(counting), n + 1))
        return counting[:n] if first == b"0" else counting[1 : n + 1]

    def _duplicates(
        self, topic: bytes, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> tuple[list[bytes], list[bytes], list[float], Sequence[int]]:
        """Report documents listed twice, and keep the first line of each."""
        first: dict[bytes, int] = {}
        for i, doc in enumerate(docs):
            before = first.setdefault(doc, i)
            if before != i:
                what = ""
                if self.log.wants("F012"):  # a million of them should not cost a million messages
                    what = f"document {show(doc)} is listed twice for topic {show(topic)} (first at line {lines[before]})"
                self.log.add("F012", lines[i], what, topic)
        kept = list(first.values())
        return _picked(docs, kept), _picked(ranks, kept), _picked(scores, kept), _picked(lines, kept)

    def _by_rank(
        self, topic: bytes, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> tuple[list[bytes], list[float], Sequence[int]]:
        """Order one topic by its rank column; report ranks given twice and scores that rise with rank."""
        numbers = _rank_numbers(ranks)
        if not all(map(lt, numbers, numbers[1:])):
            order = sorted(range(len(docs)), key=numbers.__getitem__)
            docs, scores, lines = _picked(docs, order), _picked(scores, order), _picked(lines, order)
            numbers = _picked(numbers, order)
            for i in range(1, len(numbers)):
                if numbers[i] == numbers[i - 1] and numbers[i] < inf:
                    what = f"rank {numbers[i]:.17g} is given twice in topic {show(topic)}"
                    self.log.add("F022", lines[i], what, topic)
                    break
        for i in range(1, len(scores)):
            if scores[i] > scores[i - 1]:
                high, low = told_apart(scores[i], scores[i - 1])
                what = f"the score {high} is greater than {low} at the rank before"
                self.log.add("F021", lines[i], f"{what}, in topic {show(topic)}", topic)
                break
        return docs, scores, lines

    def _ties(self, docs: list[bytes], scores: list[float], keys: list[float], lines: Sequence[int]) -> None:
        """Note the first equal scores, and the first equal in single precision, that are not in the order of the ranks."""
        if "F023" in self.ties and ("F024" in self.ties or keys is scores):
            return
        tied = list(map(eq, keys[1:], keys))
        if True not in tied or ("F023" in self.ties and tied == list(map(eq, scores[1:], scores))):
            return  # there are none, or none in single precision alone
        for i in compress(count(1), tied):
            if docs[i] > docs[i - 1]:
                self.tie(scores[i] == scores[i - 1], docs[i], docs[i - 1], lines[i])

    def tie(self, exact: bool, doc: bytes, before: bytes, line: int) -> None:
        """Note, once a file, a document that goes before the one ranked above it because of a tie."""
        code = "F023" if exact else "F024"
        if code not in self.ties:
            how = "the same score" if exact else "scores that are equal in single precision"
            message = f"documents {show(before)} and {show(doc)} have {how}, so the second goes first"
            self.ties[code] = line, message

    def report_ties(self) -> None:
        """Report ties where the task refuses them; elsewhere they are worth a word only if they change a score."""
        for code, (line, message) in self.ties.items():
            if self.log.severity[code] in ("error", "defect"):
                self.log.add(code, line, message)


def _cut(ranks: Mapping[bytes, int], limit: int) -> dict[bytes, int]:
    """The ranks up to ``limit``."""
    return {doc: rank for doc, rank in ranks.items() if rank <= limit}


def _shared(values: list[V]) -> list[V]:
    """Return the values, with the same object for equal values."""
    first: dict[V, V] = {}
    return [first.setdefault(value, value) for value in values]


def _picked(values: Sequence[V], order: Sequence[int]) -> list[V]:
    """The values at these places."""
    return [values[i] for i in order]


def _rank_numbers(ranks: list[bytes]) -> list[int] | list[float]:
    """What a topic's ranks are in numbers; ranks that are none (F013) go behind all others."""
    if all(map(RANK.fullmatch, ranks)):
        return list(map(int, ranks))
    return [inf if (number := any_number(rank)) is None else number for rank in ranks]


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Two different numbers as people read them: with nine digits, or where these are the same with all that they have."""
    short = f"{one:.9g}", f"{other:.9g}"
    return short if short[0] != short[1] else (repr(one), repr(other))


def any_number(text: bytes) -> float | None:
    """A number as :func:`float` reads it, infinity too, but no NaN."""
    if b"_" in text or len(text) > 1000:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if isnan(number) else number
