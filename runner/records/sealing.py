"""Sealing a folder of the archive: its files become read-only, those that are large or written by software go to the content store, a
manifest has the hash of each, and all of it is on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from runner.records.contents import Content, ContentStore
from runner.records.files import readable, tree
from schemas.files import file_sha256, sync_folder

MANIFEST = "manifest.json"
LARGE = 4096  # bytes; less would save no block of a disk


Known = Mapping[str, Content]
NOTHING: Known = MappingProxyType({})


def seal_folder(
    folder: Path, record: str, data: Mapping[str, Any], contents: ContentStore, known: Known = NOTHING
) -> None:
    """Write ``data`` as the file ``record`` into a folder, and seal that. An attempt gets a folder for its evaluations.

    ``known`` is what was hashed when it was written there by whoever seals it, by the names in the folder: it is not read once more.
    What files hold is on the disk first, then the names in folders. Raises OSError, with all files in the folder still; E307 for what is
    neither a file nor a folder.
    """
    files = {record: _seal_json(folder / record, data)}
    stored: list[Path] = []
    found, folders = tree(folder)
    for name, path in found:
        if name == record:
            continue
        if _is_stored(name, path):
            files[name] = {**contents.put(path, known.get(name))._asdict(), "stored": True}
            stored.append(path)
        else:
            files[name] = _seal_file(path, known.get(name))
    for path in stored:  # only now, so that a disk that is full leaves the folder whole
        path.unlink()
    _seal_json(folder / MANIFEST, {"schema_version": 1, "files": files})
    if record == "run.json":
        (folder / "evaluations").mkdir()
    for inner in folders:
        # The top one later, because a read-only folder cannot be moved.
        sync_folder(inner, mode=None if inner is folder else 0o555)


def _seal_file(path: Path, known: Content | None) -> dict[str, Any]:
    """Make a file read-only; returns its ``sha256`` and ``size``. What it holds is on the disk when this returns. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        os.fchmod(descriptor, 0o444)
        content = known or Content(file_sha256(stream), os.fstat(descriptor).st_size)
        if content.size:  # of an empty one there is nothing but its name
            os.fsync(descriptor)
    return content._asdict()


def _seal_json(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Write ``data`` to a file that is sealed then as by :func:`_seal_file`, and returns the same."""
    content = readable(data)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fchmod(descriptor, 0o444)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def _is_stored(name: str, path: Path) -> bool:
    """Whether a file of a folder that is being sealed goes to the content store: what software wrote, large logs and lists."""
    if name.startswith("output/"):
        return True
    return path.stat().st_size >= LARGE and (name.startswith("logs/") or name.endswith(".jsonl"))
