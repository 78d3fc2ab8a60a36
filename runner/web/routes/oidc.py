"""Signing in at a provider of OpenID Connect: there and back, with state, nonce and PKCE; work looks at its statement again."""

from __future__ import annotations

import hmac
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.exchange.access import Token
from runner.exchange.inbox import Refused, Request
from runner.exchange.oidc import MOST as MOST_BYTES
from runner.exchange.oidc import TIMEOUT, WHOLE, Asked, NotBelieved, nonce_of
from runner.web.door import Door
from runner.web.limits import NoRoom, Room
from runner.web.routes.base import Routes
from runner.web.rules import EVERYBODY, Call, Rule
from runner.web.sessions import LASTS

if TYPE_CHECKING:
    from starlette.responses import Response

WITHIN = 600.0  # seconds from there to back
MOST = 20_000  # that are on their way at a time
SCOPE = "openid email"
_NOBODY = "a-" + 16 * "0"  # the account of who has not said yet who they are


@dataclass(frozen=True)
class Way:
    """Somebody who was sent to the provider: in which browser, until when, with which token to be, and what proves the way back."""

    browser: str
    ends: float
    token: Token
    proof: str


class ByProvider(Routes):
    """Signing in at the provider."""

    def __init__(self, door: Door, room: Room, asked: Asked) -> None:
        super().__init__(door)
        self.room, self.asked = room, asked
        self._ways: dict[str, Way] = {}  # by state; lost with this process: then people begin anew

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/sign-in/provider", self.there, EVERYBODY, limited=True),
            Rule("GET", "/sign-in/provider/back", self.back, EVERYBODY, limited=True),
        )

    @property
    def cookie(self) -> str:
        """The name of the cookie that only the browser has that was sent there."""
        return "__Host-provider" if self.door.secure else "provider"

    async def there(self, call: Call) -> Response:
        """Send somebody to the provider."""
        from authlib.oauth2.rfc7636 import create_s256_code_challenge
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse

        now = time.monotonic()
        self._ways = {state: way for state, way in self._ways.items() if way.ends > now}
        while len(self._ways) >= MOST:  # the oldest goes: whoever begins many keeps nobody out
            del self._ways[next(iter(self._ways))]
        way = Way(secrets.token_urlsafe(32), now + WITHIN, Token.new(), secrets.token_urlsafe(48))
        state = secrets.token_urlsafe(32)
        try:
            metadata = await run_in_threadpool(self.asked.metadata)
            url, _ = self._client().create_authorization_url(
                str(metadata.get("authorization_endpoint", "")),
                state=state,
                nonce=nonce_of(way.token.key),
                code_challenge=create_s256_code_challenge(way.proof),
                code_challenge_method="S256",
            )
        except NotBelieved as error:
            return self._no(call, str(error))
        self._ways[state] = way
        answer = RedirectResponse(url, 303, {"Cache-Control": "no-store"})
        self.door.keep(answer, self.cookie, way.browser, WITHIN)
        return answer

    async def back(self, call: Call) -> Response:
        """Take what the provider says: a session begins once work has found it right."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse

        given = call.request.query_params
        way = self._ways.pop(given.get("state", ""), None)
        browser = call.request.cookies.get(self.cookie, "")
        here = way is not None and hmac.compare_digest(way.browser.encode(), browser.encode())
        if way is None or not here or way.ends < time.monotonic():
            return self._no(call, "the way back does not belong to this browser, or took too long")
        if "code" not in given or given.get("iss", self.asked.provider.issuer) != self.asked.provider.issuer:
            return self._no(call, "the provider did not let you in")
        try:
            statement = await run_in_threadpool(self._statement, given["code"], way)
            data = {"statement": statement, "key": way.token.key}
            asked = Request.new("identity", _NOBODY, way.token.id, None, self.door.now(), data)
            await self.door.on_disk(self.room.put, asked, way.token.key)
        except NotBelieved as error:
            return self._no(call, str(error))
        except NoRoom as full:
            return self.no_room(call, full)
        except (Refused, OSError):
            return self.door.refused(call.visitor, 507, "It could not be kept. Try again later.")
        answer = await self.door.awaited(asked.id)
        if answer is None or not answer["accepted"]:
            return self._no(call, "nobody works here now" if answer is None else str(answer.get("what", "")))
        self.door.note("signed in by provider", call.request, call.visitor, token=way.token.id)
        done = RedirectResponse("/", 303)
        secret = await run_in_threadpool(self.door.sessions.begin, way.token.id, way.token.key)
        self.door.keep(done, self.door.cookie, secret, LASTS)
        done.delete_cookie(self.cookie, path="/", secure=self.door.secure, httponly=True, samesite="lax")
        return done

    def _statement(self, code: str, way: Way) -> str:
        """The statement that a code stands for, once it holds here, too. Raises NotBelieved."""
        import requests
        from authlib.common.errors import AuthlibBaseError

        from runner.exchange.http import within

        where = str(self.asked.metadata().get("token_endpoint", ""))
        try:
            with self._client() as client, within(client, WHOLE):
                found: dict[str, Any] = client.fetch_token(where, code=code, code_verifier=way.proof)
        except (AuthlibBaseError, requests.RequestException, ValueError) as error:
            raise NotBelieved(f"the provider gave no statement: {type(error).__name__}") from error
        statement = found.get("id_token")
        if not isinstance(statement, str):
            raise NotBelieved("the provider gave no statement")
        self.asked.claims(statement, nonce_of(way.token.key), self.door.published.clock.now())
        return statement

    def _client(self) -> Any:
        """A client of the provider (Authlib's)."""
        from authlib.integrations.requests_client import OAuth2Session

        from runner.exchange.http import bounded

        of = self.asked.provider
        client = OAuth2Session(
            of.client_id,
            of.client_secret or None,
            token_endpoint_auth_method="client_secret_basic" if of.client_secret else "none",
            scope=SCOPE,
            redirect_uri=f"{self.door.url.rstrip('/')}/sign-in/provider/back",
            default_timeout=TIMEOUT,
        )
        client.stream, client.max_redirects, client.hooks = True, 0, {"response": [bounded(MOST_BYTES)]}
        return client

    def _no(self, call: Call, why: str) -> Response:
        self.door.note("sign-in by provider refused", call.request, call.visitor, why=why)
        return self.door.refused(call.visitor, 403, f"Signing in did not work: {why}. Begin anew.")
