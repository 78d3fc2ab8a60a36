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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas import show
from schemas.replies import REFUSED, Refusal, StoredReply
from sidecars.gateway.asking import Asked, Refused
from sidecars.gateway.budget import Budget
from sidecars.gateway.config import Config
from sidecars.gateway.secret import Secret

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


@dataclass(frozen=True)
class Answered:
    """A reply, with the model that the endpoint says gave it, and the number of retries it took."""

    reply: StoredReply
    by: str
    retries: int


class Failed(Refused):
    """The endpoint gave nothing usable. ``upstream`` is its last status, if any.

    ``refusal`` is there when it does not take this question; ``known``: it said so before, and nobody was asked.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        upstream: int | None = None,
        retries: int = 0,
        refusal: Refusal | None = None,
        known: bool = False,
    ) -> None:
        super().__init__(status, code, message)
        self.upstream, self.retries, self.refusal, self.known = upstream, retries, refusal, known


@dataclass
class _Try:
    """What one try gave: a body with status 200, or why not. ``charged``: it may have cost something."""

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
        self._client: httpx2.AsyncClient | None = None
        self._proven = False  # whether it ever answered a question
        self._dead: Failed | None = None  # why no question will fare better

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            # No proxy and no certificates from the environment, no redirects; TLS is always verified.
            self._client = httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(
                    self.config.timeout, connect=min(self.config.timeout, CONNECT_SECONDS)
                ),
                limits=httpx2.Limits(max_connections=self.config.concurrency),
            )
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    async def ask(self, asked: Asked) -> Answered:
        """The endpoint's reply, after retries where they may help. Raises :class:`Refused` and :class:`Failed`."""
        async with self.slots:
            if self._dead is not None:
                raise self._dead
            for retry in range(self.config.retries + 1):
                hold = self.budget.take(asked)
                charge = asked.most_prompt, asked.most_reply  # unless it is known to be less
                try:
                    tried = await self._try(asked)
                    answered = self._read(asked, tried, retry)
                    if answered is not None:
                        self._proven = True
                        charge = _used(asked, answered.reply)
                        return answered
                    charge = charge if tried.charged else (0, 0)
                finally:
                    self.budget.settle(hold, *charge)
                self._give_up(tried, retry)
                if not tried.connected:
                    told = f"gateway: the endpoint cannot be reached ({retry + 1} of {CONNECT_TRIES} tries)"
                    print(told, file=sys.stderr, flush=True)
                wait = tried.wait if tried.wait is not None else min(LONGEST_PAUSE, PAUSE * 2**retry)
                await asyncio.sleep(wait)
        raise AssertionError("the last retry returns or raises")

    async def _try(self, asked: Asked) -> _Try:
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers |= {"Accept-Encoding": "identity", "User-Agent": "proctor-gateway"}
        if self.config.key is not None:
            headers["Authorization"] = f"Bearer {self.config.key}"
        tried = _Try()
        try:
            async with asyncio.timeout(self.config.timeout):
                client = self._connected()
                async with client.stream(
                    "POST", self.url, content=asked.body(), headers=headers, cookies={}
                ) as response:
                    tried.status, tried.charged = response.status_code, response.status_code == 200
                    tried.wait = _wait(response.headers.get("retry-after"))
                    body = bytearray()
                    if response.headers.get("content-encoding", "identity").lower() == "identity":
                        async for piece in response.aiter_raw():
                            body += piece
                            if len(body) > ANSWER_BYTES:
                                tried.why = f"more than {ANSWER_BYTES} bytes"
                                return tried
                    tried.body = bytes(body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol):
            tried.why, tried.connected = "cannot be reached", False
        except (TimeoutError, httpx2.TimeoutException):
            tried.why, tried.charged = f"no answer within {self.config.timeout:g} s", True
        except (httpx2.HTTPError, httpx2.StreamError, OSError, ValueError):
            # The error's own words may repeat headers, so they are not shown.
            tried.why, tried.charged = "the connection broke", True
        finally:
            if self._client is not None:
                self._client.cookies.clear()
        return tried

    def _read(self, asked: Asked, tried: _Try, retries: int) -> Answered | None:
        """The reply in a try; None when there is none."""
        if tried.why or tried.status != 200:
            return None
        try:
            data = json.loads(tried.body)
            choice = data["choices"][0]
            text = choice["message"].get("content")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            tried.why = "the answer is no chat completion"
            return None
        text = "" if text is None else text
        if not isinstance(text, str) or len(text) > REPLY_CHARACTERS:
            tried.why = "the answer is no chat completion of a sensible size"
            return None
        text = text.encode("utf-8", "replace").decode("utf-8")
        usage, by = data.get("usage"), _word(data.get("model"), "")
        prompt = _count(usage, "prompt_tokens", asked.most_prompt)
        said = _count(usage, "completion_tokens", asked.most_reply)
        reply = StoredReply(asked.key, asked.model, text, str(choice.get("finish_reason")), prompt, said)
        return Answered(self.clean(reply), "" if self.secret.shows_in(by) else by, retries)

    @property
    def proven(self) -> bool:
        """Whether the endpoint ever answered a question."""
        return self._proven

    def refused_before(self, refusal: Refusal) -> Failed:
        """What the client gets for a question that was refused then: the same as then."""
        told = self.secret.covered(refusal.message)
        return Failed(refusal.status, "upstream_refused", told, refusal=refusal, known=True)

    def clean(self, reply: StoredReply) -> StoredReply:
        """``reply`` as it may be passed on: from the endpoint now, or from a file that another version wrote."""
        return StoredReply(
            reply.key,
            reply.model,
            self.secret.covered(reply.text),
            reply.finish if reply.finish in FINISHES else "stop",
            min(reply.prompt_tokens, MOST_TOKENS),
            min(reply.completion_tokens, MOST_TOKENS),
        )

    def _give_up(self, tried: _Try, retry: int) -> None:
        """Raise what the client gets when another try would not help, or there is none left."""
        status = tried.status

        def failed(status_here: int, code: str, message: str, refusal: Refusal | None = None) -> Failed:
            return Failed(status_here, code, message, upstream=status, retries=retry, refusal=refusal)

        def turned_down(status_here: int, told: str) -> Failed:
            word = _word(_code(tried.body), "")
            word = "" if self.secret.shows_in(word) else word
            refusal = Refusal(status_here, word, told) if status_here in REFUSED else None
            return failed(status_here, "upstream_refused", told, refusal)

        if not tried.why and status is not None and status not in AGAIN and status < 500:
            # Some endpoints say 403 of texts that they do not take; one that has answered before knows the key.
            if status == 401 or (status == 403 and not self._proven):
                # What endpoints say about a key repeats parts of it.
                self._dead = failed(502, "key_refused", f"the endpoint refuses the key (status {status})")
                raise self._dead
            if status == 403:
                raise turned_down(422, "the endpoint answers with status 403")
            passed = status if status in (400, 404, 413, 422) else 502
            told = f"the endpoint answers with status {status}{self._told(tried.body)}"
            raise turned_down(passed, told)
        code = _code(tried.body)
        no_more = retry >= self.config.retries or code == "insufficient_quota"
        no_more = no_more or (not tried.connected and retry + 1 >= CONNECT_TRIES)
        if not no_more and (tried.wait or 0) <= self.config.timeout:
            return
        if status == 429 and not tried.why:
            told = f"the endpoint has too much to do, {retry + 1} times"
            raise failed(429, code if code == "insufficient_quota" else "rate_limited", told)
        why = tried.why or f"status {status}"
        lost = failed(502, "upstream_failed", f"the endpoint: {why}, {retry + 1} times")
        if not tried.connected and not self._proven:
            self._dead = lost
        raise lost

    def _told(self, body: bytes) -> str:
        """What the endpoint says in an error, in safe words; nothing if any part of the key is in it."""
        try:
            message = json.loads(body)["error"]["message"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return ""
        key = self.config.key or ""
        parts = {key[start : start + 6] for start in range(max(1, len(key) - 5))} if key else set()
        if not isinstance(message, str) or any(part in message for part in parts):
            return ""
        return "" if self.secret.shows_in(message) else f": {show(message, 300)}"


def _code(body: bytes) -> str:
    try:
        code = json.loads(body)["error"]["code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return code if isinstance(code, str) else ""


def _count(usage: Any, name: str, most: int) -> int:
    """What an endpoint says that it counted, at most what was held; 0 where it says nothing that can be true."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return min(count, most) if type(count) is int and count > 0 else 0


def _used(asked: Asked, reply: StoredReply) -> tuple[int, int]:
    """The tokens that are booked for a reply: those that were counted, and what was held where nobody did.

    A question has at least one token, and so has a reply that is not empty: whoever says none has not counted.
    """
    said = reply.completion_tokens or (asked.most_reply if reply.text or not reply.prompt_tokens else 0)
    return reply.prompt_tokens or asked.most_prompt, said


def _word(value: Any, default: str) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else default


def _wait(value: str | None) -> float | None:
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
