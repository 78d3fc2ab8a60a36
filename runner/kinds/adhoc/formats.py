"""Topics, documents and judgments in the forms in which collections are handed on; each yields records with their places.

Forms: JSON Lines, tab-separated values, TREC's SGML (``<DOC>``, ``<top>``), XML (``<topic>``), and TREC's qrels; each plain or
gzip. What is wrong with a line is noted with file and line in a :class:`Report`, and reading goes on.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from runner.kinds.release import unpacked
from runner.model.errors import Problem
from schemas import jsonl, show

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


def _lines(path: Path, name: str, report: Report) -> Iterator[tuple[str, str]]:
    """Every line that is not blank, without its line end, with its place."""
    with readable(name, report), unpacked(path) as stream:
        for number, _, raw in jsonl.split(stream.read, MAX_LINE):
            place = f"{name}:{number}"
            if raw is None:
                report.add(place, _FAULTS["too-long"])
            elif (line := raw.removeprefix(_BOM if number == 1 else b"")).strip():
                yield place, report.text(line.rstrip(b"\r"), name)


def header_of(line: str) -> list[str]:
    """The names of the columns if this first line of a tab-separated file holds names, else nothing."""
    cells = [cell.strip().lower() for cell in line.split("\t")]
    known = {*TOPIC_IDS, *DOCUMENT_IDS, *_OF_JUDGMENTS}
    return cells if cells[0] in known and not cells[0].isdigit() and len(cells) > 1 else []


def tab_separated(path: Path, name: str, report: Report) -> Iterator[Record]:
    """Each row: by the names in the first line, or else ``id`` and ``text`` (all further columns, a line each)."""
    names: list[str] | None = None
    for place, line in _lines(path, name, report):
        if names is None and (names := header_of(line)):
            continue
        cells = line.split("\t")
        if names and len(cells) != len(names):
            report.add(place, f"the line has {len(cells)} columns, not {len(names)}", "one tab between two")
        elif len(cells) < 2:
            report.add(place, "the line has no tab", "write the id, a tab, the text")
        elif names:
            yield Record(place, dict(zip(names, cells, strict=True)))
        else:
            yield Record(place, {"id": cells[0], "text": "\n".join(cells[1:])})


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


_TOPIC_TAGS = {"num": "qid", "desc": "description", "narr": "narrative"}
_LABEL = re.compile(r"(?:number|topic|description|narrative)\s*:", re.IGNORECASE)


def _whole(path: Path, name: str, report: Report) -> bytes:
    """The bytes of a file of topics; none when they cannot be read."""
    with readable(name, report), unpacked(path) as stream:
        data: bytes = stream.read(MAX_LINE + 1)
        if len(data) <= MAX_LINE:
            return data
        report.add(name, f"has more than {MAX_LINE >> 20} MiB, too much for topics")
    return b""


def trec_topics(path: Path, name: str, report: Report) -> Iterator[Record]:
    """Each ``<top>``, whose elements need not be closed: number, title, description and narrative without their labels."""
    data = _whole(path, name, report)
    line, at = 1, 0
    begun = [match.end() for match in re.finditer(rb"<top>", data, re.IGNORECASE)]
    for start, end in zip(begun, [*begun[1:], len(data)], strict=True):
        line, at = line + data.count(b"\n", at, start), start
        text = re.split("</top>", report.text(data[start:end], name), maxsplit=1, flags=re.IGNORECASE)[0]
        parts = _TAG.split(text)  # text, slash, name, text, slash, name, …
        fields: dict[str, Any] = {}
        for slash, tag, value in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            key = _TOPIC_TAGS.get(tag.lower(), tag.lower())
            label = _LABEL.match(value := value.strip())
            if not slash and (value := unescape(value[label.end() if label else 0 :]).strip()):
                fields[key] = value
        yield Record(f"{name}:{line}", fields)


class _XmlTopics:
    """What expat tells of a file of topics, turned into records."""

    def __init__(self, name: str) -> None:
        self.name, self.done = name, list[Record]()
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.EntityDeclHandler = self.entity
        self.path: list[str] = []  # elements from the topic down
        self.place = ""
        self.fields: dict[str, list[str]] = {}
        self.entities = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.path:
            self.path.append(tag.lower())
        elif tag.lower() in ("topic", "query"):
            self.path, self.place = [tag.lower()], f"{self.name}:{self.parser.CurrentLineNumber}"
            number = next((key for key in ("number", "id", "num", "qid") if key in attributes), None)
            self.fields = {"qid": [attributes[number]]} if number else {}

    def end(self, tag: str) -> None:
        if self.path:
            self.path.pop()
            if not self.path:
                texts = {key: "".join(parts).strip() for key, parts in self.fields.items()}
                self.done.append(Record(self.place, {key: text for key, text in texts.items() if text}))

    def characters(self, text: str) -> None:
        if self.path:
            self.fields.setdefault(self.path[1] if len(self.path) > 1 else "text", []).append(text)

    def entity(self, *_: object) -> None:
        self.entities = True  # an exception from here would lose its place
        self.parser.StartElementHandler = self.parser.CharacterDataHandler = None


def xml_topics(path: Path, name: str, report: Report) -> Iterator[Record]:
    """Each ``<topic>`` or ``<query>``: its number, and the text of each element in it."""
    found = _XmlTopics(name)
    try:
        found.parser.Parse(_whole(path, name, report), True)
    except expat.ExpatError as error:
        what = f"is not XML from here on ({expat.ErrorString(error.code)})"
        report.add(f"{name}:{error.lineno}", what, "correct the file")
    if found.entities:
        report.add(name, "declares entities", "write their texts instead")
    yield from found.done


_GRADE = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
_OF_JUDGMENTS = ("query-id", "query_id", "qid", "topic_id")
_THREE = (
    ("query-id", "corpus-id", "score"),
    ("query_id", "doc_id", "relevance"),
    ("qid", "docno", "relevance"),
)


def is_header(line: str) -> bool:
    """Whether a line names the columns of judgments in three columns: topic, document, grade."""
    return tuple(line.lower().split()) in _THREE


def judgments(path: Path, name: str, report: Report) -> Iterator[Judgment]:
    """Each judgment: TREC's four columns, or three below a line that names them."""
    three: bool | None = None
    for place, line in _lines(path, name, report):
        words = line.split()
        if three is None and (three := is_header(line)):
            continue
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
TOPIC_IDS = ("qid", "query_id", "topic_id", "number", "num", "id", "_id")


def first(fields: dict[str, Any], keys: Sequence[str]) -> Any:
    """The value of the first of ``keys`` that is there and not empty, or None."""
    return next((fields[key] for key in keys if fields.get(key) not in (None, "")), None)
