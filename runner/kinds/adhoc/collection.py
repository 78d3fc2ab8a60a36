"""A task from a collection that exists: its files are recognised, checked against one another, and written in our form.

Documents become ``documents.jsonl.gz``, topics ``queries.jsonl``, judgments ``qrels.txt``. Truths of topics that are not
made public are written apart from all that participants see.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from runner.kinds import Say
from runner.kinds.adhoc import formats
from runner.kinds.adhoc.formats import MAX_PROBLEMS, Judgment, Record, Report, first
from runner.kinds.adhoc.recognise import Found, Left, recognise, split_topics
from runner.kinds.adhoc.topics import with_turns
from runner.kinds.release import Wrong, files_of
from schemas import show

_TITLES = ("title", "headline", "head", "hl", "ttl")
_TEXTS = ("text", "contents", "content", "body", "passage", "abstract")
_ALIASES = {"desc": "description", "narr": "narrative", "lang": "language", "xml:lang": "language"}
# What software may see of a topic; anything else could be an answer.
_OF_TOPICS = {
    "query",
    "title",
    "text",
    "question",
    "description",
    "narrative",
    "keywords",
    "background",
    "language",
}
_LANGUAGE = re.compile(r"^(?:[a-z]{2,3}|[cejk])-")  # en-title
_STEP = 500_000  # documents between two messages


class Entry(NamedTuple):
    """One topic or document: its place in the source, id and text, and all that software may see of it."""

    place: str
    id: str
    text: str
    original: dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A collection as something holds it; ``documents`` can be gone through several times, but once is enough."""

    documents: Callable[[], Iterator[Entry]]
    topics: Sequence[Entry]
    judgments: Sequence[Judgment]


class Made(NamedTuple):
    """Counts of documents and topics, and the datasets.

    ``public`` has the number of topics of each split that everybody sees with its judgments, ``blinded`` is the name of the
    other dataset.
    """

    documents: int
    topics: int
    public: dict[str, int]
    blinded: str


def from_files(
    source: Path, scratch: Path, report: Report, say: Say, text_fields: Sequence[str] = ()
) -> Source | None:
    """Return the collection in a folder, an archive or a single file; None if ``report`` has the reason.

    ``say`` receives the role of each file, and the files that are left. ``text_fields`` are the fields of topics whose texts
    are the query; without them it is the first of :data:`formats.QUERIES`.
    """
    try:
        found = recognise(files_of(source, scratch), scratch, report, text_fields)
    except Wrong as error:
        report.add(source.name, error.what, error.fix)
        return None
    topics = _topics(found, report, text_fields)
    for role, taken in (
        ("documents", found.documents),
        ("topics", found.topics),
        ("judgments", found.judgments),
    ):
        for file in taken:
            say(f"{role}: {show(file.name, 100)} ({file.form})")
        if not taken:
            report.add(source.name, f"holds no {role}", "see what its files were taken for")
    is_whole = bool(found.documents and found.topics and found.judgments)
    for name, left in sorted(found.left.items()):
        say(f"left: {show(name, 100)} ({left.why})")
        if left.fix and not is_whole:
            report.add(name, f"was not read: {left.why}", left.fix)
    for remark in report.remarks:
        say(remark)
    if not is_whole or not topics:  # comparing them would only repeat the problem for each judgment
        return None
    records = (record for file in found.documents for record in file.records(report))
    return Source(lambda: _entries(records, document, report), topics, found.judged)


