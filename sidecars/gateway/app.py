"""The gateway's HTTP side: four paths, everything else is refused."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from schemas.replies import StoredReply
from sidecars.gateway.asking import Asked, Refused, read
from sidecars.gateway.books import Books
from sidecars.gateway.budget import Budget
from sidecars.gateway.config import Config
from sidecars.gateway.upstream import Answered, Failed, Upstream

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

BODY_SECONDS = 30.0
ROUND = 6  # decimals of a cost


class Gateway:
    """Everything between a request and its reply. With ``replay`` only known replies are given."""

    def __init__(self, config: Config, books: Books, *, replay: bool = False) -> None:
        self.config, self.books, self.replay = config, books, replay
        self.budget = Budget(config)
        self.upstream = Upstream(config, self.budget)
        self.counts = {"requests": 0, "cached": 0, "refused": 0, "failed": 0}
        self._open: dict[str, asyncio.Task[Answered]] = {}
        self._unproven: list[StoredReply] = []  # refusals of an endpoint that has not answered anything yet
        self._blind = ""

    async def chat(self, body: bytes) -> tuple[StoredReply, bool]:
        """The reply to a request's body, and whether it was known. Raises :class:`Refused`."""
        began = time.monotonic()
        self.counts["requests"] += 1
        facts: dict[str, Any] = {"key": None, "model": None, "cached": False, "status": 500}
        try:
            if self._blind:
                raise Refused(503, "log_unavailable", self._blind)
            asked = read(body, self.config)
            facts |= {"key": asked.key, "model": asked.model}
            reply, cached, extra = await self._reply(asked)
            self.counts["cached"] += cached
            facts |= {"status": 200, "cached": cached, "finish": reply.finish, **extra}
            facts |= {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
            return reply, cached
        except Refused as refused:
            facts |= {"status": refused.status, "code": refused.code}
            if isinstance(refused, Failed) and refused.known:
                self.counts["cached"] += 1
                facts |= {"cached": True, "retries": 0}
            elif isinstance(refused, Failed):
                self.counts["failed"] += 1
                facts |= {"upstream": refused.upstream, "retries": refused.retries}
            else:
                self.counts["refused"] += 1
            raise
        finally:
            self._log(began, facts)

    async def _reply(self, asked: Asked) -> tuple[StoredReply, bool, dict[str, Any]]:
        known = self.books.known.get(asked.key)
        if known is not None and known.refused is None:
            return self.upstream.clean(known), True, {"retries": 0}
        # One that may have been about the account is asked again where somebody can be asked.
        if known is not None and known.refused is not None and (self.replay or known.refused.of_the_text):
            raise self.upstream.refused_before(known.refused)
        if self.replay:
            told = "this question is not among the recorded replies, and nothing is asked in a replay"
            raise Refused(404, "unknown_reply", told)
        task, first = self._open.get(asked.key), False
        if task is None:
            # A task of its own: a client that goes away does not lose a reply that is paid for.
            task, first = asyncio.ensure_future(self._ask(asked)), True
            self._open[asked.key] = task
            task.add_done_callback(lambda done: self._settled(asked.key, done))
        answered = await asyncio.shield(task)
        extra = {"retries": answered.retries, "answered_by": answered.by} if first else {"retries": 0}
        return answered.reply, not first, extra

    async def _ask(self, asked: Asked) -> Answered:
        try:
            answered = await self.upstream.ask(asked)
        except Failed as failed:
            if failed.refusal is not None:
                self._turned_down(StoredReply(asked.key, asked.model, "", "refused", refused=failed.refusal))
            raise
        self._keep(answered.reply, *self._unproven)
        self._unproven.clear()
        return answered

    def _turned_down(self, reply: StoredReply) -> None:
        """Keep a refusal, if it is one of this question: an endpoint that takes none at all is set up wrongly."""
        assert reply.refused is not None
        if self.upstream.proven or reply.refused.of_the_text:
            self._keep(reply)
        else:
            self._unproven.append(reply)

    def _keep(self, *replies: StoredReply) -> None:
        try:
            for reply in replies:
                self.books.keep(reply)
        except OSError as error:
            self._stop(f"replies cannot be written: {error.strerror}")

    def _settled(self, key: str, task: asyncio.Task[Answered]) -> None:
        self._open.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at, also where whoever asked has gone away

    def _log(self, began: float, facts: dict[str, Any]) -> None:
        try:
            self.books.log(ms=round((time.monotonic() - began) * 1000, 1), **facts)
        except OSError as error:
            self._stop(f"the call log cannot be written: {error.strerror}")

    def _stop(self, why: str) -> None:
        """From now on nothing is asked: what is not logged must not happen."""
        if not self._blind:
            self._blind = f"{why}; nothing more is asked"
            print(f"gateway: {self._blind}", file=sys.stderr, flush=True)

    def usage(self) -> dict[str, Any]:
        """What was spent, what may be, and how many requests ended how."""
        budget, limits = self.budget, self.config
        return {
            "spent": {
                "calls": budget.calls,
                "tokens": budget.tokens,
                "cost": round(budget.cost, ROUND),
            },
            "budget": {"calls": limits.calls, "tokens": limits.tokens, "cost": limits.cost},
            **self.counts,
            "replay": self.replay,
        }

    async def close(self) -> None:
        """End open calls and close connections and files."""
        for task in list(self._open.values()):
            task.cancel()
        await self.upstream.close()
        self.books.close()


def completion(reply: StoredReply) -> dict[str, Any]:
    """A chat completion in OpenAI's form: the same bytes for the same reply, whenever it was given."""
    return {
        "id": f"chatcmpl-{reply.key[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": reply.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.text},
                "finish_reason": reply.finish,
            }
        ],
        "usage": {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        },
    }


