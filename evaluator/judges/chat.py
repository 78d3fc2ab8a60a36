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
from schemas.replies import REFUSED, Refusal, StoredReply, reply_key

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

REPLY_CHARACTERS = 1 << 20
CONNECT_SECONDS = 10.0  # for a connection
FIRST_RETRIES = 2  # of a question before the endpoint has answered any
UNUSABLE_RETRIES = 2  # a reply with status 200 that is no completion: the SDK does not ask again by itself
_NEVER_BETTER = ("budget_exceeded", "insufficient_quota", "key_refused")
REFUSED_FIRST = (
    5  # an endpoint that refuses its first questions takes none: a parameter or the model is wrong
)


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
    """A model could not be asked. ``transient``: asking later may help; else something has to be changed.

    ``refused``: the endpoint takes questions, but not this one; ``refusal`` is what it said, where that is kept.
    ``lasting``: no other question will fare better.
    """

    def __init__(
        self,
        what: str,
        transient: bool,
        why: str = "",
        fix: str = "",
        *,
        refused: bool = False,
        lasting: bool = False,
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(what, why, fix)
        self.transient, self.refused, self.lasting, self.refusal = transient, refused, lasting, refusal


class Chat:
    """A model behind an endpoint.

    ``base_url`` is an OpenAI-compatible address up to ``/v1`` (the SDK's default without it); ``socket`` is the
    gateway's instead. At most ``concurrency`` questions are open at a time, and one alone until the endpoint has answered
    something. The SDK tries 429, 5xx, time-outs (``timeout`` seconds each) and broken connections ``retries`` times more, with
    growing pauses or as long as the endpoint says; before the first answer, three times in all. A key that is refused,
    an address where nobody is and five refusals without any reply end all questions, those too that come later. ``parameters`` go with every question; ``temperature`` is 0 unless they say otherwise (None leaves a
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
        self._first: asyncio.Future[JudgeError | None] | None = (
            None  # of the question that finds out whether anybody answers
        )
        self._proven = False  # whether the endpoint ever answered a question
        self._turned_down = 0  # questions before that
        self._dead: JudgeError | None = None

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
            if known.refused is not None:
                raise self._turned_down_by(known.refused)
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
                stored, cached = await self._in_turn(key, messages, given)
            except JudgeError as error:
                self.usage.failed += 1
                if error.refusal is not None and error.refusal.of_the_text:
                    refused = StoredReply(key, self.model, "", "refused", refused=error.refusal)
                    self.replies.put(refused)
                raise
        self.replies.put(stored)
        if cached:  # the gateway knew it
            self.usage.asked -= 1
            self.usage.cached += 1
        else:
            self.usage.prompt_tokens += stored.prompt_tokens
            self.usage.completion_tokens += stored.completion_tokens
        return _reply(stored, cached)

    async def _in_turn(
        self, key: str, messages: Sequence[Mapping[str, str]], given: dict[str, Any]
    ) -> tuple[StoredReply, bool]:
        """:meth:`_answer`, one at a time as long as nobody has answered anything; whoever waited fails with that one."""
        while not self._proven and self._first is not None:
            failed = await asyncio.shield(self._first)
            if failed is not None:
                raise failed
        if self._dead is not None:
            raise self._dead
        if self._proven:
            return await self._answer(key, messages, given)
        self._first = first = asyncio.get_running_loop().create_future()
        failure: JudgeError | None = None
        try:
            return await self._answer(key, messages, given)
        except JudgeError as error:
            if not error.refused:
                error.lasting, failure = True, error
            raise
        finally:
            self._first = None
            first.set_result(failure)

    async def _answer(
        self, key: str, messages: Sequence[Mapping[str, str]], given: dict[str, Any]
    ) -> tuple[StoredReply, bool]:
        asked = [{"role": message["role"], "content": message["content"]} for message in messages]
        for left in range(UNUSABLE_RETRIES, -1, -1):
            try:
                raw = await self._post(asked, given)
            except JudgeError as error:
                if error.refused and not self._proven:
                    self._turned_down += 1
                    if self._turned_down >= REFUSED_FIRST:
                        error.refused, error.lasting = False, True
                if error.lasting:
                    self._dead = error
                raise
            self._proven = True
            stored = _completion(key, self.model, raw.content)
            if stored is not None:
                return stored, raw.headers.get("x-gateway-cached") == "true"
            await asyncio.sleep(0.5 if left else 0)
        raise JudgeError(f"{self._who()} answers what is no chat completion.", True)

    async def _post(self, asked: Sequence[Mapping[str, str]], given: Mapping[str, Any]) -> Any:
        """Return the endpoint's answer with status 200. Raises :class:`JudgeError`."""
        import httpx2
        import openai

        try:
            client = self._connect()
            client.max_retries = self.retries if self._proven else min(self.retries, FIRST_RETRIES)
            create: Any = client.chat.completions.with_raw_response.create
            # As extra_body, so that parameters of other servers than OpenAI's pass, too.
            return (await create(model=self.model, messages=asked, extra_body=given)).http_response
        except openai.APIConnectionError as error:
            connecting = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
            if isinstance(error, openai.APITimeoutError) and not connecting:
                raise JudgeError(f"{self._who()} gave no answer within {self.timeout:g} s.", True) from None
            # One that has answered before may be back in a moment; one that never did is not there.
            lasting = connecting and not self._proven
            why = show(str(error.__cause__ or error), 200)
            raise JudgeError(f"{self._who()} cannot be reached.", True, why, lasting=lasting) from None
        except openai.APIStatusError as error:
            raise self._refused(error) from None
        except (openai.OpenAIError, TypeError, ValueError) as error:
            raise JudgeError(
                f"{self._who()} cannot be asked like this.", False, self._safe(str(error))
            ) from None

    def _connect(self) -> AsyncOpenAI:
        if self._client is None:
            import httpx2
            import openai

            times = httpx2.Timeout(self.timeout, connect=min(self.timeout, CONNECT_SECONDS))
            # Redirects are never followed: a model's address is what the caller wrote.
            if self.socket is not None:
                transport = httpx2.AsyncHTTPTransport(uds=str(self.socket))
                http = httpx2.AsyncClient(transport=transport, trust_env=False, timeout=times)
                base_url: str | None = "http://gateway/v1"
            else:
                http, base_url = httpx2.AsyncClient(timeout=times), self.base_url
            self._client = openai.AsyncOpenAI(
                # Local servers want no key, but the SDK does; the environment's key goes to no address but its own.
                api_key=self.api_key or ("none" if base_url else None),
                base_url=base_url,
                timeout=times,
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
        transient = (status in (408, 409, 429) or status >= 500) and code not in _NEVER_BETTER
        # Some endpoints say 403 of texts that they do not take; one that has answered before knows the key.
        key = status == 401 or code == "key_refused" or (status == 403 and not self._proven)
        refused = (status in REFUSED and (self.socket is None or code == "upstream_refused")) or (
            status == 403 and self._proven
        )
        if refused:
            word = self._safe(code) if isinstance(code, str) else ""
            return self._turned_down_by(Refusal(status if status in REFUSED else 422, word, why), status)
        fix = {401: "Give the right key.", 403: "Give a key that may use this model."}.get(status, "")
        return JudgeError(
            f"{self._who()} answers with status {status}.",
            transient,
            why,
            fix,
            lasting=key or code in _NEVER_BETTER,
        )

    def _turned_down_by(self, refusal: Refusal, status: int | None = None) -> JudgeError:
        what = f"{self._who()} answers with status {status or refusal.status}."
        return JudgeError(what, False, refusal.message, refused=True, refusal=refusal)

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
