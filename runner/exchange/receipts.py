"""Receipts: that something arrived, signed by the front, and what was decided of it, signed by work (schemas/receipt.schema.json).

Both sign with a key of their own (Ed25519), made at their first start and readable for them alone. What is signed is a
**statement**: JSON data in its canonical form, behind a word that says which of the two it is. A receipt holds statements,
signatures and public keys, so that :func:`examine` needs nothing else; whose the keys are says whoever is asked for them.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import schemas
from runner.exchange.replaced import read_replaced
from schemas.files import atomic_file, make_private, once

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

What = Literal["arrival", "decision"]
PREFIX = "ed25519:"
KEY_TEXT = re.compile(r"ed25519:[A-Za-z0-9+/]{43}=")
SAME = ("request", "kind", "team", "task", "sha256", "size")  # what both statements say, and alike
KEY = "receipts.key"  # the file of a key, in the data directory and in the state of the front
PUBLISHED = "keys.json"  # the public key of work, in ``published/``


@dataclass(frozen=True)
class Signer:
    """Somebody with a key."""

    _key: Ed25519PrivateKey

    @classmethod
    def load(cls, path: Path) -> Signer:
        """The signer whose key is in a file; it is made where there is none. Raises OSError, also when others may read it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        make_private(path.parent)
        seed = once(path, lambda: f"{secrets.token_hex(32)}\n".encode())
        if path.stat().st_mode & 0o077:
            raise PermissionError(
                1, "others may read the key: chmod 600, or remove it to have a new one", str(path)
            )
        return cls(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed.decode("ascii").strip())))

    @property
    def public(self) -> str:
        """The public key, as it is published."""
        return PREFIX + base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, what: What, statement: Mapping[str, Any]) -> dict[str, Any]:
        """A statement with its signature: one part of a receipt."""
        signature = base64.b64encode(self._key.sign(_message(what, statement))).decode()
        return {"statement": dict(statement), "key": self.public, "signature": signature}


def publish_key(published: Path, signer: Signer) -> None:
    """Publish the key with which work signs. Raises OSError."""
    with atomic_file(published / PUBLISHED, mode=0o644, sync=True) as file:
        file.write(schemas.canonical({"schema_version": 1, "work": signer.public}))


def published_key(published: Path) -> str | None:
    """The key with which work signs, as it was published; None before."""
    data = read_replaced(published / PUBLISHED, "keys")
    return None if data is None else str(data["work"])


def receipt(arrival: Mapping[str, Any] | None, decision: Mapping[str, Any] | None) -> dict[str, Any]:
    """A receipt of its two parts; None for what there is not (yet)."""
    return {"schema_version": 1, "arrival": arrival, "decision": decision}


def examine(data: Any, keys: Collection[str] = ()) -> list[str]:
    """What is wrong with a receipt, a sentence each; empty when everything in it holds.

    Args:
        data: JSON data of any origin.
        keys: The public keys of the server, as it publishes them; with none it is not looked at whose the keys are.
    """
    if problems := schemas.validate(data, "receipt"):
        return [f"it is no receipt: {one.where} {one.what}".replace("  ", " ") for one in problems[:5]]
    wrong = []
    parts: list[What] = [what for what in ("arrival", "decision") if data[what] is not None]
    if not parts:
        return ["it holds neither an arrival nor a decision"]
    for what in parts:
        if not _holds(what, data[what]):
            wrong.append(f"the signature of the {what} does not fit: the {what} was changed, or never signed")
        if keys and data[what]["key"] not in keys:
            wrong.append(f"the key of the {what} is none of those that were named")
    if len(parts) == 2:
        one, other = data["arrival"]["statement"], data["decision"]["statement"]
        wrong += [
            f"arrival and decision are of two requests: {name} differs"
            for name in SAME
            if one[name] != other[name]
        ]
    return wrong


def _message(what: What, statement: Mapping[str, Any]) -> bytes:
    return f"proctor {what}\0".encode() + schemas.canonical(statement)


def _holds(what: What, part: Mapping[str, Any]) -> bool:
    """Whether a part of a receipt was signed with the key that it names."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(_bytes(part["key"].removeprefix(PREFIX)))
        key.verify(_bytes(part["signature"]), _message(what, part["statement"]))
    except (InvalidSignature, ValueError):
        return False
    return True


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error
