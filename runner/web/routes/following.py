"""What is new: whether an open page changed, the script that asks for it and loads the page again, and the feed of leaderboards that are open
to everybody, for programs that people read news with (Atom, RFC 4287)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

from runner.web.pages import environment
from runner.web.routes.base import Routes
from runner.web.rules import EVERYBODY, Call, Rule

if TYPE_CHECKING:
    from starlette.responses import Response

    from runner.exchange.published import Object, View

MOST = 100  # entries of the feed, the newest
SCRIPT = (files("runner.web") / "site.js").read_bytes()


class Following(Routes):
    """What open pages ask for again and again, and the script that does."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/live", self.follow, EVERYBODY),
            Rule("GET", "/site.js", self.script, EVERYBODY),
        )

    async def follow(self, call: Call) -> Response:
        """The entity tag of what a page shows to the visitor now; 404 if they have no such page."""
        from starlette.responses import PlainTextResponse

        tag = self.tag_of(call.request.query_params.get("page", ""), call.visitor)
        return self.nothing(call) if tag is None else PlainTextResponse(tag)

    async def script(self, call: Call) -> Response:
        """The script of all pages."""
        from starlette.responses import Response

        return Response(SCRIPT, 200, {"Cache-Control": "no-cache"}, "text/javascript")


class Feed(Routes):
    """The feed: always what everybody sees, whoever asks."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (Rule("GET", "/feed.atom", self.feed, EVERYBODY),)

    async def feed(self, call: Call) -> Response:
        """An entry for each leaderboard with rows, and for each of a round that was frozen; the newest first."""
        from starlette.responses import Response

        public = self.door.published.view("public")
        boards = [one for one in public.below("tasks/") if one.kind == "board"]
        entries = [entry for one in boards for entry in self._entries(public, one)]
        entries.sort(key=lambda one: (one["updated"], one["at"]), reverse=True)
        updated = entries[0]["updated"] if entries else self.door.now()
        known = {"id": self._id("/feed.atom"), "updated": updated, "entries": entries[:MOST]}
        text = environment().get_template("feed.xml").render(known)
        return Response(text, 200, {"Cache-Control": "public, max-age=300"}, "application/atom+xml")

    def _entries(self, public: View, board: Object) -> Iterator[dict[str, str]]:
        """Nothing for a leaderboard without rows; its time is that of the round, or of the row that was handed in last."""
        data = public.data(board)
        rows, at = data["rows"], f"/{board.path}"
        if not rows:
            return
        round_ = data["round"] or {}
        updated = round_.get("frozen") or max(one["registered"] for one in rows)
        name = f"{data['title']}: {data['heading'] or data['table']}"
        title = f"{name}, {round_['title']}" if round_ else name
        title = "".join(one if one.isprintable() else " " for one in title)  # XML has no control characters
        summary = f"{len(rows)} ranked" + (", frozen" if round_ else "")
        yield {"title": title, "id": self._id(at), "updated": updated, "at": at, "summary": summary}

    def _id(self, path: str) -> str:
        """The name of something at this server, for ever the same."""
        return uuid.uuid5(uuid.NAMESPACE_URL, self.door.url + path).urn
