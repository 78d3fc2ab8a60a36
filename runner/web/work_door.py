"""The one door for work that stands elsewhere: it signs a nonce with its key, and has a session for a while.

Nonces are made without being kept, so that strangers who ask for many cost nothing; one that opened a session is remembered
until it is too old, and opens no other. Sessions are of this process: after a restart work signs again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass, field

from runner.exchange.link import is_signed

FRESH = 60.0  # seconds for which a nonce can be used
LASTS = 600.0  # seconds of a session
_MOST = 16  # sessions at a time: work has one


@dataclass
class WorkDoor:
    """Whether somebody is work: who signs with the ``key`` (bytes of its public half) for ``front``, our address."""

    key: bytes
    front: str
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _used: dict[str, float] = field(default_factory=dict)
    _sessions: dict[str, float] = field(default_factory=dict)

    def nonce(self) -> str:
        """Something to sign, for this once."""
        text = f"{time.monotonic():.0f}.{secrets.token_hex(16)}"
        return f"{text}.{self._mark(text)}"

    def begin(self, nonce: str, signature: str) -> str | None:
        """A session for who signed a nonce of ours, for the first time and soon; None for everybody else."""
        text, _, mark = nonce.rpartition(".")
        made, _, _ = text.partition(".")
        # JSON may have halves of characters, which have no bytes.
        if not nonce.isascii() or not hmac.compare_digest(mark.encode(), self._mark(text).encode()):
            return None
        now = time.monotonic()
        if not 0 <= now - float(made) + 1 <= FRESH or nonce in self._used:
            return None
        if not is_signed(self.key, self.front, nonce, signature):
            return None
        self._used = {one: at for one, at in self._used.items() if now - at < 2 * FRESH} | {nonce: now}
        secret = secrets.token_urlsafe(32)
        kept = sorted(self._sessions.items(), key=lambda one: one[1])[-_MOST + 1 :]
        self._sessions = dict(kept) | {_hashed(secret): now + LASTS}
        return secret

    def holds(self, secret: str) -> bool:
        """Whether a session is one, and not over."""
        return self._sessions.get(_hashed(secret), 0.0) > time.monotonic()

    def _mark(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
