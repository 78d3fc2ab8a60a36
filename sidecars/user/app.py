"""The HTTP side: the official service's chat call, and whether the server is ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sidecars.user.dialogue import Malformed, read
from sidecars.user.speaker import Silent, Speaker

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

BODY_BYTES, BODY_SECONDS = 4 << 20, 30.0
NO_CLOCK = "2025-01-01T00:00:00Z"  # created_at of every answer: the same request gives the same bytes


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > BODY_BYTES:
                    raise Malformed(413, f"the body is longer than {BODY_BYTES} bytes")
    except TimeoutError:
        raise Malformed(408, f"the body took longer than {BODY_SECONDS:g} s") from None
    return bytes(body)


def application(speakers: Mapping[str, Speaker]) -> Starlette:
    """The ASGI application. ``speakers`` are by the name of the model."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import Response
    from starlette.routing import Route

    def answer(data: Mapping[str, Any], status: int = 200) -> Response:
        body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"connection": "close"} if status in (408, 413) else None
        return Response(body, status, headers, media_type="application/json")

    async def chat(request: Request) -> Response:
        try:
            dialogue = read(await _body(request), list(speakers), BODY_BYTES)
            said = await speakers[dialogue.model].say(dialogue)
        except Malformed as malformed:
            return answer({"error": malformed.message}, malformed.status)
        except Silent as silent:
            return answer({"error": f"the language model failed: {silent}"}, 502)
        except ClientDisconnect:
            return Response(status_code=400)
        data: dict[str, Any] = {"model": dialogue.model, "created_at": NO_CLOCK}
        data["message"] = {"role": "assistant", "content": said.text}
        if said.retrieved is not None:
            data["retrieved"] = said.retrieved
        if said.target is not None:
            data["target"] = said.target
        return answer(data)

    async def healthz(_: Request) -> Response:
        return answer({"ok": True, "models": list(speakers)})

    async def not_here(_: Request, problem: Exception) -> Response:
        status = problem.status_code if isinstance(problem, HTTPException) else 500
        return answer({"error": "there is POST /user-sim/api/chat and GET /healthz"}, status)

    async def broken(_: Request, problem: Exception) -> Response:
        return answer({"error": "the simulated user failed"}, 500)

    return Starlette(
        routes=[
            Route("/user-sim/api/chat", chat, methods=["POST"]),
            Route("/api/chat", chat, methods=["POST"]),
            Route("/healthz", healthz, methods=["GET"]),
        ],
        exception_handlers={HTTPException: not_here, Exception: broken},
    )
