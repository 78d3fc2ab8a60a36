"""The interface as an ASGI application: bodies capped, work in a few threads, every answer with the headers."""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from sidecars.http import HttpError, read_body
from sidecars.search.api import Answer, Api, Call
from sidecars.search.errors import SearchError

BODY_BYTES = 1 << 20
QUERY_SECONDS = 30.0
HEALTH = "/healthz"
WAITING = 256  # requests at a time, those that wait for a thread included
_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
_KINDS = {408: "timeout_exception", 413: "content_too_long_exception"}


def application(api: Api) -> Starlette:
    """Return the application around ``api``, with a thread for each request that it works on."""
    pool = ThreadPoolExecutor(api.threads, thread_name_prefix="search")
    busy = 0

    async def handle(request: Request) -> Response:
        nonlocal busy
        path = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
        if path == HEALTH and request.method in ("GET", "HEAD"):
            # Not behind other requests: whoever sends slow ones waits for them, and nobody takes us for broken.
            return _work(api, Call(request.method, path))
        if busy >= WAITING:
            return _refusal(
                request.method, 429, "es_rejected_execution_exception", "too many requests at a time"
            )
        busy += 1
        try:
            call = Call(
                method=request.method,
                path=path,
                address=request.query_params.multi_items(),
                body=await read_body(request, BODY_BYTES),
                content_type=request.headers.get("content-type", ""),
                content_encoding=request.headers.get("content-encoding", "identity"),
                accept=request.headers.get("accept", ""),
            )
            work = asyncio.get_running_loop().run_in_executor(pool, _work, api, call)
            return await asyncio.wait_for(asyncio.shield(work), QUERY_SECONDS)
        except HttpError as error:
            return _refusal(request.method, error.status, _KINDS[error.status], error.message)
        except TimeoutError:
            return _refusal(request.method, 503, "timeout_exception", "the request took too long")
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            busy -= 1

    return Starlette(routes=[Route("/{path:path}", handle, methods=_METHODS)])


def _work(api: Api, call: Call) -> Response:
    """Answer and write down the answer, in a thread of the pool. A defect of ours is an answer, too."""
    try:
        return _response(api.answer(call), call.method)
    except BaseException as error:  # the border: tantivy's panics are no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        print(f"internal error: {type(error).__name__}: {str(error)[:500]!r}", file=sys.stderr)
        return _refusal(call.method, 500, "internal_error", type(error).__name__)


def _response(answer: Answer, method: str) -> Response:
    """The answer in bytes. The official clients refuse one without the first header, and do not parse it without the second."""
    headers = {"X-Elastic-Product": "Elasticsearch", "Content-Type": answer.content_type}
    if method == "HEAD":
        return Response(b"", answer.status, headers)
    layout = {"indent": 2} if answer.pretty else {"separators": (",", ":")}
    text = json.dumps(answer.content, allow_nan=False, **layout) + ("\n" if answer.pretty else "")  # type: ignore[arg-type]
    return Response(text.encode(), answer.status, headers)


def _refusal(method: str, status: int, kind: str, reason: str) -> Response:
    return _response(Answer(status, SearchError(status, kind, reason).body()), method)