def _topics(found: Found, report: Report, text_fields: Sequence[str]) -> list[Entry]:
    """The topics; a file of ``found`` that only has them once more is left."""
    hidden: set[str] = set()
    topics = list[Entry]()
    for file in list(found.topics):
        records = (one for record in file.records(report) for one in with_turns(record))
        entries = list(_entries(records, lambda record: topic(record, hidden, text_fields), report))
        if again := _again(entries, topics):
            found.topics.remove(file)
            found.left[file.name] = Left(f"the topics of {again} again")
        else:
            topics += entries
    judged = {one.topic for one in found.judged}
    if padded := [one for one in topics if one.id not in judged and one.id.lstrip("0") in judged]:
        what = "zeros before numbers are left out, as the judgments do"
        report.remarks.append(f"{what}: {show(padded[0].id)} and others like it")
        renamed = {one.id: one._replace(id=one.id.lstrip("0")) for one in padded}
        topics = [renamed.get(one.id, one) for one in topics]
    if hidden:
        names = ", ".join(show(name) for name in sorted(hidden)[:10])
        report.remarks.append(f"left out of the topics, as they could hold answers: {names}")
    return topics


def _again(entries: Sequence[Entry], before: Iterable[Entry]) -> str:
    """The file, if all ``entries`` stand in one before, with the same words; as ``queries.jsonl`` and ``queries.xml`` do."""
    known = {one.id: one for one in before}
    same = [
        known[one.id] for one in entries if one.id in known and known[one.id].text.split() == one.text.split()
    ]
    files = {one.place.rpartition(":")[0] for one in same}
    return show(files.pop(), 100) if len(same) == len(entries) and len(files) == 1 else ""


def _entries(records: Iterable[Record], read: Callable[[Record], Entry], report: Report) -> Iterator[Entry]:
    """Yield what ``read`` makes of the records; the same problem of several records is reported once, with their number.

    Problems with more different texts than a report keeps are only counted.
    """
    places: dict[str, tuple[str, str, int]] = {}
    unlisted = 0
    for record in records:
        try:
            yield read(record)
        except Wrong as error:
            if error.what not in places and len(places) >= MAX_PROBLEMS:
                unlisted += 1
                continue
            place, fix, count = places.get(error.what, (record.place, error.fix, 0))
            places[error.what] = place, fix, count + 1
    for what, (place, fix, count) in places.items():
        more = f", and so for {count - 1:,} more" if count > 1 else ""
        report.add(place, what + more, fix)
    report.count += unlisted


def _id(fields: dict[str, Any], keys: Sequence[str], noun: str) -> str:
    value = first(fields, keys)
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text:
        raise Wrong(f"the {noun} has no id", f"give it one of {', '.join(keys)}")
    if len(text.split()) > 1 or not text.isprintable():
        raise Wrong(f"the id {show(text)} holds a blank", "runs could not name it: take another id")
    return text


def _text(fields: dict[str, Any], keys: Sequence[str], noun: str) -> str:
    value = first(fields, keys)
    if not isinstance(value, str) or not value.strip():
        raise Wrong(f"the {noun} has no text", f"give it one of {', '.join(keys)}")
    return value


def document(record: Record) -> Entry:
    """A document: its title, if it has one, stands before its text. Raises :class:`Wrong`."""
    fields = record.fields
    name = _id(fields, formats.DOCUMENT_IDS, "document")
    if isinstance(original := fields.get("original_document"), dict):  # in our form already
        return Entry(record.place, name, _text(fields, ("text",), "document"), original)
    parts = [
        part for keys in (_TITLES, _TEXTS) if isinstance(part := first(fields, keys), str) and part.strip()
    ]
    rest = {key: value for key, value in fields.items() if key not in formats.DOCUMENT_IDS}
    if not parts:  # all that is there
        parts = [part for part in rest.values() if isinstance(part, str)]
    return Entry(record.place, name, "\n".join(dict.fromkeys(parts)), {"doc_id": name, **rest})


