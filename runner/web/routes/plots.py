"""Plots: all of a task on one page, data and specification of each, its files for papers, the script that makes them answer."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from runner.exchange.published import DIGEST
from runner.web.pages import piece
from runner.web.routes.api import ROOT
from runner.web.routes.base import Routes
from runner.web.routes.reading import unlisted
from runner.web.rules import EVERYBODY, Call, Rule
from runner.web.vega import script

if TYPE_CHECKING:
    from starlette.responses import Response

PICTURES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
FOR_GOOD = "public, max-age=31536000, immutable"  # for what is never taken back


class Plots(Routes):
    """Plots of what was published."""

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/tasks/{task}/plots", self.plots, EVERYBODY),
            Rule("GET", "/plots/{digest}.json", self.specification, EVERYBODY),
            Rule("GET", "/plots/{digest}.csv", self.data, EVERYBODY),
            Rule("GET", "/plots/{digest}.{form}", self.file, EVERYBODY),
            Rule("GET", "/vega/{digest}.js", self.script, EVERYBODY),
        )

    async def plots(self, call: Call) -> Response:
        """The plots of all leaderboards of a task."""
        task = self.object(call, f"tasks/{call.at('task')}", "task")
        found = self.object(call, f"plots-of/{call.at('task')}", "plots")
        if task is None or found is None:
            return self.nothing(call)
        up, hidden = [(task.title, f"/{task.path}")], unlisted(call.view.data(task))
        api = f"{ROOT}/{task.path}/plots"
        return piece(found, call.visitor, call.published, call.view, up, unlisted=hidden, api=api)

    async def specification(self, call: Call) -> Response:
        """The Vega specification of a plot."""
        return self._part(call, "vega", "application/json")

    async def data(self, call: Call) -> Response:
        """The data of a plot as CSV."""
        return self._part(call, "csv", "text/csv")

    async def file(self, call: Call) -> Response:
        """A plot as a file for papers, where these were published."""
        return self._part(call, call.at("form"), PICTURES.get(call.at("form"), ""))

    async def script(self, call: Call) -> Response:
        """The script by which plots answer: it changes with its name only."""
        from starlette.responses import Response

        digest, content = script()
        if call.at("digest") != digest:
            return self.nothing(call)
        return Response(content, 200, {"Cache-Control": FOR_GOOD}, "text/javascript")

    def _part(self, call: Call, name: str, media: str) -> Response:
        from starlette.responses import Response

        digest = call.at("digest")
        found = self.object(call, f"plots/{digest}", "plot") if DIGEST.fullmatch(digest) else None
        if found is None:
            return self.nothing(call)
        data = call.view.data(found)
        part = data.get(name) or data.get("files", {}).get(name)
        if part is None or not media:
            return self.nothing(call)
        content = part if isinstance(part, str) else json.dumps(part)
        keep = "no-store" if call.visitor.grant else "no-cache"  # names and scores: what is withdrawn is gone
        return Response(
            base64.b64decode(content) if name in PICTURES else content, 200, {"Cache-Control": keep}, media
        )
