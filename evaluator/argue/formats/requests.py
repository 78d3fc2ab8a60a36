"""Report requests (the topics), how long a report is, and cutting one that is too long."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from evaluator.argue.formats.lines import Lines, name_of, refused
from evaluator.argue.formats.report import Report
from evaluator.argue.models import ReportRequest
from evaluator.findings import show
from schemas import Problem
from schemas.jsonl import kind_of
from schemas.words import count_words

Unit = Literal["characters", "words"]
DEFAULT_LIMIT = 2000  # characters, of the tracks that cut reports
MAX_LINE = 4 << 20
_TEXTS = ("title", "background", "problem_statement")
_NUMBERS = ("limit", "word_limit")
_IDS = ("request_id", "topic_id", "query_id", "qid", "id")


def length(texts: tuple[str, ...] | list[str], unit: Unit = "characters") -> int:
    """How long a report is, as the validators of the tracks count.

    Args:
        texts: its sentences.
        unit: ``characters`` of the sentences joined by one space, in the form NFKC (as rag-run-validator counts); or
            ``words`` as a reader sees them (:mod:`schemas.words`).
    """
    joined = " ".join(texts)
    return count_words(joined) if unit == "words" else len(unicodedata.normalize("NFKC", joined))


def character_count(texts: tuple[str, ...] | list[str]) -> int:
    """The measure of that name: the lengths of the sentences as they are, without the spaces between them."""
    return sum(map(len, texts))


def truncate(report: Report, limit: int = DEFAULT_LIMIT, unit: Unit = "characters") -> Report:
    """The report cut to a limit at the end of a sentence, as RAGTIME cuts before judging.

    Args:
        report: any report.
        limit: the most that is kept, counted as :func:`length` counts.
        unit: ``characters`` or ``words``.

    Returns:
        The report with the longest beginning of whole sentences within the limit; the same object if it is short
        enough. Nothing after the first sentence that goes beyond the limit is kept.
    """
    texts = [s.text for s in report.sentences]
    if length(texts, unit) <= limit:
        return report
    low, high = 0, len(texts)  # texts[:low] fits, texts[:high] does not; the length never falls
    while high - low > 1:
        middle = (low + high) // 2
        if length(texts[:middle], unit) <= limit:
            low = middle
        else:
            high = middle
    return replace(report, sentences=report.sentences[:low])


def limit_of(request: ReportRequest | None) -> tuple[int, Unit] | None:
    """A request's limit with its unit: characters before words; None without one."""
    if request is None:
        return None
    if request.limit is not None:
        return request.limit, "characters"
    return None if request.word_limit is None else (request.word_limit, "words")


def read_requests(path: Path) -> dict[str, ReportRequest]:
    """The requests of a JSON Lines file by their id.

    Args:
        path: the file, plain or gzip.

    Raises:
        EvaluatorError: it cannot be read or used; lists every problem with its line.
    """
    found, problems = placed_requests(path)
    if problems:
        raise refused(f"the requests {path.name} cannot be used", problems)
    return {name: request for name, (request, _) in found.items()}


def placed_requests(path: Path) -> tuple[dict[str, tuple[ReportRequest, int | None]], list[Problem]]:
    """The requests with their lines, and every problem of the file."""
    lines = Lines(path.name)
    found: dict[str, tuple[ReportRequest, int | None]] = {}
    for value in lines.values(path, MAX_LINE):
        request = _request(value, lines)
        if request is not None and request.id in found:
            lines.add(f"the request {show(request.id)} is there twice")
        elif request is not None:
            found[request.id] = request, lines.line
    if not found and not lines.problems:
        lines.add("it holds no request")
    return found, lines.problems


def _request(data: Any, lines: Lines) -> ReportRequest | None:
    """The request in one object; None if something is wrong with it, which was noted."""
    if not isinstance(data, dict):
        lines.add(f"there is {kind_of(data)}, not an object")
        return None
    key = next((k for k in _IDS if k in data), None)
    name = name_of(data[key]) if key else None
    if name is None:
        lines.add("there is no request_id" if key is None else f"{key} is not a name")
        return None
    values: dict[str, Any] = {field: data.get(field) for field in (*_TEXTS, *_NUMBERS)}
    collections = data.get("collection_ids", [])
    wrong = [
        f"{f} is {kind_of(values[f])}, not text" for f in _TEXTS if not isinstance(values[f], str | None)
    ]
    wrong += [
        f"{f} is {show(str(values[f]))}, not a positive whole number"
        for f in _NUMBERS
        if values[f] is not None and (type(values[f]) is not int or values[f] < 1)
    ]
    if not isinstance(collections, list) or not all(isinstance(c, str) for c in collections):
        wrong.append("collection_ids is not a list of text")
    for what in wrong:
        lines.add(what)
    if wrong:
        return None
    values |= {field: values[field] or "" for field in _TEXTS}
    return ReportRequest(name, **values, collection_ids=tuple(collections), data=data)