def topic(record: Record, hidden: set[str], text_fields: Sequence[str] = ()) -> Entry:
    """Return a topic; names of fields that are left out of it go to ``hidden``.

    Raises:
        Wrong: for a topic without id or text; the fix names the fields that the topic has.
    """
    fields = record.fields
    name = _id(fields, formats.TOPIC_IDS, "topic")
    original = fields.get("original_query")
    values = {**fields, **original} if isinstance(original, dict) else fields
    values = {_ALIASES.get(key, key): value for key, value in values.items()}
    if text_fields:
        by_name = {formats.column_name(key): key for key in (*values, *fields)}
        used = [by_name[key] for key in text_fields if key in by_name]
    else:
        used = [key for key in formats.QUERIES if values.get(key) not in (None, "")][:1]
    texts = [
        text for key in used if isinstance(text := values.get(key, fields.get(key)), str) and text.strip()
    ]
    if not texts:
        others = ", ".join(show(key) for key in values if key not in formats.TOPIC_IDS) or "no other field"
        wanted = f"no text in {', '.join(map(show, text_fields))}" if text_fields else "no text"
        raise Wrong(
            f"the topic has {wanted}",
            f"give it one of {', '.join(formats.QUERIES)}, or name the field with --topic-text (this topic has {others})",
        )
    visible = {
        key: value for key, value in values.items() if _LANGUAGE.sub("", key) in _OF_TOPICS or key in used
    }
    ids = {key for key in formats.TOPIC_IDS if str(values.get(key, "")).strip() == name}
    hidden |= {key for key, value in values.items() if value not in (None, "", [], {})} - {
        *visible,
        *ids,
        "original_query",
    }
    return Entry(record.place, name, " ".join(texts), {"query_id": name, **visible})


def write(source: Source, task_id: str, folder: Path, hidden: Path, report: Report, say: Say) -> Made | None:
    """Check ``source`` and write its datasets; None when ``report`` says what is wrong.

    Args:
        source: the collection.
        task_id: the task's name.
        folder: the task's folder, for inputs and truths of public datasets.
        hidden: the folder for the blinded dataset.
        report: told of every problem.
        say: told how far a long reading is, and what is no problem but has to be known.

    Raises:
        OSError: when something cannot be written.
    """
    topics = _unique(source.topics, "topic", report)
    judged = _judged(source.judgments, {entry.id for entry in topics}, report, say)
    if not judged:
        report.add("the collection", "has no judgments of its topics", "take topics and judgments that fit")
    datasets = split_topics(judged) or {"test": {entry.id for entry in topics}}
    *open_ones, blinded = datasets
    in_splits = set().union(*datasets.values())
    if left_out := len(topics) - sum(1 for entry in topics if entry.id in in_splits):
        say(f"{left_out:,} topics are in no split, and are left out")
    topics = [entry for entry in topics if entry.id in in_splits]
    inputs = hidden / blinded / "inputs"
    inputs.mkdir(parents=True)
    written = _documents(source, inputs / "documents.jsonl.gz", judged, report, say)
    for name, count in report.latin.items():
        say(f"{show(name, 100)}: {count:,} records are not UTF-8, and were read as Latin-1")
    if report.count:
        return None
    for name, ids in datasets.items():
        target = hidden / blinded if name == blinded else folder / "datasets" / name
        if name != blinded:
            (target / "inputs").mkdir(parents=True)
            _same_file(inputs / "documents.jsonl.gz", target / "inputs" / "documents.jsonl.gz")
        dataset_topics = [entry for entry in topics if entry.id in ids]
        _dataset(target / "inputs", target / "truths", f"{task_id}-{name}", dataset_topics, judged)
    return Made(written, len(topics), {name: len(datasets[name]) for name in open_ones}, blinded)


def _unique(entries: Iterable[Entry], noun: str, report: Report) -> list[Entry]:
    known: dict[str, Entry] = {}
    for entry in entries:
        before = known.setdefault(entry.id, entry)
        if before is not entry:
            what = f"the {noun} {show(entry.id)} is there twice (first at {show(before.place, 200)})"
            report.add(entry.place, what, "keep one of them")
    return list(known.values())


