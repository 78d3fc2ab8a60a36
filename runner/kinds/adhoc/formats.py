"""Topics, documents and judgments in the forms in which collections are handed on; each yields records with their places.

Forms: JSON Lines, a JSON array, CSV and TSV, TREC's documents (``<DOC>``), and TREC's qrels; each plain or gzip. Topics in markup
are read by :mod:`runner.kinds.adhoc.topics`. What is wrong with a line is noted with file and line in a :class:`Report`, and reading goes on.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from runner.kinds.release import unpacked
from runner.model.errors import Problem
from schemas import jsonl, show
from schemas.jsonarray import array_rows

MAX_LINE = 64 << 20  # bytes of one document, or of a file of topics in markup
MAX_PROBLEMS = 50
_BLOCK = 1 << 20
_NEWLINE = b"\n"
_BOM = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """One topic or document with the names and values that its file gives it; ``place`` is ``file:line``."""

    place: str
    fields: dict[str, Any]


class Judgment(NamedTuple):
    """One line of judgments; ``file`` is where it came from, ``place`` its ``file:line``."""

    file: str
    place: str
    topic: str
    iteration: str
    document: str
    grade: int


class Report:
    """What is wrong: the first 50 problems, and how many there were. ``remarks`` are to be known and no problem."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.count = 0
        self.remarks: list[str] = []
        self.latin: Counter[str] = Counter()  # records of a file that are not UTF-8

    def add(self, place: str, what: str, fix: str = "") -> None:
        """Note a problem."""
        self.count += 1
        if len(self.kept) < MAX_PROBLEMS:
            self.kept.append(Problem(show(place, 200), what, fix, code="E402"))

    def all(self) -> list[Problem]:
        """What was kept, and a count of the others."""
        more = self.count - len(self.kept)
        what = f"and {more:,} more problems"
        return [*self.kept, Problem("the collection", what, code="E402")] if more else self.kept

    def text(self, raw: bytes, file: str) -> str:
        """UTF-8, or else Latin-1, which any bytes are; the latter is counted."""
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.latin[file] += 1
            return raw.decode("latin-1")


Reader = Callable[[Path, str, Report], Iterator[Record]]

_FAULTS = {
    "too-long": f"the line has more than {MAX_LINE >> 20} MiB", "encoding": "the line is not UTF-8",
    "syntax": "the line is not JSON", "duplicate": "the line gives a key twice", "constant": "the line holds NaN or Infinity",
    "number": "the line holds a number that is too large", "deep": "the line is nested too deeply",
    "surrogate": "the line holds half a character",
}  # fmt: skip


