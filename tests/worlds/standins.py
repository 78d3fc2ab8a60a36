"""Servers on Unix sockets that do exactly what a test wants, byte by byte, and a driver to talk to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sidecars.driver.config import Config
from sidecars.driver.run import Report, run


@dataclass
class Asked:
    """One request as a server saw it."""

    path: str
    headers: dict[str, str]
    data: Any
    number: int  # counts from 1

    @property
    def turn(self) -> int:
        """The turn of a chat request, from its length."""
        return (len(self.data["messages"]) + 1) // 2


Handler = Callable[[Asked, asyncio.StreamWriter], Awaitable[Any]]


def reply(body: bytes, status: int = 200, *headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status} Something", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Server:
    """A server at ``socket``. The handler returns data (sent as JSON), bytes (sent as they are), or None."""

    socket: Path
    handler: Handler
    asked: list[Asked] = field(default_factory=list)
    active: int = 0
    most: int = 0

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_unix_server(self._serve, self.socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def close(self) -> None:
        self._server.close()
        self.socket.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            asked = Asked(first.split()[1], headers, json.loads(body or b"null"), len(self.asked) + 1)
            self.asked.append(asked)
            self.active += 1
            self.most = max(self.most, self.active)
            try:
                answer = await self.handler(asked, writer)
            finally:
                self.active -= 1
            if answer is not None:
                writer.write(answer if isinstance(answer, bytes) else reply(json.dumps(answer).encode()))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def good(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    """A software that debates well."""
    last = asked.data["messages"][-1]["content"]
    return {
        "content": f"On the contrary: {last}",
        "arguments": [{"id": "1.2", "text": "A reason.", "key": 1}],
    }


async def simulated(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    """A simulated user: it attacks the last answer that is not empty."""
    if asked.path == "/healthz":
        return {"status": "ok"}
    messages = asked.data.get("messages")
    if messages is None:
        said = {"message": {"role": "assistant", "content": f"I think: {asked.data['options']['claim']}"}}
    else:
        theirs = [m["content"] for m in messages if m["role"] == "user"]
        usable = [n for n, text in enumerate(theirs, 1) if text]
        text = f"No {len(theirs)}: {theirs[usable[-1] - 1][-40:]}" if usable else messages[0]["content"]
        said = {"message": {"role": "assistant", "content": text, "mood": "cross"}, "retrieved": []}
        said |= {"target": usable[-1]} if usable else {}
    return {"model": asked.data["model"], "created_at": "2025-01-01T00:00:00Z", **said}


@dataclass
class Room:
    """A folder with a short path, for sockets, and what the driver is told by default."""

    folder: Path

    def config(self, mode: str = "debate", **changes: Any) -> Config:
        name = "claims.jsonl" if mode == "debate" else "debates.jsonl"
        config = Config(
            mode=mode,  # type: ignore[arg-type]
            input=self.folder / name,
            software=self.folder / "software.sock",
            ended=self.folder / "ended",
            output=self.folder / "out",
            user=self.folder / "user.sock" if mode == "debate" else None,
            turns=3,
            ready_seconds=5,
            answer_seconds=5,
            deadline_seconds=60,
        )
        return replace(config, **changes)

    def claims(self, *claims: str) -> None:
        rows = [{"id": f"c{n}", "claim": claim} for n, claim in enumerate(claims, 1)]
        (self.folder / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def lines(self, name: str) -> list[Any]:
        text = (self.folder / "out" / name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]

    @property
    def turns(self) -> list[Any]:
        return self.lines("turns.jsonl")

    @property
    def classes(self) -> list[str | None]:
        return [turn["failure"] and turn["failure"]["class"] for turn in self.turns]


async def _held(config: Config, software: Server | None, user: Server | None, then: Any) -> Report:
    async with AsyncExitStack() as stack:
        for server in (software, user):
            if server is not None:
                await stack.enter_async_context(server)
        if then is not None:
            beside = asyncio.create_task(then())
        report = await asyncio.wait_for(run(config, lambda _: None), 60)
        if then is not None:
            beside.cancel()
        return report


def debate(
    room: Room,
    handler: Handler | None = good,
    user: Handler | None = simulated,
    *,
    then: Callable[[], Awaitable[Any]] | None = None,
    mode: str = "debate",
    **changes: Any,
) -> tuple[Report, Server, Server]:
    """Run the driver against a software and a user; returns its report and both servers."""
    config = room.config(mode, **changes)
    software = Server(config.software, handler) if handler else None
    simulator = Server(config.user, user) if user and config.user else None
    report = asyncio.run(_held(config, software, simulator, then))
    return report, software, simulator  # type: ignore[return-value]
