"""Tokens that people make themselves: by a one-time link, or with one that they have. The front makes the secret and shows it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.exchange.access import Access, Grant, Token
from runner.exchange.inbox import Inbox, Refused, Request
from runner.model.clock import SystemClock, stamp
from runner.web.door import FORM, Door
from runner.web.pages import page
from runner.web.routes.base import Routes, text
from runner.web.rules import EVERYBODY, SIGNED_IN, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

EVERYTHING = "read hand-in manage"
MAKES = {  # what may be done with a new token, in words
    EVERYTHING: "everything, also making tokens",
    "read hand-in": "look and hand in",
    "read": "look only",
}


class Tokens(Routes):
    """One-time links, and tokens made with a token."""

    def __init__(self, door: Door, inbox: Inbox) -> None:
        super().__init__(door)
        self.inbox = inbox

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/link/{link}", self.link_form, EVERYBODY, limited=True),
            Rule("POST", "/link/{link}", self.use_link, EVERYBODY, limited=True),
            Rule("GET", "/token", self.token_form, SIGNED_IN, "manage"),
            Rule("POST", "/token", self.make_token, SIGNED_IN, "manage"),
        )

    async def link_form(self, call: Call) -> Response:
        """What a link is for, and the button that uses it up: looking does not, since mail programs look at links, too."""
        found = self._link(call)
        if found is None:
            return self._no_link(call)
        given = call.visitor.session.form if call.visitor.session else self.door.form_before()
        answer = page(
            "link",
            call.visitor,
            call.published,
            title="Your token",
            grant=found[1],
            given=given,
            field=FORM,
        )
        if call.visitor.session is None:
            self.door.keep(answer, self.door.before, given, None)
        return _never_kept(answer)

    async def use_link(self, call: Call) -> Response:
        """Use a link up: a new token, shown now or never."""
        found = self._link(call)
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given = text(form, FORM)
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(call.visitor, 403, "The form had become old: open the link again.")
        if found is None:
            return self._no_link(call)
        link, grant = found
        return await self._made(call, grant, link.key, EVERYTHING.split(), True)

    async def token_form(self, call: Call) -> Response:
        """The form by which somebody makes a token with the one that they signed in with."""
        grant = call.visitor.grant
        mine = grant.scopes if grant else ()
        choices = {" ".join(s for s in one.split() if s in mine): says for one, says in MAKES.items()}
        return page(
            "token",
            call.visitor,
            call.published,
            title="A new token",
            choices=choices,
            grant=grant,
            field=FORM,
        )

    async def make_token(self, call: Call) -> Response:
        """Make a token with the one that asks."""
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given, said, kept = text(form, FORM), text(form, "scopes"), text(form, "keep")
        grant = call.visitor.grant
        if grant is None or not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        scopes = said.split() or list(grant.scopes)
        if not set(scopes) <= set(grant.scopes):
            return self.door.refused(call.visitor, 403, "A token gives no more than it has.")
        return await self._made(call, grant, call.visitor.key, scopes, not kept)

    async def _made(self, call: Call, grant: Grant, key: str, scopes: list[str], replaces: bool) -> Response:
        """Ask work for a token, with the key of the one that asks; the token, and what became of it."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        token, now = Token.new(), stamp(SystemClock().now())
        data = {"token": token.id, "key": token.key, "scopes": scopes, "replaces": replaces}
        asked = Request.new("token", grant.account, grant.token, grant.team, now, data)
        try:
            await run_in_threadpool(self.inbox.put, asked, key)
        except (Refused, OSError):
            return self.door.refused(call.visitor, 507, "It could not be kept. Try again later.")
        if replaces:
            self.door.sessions.replace(grant.token, asked.id)
        self.door.note("token asked for", call.request, call.visitor, by=grant.token, new=token.id)
        program = call.visitor.grant is not None and call.visitor.session is None
        answer = None if program else await self.door.awaited(asked.id)
        if program:
            facts = {"request": asked.id, "token": str(token), "scopes": scopes}
            return JSONResponse(facts, 202, {"Cache-Control": "no-store"})
        if answer is not None and not answer["accepted"]:
            why = f"{str(answer.get('what', '')).capitalize()}. {str(answer.get('fix', '')).capitalize()}."
            return self.door.refused(call.visitor, 403, why)
        visitor = self.door.visitor(call.request)  # signed out, where the token was replaced
        given = "" if visitor.grant else self.door.form_before()
        done = page(
            "token_made",
            visitor,
            call.published,
            title="Your token",
            token=str(token),
            noted=answer is not None,
            replaces=replaces and key == call.visitor.key,
            given=given,
            field=FORM,
        )
        if given:
            self.door.keep(done, self.door.before, given, None)
        return _never_kept(done)

    def _link(self, call: Call) -> tuple[Token, Grant] | None:
        """The link in the address and what it is for; None when it opens nothing any more."""
        link = Token.read(call.at("link"))
        found = (
            None if link is None else Access.read(call.published.root).link(link, stamp(SystemClock().now()))
        )
        gone = found is not None and self.door.is_replaced(found.token)
        return None if link is None or found is None or gone else (link, found)

    def _no_link(self, call: Call) -> Response:
        if wait := self.door.wrong_token(call.request, Token.read(call.at("link"))):
            return self.door.refused(call.visitor, 429, f"Try again in {wait} seconds.", wait=wait)
        why = "The link was used before, is over, or is mistyped. Ask the organiser for a new one."
        return self.door.refused(call.visitor, 404, why)


def _never_kept(answer: Response) -> Response:
    """An answer with a secret: no cache has it, and no other page is told where it stood."""
    answer.headers["Cache-Control"] = "no-store"
    return answer
