"""Documents from JSON Lines, through an index that is built once and looked up lazily.

The index is an SQLite file next to the collection (``docs.jsonl.index``), or in a cache folder where that cannot be
written. A plain collection is indexed by offsets; of a gzip file the index holds the documents themselves,
compressed. Builders write a file of their own and rename it, so that any number of processes may build at a time.
An index belongs to the exact bytes of its collection: if size or time have changed, the digest decides.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from evaluator.argue.formats.lines import BOM, iter_lines, parse, refused
from evaluator.argue.models import Document
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats.files import GZIP, Closing, Damaged, TooLarge, Unreadable, open_regular
from schemas.files import atomic_path, file_sha256
from schemas.jsonl import kind_of

FORMAT = 1
ENDING = ".index"
IDS = ("id", "docid", "doc_id", "docno")
TEXTS = ("text", "body", "contents", "segment")
MAX_LINE = 32 << 20
MAX_PROBLEMS = 100
BATCH = 20_000
_PAGES = -32_000  # KiB of SQLite's cache while building


class Collection(Closing):
    """The documents of one file. Thread-safe reading is not promised: give every thread one of its own."""

    def __init__(self, path: Path, name: str, index: Path) -> None:
        self.path, self.name, self.index = path, name, index
        self._db = _connect(index)
        meta = dict(self._db.execute("SELECT key, value FROM meta"))
        self.digest: str = meta["digest"]
        self.repeated = int(meta["repeated"])
        self._count = int(meta["documents"])
        self._packed = meta["packed"] == "1"
        self._file: BinaryIO | None = None if self._packed else open_regular(path, follow=True)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and self._find(doc_id) is not None

    def get(self, doc_id: str) -> Document | None:
        """The document with this id, None if there is none. Raises :class:`EvaluatorError` if the file has changed."""
        found = self._find(doc_id)
        if found is None:
            return None
        raw = self._body(found[0]) if self._packed else self._line(*found)
        try:
            document = document_of(json.loads(raw))
        except ValueError:
            document = None
        if not isinstance(document, Document) or document.id != doc_id:
            raise EvaluatorError(
                f"the collection {self.name} has changed while it was in use",
                fix="do not touch it, and run again",
            )
        return document

    def _find(self, doc_id: str) -> tuple[Any, Any] | None:
        try:
            key = doc_id.encode()
        except UnicodeEncodeError:
            return None
        row: tuple[Any, Any] | None = self._db.execute(
            "SELECT at, length FROM documents WHERE id = ?", (key,)
        ).fetchone()
        return row

    def _body(self, number: int) -> bytes:
        (data,) = self._db.execute("SELECT data FROM bodies WHERE number = ?", (number,)).fetchone()
        return zlib.decompress(data)

    def _line(self, at: int, length: int) -> bytes:
        assert self._file is not None
        return os.pread(self._file.fileno(), length, at)

    def close(self) -> None:
        """Close the files."""
        self._db.close()
        if self._file is not None:
            self._file.close()


def open_collection(
    path: Path, *, name: str | None = None, cache: Path | None = None, small: int = 0
) -> Collection:
    """Open a collection, building its index first if there is none or it belongs to other bytes.

    Args:
        path: JSON Lines, plain or gzip.
        name: what messages call it; the file's name without.
        cache: a folder for indexes that cannot be next to their collection; without one, such an index lives as long as
            the collection is open.
        small: bytes of a collection that is indexed in a moment: its index is not kept, so that no file appears in
            somebody's data.

    Raises:
        EvaluatorError: the collection cannot be read or indexed; lists every broken line.
    """
    name = name or path.name
    try:
        with open_regular(path, follow=True) as file:
            stamp = _stamp(file)
    except Unreadable as error:
        raise EvaluatorError(
            f"the collection {name} cannot be read", str(error), "correct the path where it was given"
        ) from None
    digest: str | None = None
    places = [path.with_name(path.name + ENDING), *([] if cache is None else [_cached(cache, path)])]
    for index in places:
        known = _meta(index)
        if known is not None and known.get("stamp") != stamp:
            digest = digest or _digest(path)
            known = known if known.get("digest") == digest else None
        if known is not None:
            return Collection(path, name, index)
    for index in places if int(stamp.partition(":")[0]) > small else ():
        with contextlib.suppress(
            OSError
        ):  # a read-only file system, or not our folder: the next place may do
            return Collection(path, name, _build(path, name, stamp, index))
    with tempfile.TemporaryDirectory(prefix="proctor-documents-") as private:
        try:
            # The file stays open, and vanishes with the process.
            return Collection(path, name, _build(path, name, stamp, Path(private, "documents" + ENDING)))
        except OSError as error:
            raise EvaluatorError(
                f"the index of the collection {name} cannot be written", str(error), "give a cache folder"
            ) from None


def _cached(cache: Path, path: Path) -> Path:
    place = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    return cache / f"{path.name[:100]}-{place}{ENDING}"


def _stamp(file: BinaryIO) -> str:
    facts = os.fstat(file.fileno())
    return f"{facts.st_size}:{facts.st_mtime_ns}"


def _digest(path: Path) -> str:
    with open_regular(path, follow=True) as file:
        return file_sha256(file)


def _connect(index: Path) -> sqlite3.Connection:
    from urllib.parse import quote

    uri = f"file:{quote(str(index.resolve()))}?mode=ro&immutable=1"
    db = sqlite3.connect(uri, uri=True, check_same_thread=False)
    db.execute("PRAGMA cache_size = -8000")
    return db


def _meta(index: Path) -> dict[str, str] | None:
    """What an index says about itself; None if there is none that can be used."""
    if not index.is_file():
        return None
    try:
        with contextlib.closing(_connect(index)) as db:
            meta = dict(db.execute("SELECT key, value FROM meta"))
    except sqlite3.Error:
        return None
    return meta if meta.get("format") == str(FORMAT) and meta.get("complete") == "1" else None


def _build(path: Path, name: str, stamp: str, index: Path) -> Path:
    """Write the index to a file of our own, then rename it. Raises OSError where the folder cannot be written."""
    index.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(index, mode=0o644) as made:
        try:
            with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as db:
                _fill(db, path, name, stamp)
        except sqlite3.OperationalError as error:
            raise OSError(str(error)) from None
    return index


def _fill(db: sqlite3.Connection, path: Path, name: str, stamp: str) -> None:
    # The file is thrown away if anything goes wrong, so nothing has to be safe while it is filled.
    for pragma in (
        "journal_mode = OFF",
        "synchronous = OFF",
        f"cache_size = {_PAGES}",
        "locking_mode = EXCLUSIVE",
    ):
        db.execute(f"PRAGMA {pragma}")
    db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
    db.execute("CREATE TABLE documents (id BLOB PRIMARY KEY, at INTEGER, length INTEGER) WITHOUT ROWID")
    # Apart, so that they are only ever appended: ids come in no order.
    db.execute("CREATE TABLE bodies (number INTEGER PRIMARY KEY, data BLOB)")
    digest = _digest(path)
    with open_regular(path, follow=True) as file:
        packed = file.read(2) == GZIP
    seen = kept = waiting = 0
    problems: list[str] = []
    batch: list[tuple[bytes, int, int, bytes]] = []

    def flush() -> None:
        nonlocal kept, waiting
        db.execute("BEGIN")
        before = db.total_changes
        db.executemany("INSERT OR IGNORE INTO documents VALUES (?, ?, ?)", [row[:3] for row in batch])
        kept += db.total_changes - before
        if packed:
            db.executemany("INSERT INTO bodies VALUES (?, ?)", [(row[1], row[3]) for row in batch])
        db.execute("COMMIT")
        batch.clear()
        waiting = 0

    for row in _rows(path, name, packed, problems):
        batch.append(row)
        seen += 1
        waiting += len(row[3])
        if len(batch) >= BATCH or waiting > MAX_LINE:
            flush()
    flush()
    if not seen and not problems:
        problems.append(f"{name}: it holds no document")
    if problems:
        raise refused(
            f"the collection {name} cannot be used",
            problems,
            f"write one object a line, with one of {', '.join(IDS)} and one of {', '.join(TEXTS)}",
        )
    facts = {
        "format": FORMAT, "stamp": stamp, "digest": digest, "packed": int(packed), "documents": kept,
        "repeated": seen - kept, "complete": 1,
    }  # fmt: skip
    db.executemany("INSERT INTO meta VALUES (?, ?)", [(k, str(v)) for k, v in facts.items()])


def _rows(
    path: Path, name: str, packed: bool, problems: list[str]
) -> Iterator[tuple[bytes, int, int, bytes]]:
    """(id, offset, length, nothing) of every line; of packed files (id, line, 0, compressed document)."""
    try:
        for line in iter_lines(path, max_line=MAX_LINE, follow=True):
            if len(problems) >= MAX_PROBLEMS:
                problems.append("reading was given up")
                return
            place = f"{name}:{line.number}"
            if line.raw is None:
                problems.append(f"{place}: it is longer than {MAX_LINE:,} bytes")
                continue
            document = _document(line.number, line.raw)
            if isinstance(document, str):
                problems.append(f"{place}: {document}")
            elif packed:
                small = {"id": document.id, "title": document.title, "text": document.text}
                yield document.id.encode(), line.number, 0, zlib.compress(json.dumps(small).encode(), 1)
            else:
                skip = len(BOM) if line.number == 1 and line.raw.startswith(BOM) else 0
                yield document.id.encode(), line.offset + skip, len(line.raw) - skip, b""
    except (Unreadable, Damaged, TooLarge) as error:
        problems.append(f"{name}: {error}")


def _document(number: int, raw: bytes) -> Document | str:
    try:
        # The quick way; what it lets through beyond strict JSON is looked at only if it fails.
        found = document_of(json.loads(raw))
        if isinstance(found, Document):
            found.text.encode()
            found.id.encode()
        return found
    except (ValueError, RecursionError):
        parsed = parse(number, raw)
        return parsed.reason if parsed.code else document_of(parsed.value)


def document_of(data: Any) -> Document | str:
    """The document in one object, or what is wrong with it."""
    if not isinstance(data, dict):
        return f"there is {kind_of(data)}, not an object"
    key, text_key = (next((k for k in keys if data.get(k) is not None), None) for keys in (IDS, TEXTS))
    if key is None:
        return f"it has none of {', '.join(IDS)}"
    name = str(data[key]) if type(data[key]) is int else data[key]
    if not isinstance(name, str) or not name:
        return f"{key} is {'empty' if name == '' else kind_of(name)}"
    if text_key is None:
        return f"the document {show(name)} has none of {', '.join(TEXTS)}"
    text, title = data[text_key], data.get("title")
    for field, value in ((text_key, text), ("title", "" if title is None else title)):
        if not isinstance(value, str):
            return f"{field} of the document {show(name)} is {kind_of(value)}, not text"
    return Document(name, text, title or "")
