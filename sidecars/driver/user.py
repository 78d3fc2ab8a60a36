"""The simulated user's side: what it says next. Its failures are the platform's, never the software's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import schemas
from sidecars.driver.answers import encode, safe
from sidecars.driver.config import Config
from sidecars.peer import Failure, Peer

TRIES = 3
PAUSE = 1.0  # seconds before the second try; twice as long before the third
REPLY_BYTES = 4 * 1024 * 1024
READY = 60.0
# What the user is shown of one answer: ten times the longest sensible one. Without an end a software could spend
# the organiser's budget of a language model, or go beyond what the user takes, which would look like its failure.
SHOWN_CHARACTERS = 4000


class UserFailure(Exception):
    """The simulated user gave no utterance; the words say why."""


@dataclass(frozen=True)
class Utterance:
    """What the user said, the message to send back with the next request, and the answer that it attacks (from 1)."""

    utterance: str
    message: dict[str, Any]
    target: int | None


class User:
    """The simulated user, asked over its socket in the form of its official service."""

    def __init__(self, config: Config) -> None:
        assert config.user is not None
        self.config = config
        self.peer = Peer(config.user, "127.0.0.1")

    async def ready(self) -> None:
        """Wait until it is healthy. Raises :class:`UserFailure` after a minute."""
        until = time.monotonic() + READY
        while True:
            try:
                await self.peer.ask("GET", "/healthz", seconds=5, max_bytes=REPLY_BYTES)
                return
            except Failure as failure:
                if time.monotonic() > until:
                    raise UserFailure(f"it never became ready: {failure.detail}") from None
            await asyncio.sleep(0.2)

    async def open(self, claim: str) -> Utterance:
        """The first utterance of a debate. Raises :class:`UserFailure`."""
        return await self._say({"model": self.config.user_model, "options": {"claim": claim}})

    async def answer(self, dialogue: Sequence[dict[str, Any]]) -> Utterance:
        """The next utterance after a dialogue in the user's roles (the software is ``user``)."""
        return await self._say({"model": self.config.user_model, "messages": list(dialogue)})

    async def _say(self, request: dict[str, Any]) -> Utterance:
        body = encode(request).encode()
        for attempt in range(1, TRIES + 1):
            try:
                reply = await self.peer.ask(
                    "POST",
                    self.config.user_path,
                    body,
                    seconds=self.config.user_seconds,
                    max_bytes=REPLY_BYTES,
                )
                return _read(reply)
            except Failure as failure:
                # Anything but "not now" is final: what asks a model has tried again by itself.
                if attempt == TRIES or failure.status not in (None, 503):
                    raise UserFailure(failure.detail) from None
            await asyncio.sleep(PAUSE * attempt)
        raise AssertionError("unreachable")


def shown(utterance: str) -> str:
    """What the user is shown of an answer of the software: its first :data:`SHOWN_CHARACTERS` characters."""
    return utterance[:SHOWN_CHARACTERS]


def _read(body: bytes) -> Utterance:
    doc = schemas.load_json(body, "the user's answer", max_bytes=REPLY_BYTES)
    data = doc.data if isinstance(doc.data, dict) else {}
    message = data.get("message")
    if doc.problems or not isinstance(message, dict) or not isinstance(message.get("content"), str):
        raise UserFailure("its answer has no message with a content")
    if not message["content"].strip():
        raise UserFailure("its utterance is empty")
    target = data.get("target")
    valid = isinstance(target, int) and not isinstance(target, bool) and target > 0
    return Utterance(safe(message["content"]), message, target if valid else None)
