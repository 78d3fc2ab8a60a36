"""Entity tags and compression: of every answer that holds no secret, in one place.

A tag is of the content and nothing else, and another one for the compressed form. Compressed with a secret, what somebody
else has put beside it could tell it by the size (BREACH): pages of whoever signed in have the token of their forms, and sign-in
sets a cookie, so neither is compressed. Answers to programs have no such token, and no browser asks in their place.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from runner.web.rules import Visitor

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LEAST, MOST = 1024, 2 * 1024 * 1024  # bytes of what is compressed
KEPT = 32  # compressed answers that are kept
_MEDIA = ("text/html", "text/css", "text/javascript", "application/json")
_SUFFIX = "-gzip"


@lru_cache(maxsize=KEPT)
def _compressed(content: bytes) -> bytes:
    """Return ``content`` compressed; the same content gives the same bytes."""
    return gzip.compress(content, 6, mtime=0)


def holds_secret(answer: Response, visitor: Visitor) -> bool:
    """Whether an answer has something in it that is its receiver's alone: a cookie, or the token of a session's forms."""
    shared = _media(answer) in ("text/css", "text/javascript")
    kept_out = _media(answer) == "text/html" and answer.headers.get("cache-control") == "no-store"
    return kept_out or "set-cookie" in answer.headers or (visitor.session is not None and not shared)


def matches(request: Request, tag: str) -> str | None:
    """The entity tag by which somebody has what ``tag`` (without quotes) names already, compressed or not; None: they have not."""
    asked = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if asked == ["*"]:
        return f'"{tag}"'
    return next((one for one in asked if one in (f'"{tag}"', f'"{tag}{_SUFFIX}"')), None)


def fitted(answer: Response, request: Request, visitor: Visitor) -> Response:
    """An answer as it is sent: with its tag, compressed where that is asked for, or 304 where it is known already."""
    from starlette.responses import Response

    body = getattr(answer, "body", None)
    if answer.status_code != 200 or not isinstance(body, bytes) or holds_secret(answer, visitor):
        return answer
    digest = hashlib.sha256(body).hexdigest()
    tag = answer.headers.get("etag", "").strip('"') or digest[:32]
    kept = answer.headers.get("cache-control", "") != "no-store"
    if kept and (known := matches(request, tag)):
        keep = answer.headers.get("cache-control", "no-cache")
        return Response(None, 304, {"ETag": known, "Cache-Control": keep})
    packs = _packs(answer, request, len(body))
    if kept:
        answer.headers["ETag"] = f'"{tag}{_SUFFIX if packs else ""}"'
    if packs:
        answer.body = _compressed(body)
        answer.headers.update({"Content-Encoding": "gzip", "Content-Length": str(len(answer.body))})
    return answer


def _packs(answer: Response, request: Request, size: int) -> bool:
    wanted = _accepts(request.headers.get("accept-encoding", ""))
    return wanted and LEAST <= size <= MOST and _media(answer) in _MEDIA


def _media(answer: Response) -> str:
    return answer.headers.get("content-type", "").partition(";")[0]


def _accepts(header: str) -> bool:
    """Whether an ``Accept-Encoding`` has gzip, and not with the quality 0."""
    for one in header.lower().split(","):
        name, *options = (part.strip() for part in one.split(";"))
        if name == "gzip":
            return not any(
                option.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for option in options
            )
    return False
