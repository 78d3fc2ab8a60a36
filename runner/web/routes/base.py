"""What the routes of all pages share: the door, and how something published is looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import schemas
from runner.exchange import tails
from runner.exchange.inbox import Refused, Request, answered
from runner.exchange.published import Object, View
from runner.exchange.receipts import receipt
from runner.exchange.tails import Tail
from runner.web.door import Door
from runner.web.limits import NoRoom, Room
from runner.web.pages import piece
from runner.web.rules import Call, Rule, Visitor

if TYPE_CHECKING:
    from starlette.datastructures import FormData
    from starlette.responses import Response

FOLLOWED = (
    "tasks",
    "task",
    "board",
    "run",
    "console",
)  # kinds of objects whose pages follow what is published


class Routes:
    """Routes that belong together. Everything shown is looked up in what was published to the visitor's audience; what is
    not there is 404."""

    def __init__(self, door: Door) -> None:
        self.door = door

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        raise NotImplementedError

    def object(self, call: Call, path: str, kind: str) -> Object | None:
        """What was published to the visitor under ``path``, if it is a ``kind``."""
        found = call.view.get(path)
        return found if found is not None and found.kind == kind else None

    def log_of(self, view: View, run: str) -> str | None:
        """The name of the log of a run that goes on, as far as whose view it is may read it; None where there is none."""
        found = view.get(f"tails/{run}")
        return str(view.data(found)["file"]) if found is not None and found.kind == "tail" else None

    def writing(self, call: Call, run: str) -> Tail | None:
        """The end of the log of a running run, for its page; None if the visitor may not read it, or the run is not running."""
        name = self.log_of(call.view, run)
        return None if name is None else tails.read(self.door.published.root, name)

    def tag_of(self, page: str, visitor: Visitor, view: View | None = None) -> str | None:
        """The entity tag of what a page shows to a visitor, by its path: for pages that follow; None where there is none. ``view``: of what; by default of what is published to them now."""
        view = view or self.door.published.view(visitor.audience)
        name = "tasks" if page == "/" else page.removeprefix("/")
        if name == "team" and visitor.team:
            found = [
                (one.path, one.etag)
                for one in (
                    *view.below("runs"),
                    *view.below("standing/"),
                    *view.below("queue"),
                    *view.below("notices"),
                )
            ]
            return schemas.digest([found, self._asked(visitor)])[:32]
        shown = view.get(name)
        if shown is None or shown.kind not in FOLLOWED:
            return None
        part = {"task": "data", "run": "tails"}.get(shown.kind)
        more = view.get(f"{part}/{name.partition('/')[2]}") if part else None
        parts = [shown.etag] if more is None else [shown.etag, more.etag]
        if shown.kind == "run" and (log := self.log_of(view, name.partition("/")[2])) is not None:
            tail = tails.read(self.door.published.root, log)
            parts.append(str(tail.first + len(tail.text)))
        return parts[0] if len(parts) == 1 else schemas.digest(parts)[:32]

    def _asked(self, visitor: Visitor) -> list[tuple[str, bool]]:
        """The requests of a visitor's team that were taken here, and whether each is answered."""
        asked = self.door.sessions.noted(visitor.team)
        return [(one["id"], answered(self.door.published.root, one["id"]) is not None) for one in asked]

    def live(self, call: Call, page: str) -> tuple[str, str]:
        """For a page that follows: its path, and the tag of what is shown of it now."""
        return page, self.tag_of(page, call.visitor, call.view) or ""

    def piece(
        self,
        call: Call,
        path: str,
        kind: str,
        up: Sequence[tuple[str, str]] = (),
        beside: Sequence[Sequence[tuple[str, str, str]]] = (),
        **values: Any,
    ) -> Response:
        """The page around a published piece, below the pages ``up``, with lists of those ``beside`` it; 404 where the visitor has none there."""
        found = self.object(call, path, kind)
        if found is None:
            return self.nothing(call)
        live = (f"/{path}", self.tag_of(f"/{path}", call.visitor, call.view) or found.etag)
        return piece(found, call.visitor, call.published, call.view, up, live, beside, **values)

    def answer(self, call: Call, id: str) -> dict[str, Any] | None:
        """What became of a request, if it is one of the visitor's team."""
        found = answered(call.published.root, id)
        return found if found is not None and found.get("team") == call.visitor.team else None

    async def put(self, call: Call, room: Room, kind: str, data: Mapping[str, Any], what: str) -> Response:
        """Put a wish into the inbox and send to the request's page; a program is told in JSON where that is.

        Args:
            call: Whose wish it is.
            room: By which it goes there.
            kind: Of the request.
            data: As its kind asks for it.
            what: It is, in words.
        """
        from starlette.responses import JSONResponse, RedirectResponse

        grant, arrival = call.visitor.grant, self.door.now()
        if grant is None:
            return self.nothing(call)
        asked = Request.new(kind, grant.account, grant.token, grant.team, arrival, data)
        try:
            done = await self.door.on_disk(room.put, asked, call.visitor.key)
        except NoRoom as full:
            return self.no_room(call, full)
        except Refused:
            return self.door.refused(call.visitor, 413, "The text is too long; nothing was taken.")
        except OSError:
            why = "It could not be kept, and was not taken. Try again later."
            return self.door.refused(call.visitor, 507, why)
        signed = await self.door.on_disk(self.door.accepted.note, done, arrival, what)
        if call.visitor.session is None:
            where = f"/api/v1/requests/{done.id}"
            facts = {"request": done.id, "arrival": arrival, "at": where, "receipt": receipt(signed, None)}
            return JSONResponse(facts, 202, {"Location": where, "Cache-Control": "no-store"})
        return RedirectResponse(f"/requests/{done.id}", 303)

    def no_room(self, call: Call, full: NoRoom) -> Response:
        """429, with which bound it is and when to come again."""
        return self.door.refused(call.visitor, 429, str(full), wait=full.wait)

    def nothing(self, call: Call) -> Response:
        """404, the same for what is not there and what is not the visitor's."""
        return self.door.refused(call.visitor, 404)


def text(form: FormData, name: str) -> str:
    """A field of a form; empty for one that is not there, or is a file."""
    found = form.get(name)
    return found if isinstance(found, str) else ""
