"""The arguments on disk: one JSON object a line, read by offset. None of them is held in memory."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from schemas import jsonl
from sidecars.search.errors import DataError, not_json

PLAIN, PACKED = "arguments.jsonl", "arguments.jsonl.gz"
LINE_BYTES = 1 << 20
UNPACKED_BYTES = 16 << 30
MAX_PROBLEMS = 20
_RULES = jsonl.Rules(duplicates="last", bounded=False, finite=True)


def source(folder: Path) -> Path:
    """The file with the arguments in ``folder``. Raises DataError when there is none, or when there are two."""
    found = [folder / name for name in (PLAIN, PACKED) if (folder / name).is_file()]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError([f"{folder}: both {PLAIN} and {PACKED} are there"], "keep one of the two")
    what = f"{folder}: there is neither {PLAIN} nor {PACKED}"
    raise DataError([what], "put one JSON object a line, with an id, there")


def unpack(packed: Path, target: Path) -> None:
    """Write what is in the gzip file ``packed`` to ``target``. Raises DataError for a damaged or enormous file."""
    try:
        with gzip.open(packed) as reader, target.open("wb") as writer:
            while block := reader.read(1 << 20):
                writer.write(block)
                if writer.tell() > UNPACKED_BYTES:
                    raise DataError([f"{packed}: more than {UNPACKED_BYTES} bytes when unpacked"])
    except (EOFError, OSError, zlib.error) as error:
        raise DataError([f"{packed}: cannot be unpacked to {target}: {error}"]) from error


class Reader:
    """Reads a file of arguments once, from start to end, and remembers where each begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offsets = array("q")
        self.problems: list[str] = []
        self._seen: set[str] = set()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every argument in its order. At the end DataError is raised with everything that was wrong."""
        with self.path.open("rb") as file:
            for number, start, raw in jsonl.split(file.read, LINE_BYTES):
                if raw is not None and not raw.strip():
                    continue
                document = self._check(f"{self.path}:{number}", raw)
                if document is not None:
                    self.offsets.append(start)
                    yield document
                if len(self.problems) >= MAX_PROBLEMS:
                    break
            self.offsets.append(file.seek(0, os.SEEK_END))
        if self.problems:
            raise DataError(self.problems, "correct these lines")
        if len(self.offsets) == 1:
            raise DataError([f"{self.path}: no arguments in it"])

    def _check(self, where: str, raw: bytes | None) -> dict[str, Any] | None:
        """The argument in a line; None when there is none, which is noted."""
        document = None if raw is None else jsonl.parse(raw, _RULES)
        name = document.get("id") if isinstance(document, dict) else None
        if document is None and raw is None:
            problem = f"longer than {LINE_BYTES} bytes"
        elif isinstance(document, jsonl.Fault):
            problem = not_json(document)
        elif not isinstance(document, dict):
            problem = "not a JSON object"
        elif not isinstance(name, str) or not 0 < len(name) <= 256 or not name.isprintable():
            problem = "id has to be a string of 1 to 256 printable characters"
        elif name in self._seen:
            problem = f"id {name} is there twice"
        else:
            self._seen.add(name)
            return document
        self.problems.append(f"{where}: {problem}")
        return None


class Documents:
    """The arguments of one file, by their place in it (from 0). Safe to use from several threads."""

    def __init__(self, path: Path, offsets: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self._offsets = offsets
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def length(self, place: int) -> int:
        """The length of a document in bytes."""
        return int(self._offsets[place + 1] - self._offsets[place])

    def __getitem__(self, place: int) -> dict[str, Any]:
        start, end = int(self._offsets[place]), int(self._offsets[place + 1])
        document: dict[str, Any] = json.loads(os.pread(self._file, end - start, start))
        return document

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
