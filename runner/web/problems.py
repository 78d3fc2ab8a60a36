"""What the API answers where it does not do what was asked: a problem in JSON (RFC 9457), with a code of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import schemas
from runner.model.errors import CODES, RunnerError

if TYPE_CHECKING:
    from starlette.responses import Response

PREFIX = "/api/"
MEDIA = "application/problem+json"


class _Words(NamedTuple):
    code: str
    what: str
    fix: str


_WORDS = {
    400: _Words(
        "E101", "the request cannot be understood", "docs/reference/http-api.md says what is asked for"
    ),
    401: _Words("E105", "nobody signed in", "send a token: Authorization: Bearer TOKEN"),
    403: _Words("E103", "this is not open to you", "use a token of the role and scope that it needs"),
    404: _Words("E102", "there is no such thing", "look into the lists for what there is"),
    405: _Words("E101", "this cannot be done here", "docs/reference/http-api.md says what can"),
    413: _Words("E101", "what was sent is too large", "send less at once"),
    429: _Words("E106", "that was too often", "wait, and try again"),
    500: _Words("E308", "the server failed", "try again later, and tell the organiser"),
    507: _Words("E306", "what was sent could not be kept, and was not taken", "try again later"),
}


def is_api(path: str) -> bool:
    """Whether an address belongs to the API."""
    return path.startswith(PREFIX)


def content(status: int, why: str = "", error: RunnerError | None = None) -> bytes:
    """A problem as JSON (schemas/api-problem.schema.json), with the words of an ``error`` where there is one."""
    words = _WORDS.get(status, _WORDS[500 if status >= 500 else 400])
    said: dict[str, Any] = {**words._asdict(), "why": why}
    if error is not None:
        said = {name: getattr(error, name) for name in ("code", "what", "why", "fix")}
        said |= {"problems": error.lines()} if error.problems else {}
    return schemas.canonical({"status": status, "title": CODES[said["code"]].text, **said})


def problem(status: int, why: str = "", *, wait: int = 0, error: RunnerError | None = None) -> Response:
    """An answer that says no to a program; ``why`` is a sentence, ``wait`` in how many seconds to come again; ``error`` says more."""
    from starlette.responses import Response

    more = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    more |= {"Retry-After": str(wait)} if wait else {}
    return Response(content(status, why, error), status, {"Cache-Control": "no-store", **more}, MEDIA)
