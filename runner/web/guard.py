"""Around the whole application: hosts that are ours, bodies that are bounded, and the headers of every answer, errors too.

What an answer does not say itself about being kept is not kept by anybody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from runner.web.limits import whole_number
from runner.web.problems import MEDIA, content, is_api

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
MOST_CONNECTIONS = 2000
MOST_HEAD = 32 * 1024  # bytes of the head of a request
_DROPPED = {b"last-modified", b"server"}
FOR_OTHERS = (
    b"cross-origin-resource-policy",
    b"cross-origin",
)  # what an answer says that may stand on other people's pages


class Guard:
    """An ASGI application around ``app``.

    Args:
        app: What answers.
        hosts: The host names by which we are called, with or without a port; another gets 400.
        most: Bytes that a body may have; a longer one gets 413, as soon as that is known.
        headers: Of every answer, in the place of what it says itself, but for :data:`FOR_OTHERS`.
    """

    def __init__(self, app: Application, hosts: Sequence[str], most: int, headers: Mapping[str, str]) -> None:
        self._app, self._hosts, self._most = app, frozenset(hosts), most
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; what is no request goes through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = {name.lower(): value for name, value in scope["headers"]}
        length = whole_number(given.get(b"content-length", b"0").decode("latin-1"))
        if given.get(b"host", b"").decode("latin-1").lower() not in self._hosts:
            await self._plain(scope, send, 400, "This is not the name of this server.")
        elif sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD:
            await self._plain(scope, send, 431, "The head of the request is too long.")
        elif b"transfer-encoding" in given and b"content-length" in given:
            # A proxy before the server might choose the other length, and the next bytes would be the request of another client.
            await self._plain(scope, send, 400, "A body has one length.", closes=True)
        elif length is None or length > self._most:
            await self._plain(scope, send, 413, "What was sent is too large.")
        else:
            await self._app(scope, bounded(receive, self._most), self._with_headers(send))

    def _with_headers(self, send: Send) -> Send:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name for name, _ in self.headers} | _DROPPED
                kept = [(n, v) for n, v in message.get("headers", []) if n.lower() not in ours]
                if not any(name.lower() == b"cache-control" for name, _ in kept):
                    kept.append((b"cache-control", b"no-store"))
                open_ = FOR_OTHERS in message.get("headers", [])
                own = [
                    FOR_OTHERS if open_ and name == FOR_OTHERS[0] else (name, v) for name, v in self.headers
                ]
                message["headers"] = [*kept, *own]
            await send(message)

        return with_headers

    async def _plain(
        self, scope: MutableMapping[str, Any], send: Send, status: int, why: str, *, closes: bool = False
    ) -> None:
        program = is_api(scope["path"])
        kind = MEDIA if program else "text/plain; charset=utf-8"
        text = content(status, why) if program else f"{why}\n".encode()
        headers = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(text))]
        headers += [(b"connection", b"close")] if closes else []
        outer = self._with_headers(send)
        await outer({"type": "http.response.start", "status": status, "headers": headers})
        await outer({"type": "http.response.body", "body": text})


def bounded(receive: Receive, most: int) -> Receive:
    """What gives the parts of a body up to ``most`` bytes, and then raises HTTPException 413."""
    read = 0

    async def part() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > most:
            from starlette.exceptions import HTTPException

            raise HTTPException(413)
        return message

    return part
