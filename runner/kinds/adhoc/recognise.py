"""What the files of a collection are: topics, documents or judgments. What they hold decides; a name only where that cannot."""

from __future__ import annotations

import codecs
import csv
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Literal, NamedTuple

from runner.kinds.adhoc import formats, topics
from runner.kinds.adhoc.formats import DOCUMENT_IDS, TOPIC_IDS, Judgment, Record, Report
from runner.kinds.release import stem, unpacked
from schemas import jsonl, show
from schemas.file_sorts import find_wrong_sort
from schemas.jsonarray import array_rows

Role = Literal["topics", "documents", "judgments"]
HEAD = 1 << 16  # bytes of a file that tell its form
MANY = 10_000  # more topics nobody has of which none is judged
_ONLY_DOCUMENTS = {
    "docno",
    "doc_id",
    "docid",
    "pid",
    "contents",
    "body",
    "passage",
    "url",
    "original_document",
}
_ONLY_TOPICS = {
    "qid", "query_id", "topic_id", "query", "question", "narrative", "original_query", "query_text", "topic_text", "turn", "turns",
}  # fmt: skip
_EITHER: tuple[Role, ...] = ("topics", "documents")
_QREL = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?[0-9]{1,18}(\.0*)?\s*")
_RUN = re.compile(r"\S+\s+\S+\s+\S+\s+[0-9]+\s+[-+.0-9eE]+\s+\S+\s*")
_PRELS = re.compile(
    r"\S+\s+\S+\s+[+-]?[0-9]+\s+[0-9]+\s+(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?\s*"
)
_FIVE = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?[0-9]{1,2}\s+\S+\s*")
_QUOTED = re.compile(r'(?:^|\t)"((?:[^"\t]|"")*+)"(?=\t|\r?$)', re.MULTILINE)
_UTF16_DECLARED = re.compile(r"""(<\?xml\b[^>]*?)\s+encoding\s*=\s*["'][^"']*["']""", re.IGNORECASE)
_WORDS: Mapping[Role, re.Pattern[str]] = {
    "topics": re.compile("topic|quer", re.IGNORECASE),
    "documents": re.compile("doc|corpus|collection|passage", re.IGNORECASE),
}


@dataclass(frozen=True)
class File:
    """A file of the collection: the form it has in words, what it can be, and how its records are read."""

    name: str
    path: Path
    form: str
    roles: Sequence[Role]
    reader: formats.Reader | None = None

    def records(self, report: Report) -> Iterator[Record]:
        """Its topics or documents."""
        assert self.reader is not None
        return self.reader(self.path, self.name, report)


class Left(NamedTuple):
    """The reason why a file is left; with a ``fix`` if the organiser may have meant it to be read."""

    why: str
    fix: str = ""


@dataclass
class Found:
    """The files of a collection by what they are, and those that were left with the reason."""

    topics: list[File] = field(default_factory=list)
    documents: list[File] = field(default_factory=list)
    judgments: list[File] = field(default_factory=list)
    left: dict[str, Left] = field(default_factory=dict)
    judged: list[Judgment] = field(default_factory=list)


def recognise(
    files: Mapping[str, Path], scratch: Path, report: Report, text_fields: Sequence[str] = ()
) -> Found:
    """Return the role of each of ``files`` (by name), and the judgments. Files that can be either go to ``report``.

    Args:
        files: The files of the collection.
        scratch: A folder for copies of files in UTF-16.
        report: Receives every problem.
        text_fields: The fields of topics that the organiser names as their text.
    """
    found, open_ones = Found(), list[File]()
    for number, (name, path) in enumerate(sorted(files.items())):
        file = _form(name, path, scratch / f"utf8-{number}", report, text_fields)
        if isinstance(file, Left):
            found.left[name] = file
        elif len(file.roles) > 1:
            open_ones.append(file)
        else:
            getattr(found, file.roles[0]).append(file)
    for file in found.judgments:
        found.judged += formats.judgments(file.path, file.name, report)
    for file, role in _roles_by_judgments(open_ones, found.judged):
        if role is None:
            what = "could be topics or documents: the judgments name its ids as both or as neither"
            fix = "give it a name with topics or documents in it, or take it out"
            report.add(file.name, what, fix)
        else:
            getattr(found, role).append(file)
    for role in _EITHER:
        getattr(found, role).sort(key=lambda file: file.name)
    return found


def _form(name: str, path: Path, copy: Path, report: Report, text_fields: Sequence[str]) -> File | Left:
    """Return a file and its form, or why it is left; a file in UTF-16 is read from its ``copy`` in UTF-8."""
    try:
        with unpacked(path) as stream:
            head = stream.read(HEAD)
            sort = find_wrong_sort(head)
            if sort is not None and sort.key in ("utf-16", "utf-32"):
                _write_utf8(stream, head, sort.key, copy)
                report.remarks.append(f"{show(name, 100)}: is {sort.name}, and was read as such")
                return _form(name, copy, copy, report, text_fields)
    except (OSError, EOFError, zlib.error, UnicodeError) as error:
        report.add(name, f"cannot be read ({show(str(error), 100)})", "fetch it again, or take it out")
        return Left("cannot be read")
    if sort is not None and sort.key != "html":
        return Left(sort.name, sort.fix)
    if b"\0" in head:
        return Left("not text")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return Left("empty")
    is_whole = len(head) < HEAD
    lines = text.splitlines()[: None if is_whole else -1] or [text]
    if re.match(rb"\{|\[\s*[{\]]", text):
        return _json(name, path, lines)
    if text.startswith(b"<"):
        file = _markup(name, path, text, text_fields)
        return Left(sort.name, sort.fix) if sort is not None and isinstance(file, Left) else file
    return _columns(
        name, path, [line.decode("utf-8", "replace") for line in lines if line.strip()], report, text_fields
    )


