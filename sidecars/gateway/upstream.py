"""The one way out: one address, one key, and what may come back.

A reply is made anew from what an endpoint sends: the text of its first choice without the key, why it ended (one of
:data:`FINISHES`), and whole numbers of tokens within what was held. Nothing else is looked at.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from schemas import show
from schemas.replies import REFUSED, Refusal, StoredReply
from sidecars.gateway.budget import Budget
from sidecars.gateway.config import Config
from sidecars.gateway.question import Question
from sidecars.gateway.secret import Secret
from sidecars.http import HttpError

if TYPE_CHECKING:
    import httpx2

ANSWER_BYTES = 8 << 20
REPLY_CHARACTERS = 1 << 20
PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before the first retry; each next one is twice as long
AGAIN = (408, 409, 425, 429)
# Why a reply ended; every other word becomes "stop".
FINISHES = ("stop", "length", "content_filter", "tool_calls", "function_call")
MOST_TOKENS = 1 << 40  # of a reply that is known from before
CONNECT_SECONDS, CONNECT_TRIES = 10.0, 3  # whoever takes no connection by then is not there
_WORD = re.compile(r"[a-zA-Z0-9_.:/-]{1,200}")
_NOT_AS_EXPECTED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Answer:
    """A reply, with the model that the endpoint says gave it, and the number of retries it took."""

    reply: StoredReply
    by: str
    retries: int


class Failed(HttpError):
    """The endpoint gave nothing usable. ``facts`` are for the call log: its last status, and the number of retries.

    ``refusal`` is there when it does not take this question.
    """

    def __init__(
        self, status: int, code: str, message: str, facts: dict[str, Any], refusal: Refusal | None = None
    ) -> None:
        super().__init__(status, code, message)
        self.facts, self.refusal = facts, refusal


@dataclass
class _Attempt:
    """What one request gave: a body with status 200, or why not. ``charged``: it may have cost something."""

    status: int | None = None
    body: bytes = b""
    why: str = ""
    charged: bool = False
    connected: bool = True
    wait: float | None = None


class Upstream:
    """The endpoint. Only :meth:`ask` sends anything, and only to ``<base_url>/chat/completions``."""

    def __init__(self, config: Config, budget: Budget) -> None:
        self.config, self.budget = config, budget
        self.url = config.base_url.rstrip("/") + "/chat/completions"
        self.secret = Secret(config.key)
        self.slots = asyncio.Semaphore(config.concurrency)
        self.proven = False  # whether it ever answered a question
        self._client: httpx2.AsyncClient | None = None
        self._dead: Failed | None = None  # why no question will fare better

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            seconds, most = self.config.timeout, self.config.concurrency
            # No proxy and no certificates from the environment, no redirects; TLS is always verified.
            self._client = httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)),
                limits=httpx2.Limits(max_connections=most),
            )
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    async def ask(self, question: Question) -> Answer:
        """The endpoint's reply, after retries where they may help. Raises :class:`HttpError` and :class:`Failed`."""
        async with self.slots:
            if self._dead is not None:
                raise self._dead
            for retry in range(self.config.retries + 1):
                hold = self.budget.take(question)
                charge = question.most_prompt, question.most_reply  # unless it is known to be less
                try:
                    attempt = await self._send(question)
                    answer = self._read(question, attempt, retry)
                    if answer is not None:
                        self.proven = True
                        charge = _used(question, answer.reply)
                        return answer
                    charge = charge if attempt.charged else (0, 0)
                finally:
                    self.budget.settle(hold, *charge)
                if failure := self._failure(attempt, retry):
                    raise failure
                if not attempt.connected:
                    note = f"gateway: the endpoint cannot be reached ({retry + 1} of {CONNECT_TRIES} tries)"
                    print(note, file=sys.stderr, flush=True)
                pause = min(LONGEST_PAUSE, PAUSE * 2**retry)
                await asyncio.sleep(pause if attempt.wait is None else attempt.wait)
        raise AssertionError("the last retry returns or raises")

    async def _send(self, question: Question) -> _Attempt:
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers |= {"Accept-Encoding": "identity", "User-Agent": "proctor-gateway"}
        if self.config.key is not None:
            headers["Authorization"] = f"Bearer {self.config.key}"
        attempt = _Attempt()
        client, sent = self._connected(), question.body()
        try:
            async with (
                asyncio.timeout(self.config.timeout),
                client.stream("POST", self.url, content=sent, headers=headers, cookies={}) as response,
            ):
                attempt.status, attempt.charged = response.status_code, response.status_code == 200
                attempt.wait = retry_after(response.headers.get("retry-after"))
                body = bytearray()
                if response.headers.get("content-encoding", "identity").lower() == "identity":
                    async for piece in response.aiter_raw():
                        body += piece
                        if len(body) > ANSWER_BYTES:
                            attempt.why = f"more than {ANSWER_BYTES} bytes"
                            return attempt
                attempt.body = bytes(body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol):
            attempt.why, attempt.connected = "cannot be reached", False
        except (TimeoutError, httpx2.TimeoutException):
            attempt.why, attempt.charged = f"no answer within {self.config.timeout:g} s", True
        except (httpx2.HTTPError, httpx2.StreamError, OSError, ValueError):
            # The error's own words may repeat headers, so they are not shown.
            attempt.why, attempt.charged = "the connection broke", True
        finally:
            client.cookies.clear()
        return attempt

    def _read(self, question: Question, attempt: _Attempt, retries: int) -> Answer | None:
        """The reply of an attempt; None when there is none."""
        if attempt.why or attempt.status != 200:
            return None
        try:
            data = json.loads(attempt.body)
            choice = data["choices"][0]
            text = choice["message"].get("content")
        except _NOT_AS_EXPECTED:
            attempt.why = "the answer is no chat completion"
            return None
        text = "" if text is None else text
        if not isinstance(text, str) or len(text) > REPLY_CHARACTERS:
            attempt.why = "the answer is no chat completion of a sensible size"
            return None
        text = text.encode("utf-8", "replace").decode("utf-8")
        usage = data.get("usage")
        prompt = _count(usage, "prompt_tokens", question.most_prompt)
        completion = _count(usage, "completion_tokens", question.most_reply)
        finish = str(choice.get("finish_reason"))
        reply = StoredReply(question.key, question.model, text, finish, prompt, completion)
        return Answer(self.clean(reply), self._word(data.get("model")), retries)

    def refused_before(self, refusal: Refusal) -> Failed:
        """What the client gets for a question that was refused then: the same as then."""
        message = self.secret.covered(refusal.message)
        return Failed(
            refusal.status, "upstream_refused", message, {"cached": True, "retries": 0}, refusal=refusal
        )

    def clean(self, reply: StoredReply) -> StoredReply:
        """``reply`` as it may be passed on: from the endpoint now, or from a file that another version wrote."""
        return replace(
            reply,
            text=self.secret.covered(reply.text),
            finish=reply.finish if reply.finish in FINISHES else "stop",
            prompt_tokens=min(reply.prompt_tokens, MOST_TOKENS),
            completion_tokens=min(reply.completion_tokens, MOST_TOKENS),
        )

    def _failure(self, attempt: _Attempt, retry: int) -> Failed | None:
        """What the client gets when another request would not help, or there is none left; None to ask again."""
        status, code = attempt.status, _error_field(attempt.body, "code")
        facts = {"upstream": status, "retries": retry}
        if not attempt.why and status is not None and status not in AGAIN and status < 500:
            return self._refused(status, attempt.body, facts)
        more = retry < self.config.retries and code != "insufficient_quota"
        if not attempt.connected:
            more = more and retry + 1 < CONNECT_TRIES
        if more and (attempt.wait or 0) <= self.config.timeout:
            return None
        if status == 429 and not attempt.why:
            code = code if code == "insufficient_quota" else "rate_limited"
            return Failed(429, code, f"the endpoint has too much to do, {retry + 1} times", facts)
        why = attempt.why or f"status {status}"
        lost = Failed(502, "upstream_failed", f"the endpoint: {why}, {retry + 1} times", facts)
        if not attempt.connected and not self.proven:
            self._dead = lost
        return lost

    def _refused(self, status: int, body: bytes, facts: dict[str, Any]) -> Failed:
        # Some endpoints say 403 of texts that they do not take; one that has answered before knows the key.
        if status == 401 or (status == 403 and not self.proven):
            # What endpoints say about a key repeats parts of it.
            self._dead = Failed(502, "key_refused", f"the endpoint refuses the key (status {status})", facts)
            return self._dead
        passed = {403: 422}.get(status, status if status in (400, 404, 413, 422) else 502)
        words = "" if status == 403 else self._words(_error_field(body, "message"))
        message = f"the endpoint answers with status {status}{words}"
        code = self._word(_error_field(body, "code"))
        refusal = Refusal(passed, code, message) if passed in REFUSED else None
        return Failed(passed, "upstream_refused", message, facts, refusal)

    def _words(self, message: str) -> str:
        """An endpoint's error message, safe to show; nothing if any part of the key is in it."""
        key = self.config.key or ""
        parts = {key[start : start + 6] for start in range(max(1, len(key) - 5))} if key else set()
        leaks = any(part in message for part in parts) or self.secret.shows_in(message)
        return "" if leaks or not message else f": {show(message, 300)}"

    def _word(self, value: Any) -> str:
        """A code or name that an endpoint gives; empty if it is none, or shows the key."""
        fine = isinstance(value, str) and _WORD.fullmatch(value) and not self.secret.shows_in(value)
        return value if fine else ""


