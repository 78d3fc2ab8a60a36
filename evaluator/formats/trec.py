"""The one seam through which TREC run files are read: bytes in, findings and ranks of judged documents out.

The file is streamed in chunks that are cut where the topic changes, so memory does not grow with its length.
A chunk takes the first of three ways that understands it; all three follow the same rules and are tested
against each other:

1. :mod:`evaluator.formats.fast` (numpy, large files only): chunks without anything unusual, two at once of a very large file where there are two processors,
2. :meth:`evaluator.formats.trec_lines.RunReader.take_columns`: chunks of any shape whose lines have six fields, in pure Python but with the loops in C,
3. :meth:`RunReader._by_line` (there): any other chunk; of these two only what is wrong is looked at line by line, to name the place.

Documents are ordered as trec_eval does: score falling, ties by document id (as bytes) falling; the rank column
and the order of lines do not count. Scores are compared in single precision, as trec_eval 9 and pytrec_eval hold
them, unless ``double`` is asked for (trec_eval 10). Ranks in double precision are kept next to these where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

from evaluator.findings import Log
from evaluator.formats.blocks import SMALL_CHUNK, Lines, Notes, WholeLines, count_lines, cut, noted, regroup
from evaluator.formats.fast import there
from evaluator.formats.files import Source, Unreadable
from evaluator.formats.mistaken import beginning, metadata_header, no_trec_run
from evaluator.formats.ranked import Rules, Scan
from evaluator.formats.trec_lines import Ahead, RunReader, Ungrouped

LARGE_CHUNK = 2 << 20
LARGE_FILE = 10_000_000  # bytes; from here on importing numpy pays
TWO_THREADS = 100_000_000  # bytes; from here on a second thread saves more time than it takes


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

    A header of ir_metadata before the first line is no part of the run. ``chunk`` (bytes read at once) and ``fast`` (numpy or not) are chosen by size when None. Never raises for
    anything a participant can write.
    """
    kept = log.checkpoint()
    try:
        if said := no_trec_run(path):
            log.add("F010", 1, said)
            if not log.invalid:
                log.add("F001", None, "the file has no line with a result")
            return Scan({}, None)
        header = metadata_header(beginning(path))
        first = 1 + header.count(b"\n")
        with Source(path, max_bytes) as source:
            large = source.size >= LARGE_FILE // (4 if source.gzip else 1)
            alone = fast is None and source.size < TWO_THREADS
            numpy = (large and there()) if fast is None else fast
            ahead, count = _numpy_way(rules, alone=alone) if numpy else (None, count_lines)
            chunk = chunk or (LARGE_CHUNK if ahead else SMALL_CHUNK)
            notes, reader = Notes(), RunReader(rules, log, ahead)
            whole = WholeLines(source, max_bytes, notes, len(header))
            blocks = cut(whole.read, chunk, notes, reader.dropped, first, count)
            try:
                return reader.run(noted(blocks, notes), whole, notes)
            except Ungrouped:
                log.restore(kept)
        with Source(path, max_bytes) as source:
            notes, reader = Notes(), RunReader(rules, log, ahead)
            whole = WholeLines(source, max_bytes, notes, len(header))
            reader.grouped = True
            data = _all(whole)
            lines = _grouped(data, rules, first) if ahead else None
            blocks = lines or regroup(data, notes, rules.topics, reader.dropped, first)
            return reader.run(noted(blocks, notes), whole, notes)
    except Unreadable as error:
        log.add(error.code, None, str(error))
    return Scan({}, None)


def _numpy_way(rules: Rules, *, alone: bool) -> tuple[Ahead, Callable[[bytes, int, int], int]]:
    from evaluator.formats.fast.ahead import Looking, count_lines

    return Looking(rules, alone=alone), count_lines


def _all(whole: WholeLines) -> bytes:
    """The whole file in one piece; at no time are there two of it."""
    held = BytesIO()
    while part := whole.read(LARGE_CHUNK):
        held.write(part)
    return held.getvalue()


def _grouped(data: bytes, rules: Rules, first: int) -> Iterator[Lines] | None:
    """The lines topic by topic by numpy; None where there is anything unusual about them."""
    from evaluator.formats.fast.grouping import grouped
    from evaluator.formats.fast.words import Unusual

    try:
        return grouped(data, rules.topics, first)
    except Unusual:
        return None
