"""Report requests (the topics), how long a report is, and cutting one that is too long."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from evaluator.argue.formats.lines import parse_lines
from evaluator.argue.formats.report import Report
from evaluator.argue.models import ReportRequest
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats.files import Damaged, TooLarge, Unreadable
from schemas.jsonl import kind_of
from schemas.words import count_words

Unit = Literal["characters", "words"]
DEFAULT_LIMIT = 2000  # characters, of the tracks that cut reports
MAX_LINE = 4 << 20
MAX_SHOWN = 20  # problems that an error lists
_TEXTS = ("title", "background", "problem_statement")
_NUMBERS = ("limit", "word_limit")
_IDS = ("request_id", "topic_id", "query_id", "qid", "id")


def length(texts: tuple[str, ...] | list[str], unit: Unit = "characters") -> int:
    """How long a report is: characters of its sentences joined by one space, in the form NFKC; or words as a reader
    sees them (:mod:`schemas.words`)."""
    joined = " ".join(texts)
    return count_words(joined) if unit == "words" else len(unicodedata.normalize("NFKC", joined))


def character_count(texts: tuple[str, ...] | list[str]) -> int:
    """The measure of that name: the lengths of the sentences as they are, without the spaces between them."""
    return sum(map(len, texts))


def truncate(report: Report, limit: int = DEFAULT_LIMIT, unit: Unit = "characters") -> Report:
    """The report cut to a limit at the end of a sentence: the longest beginning of whole sentences within it.

    Nothing after the first sentence that goes beyond the limit is kept. The same report if it is short enough.
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
    """The requests of a JSON Lines file by their id. Raises :class:`EvaluatorError` with every problem and line."""
    problems: list[str] = []
    found: dict[str, ReportRequest] = {}
    try:
        for line in parse_lines(path, max_line=MAX_LINE, follow=True):
            place = f"{path.name}:{line.number}"
            if line.code:
                problems.append(f"{place}: {line.reason}")
                continue
            request = _request(line.value, lambda what, at=place: problems.append(f"{at}: {what}"))
            if request is not None and request.id in found:
                problems.append(f"{place}: the request {show(request.id)} is there twice")
            elif request is not None:
                found[request.id] = request
    except (Unreadable, Damaged, TooLarge) as error:
        raise EvaluatorError(
            f"the requests {path.name} cannot be read", str(error), "correct the path where it was given"
        ) from None
    if not found and not problems:
        problems.append(f"{path.name}: it holds no request")
    if problems:
        raise refused(f"the requests {path.name} cannot be used", problems)
    return found


def refused(what: str, problems: list[str], fix: str = "") -> EvaluatorError:
    """An error that lists its problems, the first of them at least."""
    more = f"; and {len(problems) - MAX_SHOWN:,} more" if len(problems) > MAX_SHOWN else ""
    return EvaluatorError(what, "; ".join(problems[:MAX_SHOWN]) + more, fix)


def _request(data: Any, say: Any) -> ReportRequest | None:
    if not isinstance(data, dict):
        say(f"there is {kind_of(data)}, not an object")
        return None
    key = next((k for k in _IDS if k in data), None)
    name = data.get(key) if key else None
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        say("there is no request_id" if key is None else f"{key} is not a name")
        return None
    legal = True
    for field in _TEXTS:
        if not isinstance(data.get(field), str | None):
            say(f"{field} is {kind_of(data[field])}, not text")
            legal = False
    for field in _NUMBERS:
        value = data.get(field)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            say(f"{field} is {show(str(value))}, not a positive whole number")
            legal = False
    collections = data.get("collection_ids", [])
    if not isinstance(collections, list) or not all(isinstance(c, str) for c in collections):
        say("collection_ids is not a list of text")
        legal = False
    return _made(name, data, collections) if legal else None


def _made(name: str, data: Mapping[str, Any], collections: list[str]) -> ReportRequest:
    return ReportRequest(
        id=name,
        title=data.get("title") or "",
        background=data.get("background") or "",
        problem_statement=data.get("problem_statement") or "",
        limit=data.get("limit"),
        word_limit=data.get("word_limit"),
        collection_ids=tuple(collections),
        data=data,
    )