def _write_utf8(stream: IO[bytes], head: bytes, encoding: str, target: Path) -> None:
    """Write a file in UTF-16 or UTF-32 as UTF-8. XML loses the declaration of its encoding."""
    if not head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):  # no byte order mark
        encoding += "-be" if head[:1] == b"\0" else "-le"
    stream.seek(0)
    with codecs.getreader(encoding)(stream) as reader, target.open("w", encoding="utf-8", newline="") as out:
        out.write(_UTF16_DECLARED.sub(r"\1", reader.read(HEAD), count=1))
        shutil.copyfileobj(reader, out)


def _json(name: str, path: Path, lines: Iterable[bytes]) -> File | Left:
    objects = (jsonl.parse(line) for line in islice(lines, 20))
    known = next((one for one in objects if isinstance(one, dict)), None)
    form, reader = "JSON Lines", formats.json_lines
    if known is None:
        form, reader = "JSON array", formats.json_array
        with unpacked(path) as stream:
            first = next(array_rows(stream.read, formats.MAX_LINE), None)
        known = first.value if first is not None and isinstance(first.value, dict) else None
    if known is None:
        return Left("JSON, but not an object in every line", "write JSON Lines, or an array of objects")
    roles = _roles(known)
    fix = f"give each object one of {', '.join(TOPIC_IDS[:7])} and a query"
    return File(name, path, form, roles, reader) if roles else Left(f"{form} of something else", fix)


def _roles(keys: Collection[str]) -> tuple[Role, ...]:
    """What an object or a row with these keys can be."""
    document, topic = bool(_ONLY_DOCUMENTS & set(keys)), bool(_ONLY_TOPICS & set(keys))
    if (document and topic) or not {*DOCUMENT_IDS, *TOPIC_IDS} & set(keys):
        return ()
    return ("documents",) if document else ("topics",) if topic else _EITHER


def _markup(name: str, path: Path, text: bytes, text_fields: Sequence[str]) -> File | Left:
    elements = "|".join(topics.TOPIC_ELEMENTS).encode()
    forms: tuple[tuple[bytes, str, Role, formats.Reader], ...] = (
        (rb"<docno>", "TREC", "documents", formats.trec_documents),
        (rb"<top[\s>]", "TREC", "topics", partial(topics.trec_topics, text_fields=text_fields)),
        (
            rb"<(\w+:)?(" + elements + rb")[\s>]",
            "XML",
            "topics",
            partial(topics.xml_topics, text_fields=text_fields),
        ),
    )
    for pattern, form, role, reader in forms:
        if re.search(pattern, text, re.IGNORECASE):
            return File(name, path, form, (role,), reader)
    return Left("markup without topics or documents", "topics are <top> or <topic> elements, documents <DOC>")


def _columns(
    name: str, path: Path, lines: Sequence[str], report: Report, text_fields: Sequence[str]
) -> File | Left:
    def most(fits: Callable[[str], object]) -> bool:
        return 2 * sum(1 for line in lines if fits(line)) > len(lines)

    if formats.delimiter_of_judgments(lines[0]) or most(_QREL.fullmatch):
        return File(name, path, "TREC qrels", ("judgments",))
    if most(_RUN.fullmatch):
        return Left("a run")
    if most(_PRELS.fullmatch):
        what = (
            "judgments in five columns: topic, document, grade, method and probability (prels, of a sample)"
        )
        return Left(
            what, "write qrels in four columns: topic, 0, document, grade; measures use no probabilities"
        )
    if most(_FIVE.fullmatch):
        return Left("five columns", "judgments have four: topic, iteration (0), document, grade")
    return _table(name, path, lines, report, text_fields) or Left("neither topics, documents nor judgments")


def _table(
    name: str, path: Path, lines: Sequence[str], report: Report, text_fields: Sequence[str]
) -> File | Left | None:
    """Return a table of topics or documents, or None for any other text."""
    if formats.is_separator_line(lines[0]):
        lines = lines[1:] or [""]
    for delimiter, form in (("\t", "tab-separated"), (",", "CSV"), (";", "CSV with semicolons")):
        is_quoted = delimiter != "\t" or _is_quoted(name, path, lines, report)
        first = next(csv.reader(lines[:1], delimiter=delimiter)) if is_quoted else lines[0].split(delimiter)
        header = formats.header_of(first, text_fields)
        with_cells = sum(1 for line in lines if all(cell.strip() for cell in line.partition(delimiter)[::2]))
        if header or (delimiter == "\t" and 2 * with_cells > len(lines)):
            roles = _roles_of_table(header, text_fields)
            reader = partial(formats.table, delimiter=delimiter, header=header, is_quoted=is_quoted)
            if roles:
                return File(name, path, form, roles, reader)
        if delimiter != "\t" and with_cells == len(lines) > 1:
            fix = "write the names of the columns into the first line, such as qid,query, or name a column with --topic-text"
            return Left(f"{form}, whose first line does not name its columns", fix)
    return None


