"""Pages that follow by themselves: the stream that says that a page changed, and the script that fetches it then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.resources import files
from typing import TYPE_CHECKING

from runner.web.door import Door
from runner.web.live import Live
from runner.web.routes.base import Routes
from runner.web.rules import EVERYBODY, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

SCRIPT = (files("runner.web") / "site.js").read_bytes()


class Following(Routes):
    """Streams of events."""

    def __init__(self, door: Door, live: Live) -> None:
        super().__init__(door)
        self.streams = live

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/live", self.follow, EVERYBODY),
            Rule("GET", "/site.js", self.script, EVERYBODY),
        )

    async def follow(self, call: Call) -> Response:
        """Events of a page of the visitor's; 404 where they have none there, 503 where too many are open."""
        from starlette.responses import PlainTextResponse, StreamingResponse

        page = call.request.query_params.get("page", "")
        have = call.request.headers.get("last-event-id") or call.request.query_params.get("have", "")
        account = call.visitor.grant.account if call.visitor.grant else None

        def tag() -> str | None:
            who = self.door.visitor(call.request)
            if (who.grant.account if who.grant else None) != account:
                return None
            return self.streams.tag(who.audience, page, lambda: self.tag_of(page, who))

        async def events() -> AsyncIterator[str]:
            with self.streams.place(account):
                async for event in self.streams.stream(have, tag):
                    yield event

        if tag() is None:
            return self.nothing(call)
        if not self.streams.free(account):
            return PlainTextResponse("too many pages follow\n", 503, {"Retry-After": "60"})
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events(), 200, headers, "text/event-stream")

    async def script(self, call: Call) -> Response:
        """The script of all pages."""
        from starlette.responses import Response

        return Response(SCRIPT, 200, {"Cache-Control": "no-cache"}, "text/javascript")
