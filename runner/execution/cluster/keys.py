"""Secrets of a coordinator: by which hosts and the store know whose attempts are whose, and nobody else signs what is delivered."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets

from runner.model.errors import disk_error
from runner.records.archive import RunArchive


def key_of(archive: RunArchive) -> bytes:
    """The secret of an archive, made when it is first needed: what hosts deliver is signed by keys that are made from it. Raises E306."""
    path = archive.root.parent / "cluster.key"
    try:
        if not path.exists():
            part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(secrets.token_bytes(32))
            part.rename(path)
        return path.read_bytes()
    except OSError as error:
        raise disk_error(f"{path} cannot be used", error) from error


def home_of(key: bytes) -> str:
    """By which hosts and the store of artefacts know whose attempts are whose."""
    return hashlib.sha256(b"home" + key).hexdigest()[:16]


def key_for(key: bytes, name: str) -> bytes:
    """By what the host that is ordered an attempt of that name, and nobody else, signs what it delivers; ``key`` as :func:`key_of` gives it."""
    return hmac.new(key, name.encode(), hashlib.sha256).digest()
