"""Registering a team, where its task allows it: by somebody who has no account. The front makes the token and shows it once."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runner.exchange.access import Token
from runner.exchange.inbox import ID, Inbox, Refused, Request, answered
from runner.model.clock import SystemClock, stamp
from runner.web.door import FORM, Door
from runner.web.limits import REGISTERING
from runner.web.pages import page
from runner.web.routes.base import Routes, text
from runner.web.rules import EVERYBODY, Call, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

FIELDS = ("team", "contact", "affiliation", "purpose")
MOST_MEMBERS = 50
NOBODY = ""  # the team of those who have none yet: no visitor has it
LONGEST = {"purpose": 2000, "team": 40}  # characters; of others 100


class Registering(Routes):
    """The form, what it sends, and what became of it."""

    def __init__(self, door: Door, inbox: Inbox) -> None:
        super().__init__(door)
        self.inbox = inbox

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/tasks/{task}/register", self.form, EVERYBODY),
            Rule("POST", "/tasks/{task}/register", self.register, EVERYBODY, limited=True),
            Rule("GET", "/registrations/{id}", self.registration, EVERYBODY),
        )

    async def form(self, call: Call) -> Response:
        """The form, or when it is open."""
        found = self._of(call)
        return self.nothing(call) if found is None else self._form(call, found)

    async def register(self, call: Call) -> Response:
        """Take a registration: it is in the inbox before this answers, and its token is shown now or never."""
        found = self._of(call)
        async with call.request.form(max_files=0, max_fields=20, max_part_size=16384) as form:
            given = text(form, FORM)
            said = {name: value for name in FIELDS if (value := text(form, name).strip())}
            members = [line.strip() for line in text(form, "members").splitlines() if line.strip()]
            accepted, read = text(form, "accepted"), text(form, "terms")
        if found is None:
            return self.nothing(call)
        known = {**said, "members": "\n".join(members)}
        if not self.door.formed(call.visitor, call.request, given):
            return self._form(call, found, 403, "The form had become old. Try again.", known)
        if why := self._wrong(found, {**said, "members": members}, accepted, read):
            return self._form(call, found, 400, why, known)
        where = self.door.came_from(call.request)
        if wait := self.door.limits.take("register", where, REGISTERING):
            return self.door.refused(call.visitor, 429, f"Try again in {wait} seconds.", wait=wait)
        terms = found["terms"] and {
            "terms_version": found["terms"]["version"],
            "terms_sha256": found["terms"]["sha256"],
        }
        data = {"task": found["task"], **said, **(terms or {}), **({"members": members} if members else {})}
        return await self._sent(call, found, data, known)

    async def _sent(
        self, call: Call, found: Mapping[str, Any], data: Mapping[str, Any], known: Mapping[str, str]
    ) -> Response:
        from starlette.concurrency import run_in_threadpool

        token, account = Token.new(), f"a-{secrets.token_hex(8)}"
        now = stamp(SystemClock().now())
        asked = Request.new("register", account, token.id, None, now, {**data, "key": token.key})
        try:
            await run_in_threadpool(self.inbox.put, asked, token.key)
        except (Refused, OSError):
            return self.door.refused(call.visitor, 507, "It could not be kept. Try again later.")
        mine = replace(asked, team=NOBODY)
        self.door.sessions.note(mine, f"registration for {found['task']}", {})
        self.door.note("registration", call.request, call.visitor, task=found["task"], account=account)
        answer = await self.door.awaited(asked.id)
        if answer is not None and not answer["accepted"]:
            why = f"{answer.get('what', '')}: {answer.get('fix') or answer.get('why', '')}."
            return self._form(call, found, 400, why[:1].upper() + why[1:], known)
        return self._registered(call, asked.id, answer, str(token), found)

    async def registration(self, call: Call) -> Response:
        """What became of a registration: for whoever has its address, which nobody can guess."""
        id = call.at("id")
        answer = answered(call.published.root, id) if ID.fullmatch(id) else None
        known = self.door.sessions.noted(NOBODY, id) if ID.fullmatch(id) else []
        if (answer is None and not known) or (answer is not None and answer.get("kind") != "register"):
            return self.nothing(call)
        return self._registered(call, id, answer, "", None)

    def _registered(
        self,
        call: Call,
        id: str,
        answer: Mapping[str, Any] | None,
        token: str,
        found: Mapping[str, Any] | None,
    ) -> Response:
        opens = answer is not None and answer["accepted"] and not answer.get("pending")
        given = self.door.form_before() if token and opens and call.visitor.session is None else ""
        made = page(
            "registered",
            call.visitor,
            call.published,
            title="Your registration",
            up=[(found["title"], f"/tasks/{found['task']}")] if found else [],
            id=id,
            answer=answer,
            token=token,
            given=given,
            field=FORM,
        )
        if given:
            self.door.keep(made, self.door.before, given, None)
        made.headers["Cache-Control"] = "no-store"
        return made

    def _of(self, call: Call) -> dict[str, Any] | None:
        """How teams register for the task in the address; None where they do not."""
        found = self.object(call, f"registration/{call.at('task')}", "registration")
        return None if found is None else dict(call.view.data(found))

    def _form(
        self,
        call: Call,
        found: Mapping[str, Any],
        status: int = 200,
        why: str = "",
        known: Mapping[str, str] = {},
    ) -> Response:
        given = call.visitor.session.form if call.visitor.session else self.door.form_before()
        answer = page(
            "register",
            call.visitor,
            call.published,
            status=status,
            title=f"Register for {found['title']}",
            up=[(found["title"], f"/tasks/{found['task']}")],
            of=found,
            open=_is_open(found),
            why=why,
            known=known,
            given=given,
            field=FORM,
        )
        if call.visitor.session is None:
            self.door.keep(answer, self.door.before, given, None)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    def _wrong(self, found: Mapping[str, Any], said: Mapping[str, Any], accepted: str, read: str) -> str:
        """What is wrong with a form, in words; empty when nothing is. Work looks at everything again."""
        if not _is_open(found):
            return "Teams cannot register now."
        missing = [key for key, rule in found["asks"].items() if rule == "required" and not said.get(key)]
        if not said.get("team"):
            missing.insert(0, "the team's name")
        if missing:
            return f"Missing: {', '.join(missing)}."
        if len(said["members"]) > MOST_MEMBERS:
            return f"At most {MOST_MEMBERS} members can be named."
        texts = [("members", one) for one in said["members"]] + [(key, said.get(key, "")) for key in FIELDS]
        long = [key for key, one in texts if len(one) > LONGEST.get(key, 100)]
        if long:
            return f"Too long: {', '.join(dict.fromkeys(long))}."
        if found["terms"] and read != found["terms"]["sha256"]:
            return "The terms were changed meanwhile: read them again."
        return "Accept the terms first." if found["terms"] and not accepted else ""


def _is_open(found: Mapping[str, Any]) -> bool:
    now = stamp(SystemClock().now())
    return (not found["begins"] or now >= found["begins"]) and (not found["ends"] or now < found["ends"])
