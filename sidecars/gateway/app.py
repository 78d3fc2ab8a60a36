"""The gateway's HTTP side: four paths, everything else is refused."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from schemas.replies import StoredReply
from sidecars import http
from sidecars.gateway.budget import Budget
from sidecars.gateway.config import Config
from sidecars.gateway.ledger import Ledger
from sidecars.gateway.question import Question, read
from sidecars.gateway.upstream import Answer, Failed, Upstream
from sidecars.http import HttpError

ROUND = 6  # decimals of a cost


class Gateway:
    """Everything between a request and its reply. With ``replay`` only known replies are given."""

    def __init__(self, config: Config, ledger: Ledger, *, replay: bool = False) -> None:
        self.config, self.ledger, self.replay = config, ledger, replay
        self.budget = Budget(config)
        self.upstream = Upstream(config, self.budget)
        self.counts = {"requests": 0, "cached": 0, "refused": 0, "failed": 0}
        self._open: dict[str, asyncio.Task[Answer]] = {}
        self._unproven: list[StoredReply] = []  # refusals of an endpoint that has not answer anything yet
        self._blind = ""

    async def chat(self, body: bytes) -> tuple[StoredReply, bool]:
        """The reply to a request's body, and whether it was known. Raises :class:`HttpError`."""
        began = time.monotonic()
        self.counts["requests"] += 1
        facts: dict[str, Any] = {"key": None, "model": None, "cached": False, "status": 500}
        try:
            if self._blind:
                raise HttpError(503, "log_unavailable", self._blind)
            question = read(body, self.config)
            facts |= {"key": question.key, "model": question.model}
            reply, cached, extra = await self._reply(question)
            self.counts["cached"] += cached
            facts |= {"status": 200, "cached": cached, "finish": reply.finish, **extra}
            facts |= {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
            return reply, cached
        except HttpError as error:
            facts |= {"status": error.status, "code": error.code}
            how = "refused"
            if isinstance(error, Failed):
                how = "cached" if "cached" in error.facts else "failed"
                facts |= error.facts
            self.counts[how] += 1
            raise
        finally:
            self._log(began, facts)

    async def _reply(self, question: Question) -> tuple[StoredReply, bool, dict[str, Any]]:
        known = self.ledger.known.get(question.key)
        if known is not None and known.refused is None:
            return self.upstream.clean(known), True, {"retries": 0}
        # One that may have been about the account is question again where somebody can be question.
        if known is not None and known.refused is not None and (self.replay or known.refused.of_the_text):
            raise self.upstream.refused_before(known.refused)
        if self.replay:
            why = "this question is not among the recorded replies, and nothing is question in a replay"
            raise HttpError(404, "unknown_reply", why)
        first = question.key not in self._open
        if first:
            # A task of its own: a client that goes away does not lose a reply that is paid for.
            task = self._open[question.key] = asyncio.ensure_future(self._ask(question))
            task.add_done_callback(lambda done: self._settled(question.key, done))
        answer = await asyncio.shield(self._open[question.key])
        extra = {"retries": answer.retries, "answered_by": answer.by} if first else {"retries": 0}
        return answer.reply, not first, extra

    async def _ask(self, question: Question) -> Answer:
        try:
            answer = await self.upstream.ask(question)
        except Failed as failed:
            if failed.refusal is not None:
                self._turned_down(
                    StoredReply(question.key, question.model, "", "refused", refused=failed.refusal)
                )
            raise
        self._keep(answer.reply, *self._unproven)
        self._unproven.clear()
        return answer

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
                self.ledger.keep(reply)
        except OSError as error:
            self._stop(f"replies cannot be written: {error.strerror}")

    def _settled(self, key: str, task: asyncio.Task[Answer]) -> None:
        self._open.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at, also where whoever question has gone away

    def _log(self, began: float, facts: dict[str, Any]) -> None:
        try:
            self.ledger.log(ms=round((time.monotonic() - began) * 1000, 1), **facts)
        except OSError as error:
            self._stop(f"the call log cannot be written: {error.strerror}")

    def _stop(self, why: str) -> None:
        """From now on nothing is question: what is not logged must not happen."""
        if not self._blind:
            self._blind = f"{why}; nothing more is question"
            print(f"gateway: {self._blind}", file=sys.stderr, flush=True)

    def usage(self) -> dict[str, Any]:
        """What was spent, what may be, and how many requests ended how."""
        budget, limits = self.budget, self.config
        return {
            "spent": {"calls": budget.calls, "tokens": budget.tokens, "cost": round(budget.cost, ROUND)},
            "budget": {"calls": limits.calls, "tokens": limits.tokens, "cost": limits.cost},
            **self.counts,
            "replay": self.replay,
        }

    async def close(self) -> None:
        """End open calls and close connections and files."""
        for task in list(self._open.values()):
            task.cancel()
        await self.upstream.close()
        self.ledger.close()


def completion(reply: StoredReply) -> dict[str, Any]:
    """A chat completion in OpenAI's form: the same bytes for the same reply, whenever it was given."""
    usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
    message = {"role": "assistant", "content": reply.text}
    return {
        "id": f"chatcmpl-{reply.key[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }


def application(gateway: Gateway) -> Starlette:
    """The ASGI application."""

    async def chat(request: Request) -> JSONResponse:
        reply, known = await gateway.chat(await http.read_body(request, gateway.config.max_body))
        return JSONResponse(completion(reply), headers={"x-gateway-cached": str(known).lower()})

    async def models(_: Request) -> JSONResponse:
        owned = {"object": "model", "created": 0, "owned_by": "gateway"}
        listed = [{"id": name, **owned} for name in gateway.config.models]
        return JSONResponse({"object": "list", "data": listed})

    async def usage(_: Request) -> JSONResponse:
        return JSONResponse(gateway.usage())

    async def healthz(_: Request) -> JSONResponse:
        return JSONResponse({"ok": True})

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await gateway.close()

    return http.application(
        [
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
            Route("/usage", usage, methods=["GET"]),
            Route("/healthz", healthz, methods=["GET"]),
        ],
        lambda code, message: {"error": {"message": message, "type": code, "param": None, "code": code}},
        unknown=("not_allowed", "this gateway passes on POST /v1/chat/completions only"),
        broken=("internal_error", "the gateway failed"),
        # The gateway has tried again itself; a client that does, too, would only multiply it.
        error_headers={"x-should-retry": "false"},
        lifespan=lifespan,
    )