def _judged(
    judgments: Iterable[Judgment], topics: Collection[str], report: Report, say: Say
) -> list[Judgment]:
    """Return the judgments, each once; problems where two disagree, two files judge one topic, or a topic is missing."""
    known: dict[tuple[str, str, str], Judgment] = {}
    files: dict[str, str] = {}
    both: set[tuple[str, str]] = set()
    repeated: list[str] = []
    for one in judgments:
        seen = one.topic in files
        if (other := files.setdefault(one.topic, one.file)) != one.file:
            if (one.file, other) not in both:
                what = f"the topic {show(one.topic)} is judged in {show(other, 100)}, too"
                report.add(
                    one.place, what, "take one of the files out, and add its truths to task.yaml later"
                )
            both.add((one.file, other))
            continue
        if one.topic not in topics and not seen:
            what = f"the topic {show(one.topic)} is not among the topics"
            report.add(one.place, what, "add the topic, or take its judgments out")
        before = known.setdefault((one.topic, one.iteration, one.document), one)
        if before is not one and before.grade == one.grade:
            repeated.append(f"{one.place} repeats {before.place}")
        if before.grade != one.grade:
            what = f"the document {show(one.document)} has another grade for this topic at {show(before.place, 200)}"
            report.add(one.place, what, "keep one of them")
    if repeated:
        more = f", and {len(repeated) - 1:,} more lines do so" if len(repeated) > 1 else ""
        say(f"judgments that are there twice count once: {show(repeated[0], 400)}{more}")
    return list(known.values())


def _documents(source: Source, target: Path, judged: Iterable[Judgment], report: Report, say: Say) -> int:
    """Write the documents, each once, and return their number; ``say`` is told of those left out or missing.

    Published collections repeat documents, and later versions lack judged ones. Only judgments of which no document is
    in the collection are noted as a problem.
    """
    unseen = {one.document: one for one in reversed(list(judged))}
    judged_count = len(unseen)
    known: set[str] = set()
    repeats: list[str] = []  # places
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        for entry in source.documents():
            if entry.id in known:
                repeats.append(entry.place)
                continue
            known.add(entry.id)
            unseen.pop(entry.id, None)
            packed.write(_line({"docno": entry.id, "text": entry.text, "original_document": entry.original}))
            if len(known) % _STEP == 0:
                say(f"{len(known):,} documents read")
    if not known:
        report.add("the collection", "has no documents")
    if len(repeats) > len(known):
        what = f"{len(repeats):,} of {len(known) + len(repeats):,} documents repeat an id"
        report.add(repeats[0], what, "give every document an id of its own")
    elif repeats:
        say(
            f"warning: {len(repeats):,} documents repeat an id and are left out, first at {show(repeats[0], 200)}"
        )
    if unseen and known:
        one = min(unseen.values(), key=lambda one: one.place)
        what = f"{len(unseen):,} of {judged_count:,} judged documents are not in the collection, such as {show(one.document)}"
        if len(unseen) == judged_count:
            report.add(one.place, what, "add the collection that was judged")
        else:
            say(f"warning: {what} at {show(one.place, 200)}; their judgments are kept")
    return len(known)


def _dataset(
    inputs: Path, truths: Path, name: str, topics: Sequence[Entry], judged: Iterable[Judgment]
) -> None:
    lines = (_line({"qid": one.id, "query": one.text, "original_query": one.original}) for one in topics)
    (inputs / "queries.jsonl").write_bytes(b"".join(lines))
    (inputs / "metadata.json").write_bytes(_line({"ir_datasets_id": name}))
    ids = {one.id for one in topics}
    truths.mkdir(parents=True)
    rows = (f"{q.topic} {q.iteration} {q.document} {q.grade}\n" for q in judged if q.topic in ids)
    (truths / "qrels.txt").write_text("".join(rows), "utf-8")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _same_file(path: Path, target: Path) -> None:
    """A second name for the file, or a copy where the file system has no such names."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