async def capped(request: Request, cap: int) -> bytes:
    """A request's body. Raises :class:`Refused` when it is longer than ``cap`` bytes or takes too long."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > cap:
                    raise Refused(413, "too_large", f"the body is longer than {cap} bytes")
    except TimeoutError:
        raise Refused(408, "timeout", f"the body took longer than {BODY_SECONDS:g} s") from None
    return bytes(body)


def application(gateway: Gateway) -> Starlette:
    """The ASGI application."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def error(status: int, code: str, message: str) -> Response:
        body = {"error": {"message": message, "type": code, "param": None, "code": code}}
        # The gateway has tried again itself; a client that does, too, would only multiply it.
        headers = {"x-should-retry": "false"}
        if status in (408, 413):
            headers["connection"] = "close"
        return JSONResponse(body, status, headers)

    async def chat(request: Request) -> Response:
        try:
            reply, cached = await gateway.chat(await capped(request, gateway.config.max_body))
        except Refused as refused:
            return error(refused.status, refused.code, refused.message)
        except ClientDisconnect:
            return Response(status_code=400)
        return JSONResponse(completion(reply), headers={"x-gateway-cached": "true" if cached else "false"})

    async def models(_: Request) -> Response:
        listed = [
            {"id": name, "object": "model", "created": 0, "owned_by": "gateway"}
            for name in gateway.config.models
        ]
        return JSONResponse({"object": "list", "data": listed})

    async def usage(_: Request) -> Response:
        return JSONResponse(gateway.usage())

    async def healthz(_: Request) -> Response:
        return JSONResponse({"ok": True})

    async def not_here(_: Request, problem: Exception) -> Response:
        status = problem.status_code if isinstance(problem, HTTPException) else 500
        return error(status, "not_allowed", "this gateway passes on POST /v1/chat/completions only")

    async def broken(_: Request, problem: Exception) -> Response:
        return error(500, "internal_error", "the gateway failed")

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await gateway.close()

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
            Route("/usage", usage, methods=["GET"]),
            Route("/healthz", healthz, methods=["GET"]),
        ],
        exception_handlers={HTTPException: not_here, Exception: broken},
        lifespan=lifespan,
    )
