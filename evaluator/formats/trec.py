"""The one seam through which TREC run files are read: bytes in, findings and ranks of judged documents out.

The file is streamed in chunks that are cut where the topic changes, so memory does not grow with its length.
A chunk takes the first of three ways that understands it; all three follow the same rules and are tested
against each other:

1. :mod:`evaluator.formats.trec_fast` (numpy, large files only): chunks without anything unusual,
2. :meth:`RunReader._columns`: legal chunks of any shape, in pure Python but with the loops in C,
3. :meth:`RunReader._by_line`: a chunk with anything wrong in it, line by line, to name the place.

Documents are ordered as trec_eval does: score falling, ties by document id (as bytes) falling; the rank column
and the order of lines do not count. Scores are compared in single precision, as trec_eval 9, pytrec_eval and
ir_measures hold them, unless ``double`` is asked for (trec_eval 10).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, islice
from math import inf, isfinite, isnan
from operator import itemgetter, lt
from pathlib import Path
from typing import NamedTuple, Protocol

from evaluator.findings import Log, nearest, show
from evaluator.formats.blocks import BOM, MAX_LINE, SMALL_CHUNK, Block, WholeLines, cut, regroup
from evaluator.formats.files import Source, Unreadable

MAX_TAGS = 100  # different tags that are told apart
LARGE_CHUNK = 4 << 20
LARGE_FILE = 10_000_000  # bytes; from here on importing numpy pays
CONTROLS = bytes(c for c in range(32) if c not in (9, 10, 13))
_BLANK_RUN = b" " * 4096
_SCORE_CHARS = b"0123456789.eE+-"
SCORE = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_RANK = re.compile(rb"[+-]?[0-9]{1,18}")
_TAG = re.compile(rb"[A-Za-z0-9._-]{1,40}")


class KnownDocuments(Protocol):
    """The ids of a corpus: says which of some ids are not in it."""

    def missing(self, docs: Collection[bytes]) -> Collection[bytes]:
        """Return those of ``docs`` that are not documents of the corpus."""
        ...

    def ids(self) -> Iterator[bytes]:
        """Every id, for suggestions."""
        ...


class Ranked(NamedTuple):
    """What one topic retrieved: how many documents, and the rank (from 1) of each judged one among them.

    ``first`` holds the first documents by the rank column, as many as :class:`Rules` asked for.
    """

    retrieved: int
    ranks: dict[bytes, int]
    first: tuple[bytes, ...] = ()


class Rules:
    """What a run is checked against. None switches a check off.

    ``topics``: ids that may be answered; ``documents``: ids that may be listed; ``max_documents`` per topic;
    ``judged``: topic -> documents whose ranks are wanted; ``first``: how many documents of each topic are wanted
    by the rank column, whatever their scores (0: none); ``double``: compare scores in double precision;
    ``suggest``: name the id that was probably meant (public data only).
    """

    __slots__ = ("documents", "double", "first", "judged", "max_documents", "suggest", "topics")

    def __init__(
        self,
        *,
        topics: frozenset[bytes] | None = None,
        documents: KnownDocuments | None = None,
        max_documents: int | None = None,
        judged: Mapping[bytes, Collection[bytes]] | None = None,
        first: int = 0,
        double: bool = False,
        suggest: bool = False,
    ) -> None:
        self.topics = topics
        self.documents = documents
        self.max_documents = max_documents
        self.judged = judged or {}
        self.first = first
        self.double = double
        self.suggest = suggest


class Scan(NamedTuple):
    """A run that has been read: ``topics`` (answered topics in order of the file) and its ``tag``.

    ``strange`` tells whether there were results for topics that the dataset does not have.
    """

    topics: dict[bytes, Ranked]
    tag: bytes | None
    strange: bool = False


class Ungrouped(Exception):
    """A topic comes back after another one: the lines have to be grouped first."""


class FastPath(Protocol):
    """A faster way through a chunk; returns False if the chunk has anything unusual in it."""

    def __call__(self, reader: RunReader, data: bytes, lines: Sequence[int]) -> bool: ...


MAX_BROKEN = 200_000  # lines that are broken before the rest is not read any more
BROKEN_LINES = ("F005", "F007", "F009", "F010", "F013", "F014", "F025")


def scan(
    path: str | Path,
    rules: Rules,
    log: Log,
    *,
    max_bytes: int | None = None,
    chunk: int | None = None,
    fast: bool | None = None,
) -> Scan:
    """Read the run at ``path`` once, report everything wrong with it to ``log``, and return what it ranks.

    ``chunk`` (bytes read at once) and ``fast`` (numpy or not) are chosen by size when None. Never raises for
    anything a participant can write.
    """
    kept = log.checkpoint()
    try:
        with Source(path, max_bytes) as source:
            large = source.size >= LARGE_FILE // (4 if source.gzip else 1)
            fast = large if fast is None else fast
            reader = RunReader(rules, log, _fast_path(rules) if fast else None)
            chunk = chunk or (LARGE_CHUNK if fast else SMALL_CHUNK)
            whole = WholeLines(source, max_bytes, log)
            try:
                return reader.run(cut(whole.read, chunk, log, reader.dropped), whole)
            except Ungrouped:
                log.restore(kept)
        with Source(path, max_bytes) as source:
            reader = RunReader(rules, log, None)
            whole = WholeLines(source, max_bytes, log)
            parts = []
            while part := whole.read(LARGE_CHUNK):
                parts.append(part)
            reader.grouped = True
            return reader.run(regroup(b"".join(parts), log, rules.topics, reader.dropped), whole)
    except Unreadable as error:
        log.add("F002", None, str(error))
    return Scan({}, None)


def _fast_path(rules: Rules) -> FastPath:
    from evaluator.formats.trec_fast import make

    return make(rules)


class RunReader:
    """Checks blocks of lines against the rules and collects the ranks of judged documents."""

    def __init__(self, rules: Rules, log: Log, fast: FastPath | None) -> None:
        self.rules = rules
        self.log = log
        self.tag: bytes | None = None
        self.tags: set[bytes] = set()
        self.topics: dict[bytes, Ranked] = {}
        self.seen: set[bytes] = set()  # topics of all lines so far, also of broken ones
        self.grouped = False  # the blocks were grouped by topic already
        self.dropped: set[bytes] = set()  # topics with more lines than can be held
        self.left_out = 0  # lines, also empty ones
        self.strange = False  # there were topics that the dataset does not have
        self._fast = fast
        self._counting: list[bytes] = []
        self._known_ids: list[str] | None = None

    def run(self, blocks: Iterator[Block], whole: WholeLines) -> Scan:
        """Read all blocks and return what the run ranks. Raises :class:`Ungrouped`."""
        first = True
        for data, lines in blocks:
            if first:
                first = False
                if data.startswith(BOM):
                    self.log.add("F006", 1, "the file begins with a byte order mark")
                    data = data[3:]
            self.log.lines += len(lines)
            if not (self._fast is not None and self._fast(self, data, lines)):
                self.slow(data, lines)
                if self._hopeless():
                    break
        for topic in self.dropped:
            self.topics.pop(topic, None)
        if self.log.lines == 0:
            if not whole.broke_off:
                self.log.add("F001", None, "the file is empty")
        elif not (self.topics or self.strange or self.dropped or self.log.invalid):
            self.log.add("F001", None, "the file has no line with a result")
        return Scan(self.topics, self.tag, self.strange)

    def _hopeless(self) -> bool:
        """Whether so many lines were broken that reading on would only cost time (a small gz can hold millions)."""
        broken = self.left_out
        if self.log.invalid:  # then lines that would count otherwise are of no use either
            broken = max(broken, sum(self.log.counts.get(code, 0) for code in BROKEN_LINES))
        if broken <= MAX_BROKEN:
            return False
        last = self.log.lines
        message = f"{broken:,} of the first {last:,} lines are broken or empty; the rest was not read"
        self.log.add("F027", last, message)
        return True

    def slow(self, data: bytes, lines: Sequence[int]) -> None:
        """Read one block without numpy."""
        if not self._columns(data, lines):
            self._by_line(data, lines)

    def _columns(self, data: bytes, lines: Sequence[int]) -> bool:
        """Read a block whose every line is legal. Returns False, having done nothing, if it is not sure."""
        n = len(lines)
        windows, number = -1, 0
        if b"\r" in data:
            windows = data.index(b"\r")
            if data.count(b"\r\n") != data.count(b"\r"):
                return False
            number = data.count(b"\n", 0, windows)
            data = data.replace(b"\r\n", b"\n")
        if len(data.translate(None, CONTROLS)) != len(data) or _BLANK_RUN in data:
            return False
        if not data.isascii() and not _is_utf8(data):
            return False
        words = data.split()
        if len(words) != 6 * n or n == 0:
            return False
        tag = words[5]
        # Every line ends in the tag, and the tag is nowhere but in the sixth column: so each line has six.
        if data.count(b" " + tag + b"\n") + data.count(b"\t" + tag + b"\n") != n:
            if not all(len(line.split(None, 6)) == 6 for line in data.splitlines()):
                return False
        elif words.count(tag) != n and not all(len(line.split(None, 6)) == 6 for line in data.splitlines()):
            return False
        tags, docs, scores, ranks = words[5::6], words[2::6], words[4::6], words[3::6]
        if tags.count(tag) != n or (self.tag is not None and tag != self.tag) or len(tag) > 1000:
            return False
        if words[1::6].count(b"Q0") != n or max(map(len, docs)) > 1000:
            return False
        digits = b"".join(ranks)
        if not digits.isdigit() or max(map(len, ranks)) > 18:
            return False
        numbers = b"".join(scores)
        if numbers.translate(None, _SCORE_CHARS) or max(map(len, scores)) > 1000:
            return False
        try:
            values = list(map(float, scores))
        except ValueError:
            return False
        if not (isfinite(max(values)) and isfinite(min(values))):
            return False
        groups = [(topic, sum(1 for _ in same)) for topic, same in groupby(words[0::6])]
        if max(len(topic) for topic, _ in groups) > 1000:
            return False
        self.check_groups([topic for topic, _ in groups])
        if self.tag is None:
            self.first_tag(tag, lines[0])
        if windows >= 0:
            self.windows(lines[number])
        start = 0
        for topic, count in groups:
            end = start + count
            self.take(topic, docs[start:end], ranks[start:end], values[start:end], lines[start:end])
            start = end
        return True

    def check_groups(self, topics: list[bytes]) -> None:
        """Raise :class:`Ungrouped` if one of a block's groups of lines belongs to a topic that came before."""
        if self.grouped:
            return
        known = self.rules.topics
        if known is not None:
            topics = [topic for topic in topics if topic in known]
        if len(set(topics)) != len(topics) or not self.seen.isdisjoint(topics):
            raise Ungrouped
        self.seen.update(topics)

    def first_tag(self, tag: bytes, line: int) -> None:
        """Note the run's tag."""
        self.tag = tag
        self.tags.add(tag)
        if _TAG.fullmatch(tag) is None:
            self.log.add("F016", line, f"the run tag is {show(tag)}")

    def windows(self, line: int) -> None:
        """Report, once a file, a line that ends as in Windows."""
        if self.log.once("F008"):
            self.log.add("F008", line, "the line ends with carriage return and newline")

    def _by_line(self, data: bytes, lines: Sequence[int]) -> None:
        """Read a block line by line, report every broken line, and go on with the others."""
        log = self.log
        legal: list[tuple[int, tuple[bytes, bytes, bytes, float, int]]] = []  # with the number of its group
        present: list[bytes] = []  # topics of all lines, also of broken ones, to see ungrouped files
        windows: int | None = None
        for raw, number in zip(data.split(b"\n"), lines, strict=False):
            line = raw
            if line.endswith(b"\r"):
                windows = number if windows is None else windows
                line = line[:-1]
            if len(line) > MAX_LINE:
                log.add("F009", number, f"the line is longer than {MAX_LINE:,} bytes")
                self.left_out += 1
                continue
            words = line.split()
            if words and (not present or present[-1] != words[0]):
                present.append(words[0])
            row = self._line(line, words, number)
            if row is not None:
                legal.append((len(present), row))
            else:
                self.left_out += 1
        self.check_groups(present)
        if windows is not None:
            self.windows(windows)
        for _, rows in groupby(legal, key=itemgetter(0)):
            topics, docs, ranks, scores, numbers = zip(*(row for _, row in rows), strict=True)
            self.take(topics[0], list(docs), list(ranks), list(scores), numbers)

    def _line(
        self, line: bytes, words: list[bytes], number: int
    ) -> tuple[bytes, bytes, bytes, float, int] | None:
        """Check one line; returns topic, document, rank, score and number, or None if it is left out.

        A line counts if its fields can be told apart and its score has a place in an order, whatever was found.
        """
        log = self.log
        if len(line.translate(None, CONTROLS + b"\r")) != len(line):
            bad = next(c for c in line if c in CONTROLS or c == 13)
            log.add("F007", number, f"the line holds the character U+{bad:04X}")
        if not line.isascii() and not _is_utf8(line):
            log.add("F005", number, f"the line is not UTF-8: {show(line)}")
        if not words:
            log.add("F025", number, "the line is empty")
            return None
        if len(words) != 6:
            if log.wants("F010"):  # a million of them should not cost a million messages
                count = f"{len(words):,} column{'' if len(words) == 1 else 's'}"
                log.add("F010", number, f"the line has {count}, not 6: {show(line)}")
            else:
                log.add("F010", number, "")
            if len(words) < 6:
                return None
        topic, q0, doc, rank, score, tag = words[:6]
        if q0 != b"Q0":
            log.add("F011", number, f"the second column is {show(q0)}", topic)
        if self.tag is None:
            self.first_tag(tag, number)
        elif tag != self.tag and tag not in self.tags and len(self.tags) < MAX_TAGS:
            self.tags.add(tag)
            log.add("F015", number, f"the run tag is {show(tag)} here, but {show(self.tag)} before")
        if _RANK.fullmatch(rank) is None:
            log.add("F013", number, f"the rank is {show(rank)}", topic)
        value = float(score) if SCORE.fullmatch(score) is not None else None
        if value is None or not isfinite(value):
            log.add("F014", number, f"the score is {show(score)}", topic)
            value = _any_number(score)
        return None if value is None else (topic, doc, rank, value, number)

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
                docs, scores, lines = (
                    [docs[i] for i in order],
                    [scores[i] for i in order],
                    [lines[i] for i in order],
                )
            index = dict(zip(docs, range(n), strict=True))
        keys = scores if rules.double else array("f", scores).tolist()
        self._ties(docs, scores, keys, lines)
        judged = rules.judged.get(topic, ())
        found = {}
        for doc in judged:
            i = index.get(doc)
            if i is not None:
                found[doc] = trec_rank(i, docs, keys)
        self.keep(topic, n, found, first)

    def _first(self, docs: list[bytes], ranks: list[bytes]) -> tuple[bytes, ...]:
        """The first documents by the rank column; equal ranks stay in the order of the file."""
        k = self.rules.first
        if ranks != self._counted(ranks[0], len(ranks)):
            numbers = _rank_numbers(ranks)
            docs = [docs[i] for i in sorted(range(len(docs)), key=numbers.__getitem__)[:k]]
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
            close = nearest(
                topic[:200].decode("utf-8", "replace"),
                (t.decode("utf-8", "replace") for t in self.rules.topics),
            )
            hint = f" (did you mean {show(close)}?)" if close else ""
        self.log.add("F017", line, f"the dataset has no topic {show(topic)}{hint}", topic)

    def _unknown_document(self, topic: bytes, doc: bytes, line: int) -> None:
        documents = self.rules.documents
        hint = ""
        # Looking for similar ids costs time, so only the first few are explained.
        if self.rules.suggest and documents is not None and self.log.counts.get("F019", 0) < 5:
            if self._known_ids is None:
                self._known_ids = [i.decode("utf-8", "replace") for i in islice(documents.ids(), 1_000_000)]
            close = nearest(doc[:200].decode("utf-8", "replace"), self._known_ids)
            hint = f" (did you mean {show(close)}?)" if close else ""
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
        kept = []
        for i, doc in enumerate(docs):
            before = first.setdefault(doc, i)
            if before == i:
                kept.append(i)
            else:
                where = f"(first at line {lines[before]})"
                self.log.add(
                    "F012",
                    lines[i],
                    f"document {show(doc)} is listed twice for topic {show(topic)} {where}",
                    topic,
                )
        return (
            [docs[i] for i in kept],
            [ranks[i] for i in kept],
            [scores[i] for i in kept],
            [lines[i] for i in kept],
        )

    def _by_rank(
        self, topic: bytes, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> tuple[list[bytes], list[float], Sequence[int]]:
        """Order one topic by its rank column; report ranks given twice and scores that rise with rank."""
        numbers = _rank_numbers(ranks)
        if not all(map(lt, numbers, numbers[1:])):
            order = sorted(range(len(docs)), key=numbers.__getitem__)
            docs, scores, lines = (
                [docs[i] for i in order],
                [scores[i] for i in order],
                [lines[i] for i in order],
            )
            numbers = [numbers[i] for i in order]
            for i in range(1, len(numbers)):
                if numbers[i] == numbers[i - 1] and numbers[i] < inf:
                    self.log.add(
                        "F022", lines[i], f"rank {numbers[i]:g} is given twice in topic {show(topic)}", topic
                    )
                    break
        for i in range(1, len(scores)):
            if scores[i] > scores[i - 1]:
                self.log.add(
                    "F021",
                    lines[i],
                    f"the score {scores[i]:.9g} is greater than {scores[i - 1]:.9g} at the rank before, in topic {show(topic)}",
                    topic,
                )
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


def trec_rank(i: int, docs: Sequence[bytes], keys: Sequence[float]) -> int:
    """The rank (from 1) that trec_eval gives document ``i`` of a list sorted by falling key."""
    key = keys[i]
    n = len(keys)
    if (i == 0 or keys[i - 1] != key) and (i + 1 == n or keys[i + 1] != key):
        return i + 1
    begin, end = i, i + 1
    while begin and keys[begin - 1] == key:
        begin -= 1
    while end < n and keys[end] == key:
        end += 1
    doc = docs[i]
    return begin + 1 + sum(1 for other in docs[begin:end] if other > doc)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _rank_numbers(ranks: list[bytes]) -> list[int] | list[float]:
    """What a topic's ranks are in numbers; ranks that are none (F013) go behind all others."""
    if all(map(_RANK.fullmatch, ranks)):
        return list(map(int, ranks))
    return [inf if (number := _any_number(rank)) is None else number for rank in ranks]


def _any_number(text: bytes) -> float | None:
    """A number as :func:`float` reads it, infinity too, but no NaN."""
    if b"_" in text or len(text) > 1000:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if isnan(number) else number
