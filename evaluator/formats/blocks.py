"""Cutting run files into blocks of whole lines that do not break a topic apart."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from evaluator.findings import Log, show
from evaluator.formats.files import Damaged, Source, TooLarge

MAX_LINE = 65_536  # bytes; longer lines are F009
MAX_TOPIC = 64 << 20  # bytes of consecutive lines of one topic that are held; more is F026
SMALL_CHUNK = 1 << 17
BOM = b"\xef\xbb\xbf"
_UNKNOWN = b" "  # no topic: an id holds no blank

Lines = tuple[bytes, Sequence[int]]  # whole lines, and the number of each


class Note(NamedTuple):
    """A finding about what was left out while a file was cut."""

    code: str
    line: int | None
    message: str
    topic: bytes | None = None


class Notes:
    """Findings made while a file is cut, until those about the lines before them were made: it may be cut ahead."""

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self.lines = 0  # that were left out

    def add(self, code: str, line: int | None, message: str, topic: bytes | None = None) -> None:
        """Note a finding, as :meth:`Log.add` would."""
        self._notes.append(Note(code, line, message, topic))

    def taken(self) -> Left:
        """What was noted since the last time."""
        left = Left(self._notes, self.lines)
        self._notes, self.lines = [], 0
        return left


class Left(NamedTuple):
    """What was left out before a block: findings about it, and how many lines it was."""

    notes: Sequence[Note]
    lines: int

    def tell(self, log: Log) -> None:
        """Make the findings."""
        for note in self.notes:
            log.add(*note)
        log.lines += self.lines


class Block(NamedTuple):
    """Whole lines, the number of each, and what was left out before them."""

    data: bytes
    lines: Sequence[int]
    left: Left


def noted(blocks: Iterator[Lines], notes: Notes) -> Iterator[Block]:
    """The blocks, each with what was noted since the one before."""
    for data, lines in blocks:
        yield Block(data, lines, notes.taken())


def count_lines(data: bytes, start: int, end: int) -> int:
    """How many lines end in ``data[start:end]``."""
    return data.count(b"\n", start, end)


class WholeLines:
    """Reads a file up to its end, or up to the last whole line before it is damaged or too large, and reports that."""

    def __init__(self, source: Source, max_bytes: int | None, log: Notes, skip: int = 0) -> None:
        self._source, self._max_bytes, self._log = source, max_bytes, log
        self._skip = skip  # bytes at the beginning that are left out, whole lines
        self._rest = b""  # a line whose end has not come yet
        self.broke_off = False

    def read(self, n: int, before: bytes = b"") -> bytes:
        """About ``n`` bytes behind those ``before`` them; nothing more than these at the end."""
        while not self.broke_off:
            try:
                piece = self._source.read(n)
                if self._skip and piece:
                    self._skip, piece = max(0, self._skip - len(piece)), piece[self._skip :]
                    if not piece:
                        continue
            except TooLarge:
                self._end("F004", f"the file holds more than {self._max_bytes:,} bytes (unpacked)")
            except Damaged as error:
                self._end("F003", f"the gzip data is damaged or ends too early ({show(str(error))})")
            else:
                # A line that is too long is passed on as it comes: whoever cuts lines does not hold it either.
                end = piece.rfind(b"\n") + 1 if piece and len(self._rest) <= MAX_LINE else len(piece)
                data = b"".join((before, self._rest, memoryview(piece)[:end]))
                if end or not piece:
                    self._rest = piece[end:]
                    return data
                self._rest += piece
        return before

    def _end(self, code: str, message: str) -> None:
        self.broke_off, self._rest = True, b""
        self._log.add(code, None, message)


def cut(
    read: Callable[[int, bytes], bytes],
    size: int,
    log: Notes,
    dropped: set[bytes] | None = None,
    line: int = 1,
    count_lines: Callable[[bytes, int, int], int] = count_lines,
) -> Iterator[Lines]:
    """Yield blocks of whole lines; each block but the last ends where the topic changes. ``line`` is the number of the first.

    Lines over ``MAX_LINE`` bytes are reported and left out. A topic over ``MAX_TOPIC`` bytes is reported and put into
    ``dropped``: not all of its lines are in the blocks.
    """
    rest = b""
    topic: bytes | None = None  # rest begins with whole lines of this topic up to `checked`
    checked = 0
    skipping = False  # inside a line that is too long
    while True:
        data = read(size, rest)
        if len(data) == len(rest):
            if rest:
                if not rest.endswith(b"\n"):
                    rest += b"\n"
                yield rest, range(line, line + count_lines(rest, 0, len(rest)))
            return
        if skipping:
            end = data.find(b"\n")
            if end < 0:
                continue
            data = data[end + 1 :]
            line += 1
            skipping = False
        last = data.rfind(b"\n") + 1
        if len(data) - last > MAX_LINE:
            if last:
                count = count_lines(data, 0, last)
                yield data[:last], range(line, line + count)
                line += count
            log.add("F009", line, f"the line is longer than {MAX_LINE:,} bytes")
            log.lines += 1
            rest, topic, checked, skipping = b"", None, 0, True
            continue
        if not last:
            rest = data
            continue
        start, topic = _last_change(data, last, checked, topic)
        if start > 0:
            count = count_lines(data, 0, start)
            yield data[:start], range(line, line + count)
            line += count
            rest = data[start:]
            checked = last - start
        elif topic is None:  # empty lines only: nothing of a topic to wait for
            count = data.count(b"\n", 0, last)
            yield data[:last], range(line, line + count)
            line += count
            rest, checked = data[last:], 0
        else:
            rest, checked = data, last
            if len(rest) > MAX_TOPIC:
                log.add(
                    "F026",
                    line,
                    f"the topic {show(topic or b'')} has more than {MAX_TOPIC >> 20} MiB of lines",
                    topic,
                )
                if dropped is not None and topic is not None:
                    dropped.add(topic)
                count = rest.count(b"\n", 0, last)
                line += count
                log.lines += count
                rest, topic, checked = rest[last:], None, 0


def parts(data: bytes, lines: Sequence[int], size: int) -> Iterator[Lines]:
    """The whole lines of a block in parts of about ``size`` bytes, cut where the topic changes if it does, else at a line end."""
    begin = first = 0
    wanted = size
    while len(data) - begin > wanted:
        some = data[begin : data.rfind(b"\n", begin, begin + wanted) + 1]
        if some:
            end = _last_change(some, len(some), 0, None)[0] or len(some)
            count = some.count(b"\n", 0, end)
            yield some[:end], lines[first : first + count]
            begin, first, wanted = begin + end, first + count, size
        else:
            wanted *= 2  # one long line
    yield data[begin:], lines[first:]


def _last_change(data: bytes, end: int, floor: int, known: bytes | None) -> tuple[int, bytes | None]:
    """Where the last run of lines of one topic begins in ``data[:end]``, and that topic.

    ``data[:floor]`` is known to hold lines of topic ``known`` only, and is not looked at again.
    """
    begin = end
    topic: bytes | None = None
    heads: tuple[bytes, ...] = ()
    while begin > floor:
        start = data.rfind(b"\n", floor, begin - 1) + 1
        if start <= floor:
            start = floor
        if topic is None or not data.startswith(heads, start):
            words = data[start:begin].split(None, 1)
            if words:
                if topic is None:
                    topic = words[0]
                    heads = (topic + b" ", topic + b"\t")
                elif words[0] != topic:
                    return begin, topic
        begin = start
    if floor and known is not None and topic is not None and topic != known:
        return floor, topic
    return 0, topic if topic is not None else known


def regroup(
    data: bytes,
    log: Notes,
    known: frozenset[bytes] | None,
    dropped: set[bytes] | None = None,
    line: int = 1,
) -> Iterator[Lines]:
    """Yield the lines of an ungrouped file topic by topic, with the numbers they have in the file (the first: ``line``).

    Holds the file and about 24 bytes for each group of lines. Lines of topics that are not ``known`` stay
    together in a pile of their own, so that a file of a million invented topics costs no more than others.
    """
    if data and not data.endswith(b"\n"):
        data += b"\n"
    segments: dict[bytes, array[int]] = {}  # topic -> start, end, number of first line, ...
    position, length = 0, len(data)
    bom = data.startswith(BOM)
    topic: bytes | None = None
    begin, first = 0, line
    while position < length:
        end = data.index(b"\n", position) + 1
        if end - position > MAX_LINE:
            log.add("F009", line, f"the line is longer than {MAX_LINE:,} bytes")
            log.lines += 1
            if topic is not None:
                segments.setdefault(topic, array("q")).extend((begin, position, first))
            topic, begin, first = None, end, line + 1
        else:
            words = data[position + len(BOM) if bom and not position else position : end].split(None, 1)
            word = words[0] if words else topic
            if known is not None and word not in known:
                word = _UNKNOWN
            if word != topic:
                if topic is not None:
                    segments.setdefault(topic, array("q")).extend((begin, position, first))
                    begin, first = position, line
                topic = word
        position = end
        line += 1
    if begin < length:
        segments.setdefault(topic or _UNKNOWN, array("q")).extend((begin, length, first))
    for topic, places in segments.items():
        parts: list[bytes] = []
        numbers = array("q")
        held = 0
        for i in range(0, len(places), 3):
            part = data[places[i] : places[i + 1]]
            parts.append(part)
            numbers.extend(range(places[i + 2], places[i + 2] + part.count(b"\n")))
            held += len(part)
            if topic == _UNKNOWN and held > SMALL_CHUNK:
                yield b"".join(parts), numbers
                parts, numbers, held = [], array("q"), 0
        if topic != _UNKNOWN and held > MAX_TOPIC:
            log.add(
                "F026",
                numbers[0],
                f"the topic {show(topic)} has more than {MAX_TOPIC >> 20} MiB of lines",
                topic,
            )
            if dropped is not None:
                dropped.add(topic)
            log.lines += len(numbers)
        elif parts:
            yield b"".join(parts), numbers
