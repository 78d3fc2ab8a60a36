"""Who may sign in at the front: what of tokens is published, and how a request proves that its sender has one.

A token is ``proctor_<id>_<secret>``; the secret has 256 random bits, so that hashes without salt or stretching do. It is
shown once. From it three things are derived, each from the one before, none backwards:

- the **key**, ``SHA-256("proctor key" + secret)``: work keeps it (accounts database), the front has it only while somebody
  is signed in. Requests are signed with it (:func:`prove`), so that a front in an attacker's hands can ask for nothing in
  the name of those who do not sign in there.
- the **verifier**, ``SHA-256("proctor verifier" + key)``: published, so that the front can tell a right token from a wrong
  one while work is down. It opens nothing.
- the **id**, in the clear: names the token in lists, requests and logs.

``published/access.json`` is an :class:`Access`: whoever is not in it cannot sign in, and a session ends as soon as its
token is not in it any more. Work, and the commands that revoke, replace it as a whole.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import schemas
from runner.exchange.replaced import read_replaced
from runner.model.clock import SystemClock, stamp
from schemas.files import atomic_file, make_private

LINK = "link"  # the scope of a one-time link
Role = Literal["organiser", "assistant", "team", "assessor"]
ROLES: tuple[Role, ...] = get_args(Role)
FILE = "access.json"
TOKEN = re.compile(r"proctor_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Token:
    """A token in the clear: shown to its owner once, and sent by them."""

    id: str
    secret: str

    @classmethod
    def new(cls) -> Token:
        """A token that nobody can guess."""
        return cls(secrets.token_hex(6), secrets.token_urlsafe(32))

    @classmethod
    def drawn(cls, seed: bytes) -> Token:
        """The token of a seed of 256 secret bits: the same for the same."""
        id = hashlib.sha256(b"proctor id\0" + seed).hexdigest()[:12]
        secret = hashlib.sha256(b"proctor secret\0" + seed).digest()
        return cls(id, urlsafe_b64encode(secret).decode().rstrip("="))

    @classmethod
    def read(cls, text: str) -> Token | None:
        """The token that a text is; None when it is none."""
        found = TOKEN.fullmatch(text.strip())
        return cls(*found.groups()) if found else None

    def __str__(self) -> str:
        return f"proctor_{self.id}_{self.secret}"

    def __repr__(self) -> str:  # no log and no traceback shows the secret
        return f"Token({self.id})"

    @property
    def key(self) -> str:
        """What requests are signed with (hex)."""
        return hashlib.sha256(b"proctor key\0" + self.secret.encode()).hexdigest()


def verifier(key: str) -> str:
    """What is published of a key (hex)."""
    return hashlib.sha256(b"proctor verifier\0" + key.encode()).hexdigest()


def prove(key: str, message: Mapping[str, Any]) -> str:
    """The signature (HMAC-SHA-256, hex) of a message: JSON data, signed in its canonical form."""
    return hmac.new(key.encode(), schemas.canonical(message), hashlib.sha256).hexdigest()


def proven(key: str, message: Mapping[str, Any], proof: str) -> bool:
    """Whether ``proof`` is the signature of a message."""
    return hmac.compare_digest(prove(key, message).encode(), proof.encode())


@dataclass(frozen=True)
class Grant:
    """What a token opens: the account that it signs in, in which role, and for a team which one.

    ``scopes`` say what may be done with it: ``read``, ``hand-in``, ``manage`` (one's own tokens, and the console for those who
    have it); :data:`LINK`: ask for a token once, and nothing else, until it ``expires`` (UTC).
    """

    token: str
    verifier: str
    account: str
    role: Role
    team: str | None
    scopes: tuple[str, ...]
    expires: str | None = None

    def is_over(self, now: str | None = None) -> bool:
        """Whether its time is over at a time (UTC), by default now."""
        return self.expires is not None and (now or stamp(SystemClock().now())) > self.expires


class Access:
    """The grants by token id, as they were published."""

    def __init__(self, grants: Mapping[str, Grant]) -> None:
        self.grants: Mapping[str, Grant] = MappingProxyType(dict(grants))

    @classmethod
    def read(cls, published: Path) -> Access:
        """What is published; nobody has access where nothing (or nothing that can be read) is."""
        data = read_replaced(published / FILE, "access")
        if data is None:
            return cls({})
        known = _READ.get(published)
        if known is None or known[0] is not data:  # once a version: it is asked at every request
            found = [Grant(**{**row, "scopes": tuple(row["scopes"])}) for row in data["grants"]]
            known = _READ[published] = (data, cls({grant.token: grant for grant in found}))
        return known[1]

    def write(self, published: Path) -> None:
        """Publish these grants in the place of all others, at once. Raises OSError."""
        grants = [
            {**asdict(g), "scopes": list(g.scopes)}
            for g in sorted(self.grants.values(), key=lambda g: g.token)
        ]
        make_private(published.parent)
        published.mkdir(exist_ok=True)
        with atomic_file(published / FILE, mode=0o644, sync=True) as file:
            file.write(schemas.canonical({"schema_version": 1, "grants": grants}))

    def grant(self, token: Token, now: str | None = None) -> Grant | None:
        """What a token opens at a time (UTC), by default now; None for one that is unknown, wrong, revoked or over, and for a link."""
        found = self._right(token)
        return None if found is None or LINK in found.scopes or found.is_over(now) else found

    def of(self, token: str, now: str | None = None) -> Grant | None:
        """What the token of that id opens at a time (UTC), by default now, of somebody who has shown it before; None once it opens nothing any more."""
        found = self.grants.get(token)
        return None if found is None or found.is_over(now) else found

    def link(self, token: Token, now: str) -> Grant | None:
        """What a one-time link is for; None for one that is unknown, wrong, used or over."""
        found = self._right(token)
        return found if found is not None and LINK in found.scopes and not found.is_over(now) else None

    def is_link(self, token: Token) -> bool:
        """Whether a token is that of a one-time link, used by nobody yet as far as is published."""
        found = self._right(token)
        return found is not None and LINK in found.scopes

    def _right(self, token: Token) -> Grant | None:
        found = self.grants.get(token.id)
        right = verifier(token.key).encode()
        # Of unknown ids the comparison is made all the same: how long an answer takes tells nothing.
        good = hmac.compare_digest(right, (found.verifier if found else "0" * 64).encode())
        return found if good else None


_READ: dict[Path, tuple[Mapping[str, Any], Access]] = {}  # what was read last, by folder
