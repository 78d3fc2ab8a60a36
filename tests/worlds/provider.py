"""A small provider of OpenID Connect on loopback: discovery, authorization with PKCE, tokens, keys; it can be told to lie."""

from __future__ import annotations

import base64
import http.server
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedIOBase
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "proctor-test", "a secret / with + signs"


@dataclass
class Provider:
    """``claims`` takes the place of what it would say of the person ``who``; ``signs`` of its key; ``asked`` counts requests."""

    url: str = ""
    who: dict[str, Any] = field(
        default_factory=lambda: {"sub": "ada-1", "email": "Ada@example.org", "email_verified": True}
    )
    claims: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    signs: RSAKey | None = None
    algorithm: str = "RS256"
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    padding: int = 0  # bytes that its answer to a code has more
    drips: str = ""  # the path where it answers with one byte now and then, without an end
    over: threading.Event = field(default_factory=threading.Event)

    def authorize(self, query: dict[str, str]) -> str:
        """Let the person in at once: the address to go back to."""
        assert query["response_type"] == "code" and query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256" and "openid" in query["scope"]
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], given: str) -> dict[str, Any]:
        """A statement for a code, once, for who proves that they asked for it."""
        basic = base64.b64decode(given.removeprefix("Basic ")).decode()
        query = self.codes.pop(form["code"], None)
        proven = (
            query is not None and create_s256_code_challenge(form["code_verifier"]) == query["code_challenge"]
        )
        if (
            query is None
            or not proven
            or basic.split(":")[0] != CLIENT
            or form["redirect_uri"] != query["redirect_uri"]
        ):
            return {"error": "invalid_grant"}
        return {"access_token": "x", "token_type": "Bearer", "id_token": self.statement(query["nonce"])}

    def statement(self, nonce: str) -> str:
        """The ID token."""
        now = int(time.time())
        says = {
            "iss": self.url,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            **self.who,
            **self.claims,
        }
        says = {name: value for name, value in says.items() if value is not None}
        if self.algorithm == "none":
            parts = (json.dumps(one).encode() for one in ({"alg": "none"}, says))
            return ".".join(base64.urlsafe_b64encode(one).rstrip(b"=").decode() for one in parts) + "."
        return jwt.encode({"alg": "RS256", "kid": "one"}, says, self.signs or self.key)


def dripping(to: BufferedIOBase, over: threading.Event) -> None:
    """Write a byte now and then, until this is over or nobody takes any more."""
    with suppress(OSError):
        while not over.wait(0.1):
            to.write(b" ")
            to.flush()


@contextmanager
def providing() -> Iterator[Provider]:
    """A provider that answers over HTTP."""
    of = Provider()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            at = urlsplit(self.path)
            of.asked.append(at.path)
            if at.path == "/.well-known/openid-configuration":
                ends = {
                    "authorization_endpoint": "/authorize",
                    "token_endpoint": "/token",
                    "jwks_uri": "/keys",
                }
                self.answer({"issuer": of.url, **{name: of.url + path for name, path in ends.items()}})
            elif at.path == "/keys":
                self.answer({"keys": [of.key.as_dict(private=False)]})
            elif at.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", of.authorize({k: v[0] for k, v in parse_qs(at.query).items()}))
                self.end_headers()
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            of.asked.append(self.path)
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            said = of.token(
                {k: v[0] for k, v in parse_qs(body).items()}, self.headers.get("authorization", "")
            )
            said |= {"padding": " " * of.padding}
            self.answer(said, 400 if "error" in said else 200)

        def answer(self, data: dict[str, Any], status: int = 200) -> None:
            content = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if urlsplit(self.path).path == of.drips:
                self.drip()
                return
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def drip(self) -> None:
            self.end_headers()
            dripping(self.wfile, of.over)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    of.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield of
    finally:
        of.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
