"""OpenID Connect: people who sign in at a provider of the organiser's choice; what front and work both do with its statements.

The provider says in a signed statement (ID token) who somebody is. The front gets it, and work checks it again by the provider's own
keys before it lets anybody in. ``nonce`` binds a statement to the one key of the front's that it was asked for with
(:func:`nonce_of`): a front in the attacker's hands cannot use statements that were made for others, or before.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import schemas

FILE = "oidc.json"
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
LEEWAY = 60  # seconds by which clocks may differ
TIMEOUT = 5.0  # seconds in which the provider says nothing
WHOLE = 10.0  # seconds for each answer of the provider, whole
KEPT = 3600.0  # seconds that its keys are kept
AGAIN = 60.0  # seconds before they are asked for again, because one is not known
DOWN = 10.0  # seconds in which a provider that did not answer is not waited for again
MOST = 256 * 1024  # bytes of an answer


class NotBelieved(Exception):
    """A statement that does not hold, or a provider that cannot be asked; the text says why."""


class Unreachable(NotBelieved):
    """The provider does not answer: try again later."""


@dataclass(frozen=True)
class Provider:
    """Where people sign in: ``issuer`` (its address), and what it knows this server as. Only the front has the ``client_secret``."""

    issuer: str
    client_id: str
    client_secret: str = ""
    name: str = "your institution"

    @classmethod
    def read(cls, path: Path) -> Provider:
        """The provider that a file names (schemas/oidc.schema.json). Raises ValueError, OSError."""
        data = json.loads(path.read_bytes())
        if problems := schemas.validate(data, "oidc"):
            raise ValueError(f"{problems[0].where} {problems[0].what}")
        at = urlsplit(data["issuer"])
        if at.scheme != "https" and at.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("issuer: has to begin with https://")
        return cls(**data)


def nonce_of(key: str) -> str:
    """What the statement for the token with this key has to name (hex)."""
    return hashlib.sha256(b"proctor oidc\0" + key.encode()).hexdigest()


@dataclass
class Asked:
    """A provider that is asked: its addresses and keys, each kept for a while."""

    provider: Provider
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _metadata: tuple[float, Mapping[str, Any]] = field(default_factory=lambda: (0.0, {}))
    _keys: tuple[float, Mapping[str, Any]] = field(default_factory=lambda: (0.0, {}))
    _down: float = 0.0  # until when it is not asked

    def metadata(self) -> Mapping[str, Any]:
        """The provider's addresses, as it says itself. Raises NotBelieved."""
        with self._lock:
            then, found = self._metadata
            if not found or time.monotonic() - then > KEPT:
                found = self._got(f"{self.provider.issuer.rstrip('/')}/.well-known/openid-configuration")
                if found.get("issuer") != self.provider.issuer:
                    raise NotBelieved("the provider says that it is another one")
                self._metadata = (time.monotonic(), found)
            return found

    def claims(self, statement: str, nonce: str, now: datetime) -> dict[str, Any]:
        """What a statement says, once signature, issuer, audience, nonce and times hold. Raises NotBelieved."""
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        rules = jwt.JWTClaimsRegistry(
            now=int(now.timestamp()),
            leeway=LEEWAY,
            iss={"essential": True, "value": self.provider.issuer},
            aud={"essential": True, "value": self.provider.client_id},
            nonce={"essential": True, "value": nonce},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        try:
            keys = KeySet.import_key_set(self._known(statement))  # type: ignore[arg-type]
            found = jwt.decode(statement, keys, algorithms=list(ALGORITHMS)).claims
            rules.validate(found)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise NotBelieved(f"{type(error).__name__}: {error}") from error
        several = isinstance(found["aud"], list) and len(found["aud"]) > 1
        if (several or "azp" in found) and found.get("azp") != self.provider.client_id:
            raise NotBelieved("it was made for another server")
        if not isinstance(found["sub"], str) or not found["sub"]:
            raise NotBelieved("it names nobody")
        return dict(found)

    def _known(self, statement: str) -> Mapping[str, Any]:
        """The provider's keys; asked for again where the statement names one that is not among them, but not often."""
        from joserfc.errors import JoseError
        from joserfc.jws import extract_compact

        try:
            wanted = extract_compact(statement.encode()).headers().get("kid")
        except (JoseError, ValueError) as error:
            raise NotBelieved("it is no statement of a provider") from error
        where = str(self.metadata().get("jwks_uri", ""))
        with self._lock:
            then, found = self._keys
            age = time.monotonic() - then
            there = {one.get("kid") for one in found.get("keys", ()) if isinstance(one, dict)}
            if not found or age > KEPT or (wanted not in there and age > AGAIN):
                found = self._got(where)
                self._keys = (time.monotonic(), found)
            return found

    def _got(self, url: str) -> dict[str, Any]:
        """What the provider answers; where it did not lately, nobody waits for it. Raises as :func:`_got`."""
        if time.monotonic() < self._down:
            raise Unreachable("the provider does not answer")
        try:
            return _got(url)
        except Unreachable:
            self._down = time.monotonic() + DOWN
            raise


def identities_of(claims: Mapping[str, Any]) -> list[tuple[str, str]]:
    """By what somebody may be tied to an account: the subject, and the mail address where the provider says that it is theirs."""
    found = [("subject", str(claims["sub"]))]
    if claims.get("email_verified") is True and isinstance(claims.get("email"), str):
        found.append(("mail", claims["email"].strip().casefold()))
    return found


def _got(url: str) -> dict[str, Any]:
    """The JSON object at an address of the provider. Raises Unreachable and NotBelieved."""
    import requests

    from runner.exchange.http import Session, within

    if urlsplit(url).scheme not in ("https", "http"):
        raise NotBelieved("the provider names no address")
    try:
        with (
            Session() as session,
            within(session, WHOLE),
            session.get(url, timeout=TIMEOUT, stream=True) as answer,
        ):
            content = answer.raw.read(MOST + 1, decode_content=True)
            status = answer.status_code
    except (requests.RequestException, OSError) as error:
        raise Unreachable(f"the provider does not answer: {type(error).__name__}") from error
    if status != 200 or len(content) > MOST:
        raise Unreachable(f"the provider answers with {status}")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotBelieved("the provider does not answer with JSON") from error
    if not isinstance(data, dict):
        raise NotBelieved("the provider does not answer with an object")
    return data
