"""Front and work on two machines: what crosses between their two exchange folders, and how work proves that it is work.

Nothing else changes: the front reads its ``published/`` and writes its ``inbox/``, work reads and writes its own, and the
link (:mod:`runner.work.link`) makes one like the other. Work opens the connection; the front proves itself by TLS, work
by an Ed25519 key of which the front holds the public half (:class:`Key`, :func:`is_signed`): it signs the nonce that the front
gave for this once, together with the front's address, so that what one front was given opens no other.

What is published crosses by name and SHA-256 (:class:`Mirror`): what is there already is not sent, what comes is hashed
before it gets its name, and the pointer is refused until everything that it leads to is there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

import schemas
from runner.exchange import tails
from runner.exchange.published import POINTER, Published, View, keep_young, leads_to, sweep
from schemas.files import atomic_path, file_sha256, make_private, once, sync_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MOST_NAMES = 5000  # that are asked for at once
MOST_FILE = 128 * 1024 * 1024  # bytes of one published file
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,3}")
_PREFIX = "ed25519:"


class NotTaken(Exception):
    """Something that does not get its name; the text says why."""


class Key:
    """Work's key. Its public half (:attr:`public`) is told to the front, and is no secret."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private

    @classmethod
    def at(cls, path: Path) -> Key:
        """The key in a file that only its owner can read; made when there is none. Raises OSError, ValueError for another file."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        make_private(path.parent)
        seed = once(path, lambda: Ed25519PrivateKey.generate().private_bytes_raw())
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @property
    def public(self) -> str:
        """The public half, in one line."""
        return _PREFIX + base64.urlsafe_b64encode(self._private.public_key().public_bytes_raw()).decode()

    def sign(self, front: str, nonce: str) -> str:
        """The signature (hex) that opens this front with this nonce."""
        return self._private.sign(_message(front, nonce)).hex()


def public_bytes(text: str) -> bytes:
    """The key that a line names. Raises ValueError for a line that is none."""
    try:
        found = base64.urlsafe_b64decode(text.removeprefix(_PREFIX).encode())
    except binascii.Error:
        found = b""
    if not text.startswith(_PREFIX) or len(found) != 32:
        raise ValueError(f"no key of work: it begins with {_PREFIX}")
    return found


def is_signed(public: bytes, front: str, nonce: str, signature: str) -> bool:
    """Whether the owner of a key signed this nonce for this front."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(bytes.fromhex(signature), _message(front, nonce))
    except (InvalidSignature, ValueError):
        return False
    return True


def _message(front: str, nonce: str) -> bytes:
    at = urlsplit(front)
    return schemas.canonical(
        {"what": "proctor link", "front": f"{at.scheme}://{at.netloc}".lower(), "nonce": nonce}
    )


class Mirror:
    """The front's ``published/`` where work is elsewhere: what work has sent, each file as a whole."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def missing(self, names: Mapping[str, str]) -> list[str]:
        """Which of these files (by name their SHA-256) are not there. What is named by its content is not read again."""
        return [
            name for name, digest in names.items() if not NAME.fullmatch(name) or not self._has(name, digest)
        ]

    def _has(self, name: str, digest: str) -> bool:
        path = self.root / name
        try:
            if name.startswith(("files/", "audiences/")):
                keep_young(path)
                return True
            return file_sha256(path) == digest
        except OSError:
            return False

    @contextmanager
    def taking(self, name: str, digest: str) -> Iterator[Incoming]:
        """Take one file: what is added to it gets its name at the end of the block. Raises NotTaken, OSError."""
        if not NAME.fullmatch(name):
            raise NotTaken("no name of something published")
        if name.startswith("files/") and name != f"files/{digest[:2]}/{digest}":
            raise NotTaken("its name is not that of its content")
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(target, mode=0o644) as part:
            with part.open("wb") as file:
                coming = Incoming(file)
                yield coming
                file.flush()
                os.fsync(file.fileno())
            if coming.digest != digest:
                raise NotTaken("what came is not what was announced")
            if name == POINTER and (gone := self._gone(part)):
                raise NotTaken("not everything is there: " + " ".join(gone[:MOST_NAMES]))
        sync_folder(target.parent)
        if name == POINTER:
            sweep(self.root)
            audiences = set(Published(self.root).pointer().values())
            tails.keep(self.root, tails.named(View(self.root, one) for one in audiences))

    def _gone(self, pointer: Path) -> list[str]:
        try:
            found = json.loads(pointer.read_bytes())
        except (ValueError, RecursionError):
            raise NotTaken("the pointer is no JSON") from None
        if schemas.validate(found, "published"):
            raise NotTaken("the pointer is none")
        return absent(self.root, leads_to(self.root, found["audiences"].values()))


def absent(root: Path, names: Iterable[str]) -> list[str]:
    """Those of some files below ``root`` that are not there."""
    return [name for name in names if not (root / name).is_file()]


class Incoming:
    """A file that comes in parts; its SHA-256 so far."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash, self._size = file, hashlib.sha256(), 0

    def add(self, part: bytes) -> None:
        """Take the next part. Raises NotTaken for more than a published file may have."""
        self._size += len(part)
        if self._size > MOST_FILE:
            raise NotTaken(f"it has more than {MOST_FILE} bytes")
        self._hash.update(part)
        self._file.write(part)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what came so far."""
        return self._hash.hexdigest()
