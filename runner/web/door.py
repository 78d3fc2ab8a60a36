"""What stands before every page: who asks, whether the rule lets them in, and the headers of every answer.

A strict content security policy without ``unsafe-*``: style sheets and scripts come from us by address, forms go
to us. No answer says when something was made. Answers for somebody who signed in are never kept by caches in between.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox, answered
from runner.exchange.oidc import Provider
from runner.exchange.published import Published
from runner.exchange.security import SecurityLog
from runner.model.clock import stamp
from runner.model.errors import RunnerError
from runner.web.accepted import Accepted
from runner.web.caching import fitted
from runner.web.guard import bounded
from runner.web.limits import SENDING, STRANGERS, WRONG, Limits, Waiting, address, content_length
from runner.web.pages import page
from runner.web.problems import is_api, problem
from runner.web.program import Program
from runner.web.rules import WORK, Call, Rule, Visitor
from runner.web.sessions import Sessions
from runner.web.work_door import WorkDoor

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

P = ParamSpec("P")
T = TypeVar("T")

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "interest-cohort=()",
    "Vary": "Cookie, Authorization, Accept-Encoding",
}
SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
WAIT = 5.0  # seconds that a page waits for work's answer
DISK_SLOTS = 4  # of the 40 threads, so that a slow disk leaves the others to pages
DIGEST_SLOTS = 2  # of the other threads
FORM = "form-token"  # the name of the field that every form has
WORDS = {
    401: "Sign in first",
    403: "This is not open to you",
    404: "There is no such page here",
    405: "This page takes no such request",
    413: "Too large",
    415: "This cannot be read",
    429: "Too often",
    500: "Something went wrong here",
    503: "This does not work at the moment",
}


@dataclass(frozen=True)
class Door:
    """What it needs to know: where things are, and ``url``, the address by which people reach the front.

    ``log`` is told what was refused; ``proxies`` are the addresses of ours whose word counts about where somebody comes from.
    ``work`` is the door for work that stands on another machine. ``kept``: answers become files, for everybody and without a server.
    ``disk_slots`` bounds the disk work of uploads and requests, see :meth:`on_disk`; ``digest_slots`` see :meth:`digest_on_disk`.
    """

    published: Published
    sessions: Sessions
    url: str
    log: SecurityLog
    proxies: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    waiting: Waiting = field(default_factory=Waiting)
    work: WorkDoor | None = None
    provider: Provider | None = None
    program: Program = field(default_factory=Program)
    kept: bool = False
    disk_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(DISK_SLOTS))
    digest_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(DIGEST_SLOTS))

    async def on_disk(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run disk work of an upload or a request in a thread, at most :data:`DISK_SLOTS` at a time.

        One ``fsync`` may take seconds. It does not stop the event loop, and the remaining threads stay free for pages.
        Further calls wait in order. Meanwhile the front reads nothing more from their connections.
        """
        from starlette.concurrency import run_in_threadpool

        async with self.disk_slots:
            return await run_in_threadpool(function, *args, **kwargs)

    async def digest_on_disk(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the digest of a whole upload in a thread, at most :data:`DIGEST_SLOTS` at a time.

        It takes minutes for a large upload, in which the slots of :meth:`on_disk` stay free for short work.
        """
        from starlette.concurrency import run_in_threadpool

        async with self.digest_slots:
            return await run_in_threadpool(function, *args, **kwargs)

    @cached_property
    def accepted(self) -> Accepted:
        """The requests that were accepted here."""
        inbox = Inbox(self.published.root.with_name("inbox"))
        return Accepted(self.sessions, self.published.root, inbox, self.url)

    def now(self) -> str:
        """The time by the clock of this machine (UTC)."""
        return stamp(self.published.clock.now())

    @property
    def secure(self) -> bool:
        """Whether people come by TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def cookie(self) -> str:
        """The name of the session's cookie; with TLS no other host can have set it."""
        return "__Host-session" if self.secure else "session"

    @property
    def before(self) -> str:
        """The name of the cookie that a sign-in form goes with."""
        return "__Host-form" if self.secure else "form"

    def visitor(self, request: Request) -> Visitor:
        """Who asks. A token in the header goes before a cookie; either opens what is published of it now, or nothing."""
        if self.kept:
            return Visitor(program=is_api(request.url.path), kept=True)
        access = Access.read(self.published.root)
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        program = is_api(request.url.path)
        if kind.lower() == "bearer" and (token := Token.read(text)) is not None:
            return self._unless_replaced(Visitor(access.grant(token, self.now()), token.key, program=program))
        if kind.lower() == "exchange" and self.work is not None and self.work.holds(text):
            return Visitor(work=True)
        if program:
            return Visitor(program=True)
        session = self.sessions.get(request.cookies.get(self.cookie, ""))
        grant = access.of(session.token, self.now()) if session else None
        return self._unless_replaced(Visitor(grant, session.key, session)) if session and grant else Visitor()

    def _unless_replaced(self, visitor: Visitor) -> Visitor:
        gone = visitor.grant is not None and self.is_replaced(visitor.grant.token)
        return Visitor(program=visitor.program) if gone else visitor

    def is_replaced(self, token: str) -> bool:
        """Whether its owner has replaced a token, or used a link up, and work has not said no."""
        request = self.sessions.replaced_by(token)
        if request is None:
            return False
        answer = answered(self.published.root, request)
        return answer is None or bool(answer.get("accepted"))

    def opened(self, rule: Rule) -> Callable[[Request], Awaitable[Response]]:
        """The function that answers a route, behind its rule."""

        async def answer(request: Request) -> Response:
            from starlette.requests import ClientDisconnect, Request

            visitor = self.visitor(request)
            if (refused := self._refusal(request, visitor, rule)) is not None:
                return refused
            view = self.published.view(visitor.audience)
            if rule.most is not None:
                request = Request(request.scope, bounded(request.receive, rule.most))
            try:
                made = await rule.answer(Call(request, visitor, self.published, view))
            except ClientDisconnect:  # nobody reads this answer
                return self.refused(visitor, 400)
            return fitted(made, request, visitor) if rule.method == "GET" else made

        return answer

    def _refusal(self, request: Request, visitor: Visitor, rule: Rule) -> Response | None:
        """Why somebody may not call this; None where they may."""
        if wait := self._wait(request, visitor, rule):
            return self.refused(visitor, 429, f"Try again in {wait} seconds.", wait=wait)
        if visitor.program and visitor.grant is None and "authorization" in request.headers:
            token = Token.read(request.headers["authorization"].partition(" ")[2])
            return self.refused(visitor, 401, self.opens_nothing(token))
        if visitor.role not in rule.may:
            return self._not_theirs(request, visitor, rule)
        if visitor.grant is not None and rule.scope not in visitor.grant.scopes:
            self.note("refused", request, visitor, route=rule.path)
            return self.refused(visitor, 403)
        return self._unfit(request, visitor, rule)

    def _not_theirs(self, request: Request, visitor: Visitor, rule: Rule) -> Response:
        """The answer to somebody whose role may not call this."""
        from starlette.responses import RedirectResponse

        if rule.may == WORK:
            return self.refused(visitor, 404)
        if visitor.role == "public":
            sent = rule.method == "GET" and not visitor.program
            return RedirectResponse("/sign-in", 303) if sent else self.refused(visitor, 401)
        self.note("refused", request, visitor, route=rule.path)
        return self.refused(visitor, 403)

    def _unfit(self, request: Request, visitor: Visitor, rule: Rule) -> Response | None:
        """The answer to what a route cannot take, whoever sends it; None where it can."""
        if rule.method not in SAFE and not self._from_here(request):
            return self.refused(visitor, 403, "The form was not sent from a page of this server.")
        if not _plain_text(request):
            return self.refused(visitor, 415, "Texts of forms have the encoding UTF-8.")
        if rule.most is not None and content_length(request.headers) > rule.most:
            return self.refused(visitor, 413)
        return None

    def came_from(self, request: Request) -> str:
        """The address by which somebody comes."""
        peer = request.client.host if request.client else None
        return address(peer, request.headers.getlist("x-forwarded-for"), self.proxies)

    def note(self, what: str, request: Request, visitor: Visitor, **facts: str | None) -> None:
        """Note in the security log what somebody did, or was refused."""
        grant = visitor.grant
        who = {} if grant is None else {"account": grant.account, "token": grant.token, "role": grant.role}
        self.log.note(what, address=self.came_from(request), **{**who, **facts})

    async def awaited(self, id: str) -> dict[str, Any] | None:
        """What became of a request, once it did; None when that takes longer than a page should."""
        last = time.monotonic() + WAIT
        while (found := answered(self.published.root, id)) is None and time.monotonic() < last:
            await asyncio.sleep(0.2)
        return found

    def wrong_token(self, request: Request, token: Token | None) -> int:
        """Count a token that opens nothing; the seconds until another may be tried, 0 for now."""
        where = self.came_from(request)
        known = None if token is None else token.id
        waits = [self.limits.take("address", where, STRANGERS)]
        if known is not None:
            waits.append(self.limits.take("token", known, WRONG))
        if not max(waits):  # whoever goes on is not noted again and again
            self.log.note("token refused", address=where, token=known)
        return max(waits)

    def opens_nothing(self, token: Token | None) -> str:
        """Why nobody signs in with a token: in words that tell those who have a right one what to do with it."""
        if token is not None and Access.read(self.published.root).is_link(token):
            return (
                "That belongs to a one-time link, and is no token to sign in with: open the link in a browser, and its "
                "button shows the token."
            )
        return "The token opens nothing: it is mistyped, or was replaced, revoked or used up."

    def _wait(self, request: Request, visitor: Visitor, rule: Rule) -> int:
        """In how many seconds somebody may call this; 0 for now."""
        sends = rule.method not in SAFE
        if visitor.grant is not None:
            return self.limits.take("sender", visitor.grant.token, SENDING) if sends else 0
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.wrong_token(request, Token.read(text))
        return self.limits.take("address", self.came_from(request), STRANGERS) if rule.limited else 0

    def refused(
        self,
        visitor: Visitor,
        status: int,
        why: str = "",
        *,
        wait: int = 0,
        error: RunnerError | None = None,
    ) -> Response:
        """An answer that says no, a page or for programs a problem in JSON; with ``wait``, in how many seconds to come again, with
        an ``error`` in its words."""
        if visitor.program:
            return problem(status, why, wait=wait, error=error)
        title = WORDS.get(status, "Refused")
        answer = page("problem", visitor, self.published, status=status, title=title, why=why, error=error)
        if wait:
            answer.headers["Retry-After"] = str(wait)
        return answer

    def formed(self, visitor: Visitor, request: Request, given: str) -> bool:
        """Whether a form came from a page that we gave this visitor. Programs with a token in the header need no form."""
        if visitor.session is not None:
            return visitor.session.sent_by(given)
        if visitor.grant is not None:
            return True
        before = request.cookies.get(self.before, "")
        return len(before) >= 32 and hmac.compare_digest(before.encode(), given.encode())

    def form_before(self) -> str:
        """A new token for a form of somebody who has no session yet."""
        return secrets.token_urlsafe(24)

    def keep(self, response: Response, name: str, value: str, seconds: float | None) -> None:
        """Set a cookie that scripts cannot read and other sites do not send."""
        age = None if seconds is None else int(seconds)
        response.set_cookie(
            name, value, max_age=age, path="/", secure=self.secure, httponly=True, samesite="lax"
        )

    def _from_here(self, request: Request) -> bool:
        """Whether a browser says that a POST comes from one of our pages; what is no browser says nothing."""
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        ours = (urlsplit(self.url).scheme, request.headers.get("host", "").lower())
        try:
            if origin is not None and tuple(urlsplit(origin)[:2]) != ours:
                return False
        except ValueError:  # such as http://[
            return False
        return site in (None, "same-origin", "none")


def _plain_text(request: Request) -> bool:
    """Whether the texts of a form are UTF-8: other encodings could give what is no text, or take long."""
    _, *more = request.headers.get("content-type", "").lower().split(";")
    given = [value for one in more for name, _, value in (one.partition("="),) if name.strip() == "charset"]
    return all(value.strip(' "') in ("utf-8", "utf8") for value in given)
