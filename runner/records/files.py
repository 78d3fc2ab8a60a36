"""Files of the archive: walked, hashed, read and written without following links, and with errors that say what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import schemas
from runner.model.errors import PlatformError, disk_error
from schemas import jsonl
from schemas.files import file_sha256 as sha256_of

MAX_JSON = 16 * 1024 * 1024
MAX_LINE = 1024 * 1024
MAX_NAME = 255  # bytes
MAX_SECONDS = 1e10  # of time or processor time, 300 years: nothing that was measured took longer
_PLAIN = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False).encode


class Readable(Protocol):
    """A file that can be read, wherever its bytes are; ``path`` names it."""

    @property
    def path(self) -> Path:
        """What it is called in messages."""

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Its bytes, in order."""


def walk(folder: Path, *, skip: str | None = None) -> Iterator[tuple[str, Path]]:
    """Every regular file below ``folder`` as (relative name, path), sorted, without following links.

    ``skip`` names one folder at the top that is left out. Raises E307 for anything that is neither a regular
    file nor a folder, and for names that are no UTF-8.
    """
    return ((name, Path(path)) for name, path in tree(folder, skip=skip)[0])


def tree(folder: Path, *, skip: str | None = None) -> tuple[list[tuple[str, str]], list[str]]:
    """As :func:`walk`, with all folders, each before the one that it is in; the last is ``folder`` itself."""
    stack, folders = [("", str(folder))], list[str]()
    found: list[tuple[str, str]] = []
    while stack:
        prefix, here = stack.pop()
        folders.append(here)
        with os.scandir(here) as entries:
            for entry in entries:
                name = prefix + entry.name
                if not prefix and entry.name == skip:
                    continue
                if not is_utf8(name):
                    raise damaged(f"{here} holds a name that is not UTF-8")
                if entry.is_dir(follow_symlinks=False):
                    stack.append((f"{name}/", entry.path))
                elif entry.is_file(follow_symlinks=False):
                    found.append((name, entry.path))
                else:
                    raise damaged(f"{here}/{shown(entry.name)} is a link or a special file")
    return sorted(found), folders[::-1]


def folders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted, without hidden ones and links; none where it is not there. Raises OSError."""
    try:
        with os.scandir(path) as entries:
            return sorted(
                e.name for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces. Raises E307 when it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise damaged(f"{path}: {error.strerror}") from error


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write ``data`` as :func:`readable`."""
    path.write_bytes(readable(data))


def readable(data: Mapping[str, Any]) -> bytes:
    """``data`` as JSON with a line for each key, sorted, and for each within what holds objects alone (the files of a manifest). Raises ValueError for NaN."""
    rows = []
    for key in sorted(data):
        value = data[key]
        if isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values()):
            inner = ",\n".join(f"  {_PLAIN(name)}: {_PLAIN(value[name])}" for name in sorted(value))
            rows.append(f" {_PLAIN(key)}: {{\n{inner}\n }}")
        else:
            rows.append(f" {_PLAIN(key)}: {_PLAIN(value)}")
    return "{{\n{}\n}}\n".format(",\n".join(rows)).encode() if rows else b"{}\n"


def read_json(path: Path, schema: str | None) -> dict[str, Any]:
    """A JSON object of the archive, checked against a schema when one is named. Raises E307."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            if size > MAX_JSON:
                raise damaged(f"{path} is larger than 16 MiB")
            text = os.read(descriptor, size)
        finally:
            os.close(descriptor)
        data = _READER.decode(text.decode(json.detect_encoding(text), "surrogatepass"))  # as json.loads
    except OSError as error:
        raise damaged(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise damaged(f"{path} is not JSON") from None
    if not isinstance(data, dict):
        raise damaged(f"{path} is not a JSON object")
    if schema is not None and (problems := schemas.validate(data, schema)):
        raise damaged(f"{path}: {problems[0].what}")
    return data


def read_lines(file: Readable | None, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The JSON objects of a JSON Lines file, one at a time; none of no file. Lines that are no object raise E307.

    Of a file of more than ``most`` bytes, about as many are read: whole lines only.
    """
    if file is None:
        return
    with file.open() as stream:
        read = stream.read if most is None else _first(stream, most)
        for number, data, _ in jsonl.rows(read, max_line=MAX_LINE, rules=jsonl.WRITTEN):
            if not isinstance(data, dict):
                raise damaged(f"{file.path}:{number} is not a JSON object")
            yield data


def _first(stream: BinaryIO, most: int) -> Callable[[int], bytes]:
    """Reads the first ``most`` bytes of a stream, and the rest of the line in which these end."""
    done = 0

    def read(size: int) -> bytes:
        nonlocal done
        if done >= most:
            return b""
        data = stream.read(min(size, most - done))
        done += len(data)
        return data + stream.readline(MAX_LINE + 1) if done == most else data

    return read


def _refuse(constant: str) -> float:
    raise ValueError(constant)


_READER = json.JSONDecoder(parse_constant=_refuse)


def is_utf8(text: str) -> bool:
    """Whether a text can be written: surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_name(name: str) -> bool:
    """Whether it is the name of a file in a folder, and no way to another one, as every file system can have it."""
    plain = name not in ("", ".", "..") and "/" not in name and "\0" not in name
    return plain and is_utf8(name) and len(name.encode()) <= MAX_NAME


def shown(name: str) -> str:
    """A file name of the archive, escaped."""
    return schemas.show(name, 200)


def damaged(why: str) -> PlatformError:
    """The error (E307) for an archive that does not hold what it should; ``why`` says what, without a full stop."""
    return PlatformError(
        "the archive was changed or damaged",
        why=f"{why}.",
        fix="restore the archive from a backup; runner store verify lists everything",
        code="E307",
    )


@contextmanager
def on_disk(what: str, place: object = "the data directory") -> Iterator[None]:
    """Turn an OSError of the block into E306: ``what`` could not be done, at ``place`` if the error does not name it."""
    try:
        yield
    except OSError as error:
        raise disk_error(what, error, place) from error