def _error_field(body: bytes, name: str) -> str:
    """``code`` or ``message`` of an error in OpenAI's form; empty when it is not there."""
    try:
        value = json.loads(body)["error"][name]
    except _NOT_AS_EXPECTED:
        return ""
    return value if isinstance(value, str) else ""


def _count(usage: Any, name: str, most: int) -> int:
    """What an endpoint says that it counted, at most what was held; 0 where it says nothing that can be true."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return min(count, most) if type(count) is int and count > 0 else 0


def _used(question: Question, reply: StoredReply) -> tuple[int, int]:
    """The tokens that are booked for a reply: those that were counted, and what was held where nobody did.

    A question has at least one token, and so has a reply that is not empty: whoever says none has not counted.
    """
    uncounted = question.most_reply if reply.text or not reply.prompt_tokens else 0
    return reply.prompt_tokens or question.most_prompt, reply.completion_tokens or uncounted


def retry_after(value: str | None) -> float | None:
    """The seconds of a Retry-After header: a number, or a date."""
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value.strip()):
        return float(value)
    parsed = email.utils.parsedate_tz(value)
    if parsed is None:
        return None
    try:
        return max(0.0, email.utils.mktime_tz(parsed) - time.time())
    except (ValueError, OverflowError, OSError):
        return None
