"""The numpy way through one chunk of a run: no string objects, only bytes, offsets and 64-bit words.

A chunk takes this way only if there is nothing unusual in it; at the first doubt the function gives up, before
it has changed anything, and the chunk is read by :mod:`evaluator.formats.trec_lines`. So nothing here reports an error.

1. All bytes up to the blank are separators. Six fields a line means: their number divides by six, each sixth is a
   newline, and all others are the same blank. (Files with other spacing take a little longer.)
2. Fields are gathered as fixed-width byte strings and compared and hashed as 64-bit words.
3. Ranks and scores are computed from words, eight digits at a time. A decimal whose digits make an integer below
   2^53 is that integer divided by a power of ten, which rounds correctly; any other goes to ``float()``.
4. Equal (topic, document) pairs are found by sorting hashes together with row numbers, and compared as bytes. Judged
   documents are looked up in the same sorted hashes. Hashes only choose candidates: collisions cost time, not truth.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # starting its threads costs more than a small run

import numpy as np

from evaluator.formats.blocks import MAX_LINE
from evaluator.formats.ranked import NOTHING, Ranked, Rules, trec_rank
from evaluator.formats.trec_lines import CONTROLS, SCORE, FastPath, RunReader

Array = np.ndarray[Any, Any]

_FRONT, _BACK = 16, 136  # bytes of padding, so that words may begin before and end behind the data
_WIDEST = 128  # bytes of a document id that are handled here
_ROW_BITS = 20
_MAX_ROWS = 1 << _ROW_BITS
_ROWS = np.uint64(_MAX_ROWS - 1)
_ZEROS = np.uint64(0x3030303030303030)
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIX = np.uint64(0x0606060606060606)
_DOTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_LOW = np.array([(1 << (8 * k)) - 1 for k in range(9)], dtype=np.uint64)  # keeps the first k bytes of a word
_TEN = 10 ** np.arange(20, dtype=np.uint64)
_TEN_FLOAT = np.array([float(10**k) for k in range(20)])
_ODD = [np.uint64((0x9E3779B97F4A7C15 * (2 * k + 1)) & ((1 << 64) - 1) | 1) for k in range(_WIDEST // 8)]
_MIX = np.uint64(0xD6E8FEB86659FD93)
_TOPIC_MIX = np.uint64(0xFF51AFD7ED558CCD)


def make(rules: Rules) -> FastPath:
    """Return the fast path for these rules; prepares the judged documents once."""
    return _Fast(rules)


class _Unusual(Exception):
    """This chunk is for the other path."""


class _Fast:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        docs = [doc for judged in rules.judged.values() for doc in judged]
        topics = [topic for topic, judged in rules.judged.items() for _ in judged]
        self._docs = docs
        self._slices: dict[bytes, slice] = {}
        start = 0
        for topic, judged in rules.judged.items():
            self._slices[topic] = slice(start, start + len(judged))
            start += len(judged)
        self._keys = np.empty(0, dtype=np.uint64)
        if docs and max(map(len, docs)) <= _WIDEST and max(map(len, topics)) <= _WIDEST:
            self._keys = _pair(_hash(_words_of(topics)), _hash(_words_of(docs)))
        self._usable = len(self._keys) == len(docs)

    def __call__(self, reader: RunReader, data: bytes, lines: Sequence[int]) -> bool:
        n = len(lines)
        if not self._usable or not isinstance(lines, range) or n == 0 or n >= _MAX_ROWS:
            return False
        try:
            with np.errstate(over="ignore"):
                self._block(reader, data, n, lines[0])
        except _Unusual:
            return False
        return True

    def _block(self, reader: RunReader, data: bytes, n: int, first_line: int) -> None:
        if not data.isascii():
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                raise _Unusual from None
        padded = b"".join((bytes(_FRONT), data, bytes(_BACK)))
        buffer = np.frombuffer(padded, dtype=np.uint8)
        starts, ends = _even_fields(buffer, len(data), n) or _uneven_fields(buffer, data, n)
        lengths = ends - starts
        longest = lengths.max(axis=0)
        if lengths.min() < 1 or longest[2] > _WIDEST or longest[0] > 64 or longest[5] > 64 or longest[4] > 64:
            raise _Unusual

        tag = padded[starts[0, 5] : ends[0, 5]]
        if reader.tag is not None and tag != reader.tag:
            raise _Unusual
        if not _constant(padded, starts[:, 5], lengths[:, 5], tag) or not _constant(
            padded, starts[:, 1], lengths[:, 1], b"Q0"
        ):
            raise _Unusual

        topic_words = _gather(padded, starts[:, 0], lengths[:, 0], int(longest[0]))
        change = np.zeros(n, dtype=bool)
        change[0] = True
        for k in range(topic_words.shape[1]):
            change[1:] |= topic_words[1:, k] != topic_words[:-1, k]
        begins = np.flatnonzero(change)
        counts = np.diff(begins, append=n)
        topics = [padded[starts[i, 0] : ends[i, 0]] for i in begins.tolist()]
        rules = self.rules
        if len(set(topics)) != len(topics) or not reader.seen.isdisjoint(topics):
            raise _Unusual  # the other path says Ungrouped
        if rules.topics is not None and not rules.topics.issuperset(topics):
            raise _Unusual
        if rules.max_documents is not None and counts.max() > rules.max_documents:
            raise _Unusual

        ranks = _digits(padded, ends[:, 3], lengths[:, 3], int(longest[3]))
        rises = ranks[1:] > ranks[:-1]
        scores = score_values(padded, starts[:, 4], ends[:, 4], lengths[:, 4])
        falls = scores[1:] <= scores[:-1]
        if not ((rises & falls) | change[1:]).all():
            raise _Unusual

        doc_starts, doc_ends = starts[:, 2], ends[:, 2]
        hashes = _hash(_gather(padded, doc_starts, lengths[:, 2], int(longest[2])))
        if rules.documents is not None:
            self._check_documents(hashes, padded, doc_starts, doc_ends)
        topic_hashes = np.repeat(_hash(topic_words[begins]), counts)
        pairs = (_pair(topic_hashes, hashes) & ~_ROWS) | np.arange(n, dtype=np.uint64)
        pairs.sort()
        shifted = pairs >> np.uint64(_ROW_BITS)
        if (shifted[1:] == shifted[:-1]).any():
            raise _Unusual  # a duplicate, or (1 chunk in 10,000) a collision

        keys = scores if rules.double else scores.astype(np.float32).astype(np.float64)
        equal = (keys[1:] == keys[:-1]) & ~change[1:]

        # From here on nothing is unusual: results may be kept.
        reader.seen.update(topics)
        if reader.tag is None:
            reader.first_tag(tag, first_line)
        if b"\r" in data:
            reader.windows(first_line + data.count(b"\n", 0, data.index(b"\r")))
        self._ties(reader, equal, scores, keys, padded, doc_starts, doc_ends, first_line)
        reader.listed += n
        self._keep(reader, topics, begins, counts, pairs, shifted, equal, keys, padded, doc_starts, doc_ends)

    def _check_documents(self, hashes: Array, padded: bytes, starts: Array, ends: Array) -> None:
        assert self.rules.documents is not None
        ids = [padded[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        if self.rules.documents.missing(ids):
            raise _Unusual

    def _ties(
        self,
        reader: RunReader,
        equal: Array,
        scores: Array,
        keys: Array,
        padded: bytes,
        starts: Array,
        ends: Array,
        first_line: int,
    ) -> None:
        """Note the first documents that do not stand in the order that trec_eval gives to ties."""
        exact = scores[1:] == scores[:-1]
        for code, where in (("F023", equal & exact), ("F024", equal & ~exact)):
            if code in reader.ties:
                continue
            for i in (np.flatnonzero(where) + 1).tolist():
                doc, before = padded[starts[i] : ends[i]], padded[starts[i - 1] : ends[i - 1]]
                if doc > before:
                    reader.tie(code == "F023", doc, before, first_line + i)
                    break

    def _keep(
        self,
        reader: RunReader,
        topics: list[bytes],
        begins: Array,
        counts: Array,
        pairs: Array,
        shifted: Array,
        equal: Array,
        keys: Array,
        padded: bytes,
        starts: Array,
        ends: Array,
    ) -> None:
        """Find the judged documents among the rows and keep their ranks."""
        n = len(keys)
        found: list[dict[bytes, int]] = [{} for _ in topics]
        untied: list[dict[bytes, int]] = [{} for _ in topics]
        places = [(t, self._slices[topic]) for t, topic in enumerate(topics) if topic in self._slices]
        if places:
            needles = np.concatenate([self._keys[s] for _, s in places])
            owners = np.repeat([t for t, _ in places], [s.stop - s.start for _, s in places])
            numbers = np.concatenate([np.arange(s.start, s.stop) for _, s in places])
            wanted = needles >> np.uint64(_ROW_BITS)
            at = np.minimum(np.searchsorted(shifted, wanted), n - 1)
            hit = np.flatnonzero(shifted[at] == wanted)
            rows = (pairs[at[hit]] & _ROWS).astype(np.int64)
            tied = np.zeros(n + 1, dtype=bool)
            tied[1:n] = equal
            tied[: n - 1] |= equal
            begin, end = begins.tolist(), (begins + counts).tolist()
            for row, t, number, is_tied in zip(
                rows.tolist(), owners[hit].tolist(), numbers[hit].tolist(), tied[rows].tolist(), strict=True
            ):
                doc = self._docs[number]
                if not begin[t] <= row < end[t] or padded[starts[row] : ends[row]] != doc:
                    continue  # a collision of hashes
                rank = row - begin[t] + 1
                if is_tied:
                    given, rank = rank, _tied_rank(row, begin[t], end[t], keys, padded, starts, ends)
                    if rank != given:
                        untied[t][doc] = given
                found[t][doc] = rank
        k = self.rules.first  # ranks rise from row to row here, so the first rows are the first by rank
        rows_of = zip(topics, begins.tolist(), counts.tolist(), found, untied, strict=True)
        for topic, at, count, ranks, others in rows_of:
            first = tuple(padded[starts[i] : ends[i]] for i in range(at, at + min(k, count)))
            reader.topics[topic] = Ranked(count, ranks, first, others or NOTHING)


def _even_fields(buffer: Array, size: int, n: int) -> tuple[Array, Array] | None:
    """Where the six fields of every line begin and end, if all are parted by one and the same blank."""
    separators = np.flatnonzero(buffer[_FRONT : _FRONT + size] <= 32)
    if len(separators) != 6 * n:
        return None
    separators += _FRONT
    ends = separators.reshape(n, 6)
    values = buffer[ends]
    blank = values[0, 0]
    if blank not in (9, 32) or not (values[:, 5] == 10).all() or not (values[:, :5] == blank).all():
        return None
    starts = np.empty_like(ends)
    starts[:, 1:] = ends[:, :5] + 1
    starts[0, 0] = _FRONT
    starts[1:, 0] = ends[:-1, 5] + 1
    return starts, ends


def _uneven_fields(buffer: Array, data: bytes, n: int) -> tuple[Array, Array]:
    """The same for any mixture of blanks, tabs and Windows line ends."""
    if len(data.translate(None, CONTROLS)) != len(data) or data.count(b"\r\n") != data.count(b"\r"):
        raise _Unusual
    blank = buffer[_FRONT - 1 : _FRONT + len(data)] <= 32  # begins in the padding, which is zero bytes
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + _FRONT
    newlines = np.flatnonzero(buffer[_FRONT : _FRONT + len(data)] == 10) + _FRONT
    if len(edges) != 12 * n or len(newlines) != n:
        raise _Unusual
    starts, ends = edges[0::2].reshape(n, 6), edges[1::2].reshape(n, 6)
    # One newline behind every sixth field, and so none between others.
    if (newlines < ends[:, 5]).any() or (newlines[:-1] > starts[1:, 0]).any():
        raise _Unusual
    if np.diff(newlines, prepend=_FRONT).max() > MAX_LINE:
        raise _Unusual
    return starts, ends


def _tied_rank(row: int, begin: int, end: int, keys: Array, padded: bytes, starts: Array, ends: Array) -> int:
    """The rank of a document whose score others share, in the topic of rows ``begin`` to ``end``."""
    low, high = row, row + 1
    key = keys[row]
    while low > begin and keys[low - 1] == key:
        low -= 1
    while high < end and keys[high] == key:
        high += 1
    group = [padded[starts[i] : ends[i]] for i in range(low, high)]
    return low - begin + trec_rank(row - low, group, [0.0] * len(group))


def _gather(padded: bytes, starts: Array, lengths: Array, longest: int) -> Array:
    """The fields as rows of 64-bit words, padded with zero bytes to the next multiple of 8."""
    width = -(-longest // 8) * 8
    window: Array = np.ndarray((len(padded) - width + 1,), dtype=f"V{width}", buffer=padded, strides=(1,))
    words = window[starts].view(np.uint64).reshape(len(starts), width // 8)
    for k in range(width // 8):
        words[:, k] &= _LOW[np.clip(lengths - 8 * k, 0, 8)]
    return words


def _words_of(fields: list[bytes]) -> Array:
    """The same words for fields held as Python objects."""
    width = -(-max(map(len, fields)) // 8) * 8
    return np.array(fields, dtype=f"S{width}").view(np.uint64).reshape(len(fields), width // 8)


def _hash(words: Array) -> Array:
    """A 64-bit hash of every row; zero words at the end change nothing, so widths may differ."""
    out = np.zeros(len(words), dtype=np.uint64)
    for k in range(words.shape[1]):
        word = words[:, k]
        out += (word ^ (word >> np.uint64(32))) * _ODD[k]
    out ^= out >> np.uint64(29)
    out *= _MIX
    return out ^ (out >> np.uint64(32))


def _pair(topics: Array, docs: Array) -> Array:
    """One hash of a topic and a document; its high bits are the good ones."""
    return (topics * _TOPIC_MIX + docs) * _MIX


def _constant(padded: bytes, starts: Array, lengths: Array, value: bytes) -> bool:
    """Whether every field is ``value``."""
    if not (lengths == len(value)).all():
        return False
    words = _gather(padded, starts, lengths, len(value))
    return bool((words == _words_of([value])[0]).all())


def _ending_at(padded: bytes, ends: Array, count: Array) -> Array:
    """The last ``count`` (0 to 8) characters before ``ends`` as a word, with the character 0 in front of them."""
    window: Array = np.ndarray((len(padded) - 7,), dtype="V8", buffer=padded, strides=(1,))
    words: Array = window[ends - 8].view(np.uint64)
    front = _LOW[8 - count]
    out: Array = (words & ~front) | (_ZEROS & front)
    return out


def _number(words: Array) -> tuple[Array, Array]:
    """The value of eight decimal digits in every word, and whether they are digits."""
    legal = ((words & _HIGH) == _ZEROS) & (((words + _SIX) & _HIGH) == _ZEROS)
    digits = words - _ZEROS
    digits = digits * np.uint64(10) + (digits >> np.uint64(8))  # pairs, then fours, then eight
    low = (digits & np.uint64(0x000000FF000000FF)) * np.uint64(0x000F424000000064)
    high = ((digits >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(0x0000271000000001)
    return (low + high) >> np.uint64(32), legal


def _digits(padded: bytes, ends: Array, lengths: Array, longest: int) -> Array:
    """The integers of a column of at most eight digits each."""
    if longest > 8:
        raise _Unusual
    numbers, legal = _number(_ending_at(padded, ends, lengths))
    if not legal.all():
        raise _Unusual
    return numbers


def score_values(padded: bytes, starts: Array, ends: Array, lengths: Array) -> Array:
    """The doubles of a column of decimals, rounded as ``float()`` does."""
    last = _ending_at(padded, ends, np.minimum(lengths, 8))
    dot, fraction = _dot(last)
    whole_end = ends - fraction - 1
    if not dot.all():
        rest = np.flatnonzero(~dot)
        more = np.clip(lengths[rest] - 8, 0, 8)
        dot2, fraction2 = _dot(_ending_at(padded, ends[rest] - 8, more))
        fraction[rest] = np.where(dot2, fraction2 + 8, 0)
        whole_end[rest] = np.where(dot2, ends[rest] - fraction2 - 9, ends[rest])
    signs = np.frombuffer(padded, dtype=np.uint8)[starts] == ord("-")
    whole_length = whole_end - starts - signs
    simple = (whole_length >= 1) & (whole_length <= 8) & (whole_length + fraction <= 18)
    whole, legal = _number(_ending_at(padded, whole_end, np.clip(whole_length, 0, 8)))
    simple &= legal
    near, legal = _number(_ending_at(padded, ends, np.minimum(fraction, 8)))
    simple &= legal
    if int(fraction.max()) > 8:
        far, legal = _number(_ending_at(padded, ends - 8, np.clip(fraction - 8, 0, 8)))
        simple &= legal
        near = near + far * np.uint64(100_000_000)
    power = np.minimum(fraction, 19)
    mantissa = whole * _TEN[power] + near
    simple &= mantissa < np.uint64(1 << 53)
    out: Array = mantissa.astype(np.float64) / _TEN_FLOAT[power]
    out[signs] *= -1.0
    for i in np.flatnonzero(~simple).tolist():
        text = padded[starts[i] : ends[i]]
        if SCORE.fullmatch(text) is None:
            raise _Unusual
        out[i] = float(text)
    if not np.isfinite(out).all():
        raise _Unusual
    return out


def _dot(words: Array) -> tuple[Array, Array]:
    """Whether a word holds a dot, and how many characters follow the first one."""
    odd = words ^ _DOTS
    marks = (odd - _ONES) & ~odd & _TOPS
    first = marks & (~marks + np.uint64(1))
    place = np.bitwise_count(first - np.uint64(1)) >> np.uint8(3)  # bytes before the dot
    found = marks != 0
    return found, np.where(found, 7 - place.astype(np.int64), 0)
