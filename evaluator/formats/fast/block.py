"""One block of a run, read without a doubt in it: what it says, before a reader has it.

Nothing here depends on other blocks, so blocks can be looked at ahead of the reader, also two at once.

Equal (topic, document) pairs are found by sorting hashes together with row numbers. Judged documents are looked up in
the same sorted hashes, and compared as bytes. Hashes only choose candidates: collisions, also those that somebody made, cost time, not truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from evaluator.formats.fast.decimals import decimals, integers
from evaluator.formats.fast.fields import Field, Fields, fields_of
from evaluator.formats.fast.words import (
    WIDEST,
    Array,
    Unusual,
    changes,
    gather,
    greater,
    hashed,
    padded,
    paired,
    words_of,
)
from evaluator.formats.ranked import NOTHING, Examined, Ranked, Rules, Tie, trec_rank

_ROW_BITS = 20
MAX_ROWS = 1 << _ROW_BITS
MAX_BYTES = 8 << 20  # the arrays of a block need about fourteen times as many
_ROWS = np.uint64(MAX_ROWS - 1)


class Judged:
    """The judged documents of all topics, and the hash of each with its topic.

    ``hashed`` hashes documents as an index of the corpus does, if there is one, so that those of a run are hashed once.
    """

    def __init__(self, rules: Rules) -> None:
        self.hashed: Callable[[Array], Array] = getattr(rules.documents, "hashed", hashed)
        self.docs = [doc for judged in rules.judged.values() for doc in judged]
        topics = [topic for topic, judged in rules.judged.items() for _ in judged]
        self.places: dict[bytes, slice] = {}  # which of them are a topic's
        start = 0
        for topic, judged in rules.judged.items():
            self.places[topic] = slice(start, start + len(judged))
            start += len(judged)
        self.keys = np.empty(0, dtype=np.uint64)
        self.usable = not self.docs or max(map(len, (*self.docs, *topics))) <= WIDEST
        if self.docs and self.usable:
            with np.errstate(over="ignore"):
                self.keys = paired(hashed(words_of(topics)), self.hashed(words_of(self.docs)))


class _Rows(NamedTuple):
    """The lines of a block by topic and, within each, by rank."""

    text: bytes
    topics: list[bytes]
    begins: Array  # the first row of every topic
    counts: Array
    doc: Field
    words: Array  # of the documents
    scores: Array
    keys: Array  # scores as they are compared
    equal: Array  # whether a row has the score of the row before, in the same topic
    lines: Array | range  # their numbers


def examine(data: bytes, lines: Sequence[int], rules: Rules, judged: Judged) -> Examined:
    """What the block ``data`` says, whose lines have these numbers. Raises :class:`Unusual`."""
    n = len(lines)
    if not judged.usable or n == 0 or n >= MAX_ROWS or len(data) > MAX_BYTES or not _is_utf8(data):
        raise Unusual
    windows = data.find(b"\r")
    first_windows = None if windows < 0 else lines[data.count(b"\n", 0, windows)]
    if windows >= 0:
        if data.count(b"\r\n") != data.count(b"\r"):
            raise Unusual
        data = data.replace(b"\r\n", b"\n")
    text = padded(data)
    with np.errstate(over="ignore"):
        fields = fields_of(text, n)
        rows, topic_hashes = _by_rank(text, fields, lines, rules)
        docs = judged.hashed(rows.words)
        pairs = paired(np.repeat(topic_hashes, rows.counts), docs)
        pairs &= ~_ROWS
        pairs |= np.arange(n, dtype=np.uint64)
        pairs.sort()
        shifted = pairs >> np.uint64(_ROW_BITS)
        if (shifted[1:] == shifted[:-1]).any():
            raise Unusual  # a duplicate, or (1 block in 10,000) a collision
        if rules.documents is not None and not _listed(rows, docs, rules):
            raise Unusual
        found = _ranked(rows, rules, judged, pairs, shifted)
    return Examined(fields.tag, lines[0], first_windows, found, _ties(rows))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _by_rank(text: bytes, fields: Fields, lines: Sequence[int], rules: Rules) -> tuple[_Rows, Array]:
    """The rows, and the hashes of their topics, if nothing is wrong with topics, ranks and scores. Raises Unusual."""
    n = len(lines)
    lengths = fields.topic.ends - fields.topic.starts
    words = gather(text, fields.topic.starts, lengths, int(lengths.max()))
    change = changes(words)
    begins = np.flatnonzero(change)
    counts = np.diff(begins, append=n)
    topics = [fields.topic.at(text, i) for i in begins.tolist()]
    if len(set(topics)) != len(topics):
        raise Unusual  # the other way says Ungrouped
    if rules.topics is not None and not rules.topics.issuperset(topics):
        raise Unusual
    if rules.max_documents is not None and counts.max() > rules.max_documents:
        raise Unusual
    same = ~change[1:]
    doc, score = fields.doc, fields.score
    numbers: Array | range = lines if isinstance(lines, range) else np.asarray(lines)
    ranks = integers(text, fields.rank.starts, fields.rank.ends - fields.rank.starts)
    if ((ranks[1:] <= ranks[:-1]) & same).any():
        ranks |= np.repeat(np.arange(len(begins), dtype=np.uint64), counts) << np.uint64(32)
        order = np.argsort(ranks, kind="stable")
        ranks = ranks[order]
        if (ranks[1:] == ranks[:-1]).any():
            raise Unusual  # a rank is given twice
        doc, score = doc.taken(order), score.taken(order)
        numbers = np.asarray(numbers)[order]
    scores = decimals(text, score.starts, score.ends)
    if ((scores[1:] > scores[:-1]) & same).any():
        raise Unusual
    keys = scores if rules.double else scores.astype(np.float32)
    lengths = doc.ends - doc.starts
    longest = int(lengths.max())
    if longest > WIDEST:
        raise Unusual
    docs = gather(text, doc.starts, lengths, longest)
    equal = (keys[1:] == keys[:-1]) & same
    return _Rows(text, topics, begins, counts, doc, docs, scores, keys, equal, numbers), hashed(words[begins])


def _listed(rows: _Rows, hashes: Array, rules: Rules) -> bool:
    """Whether all documents, which have these hashes, are in the corpus."""
    assert rules.documents is not None
    knows = getattr(rules.documents, "knows", None)
    if knows is not None:
        return bool(knows(hashes))
    places = zip(rows.doc.starts.tolist(), rows.doc.ends.tolist(), strict=True)
    return not rules.documents.missing([rows.text[a:b] for a, b in places])


def _ties(rows: _Rows) -> dict[str, Tie]:
    """The first document of each sort of tie that does not stand where trec_eval puts it."""
    out = {}
    at = np.flatnonzero(rows.equal) + 1
    exact = rows.scores[at] == rows.scores[at - 1]
    for code, places in (("F023", at[exact]), ("F024", at[~exact])):
        i = _first_greater(rows.words, places)
        if i is not None:
            doc, before = rows.doc.at(rows.text, i), rows.doc.at(rows.text, i - 1)
            out[code] = Tie(doc, before, int(rows.lines[i]))
    return out


def _first_greater(words: Array, places: Array) -> int | None:
    """The first of these rows whose document comes behind that of the row before; mostly it is one of the first."""
    for some in (places[:64], places[64:]):
        found = np.flatnonzero(greater(words[some], words[some - 1]))
        if len(found):
            return int(some[found[0]])
    return None


def _ranked(rows: _Rows, rules: Rules, judged: Judged, pairs: Array, shifted: Array) -> dict[bytes, Ranked]:
    """Every topic with the ranks of its judged documents, which are looked up among the sorted hashes of all rows."""
    begin, end = rows.begins.tolist(), (rows.begins + rows.counts).tolist()
    found: list[dict[bytes, int]] = [{} for _ in rows.topics]
    untied: list[dict[bytes, int]] = [{} for _ in rows.topics]
    double: list[dict[bytes, int]] = [{} for _ in rows.topics]  # ranks that differ in double precision
    for row, t, doc, tied in _judged_rows(rows, judged, pairs, shifted):
        if not begin[t] <= row < end[t] or rows.doc.at(rows.text, row) != doc:
            continue  # a collision of hashes
        rank = row - begin[t] + 1
        if tied:
            given, rank = rank, _tied_rank(rows, rows.keys, row, begin[t], end[t])
            if rank != given:
                untied[t][doc] = given
            exact = rank if rules.double else _tied_rank(rows, rows.scores, row, begin[t], end[t])
            if exact != rank:
                double[t][doc] = exact
        found[t][doc] = rank
    k = rules.first  # ranks rise from row to row here, so the first rows are the first by rank
    out = {}
    for t, topic in enumerate(rows.topics):
        first = tuple(rows.doc.at(rows.text, i) for i in range(begin[t], min(begin[t] + k, end[t])))
        exact_ranks = {**found[t], **double[t]} if double[t] else None
        out[topic] = Ranked(end[t] - begin[t], found[t] or NOTHING, first, untied[t] or NOTHING, exact_ranks)
    return out


def _judged_rows(
    rows: _Rows, judged: Judged, pairs: Array, shifted: Array
) -> list[tuple[int, int, bytes, bool]]:
    """The rows that probably hold a judged document: row, number of the topic, document, and whether the score is shared."""
    n = len(rows.keys)
    places = [(t, judged.places[topic]) for t, topic in enumerate(rows.topics) if topic in judged.places]
    if not places:
        return []
    sizes = [place.stop - place.start for _, place in places]
    owners = np.repeat([t for t, _ in places], sizes)
    numbers = np.concatenate([np.arange(place.start, place.stop) for _, place in places])
    wanted = judged.keys[numbers] >> np.uint64(_ROW_BITS)
    at = np.minimum(np.searchsorted(shifted, wanted), n - 1)
    hit = np.flatnonzero(shifted[at] == wanted)
    at = (pairs[at[hit]] & _ROWS).astype(np.int64)
    tied = np.zeros(n + 1, dtype=bool)
    tied[1:n] = rows.equal
    tied[: n - 1] |= rows.equal
    docs = [judged.docs[number] for number in numbers[hit].tolist()]
    return list(zip(at.tolist(), owners[hit].tolist(), docs, tied[at].tolist(), strict=True))


def _tied_rank(rows: _Rows, keys: Array, row: int, begin: int, end: int) -> int:
    """The rank of a document whose key others may share, in the topic of rows ``begin`` to ``end``."""
    low, high = row, row + 1
    key = keys[row]
    while low > begin and keys[low - 1] == key:
        low -= 1
    while high < end and keys[high] == key:
        high += 1
    group = [rows.doc.at(rows.text, i) for i in range(low, high)]
    return low - begin + trec_rank(row - low, group, [0.0] * len(group))
