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
from typing import Any, NamedTuple

from runner.records.contents import Content, ContentStore
from runner.records.files import readable, tree
from schemas.files import file_sha256, settle

MANIFEST = "manifest.json"
LARGE = 4096  # bytes; less would save no block of a disk


Known = Mapping[str, Content]
NOTHING: Known = MappingProxyType({})


class Manifest(NamedTuple):
    """What a manifest says of files, by their names, and the SHA-256 of its own file."""

    files: Mapping[str, Mapping[str, Any]]
    sha256: str


def seal_folder(
    folder: Path, record: str, data: Mapping[str, Any], contents: ContentStore, known: Known = NOTHING
) -> Manifest:
    """Write ``data`` as the file ``record`` into a folder, and seal that; returns its manifest. An attempt gets a folder for its evaluations.

    ``known`` is what was hashed when it was written there by whoever seals it, by the names in the folder: it is not read once more.
    What files hold is on the disk first, then the names in folders. Raises OSError, with all files in the folder still; E307 for what is
    neither a file nor a folder.
    """
    files = {record: _seal_json(f"{folder}/{record}", data)}
    stored, written = list[Path](), [f"{folder}/{record}", f"{folder}/{MANIFEST}"]
    found, folders = tree(folder)
    for name, path in found:
        if name == record:
            continue
        if _is_stored(name, path, known.get(name)):
            stored.append(Path(path))
            files[name] = {**contents.put(stored[-1], known.get(name))._asdict(), "stored": True}
            continue
        files[name] = _seal_file(path, known.get(name))
        if files[name]["size"]:  # of an empty one there is nothing but its name
            written.append(path)
    for place in stored:  # only now, so that a disk that is full leaves the folder whole
        place.unlink()
    manifest = _seal_json(f"{folder}/{MANIFEST}", {"schema_version": 1, "files": files})
    if record == "run.json":
        (folder / "evaluations").mkdir()
    for inner in folders[:-1]:  # the top one later, because a read-only folder cannot be moved
        Path(inner).chmod(0o555)
    settle([*written, *folders])
    return Manifest(files, manifest["sha256"])


def _seal_file(path: str, known: Content | None) -> dict[str, Any]:
    """Make a file read-only; returns its ``sha256`` and ``size``. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o444)
        if known is None:
            with open(descriptor, "rb", buffering=0, closefd=False) as stream:
                known = Content(file_sha256(stream), os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    return known._asdict()


def _seal_json(path: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Write ``data`` to a file that is read-only then; returns the same as :func:`_seal_file`. Raises OSError."""
    content = readable(data)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fchmod(descriptor, 0o444)
    finally:
        os.close(descriptor)
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def _is_stored(name: str, path: str, known: Content | None) -> bool:
    """Whether a file of a folder that is being sealed goes to the content store: what software wrote, large logs and lists."""
    if name.startswith("output/"):
        return True
    if not name.startswith("logs/") and not name.endswith(".jsonl"):
        return False
    return (Path(path).stat().st_size if known is None else known.size) >= LARGE
