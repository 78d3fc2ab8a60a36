"""Registering a team, where its task allows it: by somebody who has no account. The front makes the token and shows it once."""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from runner.exchange.access import Token
from runner.exchange.inbox import ID, Refused, Request, answered
from runner.model.clock import stamp
from runner.model.errors import RunnerError
from runner.model.names import check_name, contact_problem, display_problem, paragraph_problem
from runner.web.door import FORM, Door
from runner.web.limits import NOBODY, REGISTERING, NoRoom, Room
from runner.web.pages import page
from runner.web.routes.base import Routes, text
from runner.web.rules import EVERYBODY, Call, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.responses import Response

FIELDS = ("team", "contact", "affiliation", "purpose")
MOST_MEMBERS = 50
SHOWN = timedelta(minutes=15)  # how long a form that is sent again shows its token again
LONGEST = {"purpose": 2000, "team": 40}  # characters; of others 100


class Registering(Routes):
    """The form, what it sends, and what became of it."""

    def __init__(self, door: Door, room: Room) -> None:
        super().__init__(door)
        self.room = room
        self._one = asyncio.Lock()  # so that the same form, sent twice at once, is one registration

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
        """Take a registration: it is in the inbox before this answers, and its token is shown now or never.

        The same form sent again (a page loaded anew, a button pressed twice) is the same registration, and gets the same answer.
        """
        found = self._of(call)
        async with call.request.form(max_files=0, max_fields=20, max_part_size=16384) as form:
            given, once = text(form, FORM), text(form, "once") or secrets.token_hex(16)
            said = {name: value for name in FIELDS if (value := text(form, name).strip())}
            members = [line.strip() for line in text(form, "members").splitlines() if line.strip()]
            accepted, read = text(form, "accepted"), text(form, "terms")
        if found is None:
            return self.nothing(call)
        known = {**said, "members": "\n".join(members), "accepted": accepted and read}
        if not self.door.formed(call.visitor, call.request, given):
            return self._form(call, found, 403, ["The form had become old. Try again."], known)
        if why := self._wrong(found, {**said, "members": members}, accepted, read):
            return self._form(call, found, 400, why, known)
        terms = found["terms"] and {
            "terms_version": found["terms"]["version"],
            "terms_sha256": found["terms"]["sha256"],
        }
        data = {"task": found["task"], **said, **(terms or {}), **({"members": members} if members else {})}
        seed = self.door.sessions.seed(given, "register", once, json.dumps(data))
        return await self._sent(call, found, data, known, seed, given)

    async def _sent(
        self,
        call: Call,
        found: Mapping[str, Any],
        data: Mapping[str, Any],
        known: Mapping[str, str],
        seed: bytes,
        given: str,
    ) -> Response:
        token, id = Token.drawn(seed), self.door.sessions.named("request", seed)
        async with self._one:
            there = self.door.sessions.noted(NOBODY, id)
            if not there and (refused := await self._put(call, found, data, known, seed)) is not None:
                return refused
        if there and there[0]["arrival"] < stamp(self.door.published.clock.now() - SHOWN):
            from starlette.responses import RedirectResponse

            return RedirectResponse(f"/registrations/{id}", 303)
        answer = await self.door.awaited(id)
        if answer is not None and not answer["accepted"]:
            why = f"{answer.get('what', '')}: {answer.get('fix') or answer.get('why', '')}."
            return self._form(call, found, 400, [why[:1].upper() + why[1:]], known)
        return self._registered(call, id, answer, str(token), found, given)

    async def _put(
        self,
        call: Call,
        found: Mapping[str, Any],
        data: Mapping[str, Any],
        known: Mapping[str, str],
        seed: bytes,
    ) -> Response | None:
        """Put a registration into the inbox; the form again where it was not taken."""
        where = self.door.came_from(call.request)
        if wait := self.door.limits.take("register", where, REGISTERING):
            why = f"So many teams were registered from your address: try again in {wait} seconds."
            answer = self._form(call, found, 429, [why], known)
            answer.headers["Retry-After"] = str(wait)
            return answer
        named = self.door.sessions.named
        token, account, now = Token.drawn(seed), f"a-{named('account', seed)[:16]}", self.door.now()
        key = {"key": token.key}
        asked = Request(named("request", seed), "register", account, token.id, None, now, {**data, **key})
        try:
            await self.door.on_disk(self.room.put, asked, token.key)
        except NoRoom as full:
            answer = self._form(call, found, 429, [str(full)], known)
            answer.headers["Retry-After"] = str(full.wait)
            return answer
        except (Refused, OSError):
            return self._form(call, found, 507, ["It could not be kept. Try again later."], known)
        what = f"registration for {found['task']}"
        await self.door.on_disk(self.door.sessions.note, replace(asked, team=NOBODY), what, {})
        self.door.note("registration", call.request, call.visitor, task=found["task"], account=account)
        return None

    async def registration(self, call: Call) -> Response:
        """What became of a registration: for whoever has its address, which nobody can guess."""
        id = call.at("id")
        answer = answered(call.published.root, id) if ID.fullmatch(id) else None
        known = self.door.sessions.noted(NOBODY, id) if ID.fullmatch(id) else []
        if (answer is None and not known) or (answer is not None and answer.get("kind") != "register"):
            return self.nothing(call)
        return self._registered(call, id, answer, "", None, "")

    def _registered(
        self,
        call: Call,
        id: str,
        answer: Mapping[str, Any] | None,
        token: str,
        found: Mapping[str, Any] | None,
        given: str,
    ) -> Response:
        opens = answer is not None and answer["accepted"] and not answer.get("pending")
        made = page(
            "registered",
            call.visitor,
            call.published,
            title="Your registration",
            up=[(found["title"], f"/tasks/{found['task']}")] if found else [],
            id=id,
            answer=answer,
            token=token,
            given=given if opens and call.visitor.session is None else "",
            field=FORM,
        )
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
        why: Sequence[str] = (),
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
            open=_is_open(found, self.door.now()),
            why=why,
            known=known,
            given=given,
            field=FORM,
        )
        if call.visitor.session is None:
            self.door.keep(answer, self.door.before, given, None)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    def _wrong(
        self, found: Mapping[str, Any], said: Mapping[str, Any], accepted: str, read: str
    ) -> list[str]:
        """All that is wrong with a form, in words; nothing when nothing is. Work looks at everything again."""
        if not _is_open(found, self.door.now()):
            return ["Teams cannot register now."]
        wrong = []
        missing = [key for key, rule in found["asks"].items() if rule == "required" and not said.get(key)]
        if not said.get("team"):
            missing.insert(0, "the team's name")
        if missing:
            wrong.append(f"Missing: {', '.join(missing)}.")
        if len(said["members"]) > MOST_MEMBERS:
            wrong.append(f"At most {MOST_MEMBERS} members can be named.")
        texts = [("members", one) for one in said["members"]] + [(key, said.get(key, "")) for key in FIELDS]
        long = [key for key, one in texts if len(one) > LONGEST.get(key, 100)]
        if long:
            wrong.append(f"Too long: {', '.join(dict.fromkeys(long))}.")
        wrong += [f"The {key} {problem}." for key, problem in _unfit(said) if key not in long]
        if found["terms"] and accepted and read != found["terms"]["sha256"]:
            wrong.append("The terms were changed meanwhile: read them again.")
        elif found["terms"] and not accepted:
            wrong.append("Accept the terms first.")
        return wrong


def _unfit(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What of a form nobody can be called, or be reached by: field and problem."""
    if team := said.get("team"):
        try:
            check_name("team", team)
        except RunnerError as error:
            yield "team", f"cannot be called so: that is no name for a team; {error.fix}"
    if contact := said.get("contact"):
        yield from ((("contact", problem),) if (problem := contact_problem(contact)) else ())
    if problem := paragraph_problem(said.get("purpose") or ""):
        yield "purpose", problem
    for key, texts in (("affiliation", [said.get("affiliation", "")]), ("members", said["members"])):
        problems = (display_problem(one) for one in texts if one)
        yield from ((key, problem) for problem in dict.fromkeys(problems) if problem)


def _is_open(found: Mapping[str, Any], now: str) -> bool:
    return (not found["begins"] or now >= found["begins"]) and (not found["ends"] or now < found["ends"])
