"""Asking a model: a client for any OpenAI-compatible endpoint, or for the gateway through its Unix socket.

Replies are kept by content (:mod:`schemas.replies`), so a second evaluation asks nothing. What goes wrong is a
:class:`JudgeError`; a reply that says nothing useful is not an error here but the caller's to interpret.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.errors import EvaluatorError
from evaluator.judges.replies import Replies
from schemas.documents import show
from schemas.replies import StoredReply, reply_key

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

REPLY_CHARACTERS = 1 << 20
UNUSABLE_RETRIES = 2  # a reply with status 200 that is no completion: the SDK does not ask again by itself
_NEVER_BETTER = ("budget_exceeded", "insufficient_quota", "key_refused")


@dataclass(frozen=True)
class Reply:
    """What a model said. ``cached``: it was known before, nothing was asked. Tokens as the endpoint counted."""

    text: str
    cached: bool
    prompt_tokens: int
    completion_tokens: int
    finish: str = "stop"


@dataclass
class Usage:
    """What a :class:`Chat` has done so far. Tokens are those of replies that were really asked for."""

    asked: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class JudgeError(EvaluatorError):
    """A model could not be asked. ``transient``: asking later may help; else something has to be changed."""

    def __init__(self, what: str, transient: bool, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix)
        self.transient = transient


class Chat:
    """A model behind an endpoint.

    ``base_url`` is an OpenAI-compatible address up to ``/v1`` (the SDK's default without it); ``socket`` is the
    gateway's instead. At most ``concurrency`` questions are open at a time. 429, 5xx, time-outs (``timeout`` seconds
    each) and broken connections are tried ``retries`` times more, with growing pauses or as long as the endpoint
    says. ``parameters`` go with every question; ``temperature`` is 0 unless they say otherwise (None leaves a
    parameter out, for models that refuse it). Nothing is opened before the first question.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        socket: Path | None = None,
        api_key: str | None = None,
        concurrency: int = 10,
        retries: int = 5,
        timeout: float = 60.0,
        replies: Replies | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        self.model = model
        self.base_url, self.socket, self.api_key = base_url, socket, api_key
        self.retries, self.timeout = retries, timeout
        self.replies = replies if replies is not None else Replies()
        self.parameters = {"temperature": 0, **(parameters or {})}
        self.usage = Usage()
        self._slots = asyncio.Semaphore(concurrency)
        self._client: AsyncOpenAI | None = None
        self._open: dict[str, asyncio.Task[Reply]] = {}

    async def ask(self, messages: Sequence[Mapping[str, str]], **parameters: Any) -> Reply:
        """The model's reply to ``messages``. The same question twice is asked once, also when both are open.

        Raises :class:`JudgeError`.
        """
        given = {
            name: value for name, value in {**self.parameters, **parameters}.items() if value is not None
        }
        key = reply_key(self.model, messages, given)
        known = self.replies.get(key)
        if known is not None:
            self.usage.cached += 1
            return _reply(known, cached=True)
        task = self._open.get(key)
        if task is not None:
            reply = await asyncio.shield(task)
            self.usage.cached += 1
            return replace(reply, cached=True)
        task = self._open[key] = asyncio.ensure_future(self._ask(key, messages, given))
        task.add_done_callback(lambda done: self._settled(key, done))
        return await asyncio.shield(task)

    def _settled(self, key: str, task: asyncio.Task[Reply]) -> None:
        self._open.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at, also where whoever asked has gone away

    async def _ask(self, key: str, messages: Sequence[Mapping[str, str]], given: dict[str, Any]) -> Reply:
        async with self._slots:
            self.usage.asked += 1
            try:
                stored, cached = await self._answer(key, messages, given)
            except JudgeError:
                self.usage.failed += 1
                raise
        self.replies.put(stored)
        if cached:  # the gateway knew it
            self.usage.asked -= 1
            self.usage.cached += 1
        else:
            self.usage.prompt_tokens += stored.prompt_tokens
            self.usage.completion_tokens += stored.completion_tokens
        return _reply(stored, cached)

    async def _answer(
        self, key: str, messages: Sequence[Mapping[str, str]], given: dict[str, Any]
    ) -> tuple[StoredReply, bool]:
        import openai

        asked = [{"role": message["role"], "content": message["content"]} for message in messages]
        for left in range(UNUSABLE_RETRIES, -1, -1):
            try:
                create: Any = self._connect().chat.completions.with_raw_response.create
                # As extra_body, so that parameters of other servers than OpenAI's pass, too.
                raw = (await create(model=self.model, messages=asked, extra_body=given)).http_response
            except openai.APITimeoutError:
                limit = f"within {self.timeout:g} s, {self.retries + 1} times"
                raise JudgeError(f"{self._who()} gave no answer {limit}.", True) from None
            except openai.APIConnectionError as error:
                why = show(str(error.__cause__ or error), 200)
                raise JudgeError(f"{self._who()} cannot be reached.", True, why) from None
            except openai.APIStatusError as error:
                raise self._refused(error) from None
            except (openai.OpenAIError, TypeError, ValueError) as error:
                why = self._safe(str(error))
                raise JudgeError(f"{self._who()} cannot be asked like this.", False, why) from None
            stored = _completion(key, self.model, raw.content)
            if stored is not None:
                return stored, raw.headers.get("x-gateway-cached") == "true"
            await asyncio.sleep(0.5 if left else 0)
        raise JudgeError(f"{self._who()} answers what is no chat completion.", True)

    def _connect(self) -> AsyncOpenAI:
        if self._client is None:
            import httpx2
            import openai

            # Redirects are never followed: a model's address is what the caller wrote.
            if self.socket is not None:
                transport = httpx2.AsyncHTTPTransport(uds=str(self.socket))
                http = httpx2.AsyncClient(transport=transport, trust_env=False, timeout=self.timeout)
                base_url: str | None = "http://gateway/v1"
            else:
                http, base_url = httpx2.AsyncClient(timeout=self.timeout), self.base_url
            self._client = openai.AsyncOpenAI(
                # Local servers want no key, but the SDK does; the environment's key goes to no address but its own.
                api_key=self.api_key or ("none" if base_url else None),
                base_url=base_url,
                max_retries=self.retries,
                timeout=self.timeout,
                http_client=http,
            )
        return self._client

    def _who(self) -> str:
        where = (
            "the gateway" if self.socket is not None else show(self.base_url or "the default address", 120)
        )
        return f"{show(self.model)} at {where}"

    def _safe(self, text: str) -> str:
        key = self._client.api_key if self._client is not None else self.api_key
        return show(text.replace(key, "[key]") if key else text, 200)

    def _refused(self, error: APIStatusError) -> JudgeError:
        body = error.body if isinstance(error.body, dict) else {}
        code, message = body.get("code"), body.get("message")
        why = ": ".join(self._safe(part) for part in (code, message) if isinstance(part, str) and part)
        status = error.status_code
        passing = status in (408, 409, 429) or status >= 500
        transient = passing and code not in _NEVER_BETTER
        fix = {401: "Give the right key.", 403: "Give a key that may use this model."}.get(status, "")
        return JudgeError(f"{self._who()} answers with status {status}.", transient, why, fix)

    async def close(self) -> None:
        """Close connections and the replies' file. The next question opens them again."""
        if self._client is not None:
            await self._client.close()
            self._client = None
        self.replies.close()

    async def __aenter__(self) -> Chat:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _reply(stored: StoredReply, cached: bool) -> Reply:
    return Reply(stored.text, cached, stored.prompt_tokens, stored.completion_tokens, stored.finish)


def _completion(key: str, model: str, body: bytes) -> StoredReply | None:
    """The reply in a chat completion; None when it is none. A content of null is an empty text."""
    try:
        data = json.loads(body)
        choice = data["choices"][0]
        text, finish = choice["message"].get("content"), choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    text = "" if text is None else text
    if not isinstance(text, str) or len(text) > REPLY_CHARACTERS:
        return None
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, said = (count if type(count) is int and count >= 0 else 0 for count in counts)
    text = text.encode("utf-8", "replace").decode("utf-8")  # halves of surrogate pairs cannot be stored
    return StoredReply(key, model, text, finish if isinstance(finish, str) else "stop", prompt, said)
