"""Every route with its rule: what answers, and who may call it. ``tests/runner/web/test_routes.py`` walks all of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runner.exchange.access import Access, Token
from runner.exchange.inbox import ID, Inbox, Refused, Request, answered
from runner.exchange.published import DIGEST, Object
from runner.web.door import FORM, Door
from runner.web.pages import STYLE, page, piece
from runner.web.rules import EVERYBODY, SIGNED_IN, TEAM, Call, Rule
from runner.web.sessions import LASTS

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.responses import Response

FIELDS = ("software", "dataset", "scenario", "description", "method", "paper", "affiliation")
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


def rules(door: Door, inbox: Inbox) -> tuple[Rule, ...]:
    """The routes of the front."""
    here = Routes(door, inbox)
    return (
        Rule("GET", "/", here.tasks, EVERYBODY),
        Rule("GET", "/tasks/{task}", here.task, EVERYBODY),
        Rule("GET", "/tasks/{task}/hand-in", here.hand_in_form, TEAM, "hand-in"),
        Rule("POST", "/tasks/{task}/hand-in", here.hand_in, TEAM, "hand-in"),
        Rule("GET", "/tasks/{task}/{table:path}", here.board, EVERYBODY),
        Rule("GET", "/runs/{run}", here.run, SIGNED_IN),
        Rule("GET", "/team", here.team, TEAM),
        Rule("GET", "/requests/{id}", here.request, TEAM),
        Rule("GET", "/sign-in", here.sign_in_form, EVERYBODY),
        Rule("POST", "/sign-in", here.sign_in, EVERYBODY),
        Rule("POST", "/sign-out", here.sign_out, SIGNED_IN),
        Rule("GET", "/site.css", here.site_style, EVERYBODY),
        Rule("GET", "/styles/{digest}.css", here.style, EVERYBODY),
        Rule("GET", "/healthz", here.health, EVERYBODY),
    )


class Routes:
    """What answers. Everything shown is looked up in what was published to the visitor's audience; what is not there is 404."""

    def __init__(self, door: Door, inbox: Inbox) -> None:
        self.door, self.inbox = door, inbox

    async def tasks(self, call: Call) -> Response:
        """The tasks and their leaderboards."""
        found = call.view.get("tasks")
        tasks = call.view.data(found) if found else []
        return page("tasks", call.visitor, call.published, title="Tasks", tasks=tasks)

    async def task(self, call: Call) -> Response:
        """One task: what it is, in full, and its leaderboards."""
        found = self._object(call, f"tasks/{call.at('task')}", "task")
        if found is None:
            return self._nothing(call)
        data = call.view.data(found)
        text = call.view.text(found)
        return page(
            "task", call.visitor, call.published, title=found.title, task=data, piece=text, style=found.style
        )

    async def board(self, call: Call) -> Response:
        """A leaderboard."""
        return self._piece(call, f"tasks/{call.at('task')}/{call.at('table')}", "board")

    async def run(self, call: Call) -> Response:
        """A run, as its team may see it."""
        return self._piece(call, f"runs/{call.at('run')}", "run")

    async def team(self, call: Call) -> Response:
        """The team's runs and quota, and what it handed in here."""
        found = call.view.get("runs")
        runs = call.view.data(found) if found else []
        standing = [call.view.data(one) for one in call.view.below("standing/")]
        asked = [
            one | {"answer": self._answer(call, one["id"])}
            for one in self.door.sessions.noted(call.visitor.team)
        ]
        title = f"Team {call.visitor.team}"
        return page(
            "team", call.visitor, call.published, title=title, runs=runs[::-1], standing=standing, asked=asked
        )

    async def hand_in_form(self, call: Call) -> Response:
        """The form by which a run file is handed in."""
        found = self._object(call, f"tasks/{call.at('task')}", "task")
        if found is None:
            return self._nothing(call)
        return page(
            "hand_in",
            call.visitor,
            call.published,
            title=f"Hand in: {found.title}",
            task=call.view.data(found),
            field=FORM,
        )

    async def hand_in(self, call: Call) -> Response:
        """Take a run file: it is in the inbox, on the disk, before this answers."""
        from starlette.concurrency import run_in_threadpool
        from starlette.datastructures import UploadFile
        from starlette.responses import JSONResponse, RedirectResponse

        async with call.request.form(max_files=1, max_fields=20, max_part_size=65536) as form:
            if not self.door.formed(call.visitor, call.request, _text(form, FORM)):
                return self.door.refused(
                    call.visitor, 403, "The form is not one of this session: load the page again."
                )
            sent, grant = form.get("file"), call.visitor.grant
            if not isinstance(sent, UploadFile) or grant is None or not sent.filename:
                return self.door.refused(call.visitor, 400, "No file was sent: choose a run file.")
            name = _PLAIN.sub("-", sent.filename)[-100:].lstrip("._-") or "run.txt"
            said = {field: text for field in FIELDS if (text := _text(form, field).strip())}
            data = {"task": call.at("task"), "file": name, **said}
            arrival = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            asked = Request.new("run-file", grant.account, grant.token, grant.team, arrival, data)
            try:
                done = await run_in_threadpool(self.inbox.put, asked, call.visitor.key, sent.file)
            except (Refused, OSError):
                return self.door.refused(
                    call.visitor, 507, "It could not be kept, and was not taken. Try again later."
                )
        what = f"{data.get('software', '')} for {call.at('task')}: {name}"
        self.door.sessions.note(done.id, grant.team, arrival, done.sha256, done.size, what)
        where = f"/requests/{done.id}"
        if call.visitor.session is None:
            facts = {
                "request": done.id,
                "arrival": arrival,
                "sha256": done.sha256,
                "size": done.size,
                "at": where,
            }
            return JSONResponse(facts, 202, {"Location": where, "Cache-Control": "no-store"})
        return RedirectResponse(where, 303)

    async def request(self, call: Call) -> Response:
        """What became of a request of the visitor's team."""
        id = call.at("id")
        known = self.door.sessions.noted(call.visitor.team, id) if ID.fullmatch(id) else []
        answer = self._answer(call, id) if ID.fullmatch(id) else None
        if not known and answer is None:
            return self._nothing(call)
        asked = known[0] if known else None
        return page(
            "request",
            call.visitor,
            call.published,
            title="What you handed in",
            asked=asked,
            answer=answer,
            id=id,
        )

    async def sign_in_form(self, call: Call) -> Response:
        """The form for a token."""
        return self._sign_in(call, 200, "")

    async def sign_in(self, call: Call) -> Response:
        """Begin a session with a token."""
        from starlette.responses import RedirectResponse

        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given, text = _text(form, FORM), _text(form, "token")
        if not self.door.formed(call.visitor, call.request, given):
            return self._sign_in(call, 403, "The form had become old. Try again.")
        token = Token.read(text)

        if token is None or Access.read(call.published.root).grant(token) is None:
            return self._sign_in(
                call, 403, "That token opens nothing: it is mistyped, or was replaced or revoked."
            )
        if call.visitor.session is not None:
            self.door.sessions.end(call.request.cookies.get(self.door.cookie, ""))
        answer = RedirectResponse("/", 303)
        self.door.keep(answer, self.door.cookie, self.door.sessions.begin(token.id, token.key), LASTS)
        answer.delete_cookie(
            self.door.before, path="/", secure=self.door.secure, httponly=True, samesite="lax"
        )
        return answer

    async def sign_out(self, call: Call) -> Response:
        """End the session."""
        from starlette.responses import RedirectResponse

        async with call.request.form(max_files=0, max_fields=5, max_part_size=4096) as form:
            given = _text(form, FORM)
        if not self.door.formed(call.visitor, call.request, given):
            return self.door.refused(
                call.visitor, 403, "The form is not one of this session: load the page again."
            )
        self.door.sessions.end(call.request.cookies.get(self.door.cookie, ""))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(
            self.door.cookie, path="/", secure=self.door.secure, httponly=True, samesite="lax"
        )
        return answer

    async def site_style(self, call: Call) -> Response:
        """The style sheet of all pages."""
        return _style(STYLE.encode(), "no-cache")

    async def style(self, call: Call) -> Response:
        """A style sheet that was published beside pages."""
        digest = call.at("digest")
        found = call.view.get(f"styles/{digest}") if DIGEST.fullmatch(digest) else None
        if found is None or found.style is None:
            return self._nothing(call)
        return _style(call.view.read(found.style), "public, max-age=31536000, immutable")

    async def health(self, call: Call) -> Response:
        """Whether the front answers; of work it says only whether it was heard of lately."""
        from starlette.responses import PlainTextResponse

        age = call.published.age()
        return PlainTextResponse("ok\n" if age is not None and age < 60 else "ok, but nobody works\n")

    def _sign_in(self, call: Call, status: int, why: str) -> Response:
        form = call.visitor.session.form if call.visitor.session else self.door.form_before()
        answer = page(
            "sign_in",
            call.visitor,
            call.published,
            status=status,
            title="Sign in",
            why=why,
            given=form,
            field=FORM,
        )
        if call.visitor.session is None:
            self.door.keep(answer, self.door.before, form, None)
            answer.headers["Cache-Control"] = "no-store"
        return answer

    def _object(self, call: Call, path: str, kind: str) -> Object | None:
        found = call.view.get(path)
        return found if found is not None and found.kind == kind else None

    def _piece(self, call: Call, path: str, kind: str) -> Response:
        found = self._object(call, path, kind)
        if found is None:
            return self._nothing(call)
        return piece(
            found, call.visitor, call.published, call.view, call.request.headers.get("if-none-match", "")
        )

    def _answer(self, call: Call, id: str) -> dict[str, Any] | None:
        """What became of a request, if it is one of the visitor's team."""
        found = answered(call.published.root, id)
        return found if found is not None and found.get("team") == call.visitor.team else None

    def _nothing(self, call: Call) -> Response:
        return self.door.refused(call.visitor, 404)


def _text(form: FormData, name: str) -> str:
    """A field of a form; empty for one that is not there, or is a file."""
    found = form.get(name)
    return found if isinstance(found, str) else ""


def _style(text: bytes, keep: str) -> Response:
    from starlette.responses import Response

    return Response(text, 200, {"Cache-Control": keep}, "text/css")
