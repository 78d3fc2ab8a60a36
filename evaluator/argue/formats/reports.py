"""Reports in every form that is about, read into one model (:mod:`evaluator.argue.formats.report`).

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

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evaluator.argue.formats.citations import topic_id
from evaluator.argue.formats.lines import parse_lines
from evaluator.argue.formats.report import Report, parse_report
from evaluator.findings import Log
from evaluator.formats.lines import reporting

MAX_LINE = 32 << 20  # a report may carry its documents
MAX_BROKEN = 1_000


def read_reports(
    path: Path, log: Log, *, max_bytes: int | None = None, follow: bool = False
) -> Iterator[Report]:
    """The reports of a JSON Lines file, plain or gzip; everything wrong with the form goes to ``log``.

    A line with an error in its form yields what could be read of it, if it has a topic and sentences at all; the log
    is invalid then. Topics, limits and tracks are checked by :mod:`evaluator.argue.formats.checking`. ``follow``: the file may be
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


def _topic_bytes(data: Any) -> bytes | None:
    """The topic for findings, before anything is checked."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    found = topic_id(metadata, lambda *_: None) if isinstance(metadata, dict) else None
    return None if found is None else found.encode()
