"""``/api/v1``: what was published, for programs. The same objects as ``--json`` of the commands, with entity tags."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import schemas
from runner.exchange.inbox import ID
from runner.exchange.published import Object
from runner.web.caching import matches
from runner.web.limits import whole_number
from runner.web.routes.base import Routes
from runner.web.routes.boards import stands, tested
from runner.web.rules import ASKING, EVERYBODY, SIGNED_IN, TEAM, Call, Operation, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

ROOT = "/api/v1"
PAGE, MOST = 100, 500  # entries of a page: where nothing is said, and at most
_KEPT = 10_000  # of the requests of a team, the newest
_JSON = "application/json"
_AGAINST = {"against": "The row that all others are tested against, as TEAM/SOFTWARE; else the baseline."}
_OF_TASK = {"task": "Only runs of this task."}


class Api(Routes):
    """Published objects as JSON, and what a team handed in."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""

        def get(path: str, answer: Callable[..., Any], gives: str, may: Any = EVERYBODY, **more: Any) -> Rule:
            return Rule("GET", ROOT + path, answer, may, operation=Operation(gives, **more))

        return (
            get("", self.index, "api-index"),
            get("/me", self.me, "api-me", SIGNED_IN),
            get("/tasks", self.tasks, "task-entry", paged=True),
            get("/tasks/{task}", self.task, "overview"),
            get("/tasks/{task}/boards/{table}", self.board, "leaderboard", query=_AGAINST),
            get("/tasks/{task}/rounds/{round}/boards/{table}", self.round_board, "leaderboard"),
            get("/tasks/{task}/plots", self.plots, "plot-entry", paged=True),
            get("/tasks/{task}/softwares/{team}/{software}", self.software, "software"),
            get("/tasks/{task}/standing", self.standing, "standing", TEAM),
            get("/runs", self.runs, "run-row", paged=True, query=_OF_TASK),
            get("/runs/{run}", self.run, "run-view", SIGNED_IN),
            get("/parts", self.parts, "parts", TEAM),
            get("/requests", self.requests, "api-request", TEAM, paged=True),
            get("/requests/{id}", self.request, "api-request", ASKING),
        )

    async def index(self, call: Call) -> Response:
        """Where everything begins."""
        places = {name: f"{ROOT}/{name}" for name in ("tasks", "runs", "requests", "me")}
        return json_answer(call, {"version": 1, "openapi": f"{ROOT}/openapi.json", **places})

    async def me(self, call: Call) -> Response:
        """What the token in the header opens."""
        visitor, grant = call.visitor, call.visitor.grant
        scopes = list(grant.scopes) if grant else []
        said = {"role": visitor.role, "team": visitor.team, "audience": visitor.audience, "scopes": scopes}
        return json_answer(call, said)

    async def tasks(self, call: Call) -> Response:
        """The tasks, with the leaderboards that are open."""
        return self._page(call, self._listed(call, "tasks"), "id")

    async def task(self, call: Call) -> Response:
        """One task: what it is, in full."""
        return self._published(call, f"tasks/{call.at('task')}", "task")

    async def board(self, call: Call) -> Response:
        """A leaderboard, as its table says."""
        path, name = f"tasks/{call.at('task')}/{call.at('table')}", call.request.query_params.get("against")
        if name is None:
            return self._published(call, path, "board")
        _, found = tested(call, path, lambda one: one == name)
        return self.nothing(call) if found is None else json_answer(call, found)

    async def plots(self, call: Call) -> Response:
        """The plots of a task's leaderboards: what each says, and by what its data are found."""
        if self.object(call, f"tasks/{call.at('task')}", "task") is None:
            return self.nothing(call)
        return self._page(call, self._listed(call, f"plots-of/{call.at('task')}"), "digest")

    async def software(self, call: Call) -> Response:
        """A software: where it stands, and its runs."""
        name = {"team": call.at("team"), "software": call.at("software")}
        task = self.object(call, f"tasks/{call.at('task')}", "task")
        found, rows = stands(call, task, *name.values()) if task else ([], [])
        if task is None or not (found or rows):
            return self.nothing(call)
        places = [
            {
                "table": one["at"].removeprefix(f"/{task.path}/"),
                **{"rank": one["row"]["rank"], "of": one["of"]},
                **{"measure": one["measure"]["measure"], "score": one["score"]},
            }
            for one in found
        ]
        data = {"task": call.at("task"), **name, "places": places, "runs": [one["run"] for one in rows]}
        return json_answer(call, data)

    async def round_board(self, call: Call) -> Response:
        """A leaderboard of a round, as it was frozen."""
        path = f"tasks/{call.at('task')}/rounds/{call.at('round')}/{call.at('table')}"
        return self._published(call, path, "board")

    async def standing(self, call: Call) -> Response:
        """What the team has left of quota and time in a task."""
        return self._published(call, f"standing/{call.at('task')}", "standing")

    async def runs(self, call: Call) -> Response:
        """The runs that may be known of: of the team, or of all teams for an organiser, in the order of registration."""
        task = call.request.query_params.get("task")
        return self._page(
            call, [one for one in self._listed(call, "runs") if task in (None, one["task"])], "run"
        )

    async def run(self, call: Call) -> Response:
        """A run, with all of it that may be seen."""
        return self._published(call, f"runs/{call.at('run')}", "run")

    async def parts(self, call: Call) -> Response:
        """The parts of images that the team need not send: of what it handed in before, and of the organiser's base images."""
        return self._published(call, "parts", "parts")

    async def requests(self, call: Call) -> Response:
        """What the team handed in here, the newest first."""
        asked = self.door.sessions.noted(call.visitor.team, most=_KEPT)
        return self._page(call, asked, "id", lambda one: {**one, "answer": self.answer(call, one["id"])})

    async def request(self, call: Call) -> Response:
        """What became of something that the team handed in."""
        id = call.at("id")
        known = self.door.sessions.noted(call.visitor.team, id) if ID.fullmatch(id) else []
        answer = self.answer(call, id) if ID.fullmatch(id) else None
        if not known and answer is None:
            return self.nothing(call)
        told = answer or {}
        asked = (
            known[0]
            if known
            else {name: told.get(name) for name in ("id", "arrival", "sha256")} | {"size": None, "what": None}
        )
        return json_answer(call, {**asked, "answer": answer})

    def _published(self, call: Call, path: str, kind: str) -> Response:
        found: Object | None = self.object(call, path, kind)
        if found is None:
            return self.nothing(call)
        return tagged(call, lambda: call.view.read(found.data), found.data[:32])

    def _listed(self, call: Call, path: str) -> list[dict[str, Any]]:
        found = call.view.get(path)
        rows: list[dict[str, Any]] = call.view.data(found) if found else []
        return rows

    def _page(
        self,
        call: Call,
        rows: Sequence[dict[str, Any]],
        key: str,
        full: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> Response:
        """A page of ``rows``, which begins behind the one whose ``key`` is ``after``, and where the next one is."""
        asked = call.request.query_params
        limit, after = whole_number(asked.get("limit", str(PAGE)), 1, MOST), asked.get("after")
        if limit is None:
            return self.door.refused(call.visitor, 400, f"limit is a whole number from 1 to {MOST}.")
        names = [one[key] for one in rows]
        if after is not None and after not in names:
            return self.door.refused(call.visitor, 400, "after is nothing of this list: begin without it.")
        first = 0 if after is None else names.index(after) + 1
        # What is kept as files has one for all of them: nobody can ask for the next part.
        shown = rows[first:] if call.visitor.kept else rows[first : first + limit]
        more = {"limit": limit, "after": shown[-1][key]} if first + len(shown) < len(rows) else None
        others = {name: asked[name] for name in ("task",) if name in asked}
        then = more and f"{call.request.url.path}?{urlencode({**more, **others})}"
        return json_answer(call, {"items": [full(one) for one in shown], "next": then})


class Described(Routes):
    """The description of the interface: it is made of the rules of all its routes."""

    def __init__(self, door: Any, described: Sequence[Rule]) -> None:
        super().__init__(door)
        self.described = tuple(described)

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (Rule("GET", f"{ROOT}/openapi.json", self.description, EVERYBODY),)

    async def description(self, call: Call) -> Response:
        """This interface, as an OpenAPI document."""
        from runner.web.openapi import document

        return json_answer(call, document(self.described))


def json_answer(call: Call, data: Any, status: int = 200) -> Response:
    """An answer with JSON data; its tag is that of its content."""
    text = schemas.canonical(data)
    return tagged(call, lambda: text, hashlib.sha256(text).hexdigest()[:32])


def tagged(call: Call, content: Callable[[], bytes], tag: str) -> Response:
    """An answer with what ``content`` reads, under a strong entity tag; who has it already is answered 304 by the door."""
    from starlette.responses import Response

    keep = "no-cache" if call.visitor.grant is None else "private, no-cache"
    # Who has it is told at once: nothing is read, and the door sees that it stays so.
    body = b"" if matches(call.request, tag) else content()
    return Response(body, 200, {"ETag": f'"{tag}"', "Cache-Control": keep}, _JSON)
