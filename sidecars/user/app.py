"""The HTTP side: the official service's chat call, and whether the server is ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sidecars import http
from sidecars.user.dialogue import read
from sidecars.user.speaker import Silent, Speaker

BODY_BYTES = 4 << 20
NO_CLOCK = "2025-01-01T00:00:00Z"  # created_at of every answer: the same request gives the same bytes


def application(speakers: Mapping[str, Speaker]) -> Starlette:
    """The ASGI application. ``speakers`` are by the name of the model."""

    async def chat(request: Request) -> JSONResponse:
        dialogue = read(await http.read_body(request, BODY_BYTES), list(speakers), BODY_BYTES)
        try:
            utterance = await speakers[dialogue.model].say(dialogue)
        except Silent as silent:
            raise http.HttpError(502, "silent", f"the language model failed: {silent}") from None
        data: dict[str, Any] = {"model": dialogue.model, "created_at": NO_CLOCK}
        data["message"] = {"role": "assistant", "content": utterance.text}
        if utterance.retrieved is not None:
            data["retrieved"] = utterance.retrieved
        if utterance.target is not None:
            data["target"] = utterance.target
        return JSONResponse(data)

    async def healthz(_: Request) -> JSONResponse:
        return JSONResponse({"ok": True, "models": list(speakers)})

    return http.application(
        [
            Route("/user-sim/api/chat", chat, methods=["POST"]),
            Route("/api/chat", chat, methods=["POST"]),
            Route("/healthz", healthz, methods=["GET"]),
        ],
        lambda _, message: {"error": message},
        unknown=("not_found", "there is POST /user-sim/api/chat and GET /healthz"),
        broken=("internal_error", "the simulated user failed"),
    )
