"""Tokens that people make themselves: by a one-time link, or with one that they have. The front makes the secret and shows it once."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from runner.exchange.access import Access, Grant, Token
from runner.exchange.inbox import Refused, Request
from runner.web.door import FORM, Door
from runner.web.limits import NoRoom, Room
from runner.web.pages import page
from runner.web.routes.base import Routes, text
from runner.web.rules import EVERYBODY, SIGNED_IN, Call, Rule

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.responses import Response

EVERYTHING = "read hand-in manage"
MAKES = {  # what may be done with a new token, in words
    EVERYTHING: "everything, also making tokens",
    "read hand-in": "look and hand in",
    "read": "look only",
}


class Tokens(Routes):
    """One-time links, and tokens made with a token."""

    def __init__(self, door: Door, room: Room) -> None:
        super().__init__(door)
        self.room = room
        self._one = asyncio.Lock()  # of a form that is sent twice at once, each is answered

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
        """Use a link up: a new token, shown now or never; to the same form sent again, the same."""
        found = self._link(call)
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given, once = text(form, FORM), _once(form)
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(call.visitor, 403, "The form had become old: open the link again.")
        seed = self.door.sessions.seed(given, "link", call.at("link"), once)
        scopes = EVERYTHING.split()
        if found is not None:
            link, grant = found
            return await self._made(call, grant, link.key, scopes, True, seed, given)
        if self._again(call, seed):
            return await self._shown(call, seed, False, given)
        return self._no_link(call)

    def _again(self, call: Call, seed: bytes) -> bool:
        """Whether the link in the address was used up by this very form."""
        link = Token.read(call.at("link"))
        return link is not None and self.door.sessions.replaced_by(link.id) == self._id(seed)

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
        """Make a token with the one that asks; the same form sent again makes no other."""
        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given, said, kept = text(form, FORM), text(form, "scopes"), text(form, "keep")
            once = _once(form)
        grant = call.visitor.grant
        if grant is None or not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        scopes = said.split() or list(grant.scopes)
        if not set(scopes) <= set(grant.scopes):
            return self.door.refused(call.visitor, 403, "A token gives no more than it has.")
        seed = self.door.sessions.seed(given, "token", grant.token, once, *scopes, kept)
        return await self._made(call, grant, call.visitor.key, scopes, not kept, seed, given)

    async def _made(
        self, call: Call, grant: Grant, key: str, scopes: list[str], replaces: bool, seed: bytes, given: str
    ) -> Response:
        """Ask work for the token of a seed, with the key of the one that asks; the token, and what became of it."""
        from starlette.responses import JSONResponse

        token, now = Token.drawn(seed), self.door.now()
        data = {"token": token.id, "key": token.key, "scopes": scopes, "replaces": replaces}
        id = self._id(seed)
        asked = Request(id, "token", grant.account, grant.token, grant.team, now, data)
        try:
            async with self._one:  # work notes the same token once
                await self.door.on_disk(self.room.put, asked, key)
        except NoRoom as full:
            return self.no_room(call, full)
        except (Refused, OSError):
            return self.door.refused(call.visitor, 507, "It could not be kept. Try again later.")
        if replaces:
            await self.door.on_disk(self.door.sessions.replace, grant.token, id)
        self.door.note("token asked for", call.request, call.visitor, by=grant.token, new=token.id)
        if call.visitor.grant is not None and call.visitor.session is None:
            facts = {"request": id, "token": str(token), "scopes": scopes}
            return JSONResponse(facts, 202, {"Cache-Control": "no-store"})
        return await self._shown(call, seed, replaces and key == call.visitor.key, given)

    async def _shown(self, call: Call, seed: bytes, replaces: bool, given: str) -> Response:
        """The page with the token of a seed, which was asked for; ``replaces``: the one that the visitor has."""
        answer = await self.door.awaited(self._id(seed))
        if answer is not None and not answer["accepted"]:
            why = f"{str(answer.get('what', '')).capitalize()}. {str(answer.get('fix', '')).capitalize()}."
            return self.door.refused(call.visitor, 403, why)
        visitor = self.door.visitor(call.request)  # signed out, where the token was replaced
        if visitor.grant is None and call.visitor.session is not None:
            given = self.door.form_before()
        done = page(
            "token_made",
            visitor,
            call.published,
            title="Your token",
            token=str(Token.drawn(seed)),
            noted=answer is not None,
            replaces=replaces,
            given="" if visitor.grant else given,
            field=FORM,
        )
        if visitor.grant is None:
            self.door.keep(done, self.door.before, given, None)
        return _never_kept(done)

    def _id(self, seed: bytes) -> str:
        """The id of the request for the token of a seed."""
        return self.door.sessions.named("request", seed)

    def _link(self, call: Call) -> tuple[Token, Grant] | None:
        """The link in the address and what it is for; None when it opens nothing any more."""
        link = Token.read(call.at("link"))
        found = None if link is None else Access.read(call.published.root).link(link, self.door.now())
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


def _once(form: FormData) -> str:
    """What a form has of its own, so that it is known when it comes again; without it, every one is new."""
    return text(form, "once") or secrets.token_hex(16)
