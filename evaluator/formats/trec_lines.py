"""The lines of a TREC run: block by block, by columns where every line is legal, else line by line."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import chain, compress, groupby, pairwise
from math import isfinite, nan
from typing import Protocol

from evaluator.findings import Log, show
from evaluator.formats.blocks import BOM, MAX_LINE, SMALL_CHUNK, Block, Notes, WholeLines, parts
from evaluator.formats.ranked import Examined, Rules, Scan
from evaluator.formats.trec_topics import RANK, Group, TopicReader, any_number

MAX_TAGS = 100  # different tags that are told apart
MAX_BROKEN = 200_000  # lines that are broken before the rest is not read any more
BROKEN_LINES = ("F005", "F007", "F009", "F010", "F013", "F014", "F025")
CONTROLS = bytes(c for c in range(32) if c not in (9, 10, 13))
_NEVER = CONTROLS + b"\r"  # in a line without its end
_BLANK_RUN = b" " * 4096
_SCORE_CHARS = b"0123456789.eE+-"
SCORE = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TAG = re.compile(rb"[A-Za-z0-9._-]{1,40}")


class Ungrouped(Exception):
    """A topic comes back after another one: the lines have to be grouped first."""


class Ahead(Protocol):
    """A faster way: looks at blocks before the reader has them."""

    def __call__(self, blocks: Iterator[Block]) -> Generator[tuple[Block, Examined | None]]:
        """The blocks with what each says; None where there is anything unusual in it."""


class RunReader(TopicReader):
    """Checks blocks of lines against the rules and collects the ranks of judged documents."""

    def __init__(self, rules: Rules, log: Log, ahead: Ahead | None = None) -> None:
        super().__init__(rules, log)
        self.tag: bytes | None = None
        self.tags: set[bytes] = set()
        self.seen: set[bytes] = set()  # topics of all lines so far, also of broken ones
        self.grouped = False  # the blocks were grouped by topic already
        self.dropped: set[bytes] = set()  # topics with more lines than can be held
        self.left_out = 0  # lines, also empty ones
        self._group: Group | None = None  # lines of a topic whose last line has not been read
        self._last_topic: bytes | None = None  # of the last line of the part before, in the same block
        self._ahead = ahead

    def run(self, blocks: Iterator[Block], whole: WholeLines, notes: Notes) -> Scan:
        """Read all blocks and return what the run ranks. Raises :class:`Ungrouped`."""
        looked: Generator[tuple[Block, Examined | None]]
        looked = ((block, None) for block in blocks) if self._ahead is None else self._ahead(blocks)
        first = True
        with closing(looked):
            for (data, lines, left), examined in looked:
                left.tell(self.log)
                if first:
                    first = False
                    if data.startswith(BOM):
                        self.log.add("F006", 1, "the file begins with a byte order mark")
                        data, examined = data[3:], None
                self.log.lines += len(lines)
                if examined is None or not self.accept(examined):
                    self.slow(data, lines)
                    if self._hopeless():
                        break
            else:
                notes.taken().tell(self.log)
        for topic in self.dropped:
            self.topics.pop(topic, None)
        self.summarise()
        self.report_ties()
        if self.log.lines == 0:
            if not whole.broke_off:
                self.log.add("F001", None, "the file is empty")
        elif not (self.topics or self.strange.count or self.dropped or self.log.invalid):
            self.log.add("F001", None, "the file has no line with a result")
        return Scan(self.topics, self.tag, self.strange.count > 0, self.ties)

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

    def accept(self, block: Examined) -> bool:
        """Take in a block by what it says. Returns False, having done nothing, if it does not fit to those before."""
        if self.tag not in (None, block.tag) or not self.seen.isdisjoint(block.topics):
            return False
        self.seen.update(block.topics)
        if self.tag is None:
            self.first_tag(block.tag, block.first_line)
        if block.windows is not None:
            self.windows(block.windows)
        for code, tie in block.ties.items():
            self.tie(code == "F023", *tie)
        for topic, found in block.topics.items():
            self.listed += found.retrieved
            self.topics[topic] = found
        return True

    def slow(self, data: bytes, lines: Sequence[int]) -> None:
        """Read one block without numpy, in parts whose fields fit into the processor's cache."""
        self._last_topic = None
        for part, numbers in parts(data, lines, SMALL_CHUNK):
            if not self.take_columns(part, numbers):
                self._by_line(part, numbers)
        self._take_group()

    def _collect(
        self, topic: bytes, docs: list[bytes], ranks: list[bytes], scores: list[float], lines: Sequence[int]
    ) -> None:
        """Hold the lines of a topic until the last of them has been read, which may be in a later part."""
        if self._group is not None and self._group.topic == topic:
            self._group.extend(docs, ranks, scores, lines)
        else:
            self._take_group()
            self._group = Group(topic, docs, ranks, scores, lines)

    def _take_group(self) -> None:
        """Check the lines that are held, and let go of them."""
        group, self._group = self._group, None
        if group is not None:
            self.take(group.topic, group.docs, group.ranks, group.scores, group.lines)

    def take_columns(self, data: bytes, lines: Sequence[int]) -> bool:
        """Read a block whose every line has six fields, and report what is wrong with them.

        Returns False, having done nothing, if it is not sure.
        """
        windows, number = -1, 0
        if b"\r" in data:
            windows = data.index(b"\r")
            if data.count(b"\r\n") != data.count(b"\r"):
                return False
            number = data.count(b"\n", 0, windows)
            data = data.replace(b"\r\n", b"\n")
        words = _six_a_line(data, len(lines))
        if not words:
            return False
        docs, ranks, scores = words[2::6], words[3::6], words[4::6]
        values = finite_decimals(scores)
        odd = _odd(words[1::6], ranks, [] if values else scores, words[5::6], self.tag or words[5])
        groups = [(topic, len(list(same))) for topic, same in groupby(words[0::6])]
        shown = chain([words[5]], docs, () if values else scores, *(words[6 * i : 6 * i + 6] for i in odd))
        if max(map(len, chain(shown, (topic for topic, _ in groups)))) > 1000:
            return False
        self.check_groups([topic for topic, _ in groups])
        if self.tag is None:
            self.first_tag(words[5], lines[0])
        kept = [True] * len(lines) if odd else []
        values = values or [nan if i in odd else float(score) for i, score in enumerate(scores)]
        for i in sorted(odd):
            row = words[6 * i : 6 * i + 6]
            found = self._reported(b" ".join(row), row, lines[i])
            if found is None:
                kept[i] = False
            else:
                values[i] = found[3]
        if windows >= 0:
            self.windows(lines[number])
        start = 0
        for topic, count in groups:
            here = slice(start, start + count)
            start += count
            some = kept[here]
            if all(some):
                self._collect(topic, docs[here], ranks[here], values[here], lines[here])
            elif any(some):
                docs_left, ranks_left = list(compress(docs[here], some)), list(compress(ranks[here], some))
                scores_left, lines_left = (
                    list(compress(values[here], some)),
                    list(compress(lines[here], some)),
                )
                self._collect(topic, docs_left, ranks_left, scores_left, lines_left)
        return True

    def check_groups(self, topics: list[bytes]) -> None:
        """Raise :class:`Ungrouped` if one of a part's groups of lines belongs to a topic that came before."""
        if self.grouped:
            return
        last, self._last_topic = self._last_topic, topics[-1] if topics else self._last_topic
        if topics and topics[0] == last:
            topics = topics[1:]  # the group goes on from the part before
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
        raw = data.split(b"\n")[: len(lines)]
        if b"\r" in data:
            windows = next((i for i, line in enumerate(raw) if line.endswith(b"\r")), None)
            raw = [line.removesuffix(b"\r") for line in raw]
        else:
            windows = None
        long = max(map(len, raw)) > MAX_LINE
        rows = [[] if long and len(line) > MAX_LINE else line.split() for line in raw]
        present: list[bytes] = []  # topics of all lines, also of broken ones, to see ungrouped files
        starts: list[int] = []  # of each group of lines
        last = None
        for i, words in enumerate(rows):
            if words and words[0] != last:
                last = words[0]
                present.append(last)
                starts.append(i)
        kept: list[tuple[bytes, bytes, bytes, bytes | float] | None]
        kept = [(w[0], w[2], w[3], w[4]) if len(w) == 6 else None for w in rows]
        for i in self._odd_lines(data, raw, rows):
            kept[i] = self._reported(raw[i], rows[i], lines[i])
        self.check_groups(present)
        if windows is not None:
            self.windows(lines[windows])
        for begin, end in pairwise([*starts, len(rows)]):
            some = [row for row in kept[begin:end] if row]
            if some:
                numbers = [
                    number for number, row in zip(lines[begin:end], kept[begin:end], strict=True) if row
                ]
                topics, docs, ranks, scores = zip(*some, strict=True)
                self._collect(topics[0], list(docs), list(ranks), list(map(float, scores)), numbers)

    def _odd_lines(self, data: bytes, raw: list[bytes], rows: list[list[bytes]]) -> list[int]:
        """Which lines of a block have to be looked at by themselves: all with anything wrong, and the first with a tag.

        ``raw`` are its lines without their ends, ``rows`` their fields.
        """
        odd = {i for i, words in enumerate(rows) if len(words) != 6}
        tag = self.tag
        if tag is None:
            first, tag = next(((i, words[5]) for i, words in enumerate(rows) if len(words) > 5), (0, b""))
            odd.add(first)
        usual = [i for i in range(len(rows)) if i not in odd]
        q0s, ranks, scores, tags = ([rows[i][k] for i in usual] for k in (1, 3, 4, 5))
        odd.update(usual[i] for i in _odd(q0s, ranks, [] if finite_decimals(scores) else scores, tags, tag))
        if len(data.translate(None, _NEVER)) != len(data):
            odd.update(i for i, line in enumerate(raw) if len(line.translate(None, _NEVER)) != len(line))
        if not _is_utf8(data):
            odd.update(i for i, line in enumerate(raw) if not _is_utf8(line))
        return sorted(odd)

    def _reported(
        self, line: bytes, words: list[bytes], number: int
    ) -> tuple[bytes, bytes, bytes, float] | None:
        """Check one line, and report what is wrong with it: what :meth:`_line` returns."""
        if len(line) > MAX_LINE:
            self.log.add("F009", number, f"the line is longer than {MAX_LINE:,} bytes")
            row = None
        else:
            row = self._line(line, words, number)
        self.left_out += row is None
        return row

    def _line(self, line: bytes, words: list[bytes], number: int) -> tuple[bytes, bytes, bytes, float] | None:
        """Check one line; returns topic, document, rank and score, or None if it is left out.

        A line counts if its fields can be told apart and its score has a place in an order, whatever was found. Of a run
        that is not scored those without a number are read, too, with NaN.
        """
        log = self.log
        if len(line.translate(None, _NEVER)) != len(line):
            bad = next(c for c in line if c in CONTROLS or c == 13)
            log.add("F007", number, f"the line holds the character U+{bad:04X}")
        if not _is_utf8(line):
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
        if RANK.fullmatch(rank) is None:
            log.add("F013", number, f"the rank is {show(rank)}", topic)
        value = float(score) if SCORE.fullmatch(score) is not None else None
        if value is None or not isfinite(value):
            why = "" if value is None else ", too large for double precision, which ends at about 1.8e308"
            log.add("F014", number, f"the score is {show(score)}{why}", topic)
            value = any_number(score)
            if value is None and log.severity["F014"] == "error":
                self.unscored, value = True, nan  # what else is wrong with the line is said, too
        return None if value is None else (topic, doc, rank, value)


