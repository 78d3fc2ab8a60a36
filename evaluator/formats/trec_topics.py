"""The lines of one topic of a TREC run, checked together: duplicates, ranks, ties, unknown ids; and the ranks that count."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from math import inf, isnan
from operator import lt
from typing import TypeVar

from evaluator.findings import Log, nearest, show
from evaluator.formats.ranked import Ranked, Rules, trec_rank

V = TypeVar("V")
RANK = re.compile(rb"[+-]?[0-9]{1,18}")


class TopicReader:
    """Checks the lines of each topic against the rules and keeps the ranks of its judged documents."""

    def __init__(self, rules: Rules, log: Log) -> None:
        self.rules = rules
        self.log = log
        self.topics: dict[bytes, Ranked] = {}
        self.strange = False  # there were topics that the dataset does not have
        self._counting: list[bytes] = []
        self._known_ids: list[str] | None = None

    def take(
        self, topic: bytes, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> None:
        """Check the lines of one topic together, and keep the ranks of its judged documents."""
        rules, log = self.rules, self.log
        if rules.topics is not None and topic not in rules.topics:
            self.unknown_topic(topic, lines[0])
            return
        n = len(docs)
        first = self._first(docs, ranks) if rules.first else ()
        index = dict(zip(docs, range(n), strict=True))
        if len(index) != n:
            docs, ranks, scores, lines = self._duplicates(topic, docs, ranks, scores, lines)
            n = len(docs)
            index = dict(zip(docs, range(n), strict=True))
        if rules.documents is not None:
            missing = rules.documents.missing(index)
            for doc in sorted(missing, key=index.__getitem__):
                self._unknown_document(topic, doc, lines[index[doc]])
        if rules.max_documents is not None and n > rules.max_documents:
            log.add(
                "F020",
                lines[rules.max_documents],
                f"the topic {show(topic)} has {n:,} documents, at most {rules.max_documents:,} are allowed",
                topic,
            )
        if not (ranks == self._counted(ranks[0], n) and scores == sorted(scores, reverse=True)):
            docs, scores, lines = self._by_rank(topic, docs, ranks, scores, lines)
            order = sorted(range(n), key=scores.__getitem__, reverse=True)  # stable: by score, then by rank
            if order != list(range(n)):
                docs, scores, lines = _picked(docs, order), _picked(scores, order), _picked(lines, order)
            index = dict(zip(docs, range(n), strict=True))
        keys = scores if rules.double else array("f", scores).tolist()
        self._ties(docs, scores, keys, lines)
        judged = (doc for doc in rules.judged.get(topic, ()) if doc in index)
        self.keep(topic, n, {doc: trec_rank(index[doc], docs, keys) for doc in judged}, first)

    def _first(self, docs: list[bytes], ranks: list[bytes]) -> tuple[bytes, ...]:
        """The first documents by the rank column; equal ranks stay in the order of the file."""
        k = self.rules.first
        if ranks != self._counted(ranks[0], len(ranks)):
            numbers = _rank_numbers(ranks)
            docs = _picked(docs, sorted(range(len(docs)), key=numbers.__getitem__)[:k])
        return tuple(docs[:k])

    def keep(
        self, topic: bytes, retrieved: int, ranks: dict[bytes, int], first: tuple[bytes, ...] = ()
    ) -> None:
        """Keep the result of one topic, cut to the allowed number of documents."""
        limit = self.rules.max_documents
        if limit is not None and retrieved > limit:
            retrieved = limit
            ranks = {doc: rank for doc, rank in ranks.items() if rank <= limit}
        self.topics[topic] = Ranked(retrieved, ranks, first)

    def unknown_topic(self, topic: bytes, line: int) -> None:
        """Report a topic that the dataset does not have."""
        self.strange = True
        hint = ""
        if self.rules.suggest and self.rules.topics is not None and self.log.wants("F017"):
            hint = _hint(topic, (t.decode("utf-8", "replace") for t in self.rules.topics))
        self.log.add("F017", line, f"the dataset has no topic {show(topic)}{hint}", topic)

    def _unknown_document(self, topic: bytes, doc: bytes, line: int) -> None:
        documents = self.rules.documents
        hint = ""
        # Looking for similar ids costs time, so only the first few are explained.
        if self.rules.suggest and documents is not None and self.log.counts.get("F019", 0) < 5:
            if self._known_ids is None:
                self._known_ids = [i.decode("utf-8", "replace") for i in islice(documents.ids(), 1_000_000)]
            hint = _hint(doc, self._known_ids)
        self.log.add("F019", line, f"the dataset has no document {show(doc)}{hint}", topic)

    def _counted(self, first: bytes, n: int) -> list[bytes] | None:
        """The ranks 1..n or 0..n-1 as they are usually written, whichever begins with ``first``."""
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
                what = f"document {show(doc)} is listed twice for topic {show(topic)}"
                self.log.add("F012", lines[i], f"{what} (first at line {lines[before]})", topic)
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
                    what = f"rank {numbers[i]:g} is given twice in topic {show(topic)}"
                    self.log.add("F022", lines[i], what, topic)
                    break
        for i in range(1, len(scores)):
            if scores[i] > scores[i - 1]:
                what = f"the score {scores[i]:.9g} is greater than {scores[i - 1]:.9g} at the rank before"
                self.log.add("F021", lines[i], f"{what}, in topic {show(topic)}", topic)
                break
        return docs, scores, lines

    def _ties(self, docs: list[bytes], scores: list[float], keys: list[float], lines: Sequence[int]) -> None:
        """Report, once a file each, that equal scores are ordered by document id and not by rank."""
        log = self.log
        if not (log.once("F023") or (log.once("F024") and keys is not scores)) or len(set(keys)) == len(keys):
            return
        for i in range(1, len(docs)):
            if keys[i] == keys[i - 1] and docs[i] > docs[i - 1]:
                self.tie(scores[i] == scores[i - 1], docs[i], docs[i - 1], lines[i])

    def tie(self, exact: bool, doc: bytes, before: bytes, line: int) -> None:
        """Report, once a file, a document that goes before the one ranked above it because of a tie."""
        code = "F023" if exact else "F024"
        if self.log.once(code):
            how = "the same score" if exact else "scores that are equal in single precision"
            message = f"documents {show(before)} and {show(doc)} have {how}, so the second goes first"
            self.log.add(code, line, message + "; the same may hold for more documents")


def _hint(unknown: bytes, known: Iterable[str]) -> str:
    """Which id was probably meant; "" if none is near."""
    close = nearest(unknown[:200].decode("utf-8", "replace"), known)
    return f" (did you mean {show(close)}?)" if close else ""


def _picked(values: Sequence[V], order: Sequence[int]) -> list[V]:
    """The values at these places."""
    return [values[i] for i in order]


def _rank_numbers(ranks: list[bytes]) -> list[int] | list[float]:
    """What a topic's ranks are in numbers; ranks that are none (F013) go behind all others."""
    if all(map(RANK.fullmatch, ranks)):
        return list(map(int, ranks))
    return [inf if (number := any_number(rank)) is None else number for rank in ranks]


def any_number(text: bytes) -> float | None:
    """A number as :func:`float` reads it, infinity too, but no NaN."""
    if b"_" in text or len(text) > 1000:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if isnan(number) else number
