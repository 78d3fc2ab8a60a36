"""Signing in with a token, and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.exchange.access import Access, Token
from runner.web.door import FORM
from runner.web.pages import page
from runner.web.routes.base import Routes, text
from runner.web.rules import EVERYBODY, SIGNED_IN, Call, Rule, Visitor
from runner.web.sessions import LASTS

if TYPE_CHECKING:
    from starlette.responses import Response


class SigningIn(Routes):
    """Sessions."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/sign-in", self.sign_in_form, EVERYBODY),
            Rule("POST", "/sign-in", self.sign_in, EVERYBODY, limited=True),
            Rule("POST", "/sign-out", self.sign_out, SIGNED_IN),
        )

    async def sign_in_form(self, call: Call) -> Response:
        """The form for a token."""
        return self._sign_in(call, 200, "")

    async def sign_in(self, call: Call) -> Response:
        """Begin a session with a token."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse

        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given, said = text(form, FORM), text(form, "token")
        if not self.door.formed(call.visitor, call.request, given):
            return self._sign_in(call, 403, "The form had become old. Try again.")
        token = Token.read(said)

        grant = None if token is None else Access.read(call.published.root).grant(token, self.door.now())
        if token is None or grant is None or self.door.is_replaced(token.id):
            if wait := self.door.wrong_token(call.request, token):
                return self.door.refused(call.visitor, 429, f"Try again in {wait} seconds.", wait=wait)
            return self._sign_in(call, 403, self.door.opens_nothing(token))
        if call.visitor.session is not None:
            secret = call.request.cookies.get(self.door.cookie, "")
            await run_in_threadpool(self.door.sessions.end, secret)
        self.door.note("signed in", call.request, Visitor(grant))
        answer = RedirectResponse("/", 303)
        secret = await run_in_threadpool(self.door.sessions.begin, token.id, token.key)
        self.door.keep(answer, self.door.cookie, secret, LASTS)
        answer.delete_cookie(
            self.door.before, path="/", secure=self.door.secure, httponly=True, samesite="lax"
        )
        return answer

    async def sign_out(self, call: Call) -> Response:
        """End the session."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse

        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given = text(form, FORM)
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        await run_in_threadpool(self.door.sessions.end, call.request.cookies.get(self.door.cookie, ""))
        self.door.note("signed out", call.request, call.visitor)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(
            self.door.cookie, path="/", secure=self.door.secure, httponly=True, samesite="lax"
        )
        return answer

    def _sign_in(self, call: Call, status: int, why: str) -> Response:
        form = call.visitor.session.form if call.visitor.session else self.door.form_before()
        answer = page(
            "sign_in",
            call.visitor,
            call.published,
            status=status,
            title="Sign in",
            provider=self.door.provider and self.door.provider.name,
            why=why,
            given=form,
            field=FORM,
        )
        if call.visitor.session is None:
            self.door.keep(answer, self.door.before, form, None)
            answer.headers["Cache-Control"] = "no-store"
        return answer