def _six_a_line(data: bytes, n: int) -> list[bytes]:
    """The fields of ``n`` lines, if they are six on each for sure and hold no strange bytes; else none."""
    if len(data.translate(None, CONTROLS)) != len(data) or _BLANK_RUN in data or not _is_utf8(data):
        return []
    words = data.split()
    if len(words) != 6 * n or n == 0:
        return []
    tag = words[5]
    # Every line ends in the tag, and the tag is nowhere but in the sixth column: so each line has six.
    ends = data.count(b" " + tag + b"\n")
    if ends != n:
        ends += data.count(b"\t" + tag + b"\n")
    sure = ends == n and words.count(tag) == n and words[5::6].count(tag) == n
    return words if sure or all(len(line.split(None, 6)) == 6 for line in data.splitlines()) else []


def _odd(
    q0s: list[bytes], ranks: list[bytes], scores: list[bytes], tags: list[bytes], tag: bytes
) -> set[int]:
    """The places of lines that have something unusual in these columns, or another tag than ``tag``."""
    odd: set[int] = set()
    if q0s.count(b"Q0") != len(q0s):
        odd.update(i for i, q0 in enumerate(q0s) if q0 != b"Q0")
    if tags.count(tag) != len(tags):
        odd.update(i for i, other in enumerate(tags) if other != tag)
    if not _are_ranks(ranks):
        odd.update(i for i, rank in enumerate(ranks) if RANK.fullmatch(rank) is None)
    for i, score in enumerate(scores):
        if SCORE.fullmatch(score) is None or not isfinite(float(score)):
            odd.add(i)
    return odd


def _are_ranks(ranks: list[bytes]) -> bool:
    """Whether all are written as ranks usually are, in digits only."""
    return b"".join(ranks).isdigit() and max(map(len, ranks)) <= 18


def finite_decimals(texts: list[bytes]) -> list[float] | None:
    """The numbers, if all are finite decimals."""
    if b"".join(texts).translate(None, _SCORE_CHARS) or max(map(len, texts), default=0) > 1000:
        return None
    try:
        values = list(map(float, texts))
    except ValueError:
        return None
    if isfinite(sum(values)):  # then all are; the sum of some that are finite need not be
        return values
    return values if all(map(isfinite, values)) else None


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
