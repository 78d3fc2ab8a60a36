"""A data folder and what is prepared from it: found, checked, written, opened."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas.files import file_sha256
from sidecars.search import analysis, documents, vectors
from sidecars.search.documents import Documents
from sidecars.search.errors import DataError
from sidecars.search.text import TextIndex, field_values
from sidecars.search.vectors import Matrix

FORMAT = 1
PREPARED, ABOUT = "prepared", "prepared.json"
MAX_FIELDS = 64
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ABOUT_BYTES = 1 << 20


@dataclass
class Collection(AbstractContextManager["Collection"]):
    """Everything that can be searched. ``note`` says how it was opened."""

    text: TextIndex
    documents: Documents
    matrices: Mapping[str, Matrix]
    note: str
    _scratch: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Close files, remove temporary ones."""
        self.documents.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def __exit__(self, *_: object) -> None:
        self.close()


def open_collection(folder: Path) -> Collection:
    """Open a data folder: from its prepared files when they fit, else indexed now, in memory and under /tmp.

    Raises DataError with everything that is wrong with the folder.
    """
    path = documents.source(folder)
    scratch = tempfile.TemporaryDirectory(prefix="search-")
    try:
        about, note = _fitting(folder, path)
        if about is not None:
            return _open_prepared(folder, path, about, Path(scratch.name), scratch)
        return _index_now(folder, path, Path(scratch.name), scratch, note)
    except BaseException:
        scratch.cleanup()
        raise


def _index_now(
    folder: Path, path: Path, scratch: Path, keep: tempfile.TemporaryDirectory[str], note: str
) -> Collection:
    if path.name == documents.PACKED:
        documents.unpack(path, scratch / documents.PLAIN)
        path = scratch / documents.PLAIN
    fields, offsets = _survey(path)
    text = TextIndex.build(documents.Reader(path), fields)
    found = _matrices(folder, len(offsets) - 1, fields)
    return Collection(text, Documents(path, offsets), found, f"indexed now ({note})", keep)


def _survey(path: Path) -> tuple[list[str], np.ndarray[Any, np.dtype[np.int64]]]:
    """Read the file once: the names of the searchable fields, and where each argument begins."""
    reader, fields = documents.Reader(path), {"id"}
    for document in reader:
        if not fields.issuperset(document):
            fields.update(field_values(document))
    wrong = sorted(name for name in fields if not _FIELD.fullmatch(name))
    problems = [f"{path}: {name[:80]!r} cannot be the name of a searchable field" for name in wrong[:5]]
    if len(fields) > MAX_FIELDS:
        problems.append(f"{path}: {len(fields)} searchable fields; {MAX_FIELDS} is the most")
    if problems:
        raise DataError(problems, "names are letters, digits, _ and -, at most 64 of them")
    return sorted(fields), np.array(reader.offsets, dtype=np.int64)


def _matrices(folder: Path, count: int, fields: list[str], inverse: Path | None = None) -> dict[str, Matrix]:
    found, problems = {}, []
    for name, path in vectors.files(folder).items():
        if name in fields or not _FIELD.fullmatch(name):
            problems.append(f"{path}: {name!r} cannot be the name of a field of vectors")
            continue
        known = np.load(inverse / f"{name}.npy", allow_pickle=False) if inverse is not None else None
        try:
            found[name] = Matrix.open(path, count, known)
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems, "one row an argument, float16 or float32, written with numpy.save")
    return found


def _identity(folder: Path, path: Path) -> dict[str, Any]:
    """What prepared files were made from, and by what."""
    return {
        "format": FORMAT,
        "analysis": analysis.VERSION,
        "arguments": file_sha256(path),
        "vectors": {name: vectors.fingerprint(file) for name, file in vectors.files(folder).items()},
    }


def _fitting(folder: Path, path: Path) -> tuple[dict[str, Any] | None, str]:
    """What is written about the prepared files if they fit, else None and why they are not used."""
    place = folder / PREPARED / ABOUT
    try:
        about = json.loads(place.read_bytes()) if place.stat().st_size <= _ABOUT_BYTES else None
    except FileNotFoundError:
        return None, "nothing is prepared"
    except (OSError, ValueError) as error:
        return None, f"{place} cannot be read: {error}"
    if not isinstance(about, dict) or not isinstance(about.get("fields"), list):
        return None, f"{place} is damaged"
    for key, value in _identity(folder, path).items():
        if about.get(key) != value:
            return None, f"what is prepared was made from other {key}"
    return about, ""


def _open_prepared(
    folder: Path, path: Path, about: dict[str, Any], scratch: Path, keep: tempfile.TemporaryDirectory[str]
) -> Collection:
    prepared = (folder / PREPARED).resolve()
    # tantivy locks the folder it opens, and the data are mounted read-only: it gets a folder of links.
    for file in (prepared / "text").iterdir():
        if not file.name.startswith(".tantivy"):
            (scratch / file.name).symlink_to(file)
    try:
        text = TextIndex.open(scratch, about["fields"])
        offsets = np.load(prepared / "offsets.npy", mmap_mode="r", allow_pickle=False)
        if len(offsets) - 1 != text.count:
            raise ValueError(f"{text.count} arguments are indexed, {len(offsets) - 1} are listed")
        plain = prepared / documents.PLAIN if path.name == documents.PACKED else path
        found = _matrices(folder, text.count, about["fields"], prepared / "lengths")
        return Collection(text, Documents(plain, offsets), found, "from prepared files", keep)
    except (OSError, ValueError) as error:
        what = f"{prepared}: cannot be opened: {error}"
        raise DataError([what], "remove that folder, and prepare again") from error


def prepare(folder: Path) -> Mapping[str, Any]:
    """Index the data folder once, so that it opens fast.

    An earlier index is replaced at the end. Returns the count of arguments and the seconds taken.
    Raises DataError.
    """
    began = time.monotonic()
    path = documents.source(folder)
    with tempfile.TemporaryDirectory(prefix=".preparing-", dir=folder) as name:
        new = Path(name) / PREPARED
        for part in (new, new / "text", new / "lengths"):
            part.mkdir()
        plain = path
        if path.name == documents.PACKED:
            plain = new / documents.PLAIN
            documents.unpack(path, plain)
        fields, offsets = _survey(plain)
        np.save(new / "offsets.npy", offsets)
        text = TextIndex.build(documents.Reader(plain), fields, new / "text")
        for field, file in vectors.files(folder).items():
            Matrix.open(file, text.count, np.empty(0, dtype=np.float32))  # is it one at all
            matrix = np.load(file, mmap_mode="r", allow_pickle=False)
            np.save(new / "lengths" / f"{field}.npy", vectors.inverse_lengths(matrix))
        about = {"fields": fields, "count": text.count, **_identity(folder, path)}
        (new / ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _readable(new)
        shutil.rmtree(folder / PREPARED, ignore_errors=True)
        new.replace(folder / PREPARED)
    return {"arguments": text.count, "fields": fields, "seconds": round(time.monotonic() - began, 1)}


def _readable(folder: Path) -> None:
    """Readable for every user, since a server runs as another one; without the locks that tantivy leaves."""
    for path in [folder, *folder.rglob("*")]:
        if path.name.startswith(".tantivy"):
            path.unlink()
        else:
            path.chmod(0o755 if path.is_dir() else 0o644)
