"""How a delivery is written and read: all its files in one, one after another, and a signed manifest that says what they are.

So a host needs leave to write two files, however many its software wrote.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.model.errors import PlatformError
from runner.records.contents import Content
from runner.records.files import MAX_JSON, file_sha256, on_disk

PACK = "files"  # what all files are in, sorted by their names
MANIFEST = "manifest.json"
PIECE = 1 << 20


class Mismatch(PlatformError):
    """What lies in the store, or was delivered, is not what it should be: no later try gives anything else."""

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix, code="E313")


def another(place: str) -> Mismatch:
    """The error for a file in the store that is not what it should be."""
    what = f"{place.rpartition('/')[2]} in the artefact store is not what it should be"
    return Mismatch(what, fix="remove that file; it is brought again")


class Pack:
    """Files as one, in pieces from begin to end; its length is that of all of them. Raises OSError."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._paths = [files[name] for name in sorted(files)]

    def __len__(self) -> int:
        return sum(path.stat().st_size for path in self._paths)

    def __iter__(self) -> Iterator[bytes]:
        for path in self._paths:
            with path.open("rb") as stream:
                while piece := stream.read(PIECE):
                    yield piece


def sealed(files: Mapping[str, Path], facts: Mapping[str, Any], key: bytes) -> bytes:
    """The manifest of files, which has ``facts``, too, signed by ``key``."""
    listed = {name: [file_sha256(path), path.stat().st_size] for name, path in files.items()}
    text = json.dumps({**facts, "files": listed}, sort_keys=True)
    return json.dumps({"manifest": text, "proof": _proof(text, key)}).encode()


def opened(data: bytes, key: bytes) -> dict[str, Any] | None:
    """What :func:`sealed` was given, with the digests of files; None where it is none, or somebody else's."""
    try:
        signed = json.loads(data) if len(data) <= MAX_JSON else {}
        text, proof = str(signed["manifest"]), str(signed["proof"])
        read = json.loads(text) if hmac.compare_digest(proof, _proof(text, key)) else None
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return read if isinstance(read, dict) else None


def receive(read: Callable[[int], bytes], place: str, wanted: Sequence[tuple[Path, Content]]) -> None:
    """Write what ``read`` gives to new files, as large as their contents and one after another.

    Raises :class:`Mismatch` where something is missing, another one or too much, E306 where the disk fails; no file stays then.
    """
    try:
        for target, content in wanted:
            digest, left = hashlib.sha256(), content.size
            with _own_disk(target) as write:
                while left and (piece := read(min(PIECE, left))):
                    left -= len(piece)
                    digest.update(piece)
                    write(piece)
            if left or digest.hexdigest() != content.sha256:
                raise another(place)
        if read(1):
            raise another(place)
    except BaseException:
        for target, _ in wanted:
            target.unlink(missing_ok=True)
        raise


@contextmanager
def _own_disk(target: Path) -> Iterator[Callable[[bytes], object]]:
    """A function that writes to the new file ``target``: what fails there is E306, and not the store's doing."""
    with on_disk(f"{target.name[:20]} cannot be kept here", target.parent):
        stream = target.open("xb")

    def write(piece: bytes) -> None:
        with on_disk(f"{target.name[:20]} cannot be kept here", target.parent):
            stream.write(piece)

    try:
        yield write
    finally:
        with on_disk(f"{target.name[:20]} cannot be kept here", target.parent):
            stream.close()


def _proof(text: str, key: bytes) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