@contextmanager
def readable(name: str, report: Report) -> Iterator[None]:
    """Note that the file called ``name`` cannot be read, or is damaged, when the block finds that out."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        report.add(name, f"cannot be read to its end ({show(str(error), 100)})", "fetch or pack it again")


def json_lines(path: Path, name: str, report: Report) -> Iterator[Record]:
    """The object of every line."""
    for number, value, fault in jsonl.read(path, max_line=MAX_LINE):
        place = f"{name}:{number}"
        if fault is not None:
            detail = f" ({show(fault.detail)})" if fault.detail else ""
            what = _FAULTS.get(fault.kind, "cannot be read to its end")
            report.add(place, what + detail, "write one JSON object a line")
        elif isinstance(value, dict):
            yield Record(place, value)
        else:
            report.add(place, f"the line holds {jsonl.kind_of(value)}", "write one JSON object a line")


def json_array(path: Path, name: str, report: Report) -> Iterator[Record]:
    """Yield the objects of a JSON array."""
    with readable(name, report), unpacked(path) as stream:
        for number, value, fault in array_rows(stream.read, MAX_LINE):
            place = f"{name}:{number}"
            if fault is not None:
                detail = f" ({show(fault.detail)})" if fault.detail else ""
                report.add(
                    place, f"an entry of the JSON array is not valid{detail}", "write an array of objects"
                )
            elif isinstance(value, dict):
                yield Record(place, value)
            else:
                report.add(place, f"the entry is {jsonl.kind_of(value)}", "write an array of objects")


def _lines(path: Path, name: str, report: Report) -> Iterator[tuple[str, str]]:
    """Every line that is not blank, without its line end, with its place."""
    with readable(name, report), unpacked(path) as stream:
        for number, _, raw in jsonl.split(stream.read, MAX_LINE):
            place = f"{name}:{number}"
            if raw is None:
                report.add(place, _FAULTS["too-long"])
            elif (line := raw.removeprefix(_BOM if number == 1 else b"")).strip():
                yield place, report.text(line.rstrip(b"\r"), name)


def column_name(text: str) -> str:
    """Return the name of a column or field in lower case, with underscores for blanks and hyphens."""
    return "_".join(text.lower().replace("-", " ").split())


def header_of(cells: Sequence[str], text_fields: Sequence[str] = ()) -> list[str]:
    """Return the names of the columns if the first row of a table names columns, else nothing.

    Args:
        cells: The first row.
        text_fields: Names that the organiser gives to columns.
    """
    names = [column_name(cell) for cell in cells]
    while names and not names[-1]:  # spreadsheets write empty columns
        names.pop()
    if len(names) < 2 or names[0].isdigit():
        return []
    ids = {*TOPIC_IDS, *DOCUMENT_IDS, *OF_JUDGMENTS}
    is_header = names[0] in ids or (ids & {*names} and {*names} <= {*ids, *TEXTS})
    return names if is_header or {*text_fields} & {*names} else []


def table(
    path: Path, name: str, report: Report, delimiter: str, header: Sequence[str], *, is_quoted: bool
) -> Iterator[Record]:
    """Yield each row of a table in CSV or TSV.

    Args:
        path: The file.
        name: The name of the file for messages.
        report: Receives every problem.
        delimiter: The character between two columns.
        header: The names of the columns, which the first row holds; without names the columns are ``id`` and ``text`` (all
            further columns, a line each).
        is_quoted: True if cells can be in quotation marks, as spreadsheets write them.
    """
    lines = _lines(path, name, report)
    rows = _quoted_rows(lines, name, report, delimiter) if is_quoted else _plain_rows(lines, delimiter)
    names = list(header)
    for number, (place, row) in enumerate(rows):
        cells = row[: len(names)] if names and not any(row[len(names) :]) else row
        if (names and not number) or (is_quoted and not any(cells)):
            continue
        if names and len(cells) != len(names):
            noun = {"\t": "tab", ",": "comma", ";": "semicolon"}[delimiter]
            report.add(
                place, f"the line has {len(cells)} columns, not {len(names)}", f"one {noun} between two"
            )
        elif len(cells) < 2:
            report.add(place, "the line has no tab", "write the id, a tab, the text")
        elif names:
            yield Record(place, dict(zip(names, cells, strict=True)))
        else:
            yield Record(place, {"id": cells[0], "text": "\n".join(cells[1:])})


# A row of a spreadsheet as tab-separated text: cells in quotation marks, and cells without any.
_QUOTED_ROW = re.compile(r'(?:"(?:[^"\t]|"")*+"|[^"\t]*+)(?:\t(?:"(?:[^"\t]|"")*+"|[^"\t]*+))*+')
_QUOTED_CELL = re.compile(r'(?:^|(?<=\t))"((?:[^"\t]|"")*+)"')


def has_quoted_cells(path: Path, name: str) -> bool:
    """True if cells of a tab-separated file are in quotation marks, as spreadsheets write them.

    Then every quotation mark in the file encloses a cell without tabs, or is doubled in such a cell. Programs that quote
    all texts, or only texts with quotation marks or line ends, are recognised by that. Excel quotes all texts with a comma,
    too. In other files a quotation mark is part of a text, as in a query for a phrase.
    """
    rows = quoted = 0
    is_certain = has_comma = has_plain_comma = False
    for row in _rows_of_lines(path, name):
        if is_separator_line(row):
            continue
        if _QUOTED_ROW.fullmatch(row) is None:
            return False
        cells = _QUOTED_CELL.findall(row)
        rows, quoted = rows + 1, quoted + len(cells)
        is_certain |= any('""' in cell or "\n" in cell for cell in cells)
        has_comma |= any("," in cell or ";" in cell for cell in cells)
        has_plain_comma |= "," in _QUOTED_CELL.sub("", row)
    return is_certain or (has_comma and not has_plain_comma) or 0 < rows <= quoted


def _rows_of_lines(path: Path, name: str) -> Iterator[str]:
    """Yield the lines of a file, joined while a quotation mark is open."""
    row, is_open, size = list[str](), False, 0
    for _, line in _lines(path, name, Report()):
        row.append(line)
        size += len(line)
        is_open ^= line.count('"') % 2 == 1
        if not is_open or size > MAX_LINE:
            yield "\n".join(row)
            row, is_open, size = [], False, 0
    if row:
        yield "\n".join(row)


def _plain_rows(lines: Iterator[tuple[str, str]], delimiter: str) -> Iterator[tuple[str, list[str]]]:
    for place, line in lines:
        yield place, line.split(delimiter)


def _quoted_rows(
    lines: Iterator[tuple[str, str]], name: str, report: Report, delimiter: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows with the places of their last lines; a cell in quotation marks can hold line ends."""
    place = name

    def texts() -> Iterator[str]:
        nonlocal place
        for number, (place, line) in enumerate(lines):  # noqa: B007  (place is read below)
            if number or not is_separator_line(line):
                yield line + "\n"

    csv.field_size_limit(MAX_LINE)
    try:
        for row in csv.reader(texts(), delimiter=delimiter, strict=True):
            yield place, row
    except csv.Error as error:
        report.add(place, f"is not a table from here on ({show(str(error))})", "write it as CSV or TSV again")


def is_separator_line(line: str) -> bool:
    """True for the line in which Excel names the delimiter, such as ``sep=;``."""
    return re.fullmatch(r"sep=[,;\t]", line.strip('\r\n"'), re.IGNORECASE) is not None


