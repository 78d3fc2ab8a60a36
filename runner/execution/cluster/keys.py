"""Secrets of a coordinator: by which hosts and the store know whose attempts are whose, and nobody else signs what is delivered."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from runner.model.errors import PlatformError, disk_error
from runner.records.archive import RunArchive
from schemas.files import once

LENGTH = 32  # bytes


def key_of(archive: RunArchive) -> bytes:
    """The secret of an archive, made when it is first needed: what hosts deliver is signed by keys that are made from it.

    Raises E306, and E307 where it has another length: an empty one would be everybody's.
    """
    path = archive.root.parent / "cluster.key"
    try:
        key = once(path, lambda: secrets.token_bytes(LENGTH))
    except OSError as error:
        raise disk_error(f"{path} cannot be used", error) from error
    if len(key) != LENGTH:
        why = f"It has {len(key)} bytes, and {LENGTH} when it was made."
        fix = "end what is under way on hosts and remove that file: another one is made"
        raise PlatformError(f"{path} was changed or damaged", why=why, fix=fix, code="E307")
    return key


def home_of(key: bytes) -> str:
    """By which hosts and the store of artefacts know whose attempts are whose."""
    return hashlib.sha256(b"home" + key).hexdigest()[:16]


def key_for(key: bytes, name: str) -> bytes:
    """By what the host that is ordered an attempt of that name, and nobody else, signs what it delivers; ``key`` as :func:`key_of` gives it."""
    return hmac.new(key, name.encode(), hashlib.sha256).digest()
