"""What work asks of a front that stands on another machine (:mod:`runner.exchange.link`); for nobody else, and 404 for them.

====================================  ==========================================================================
``GET /exchange/hello``               a nonce; 404 where no key of work was given
``POST /exchange/hello``              nonce and signature (JSON): a session, sent as ``Authorization: Exchange SESSION``
``POST /exchange/missing``            names and SHA-256 of published files (JSON): which of them are not there
``POST /exchange/published/NAME``     one of them, with its SHA-256 as ``?sha256=``; 409 when it does not get its name
``GET /exchange/inbox``               the requests that wait, each with the sizes of its files
``GET /exchange/inbox/ENTRY/FILE``    a file of a request, also a range of it
``POST /exchange/inbox/ENTRY/done``   work has decided it: it goes
====================================  ==========================================================================
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from runner.exchange.inbox import Inbox
from runner.exchange.link import MOST_NAMES, Mirror, NotTaken
from runner.web.door import Door
from runner.web.routes.base import Routes
from runner.web.rules import EVERYBODY, WORK, Call, Rule

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_JSON = 1024 * 1024  # bytes of what is asked in JSON
MOST_WAITING = 500  # requests in one answer
_HEX = re.compile(r"[0-9a-f]{64}")


class Link(Routes):
    """Where work comes in."""

    def __init__(self, door: Door, inbox: Inbox) -> None:
        super().__init__(door)
        self.inbox, self.mirror = inbox, Mirror(door.published.root)

    def rules(self) -> tuple[Rule, ...]:
        """The routes of this class, each with its rule."""
        return (
            Rule("GET", "/exchange/hello", self.hello, EVERYBODY),
            Rule("POST", "/exchange/hello", self.begin, EVERYBODY),
            Rule("POST", "/exchange/missing", self.missing, WORK, most=None),
            Rule("POST", "/exchange/published/{name:path}", self.take, WORK, most=None),
            Rule("GET", "/exchange/inbox", self.waiting, WORK),
            Rule("GET", "/exchange/inbox/{entry}/{file}", self.file, WORK),
            Rule("POST", "/exchange/inbox/{entry}/done", self.done, WORK),
        )

    async def hello(self, call: Call) -> Response:
        """A nonce."""
        if self.door.work is None:
            return self.nothing(call)
        return _said({"nonce": self.door.work.nonce()})

    async def begin(self, call: Call) -> Response:
        """A session for who signed the nonce."""
        given = await _json(call.request)
        nonce, signature = (str(given.get(name, "")) for name in ("nonce", "signature"))
        session = self.door.work.begin(nonce, signature) if self.door.work else None
        return self.door.refused(call.visitor, 403) if session is None else _said({"session": session})

    async def missing(self, call: Call) -> Response:
        """The names of files that are not there as work has them."""
        from starlette.concurrency import run_in_threadpool

        given = await _json(call.request)
        names = {name: str(digest) for name, digest in list(given.items())[:MOST_NAMES]}
        return _said({"missing": await run_in_threadpool(self.mirror.missing, names)})

    async def take(self, call: Call) -> Response:
        """Take a published file."""
        digest = call.request.query_params.get("sha256", "")
        if not _HEX.fullmatch(digest):
            return _said({"why": "no SHA-256"}, 409)
        try:
            with self.mirror.taking(call.at("name"), digest) as coming:
                async for part in call.request.stream():
                    coming.add(part)
        except NotTaken as error:
            return _said({"why": str(error)}, 409)
        except OSError as error:
            return _said({"why": f"the disk refused it: {error.strerror}"}, 507)
        return _said({})

    async def waiting(self, call: Call) -> Response:
        """The requests, in their order."""
        found = [{"entry": name, "files": self.inbox.sizes(name)} for name, _ in self.inbox.waiting()]
        return _said({"waiting": found[:MOST_WAITING]})

    async def file(self, call: Call) -> Response:
        """A file of a request, or a range of it."""
        from starlette.responses import FileResponse

        entry, name = call.at("entry"), call.at("file")
        if name not in self.inbox.sizes(entry):
            return self.nothing(call)
        return FileResponse(
            self.inbox.root / entry / name, headers=_KEEP, media_type="application/octet-stream"
        )

    async def done(self, call: Call) -> Response:
        """Take a request away that was decided."""
        self.inbox.remove(call.at("entry"))
        return _said({})


_KEEP = {"Cache-Control": "no-store"}


def _said(data: dict[str, Any], status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(data, status, _KEEP)


async def _json(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; empty for anything else, and for what is too large."""
    import json

    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_JSON:
            return {}
    try:
        data = json.loads(found)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