def _roles_of_table(header: list[str], text_fields: Sequence[str]) -> tuple[Role, ...]:
    """Return what a table can be; if the organiser names a column and no column is an id, the first becomes the id."""
    roles = _roles(header) if header else _EITHER
    if roles or not {*text_fields} & {*header}:
        return roles
    if not {*TOPIC_IDS, *_ONLY_DOCUMENTS} & {*header}:
        header[0] = "qid"
    return ("topics",) if {*TOPIC_IDS} & {*header} else ()


def _is_quoted(name: str, path: Path, lines: Sequence[str], report: Report) -> bool:
    """True if quotation marks around cells of a tab-separated file are removed; a remark names them."""
    if _QUOTED.search("\n".join(lines)) is None:
        return False
    is_quoted = formats.has_quoted_cells(path, name)
    done = "were removed" if is_quoted else "are part of the texts"
    report.remarks.append(f"{show(name, 100)}: quotation marks around cells {done}")
    return is_quoted


@dataclass(frozen=True)
class _Ids:
    """What the judgments say of a file that can be topics or documents: which of its ids they use as what, of how many."""

    file: File
    topics: Set[str]
    documents: Set[str]
    count: int


def _ids(file: File, topics: Set[str], documents: Set[str]) -> _Ids:
    names = (str(formats.first(record.fields, TOPIC_IDS)) for record in file.records(Report()))
    count, as_topic, as_document = 0, set[str](), set[str]()
    for count, name in enumerate(names, 1):  # noqa: B007  (how many there were)
        if name in topics:
            as_topic.add(name)
        if name in documents:
            as_document.add(name)
    return _Ids(file, as_topic, as_document, count)


def _roles_by_judgments(
    files: Iterable[File], judged: Sequence[Judgment]
) -> Iterator[tuple[File, Role | None]]:
    """What the judgments say that files are; where they do not tell, what the name says; or None.

    Where both have numbers, documents have those of the topics, too. So topics are what covers more of the judged topics
    than of the judged documents, and has more of them; and as a topic stands in one file, that of which most are topics.
    """
    topics, documents = {one.topic for one in judged}, {one.document for one in judged}
    known, seen = [_ids(file, topics, documents) for file in files], set[str]()
    for one in sorted(known, key=lambda one: len(one.topics) / max(one.count, 1), reverse=True):
        covers = len(one.topics) * len(documents) - len(one.documents) * len(topics)
        if not covers:
            yield one.file, _role_by_name(one, len(topics))
        elif covers > 0 and len(one.topics) >= len(one.documents) and not one.topics & seen:
            seen |= one.topics
            yield one.file, "topics"
        else:
            yield one.file, "documents"


def _role_by_name(one: _Ids, topics: int) -> Role | None:
    said: list[Role] = [role for role, words in _WORDS.items() if words.search(stem(one.file.name))]
    if len(said) == 1:
        return said[0]
    larger = one.count > max(topics, 0 if one.documents else MANY)
    return "documents" if larger else None


_SPLITS = {
    "train": "train", "training": "train", "dev": "dev", "devel": "dev", "development": "dev", "val": "dev", "valid": "dev",
    "validation": "dev", "test": "test", "eval": "test",
}  # fmt: skip
_QRELS = re.compile("^qrels?[-_]|[-_]qrels?$")


def split_topics(judged: Iterable[Judgment]) -> dict[str, set[str]]:
    """Return the topics of each split, the last of them blinded; nothing unless each judgment file names its split.

    BEIR has ``qrels/train.tsv``, ``qrels/dev.tsv`` and ``qrels/test.tsv``. A file without a split could hold judgments that
    must stay hidden, so the names then decide nothing. The same holds for a single split.
    """
    topics: dict[str, set[str]] = {}
    splits_of_file: dict[str, set[str]] = {}
    for judgment in judged:
        if judgment.file not in splits_of_file:
            splits_of_file[judgment.file] = _splits_in(judgment.file)
        for split in splits_of_file[judgment.file]:
            topics.setdefault(split, set()).add(judgment.topic)
    if len(topics) < 2 or any(len(splits) != 1 for splits in splits_of_file.values()):
        return {}
    return {name: topics[name] for name in ("train", "dev", "test") if name in topics}


def _splits_in(file: str) -> set[str]:
    """Return the splits that folders of a path and parts of its name between dots are called after."""
    path = PurePosixPath(file.lower())
    parts = [*path.parts[:-1], *stem(path.name).split(".")]
    return {_SPLITS[word] for part in parts if (word := _QRELS.sub("", part)) in _SPLITS}
