"""Relevance judgements in TREC's format: ``topic iteration document grade``, one a line.

Problems are the organiser's: they stop the evaluation, and are told by file and line, never by content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.formats.files import BOM, organisers, read_all

_GRADE = re.compile(rb"([+-]?[0-9]{1,18})(?:\.0*)?")
COLUMNS = "write four columns: topic, iteration (0), document, grade (an integer)"
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Qrels:
    """Judgements: ``grades[topic][document]``, the best grade if a document is judged for several subtopics.

    ``rows`` holds every line as (topic, subtopic, document, grade): the second column names the subtopic where truths
    have some, also where no document is judged for two. ``repeated`` tells that one is judged more than once. ``repeated_lines``
    has the numbers of two equal lines, and how many lines repeat another; None if documents are judged by subtopic.
    """

    __slots__ = ("grades", "name", "path", "repeated", "repeated_lines", "rows")

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.grades: dict[bytes, dict[bytes, int]] = {}
        self.rows: list[tuple[bytes, bytes, bytes, int]] = []
        self.repeated = False
        self.repeated_lines: tuple[int, int, int] | None = None

    def add(self, topic: bytes, subtopic: bytes, doc: bytes, grade: int) -> None:
        """Add one judgement."""
        docs = self.grades.setdefault(topic, {})
        self.repeated = self.repeated or doc in docs
        docs[doc] = max(docs.get(doc, grade), grade)
        self.rows.append((topic, subtopic, doc, grade))


def read_qrels(path: Path, name: str | None = None) -> Qrels:
    """Read judgements from a plain or gzip file; ``name`` is what messages call it.

    Grades are whole numbers, also written as decimals (``4.0``), as trec_eval reads them. Empty lines and lines that
    begin with ``#`` are skipped. Raises :class:`EvaluatorError` with the number of the
    first broken line.
    """
    name = name or path.name
    qrels = Qrels(path, name)
    data = read_truths(path, name)
    if not _take_columns(qrels, data):
        for number, (topic, iteration, doc, text), wrong in lines_of(data):
            if wrong:
                raise _broken(name, number, wrong)
            qrels.add(topic, iteration, doc, int(text))
    if not qrels.grades:
        raise EvaluatorError(f"the truths {name} are empty", fix="put one judgement in every line")
    if qrels.repeated:
        _compare_repeated(qrels, data)
    return qrels


def _compare_repeated(qrels: Qrels, data: bytes) -> None:
    """Set ``qrels.repeated_lines``. Raises :class:`EvaluatorError` if a document has two grades for one topic and subtopic."""
    lines: dict[tuple[bytes, bytes, bytes], tuple[int, int]] = {}
    for number, (topic, iteration, doc, text), _ in lines_of(data):
        first, grade = lines.setdefault((topic, iteration, doc), (number, int(text)))
        if grade != int(text):
            raise _broken(qrels.name, number, "the document has two different grades for this topic")
        if first != number:
            later, earlier, count = qrels.repeated_lines or (number, first, 0)
            qrels.repeated_lines = later, earlier, count + 1
    if len(lines) > sum(map(len, qrels.grades.values())):  # documents are judged by subtopic, too
        qrels.repeated_lines = None


def _take_columns(qrels: Qrels, data: bytes) -> bool:
    """Add the judgements of a file whose every line is one, with no document repeated_lines and topics grouped: loops are in C then.

    Returns False, having done nothing, for any other file.
    """
    lines = data.removesuffix(b"\n").split(b"\n")
    if b"#" in data[:1] or b"\n#" in data or set(map(len, map(bytes.split, lines))) != {4}:
        return False
    words = data.split()
    topics, docs, texts = words[0::4], words[2::4], words[3::4]
    matches = {text: _GRADE.fullmatch(text) for text in set(texts)}
    numbers = {text: int(match[1]) for text, match in matches.items() if match}
    if len(numbers) != len(matches):
        return False
    values = list(map(numbers.__getitem__, texts))
    grades: dict[bytes, dict[bytes, int]] = {}
    start = 0
    for topic, same in groupby(topics):
        end = start + len(list(same))
        if topic in grades or topic == b"#":
            return False
        grades[topic] = dict(zip(docs[start:end], values[start:end], strict=True))
        if len(grades[topic]) != end - start:
            return False
        start = end
    qrels.grades = grades
    qrels.rows = list(zip(topics, words[1::4], docs, values, strict=True))
    return True


def read_truths(path: Path, name: str) -> bytes:
    """All bytes of a plain or gzip file of judgements, called ``name``. Raises :class:`EvaluatorError`."""
    with organisers(f"the truths {name}"):
        data = read_all(path, follow=True)
    return data.removeprefix(BOM)  # no topic begins with it


Row = tuple[bytes, bytes, bytes, bytes]


def lines_of(data: bytes) -> Iterator[tuple[int, Row, str]]:
    """Every line of judgements that is neither empty nor a comment, as read_qrels reads it.

    Returns:
        Its number, its columns (topic, iteration, document, the grade as digits), and what is wrong with it: then the
        columns that are not there are empty. What is wrong names no content.
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        words = line.split()
        if not words or words[0] == b"#":
            continue
        comment = line.startswith(b"#")  # but a topic may be called #1
        if len(words) != 4:
            if not comment:
                yield number, (b"", b"", b"", b""), f"the line has {len(words)} columns, not 4{_prels(words)}"
            continue
        topic, iteration, doc, text = words
        match = _GRADE.fullmatch(text)
        if match is not None:
            yield number, (topic, iteration, doc, match[1]), ""
        elif not comment:
            yield number, (topic, iteration, doc, b""), _no_grade(text)


def _prels(words: list[bytes]) -> str:
    """Return what to add if five columns are a sampled judgment: topic, document, grade, method, probability."""
    is_one = (
        len(words) == 5 and _GRADE.fullmatch(words[2]) and words[3].isdigit() and _DECIMAL.fullmatch(words[4])
    )
    return (
        " (it is a judgment of a sample, a prel: topic, document, grade, method, probability)"
        if is_one
        else ""
    )


def _no_grade(text: bytes) -> str:
    if _DECIMAL.fullmatch(text) is None:
        return "the grade in the fourth column is not an integer"
    return (
        "the grade in the fourth column is not whole: trec_eval would silently cut what is behind its point"
    )


def _broken(name: str, number: int, what: str) -> EvaluatorError:
    return EvaluatorError(
        f"the truths {name} are not valid qrels",
        f"{name}:{number}: {what}",
        COLUMNS,
    )
