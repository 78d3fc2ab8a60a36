"""What the files of a collection are: topics, documents or judgments. What they hold decides; a name only where that cannot."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from runner.kinds.adhoc import formats
from runner.kinds.adhoc.formats import DOCUMENT_IDS, TOPIC_IDS, Judgment, Record, Report
from runner.kinds.release import stem, unpacked
from schemas import jsonl, show

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
_ONLY_TOPICS = {"qid", "query_id", "topic_id", "query", "question", "narrative", "original_query"}
_EITHER: tuple[Role, ...] = ("topics", "documents")
_QREL = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?[0-9]{1,18}(\.0*)?\s*")
_RUN = re.compile(r"\S+\s+\S+\s+\S+\s+[0-9]+\s+[-+.0-9eE]+\s+\S+\s*")
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


@dataclass
class Found:
    """The files of a collection by what they are, and those that were left with the reason."""

    topics: list[File] = field(default_factory=list)
    documents: list[File] = field(default_factory=list)
    judgments: list[File] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    judged: list[Judgment] = field(default_factory=list)


def recognise(files: Mapping[str, Path], report: Report) -> Found:
    """What each of ``files`` (by name) is; the judgments are read. What cannot be told goes to ``report``."""
    found, open_ones = Found(), list[File]()
    for name, path in sorted(files.items()):
        file = _form(name, path, report)
        if isinstance(file, str):
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


def _form(name: str, path: Path, report: Report) -> File | str:
    """A file and its form, or why it is left."""
    try:
        with unpacked(path) as stream:
            head = stream.read(HEAD)
    except (OSError, EOFError, zlib.error) as error:
        report.add(name, f"cannot be read ({show(str(error), 100)})", "fetch it again, or take it out")
        return "cannot be read"
    if b"\0" in head:
        return "not text"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "empty"
    whole = len(head) < HEAD
    lines = text.splitlines()[: None if whole else -1] or [text]
    if text.startswith(b"{"):
        return _json(name, path, lines)
    if text.startswith(b"<"):
        return _markup(name, path, text)
    return _columns(name, path, [line.decode("latin-1") for line in lines if line.strip()])


def _json(name: str, path: Path, lines: Iterable[bytes]) -> File | str:
    objects = (jsonl.parse(line) for line in islice(lines, 20))
    known = next((one for one in objects if isinstance(one, dict)), None)
    if known is None:
        return "JSON, but not an object in every line"
    roles = _roles(known)
    return (
        File(name, path, "JSON Lines", roles, formats.json_lines) if roles else "JSON Lines of something else"
    )


def _roles(keys: Collection[str]) -> tuple[Role, ...]:
    """What an object or a row with these keys can be."""
    document, topic = bool(_ONLY_DOCUMENTS & set(keys)), bool(_ONLY_TOPICS & set(keys))
    if (document and topic) or not {*DOCUMENT_IDS, *TOPIC_IDS} & set(keys):
        return ()
    return ("documents",) if document else ("topics",) if topic else _EITHER


def _markup(name: str, path: Path, text: bytes) -> File | str:
    forms: tuple[tuple[bytes, str, Role, formats.Reader], ...] = (
        (rb"<docno>", "TREC", "documents", formats.trec_documents),
        (rb"<top>", "TREC", "topics", formats.trec_topics),
        (rb"<(topic|query)[\s>]", "XML", "topics", formats.xml_topics),
    )
    for pattern, form, role, reader in forms:
        if re.search(pattern, text, re.IGNORECASE):
            return File(name, path, form, (role,), reader)
    return "markup without topics or documents"


def _columns(name: str, path: Path, lines: Sequence[str]) -> File | str:
    def most(fits: Callable[[str], object]) -> bool:
        return 2 * sum(1 for line in lines if fits(line)) > len(lines)

    if formats.is_header(lines[0]) or most(_QREL.fullmatch):
        return File(name, path, "TREC qrels", ("judgments",))
    if most(_RUN.fullmatch):
        return "a run"
    if most(lambda line: all(cell.strip() for cell in line.partition("\t")[::2])):
        header = formats.header_of(lines[0])
        roles = _roles(header) if header else _EITHER
        if roles:
            return File(name, path, "tab-separated", roles, formats.tab_separated)
    return "neither topics, documents nor judgments"


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