_DOC = re.compile(rb"<doc(?:\s[^<>]*)?>", re.IGNORECASE)
_END = re.compile(rb"</doc\s*>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*+)[^<>]*+>")


def trec_documents(path: Path, name: str, report: Report) -> Iterator[Record]:
    """Each ``<DOC>``: its elements by their names in lower case, tags within them taken out; other text is ``text``."""
    line, rest = 1, b""
    with readable(name, report), unpacked(path) as stream:
        while piece := stream.read(_BLOCK):
            rest, at = rest + piece, 0
            for end in _END.finditer(rest):
                yield from _trec_document(rest[at : end.start()], name, line, report)
                line, at = line + rest.count(b"\n", at, end.end()), end.end()
            rest = rest[at:]
            if len(rest) > MAX_LINE:
                report.add(f"{name}:{line}", f"no </DOC> within {MAX_LINE >> 20} MiB", "close the document")
                return
        if begun := _DOC.search(rest):
            line += rest.count(b"\n", 0, begun.start())
            report.add(f"{name}:{line}", "the document that begins here has no </DOC>", "close it")


def _trec_document(raw: bytes, name: str, line: int, report: Report) -> Iterator[Record]:
    begun = list(_DOC.finditer(raw))
    place = f"{name}:{line + raw.count(_NEWLINE, 0, begun[0].start() if begun else len(raw))}"
    if len(begun) == 1:
        yield Record(place, _elements(report.text(raw[begun[0].end() :], name)))
    elif begun:
        report.add(place, "another document begins before this one has ended", "write </DOC> behind it")
    else:
        report.add(place, "a document ends that has not begun", "write <DOC> before it")


def _elements(text: str) -> dict[str, Any]:
    """The outermost elements; one that is not closed is text. Several of one name are joined, tags within are blanks."""
    tags = list(_TAG.finditer(text))
    closed = {tag[2].lower(): tag.start() for tag in tags if tag[1]}  # where each is closed last
    found: dict[str, list[str]] = {}
    inside, at = "", 0
    for tag in tags:
        name = tag[2].lower()
        found.setdefault(inside or "text", []).append(text[at : tag.start()])
        at = tag.end()
        if tag[1]:
            inside = "" if name == inside else inside
        elif not inside and closed.get(name, -1) > tag.start():
            inside = name
    found.setdefault(inside or "text", []).append(text[at:])
    joined = {name: unescape(" ".join(parts)).strip() for name, parts in found.items()}
    return {name: text for name, text in joined.items() if text}


_GRADE = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
OF_JUDGMENTS = ("query-id", "query_id", "qid", "topic_id")
_THREE = (
    ("query-id", "corpus-id", "score"),
    ("query_id", "doc_id", "relevance"),
    ("qid", "docno", "relevance"),
)


def delimiter_of_judgments(line: str) -> str | None:
    """Return what separates the columns of three-column judgments if ``line`` names them; None for any other line.

    A blank stands for blanks and tabs.
    """
    for delimiter in (" ", ",", ";"):
        words = line.lower().split(None if delimiter == " " else delimiter)
        if tuple(word.strip(' "') for word in words) in _THREE:
            return delimiter
    return None


def judgments(path: Path, name: str, report: Report) -> Iterator[Judgment]:
    """Yield each judgment: TREC's four columns, or three below a line that names them."""
    first_line, three = True, None
    for place, line in _lines(path, name, report):
        if first_line:
            first_line, three = False, delimiter_of_judgments(line)
            if three is not None:
                continue
        words = [word.strip(' "') for word in line.split(three)] if three in (",", ";") else line.split()
        if three and len(words) == 3:
            words.insert(1, "0")
        match = _GRADE.fullmatch(words[-1])
        if line.startswith("#") and (
            len(words) != 4 or match is None
        ):  # a comment; but a topic may be called #1
            continue
        if len(words) != 4:
            what = f"the line has {len(words)} columns, not {3 if three else 4}"
            report.add(place, what, "write topic, iteration (0), document, grade")
        elif match is None:
            report.add(place, "the grade in the last column is not a whole number", "write a whole number")
        else:
            yield Judgment(name, place, words[0], words[1], words[2], int(match[1]))


DOCUMENT_IDS = ("docno", "doc_id", "docid", "pid", "id", "_id")
TOPIC_IDS = (
    "qid", "query_id", "topic_id", "number", "num", "id", "_id", "identifier", "topicid", "queryid", "topic_number", "query_number",
)  # fmt: skip
# Fields of topics that are searched, the best first.
QUERIES = ("query", "title", "text", "question", "query_text", "topic_text", "content", "description")
TEXTS = {*QUERIES, "desc", "narrative", "narr", "keywords", "background", "language"}


def first(fields: dict[str, Any], keys: Sequence[str]) -> Any:
    """The value of the first of ``keys`` that is there and not empty, or None."""
    return next((fields[key] for key in keys if fields.get(key) not in (None, "")), None)
