"""The interface as an ASGI application: bodies capped, work in a few threads, every answer with the headers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from sidecars.search.api import Answer, Api, Call
from sidecars.search.errors import SearchError, illegal

BODY_BYTES = 1 << 20
BODY_SECONDS = 30.0
QUERY_SECONDS = 30.0
HEALTH = "/healthz"
WAITING = 256  # requests at a time, those that wait for a thread included
_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]


def application(api: Api, threads: int | None = None) -> Starlette:
    """The application around ``api``; ``threads`` requests are worked on at a time (default: one a processor)."""
    pool = ThreadPoolExecutor(threads or max(2, os.cpu_count() or 1), thread_name_prefix="search")
    busy = 0

    async def handle(request: Request) -> Response:
        nonlocal busy
        path = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
        if path == HEALTH and request.method in ("GET", "HEAD"):
            # Not behind other requests: whoever sends slow ones waits for them, and is not told that we are ill.
            status, media, body = _work(api, Call(request.method, path, [], b"", "", ""))
            return Response(body, status, media_type=None, headers=_headers(media))
        if busy >= WAITING:
            return _response(
                _refusal(429, "es_rejected_execution_exception", "too many requests at a time"), request
            )
        busy += 1
        try:
            call = Call(
                method=request.method,
                path=path,
                address=request.query_params.multi_items(),
                body=await _body(request),
                content_type=request.headers.get("content-type", ""),
                accept=request.headers.get("accept", ""),
            )
            work = asyncio.get_running_loop().run_in_executor(pool, _work, api, call)
            status, media, body = await asyncio.wait_for(asyncio.shield(work), QUERY_SECONDS)
            return Response(body, status, media_type=None, headers=_headers(media))
        except SearchError as error:
            return _response(Answer(error.status, error.body()), request)
        except TimeoutError:
            return _response(_refusal(503, "timeout_exception", "the request took too long"), request)
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            busy -= 1

    return Starlette(routes=[Route("/{path:path}", handle, methods=_METHODS)])


def _work(api: Api, call: Call) -> tuple[int, str, bytes]:
    """Answer and write down the answer, in a thread of the pool. A defect of ours is an answer, too."""
    try:
        answer = api.answer(call)
    except BaseException as error:  # the border: tantivy's panics are no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        print(f"internal error: {type(error).__name__}: {str(error)[:500]!r}", file=sys.stderr)
        answer = _refusal(500, "internal_error", type(error).__name__)
    return answer.status, answer.content_type, _bytes(answer)


def _bytes(answer: Answer) -> bytes:
    if answer.content is None:
        return b""
    separators = None if answer.pretty else (",", ":")
    text = json.dumps(
        answer.content, indent=2 if answer.pretty else None, separators=separators, allow_nan=False
    )
    return text.encode() + (b"\n" if answer.pretty else b"")


def _headers(media: str) -> dict[str, str]:
    """The official clients refuse an answer without the first, and do not parse one without the second."""
    return {"X-Elastic-Product": "Elasticsearch", "Content-Type": media}


def _response(answer: Answer, request: Request) -> Response:
    body = b"" if request.method == "HEAD" else _bytes(answer)
    return Response(body, answer.status, headers=_headers(answer.content_type))


def _refusal(status: int, kind: str, reason: str) -> Answer:
    return Answer(status, SearchError(status, kind, reason).body())


async def _body(request: Request) -> bytes:
    """The body of a request. Raises SearchError when it is too long, packed, or does not arrive in time."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise SearchError(
            415, "illegal_argument_exception", "packed bodies are not supported here; send plain JSON"
        )
    length = request.headers.get("content-length", "0")
    too_long = SearchError(413, "content_too_long_exception", f"the body is longer than {BODY_BYTES} bytes")
    if not length.isdigit():
        raise illegal("the content length has to be a number")
    if len(length) > 12 or int(length) > BODY_BYTES:
        raise too_long
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > BODY_BYTES:
                    raise too_long
                parts.append(part)
    except TimeoutError:
        raise SearchError(408, "timeout_exception", "the body did not arrive in time") from None
    return b"".join(parts)
