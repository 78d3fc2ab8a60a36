"""One connection: how long a peer may take over a request and over an answer, and how many connections there may be.

uvicorn itself waits for ever for the rest of a head or a body, and for a peer that reads nothing.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from runner.web.guard import MOST_CONNECTIONS, Guard


class Connection(H11Protocol):
    """A connection of uvicorn's that does not wait for ever.

    Above ``most`` connections the one that has been without a request for the longest time goes, or the new one.
    """

    most: ClassVar[int] = MOST_CONNECTIONS
    head: ClassVar[float] = (
        10.0  # seconds for the head of a request; a connection without one does not stay longer
    )
    grace: ClassVar[float] = 30.0  # seconds in which a body, or the reading of an answer, may stand still
    rate: ClassVar[float] = 1024.0  # bytes a second that a body has on the average, apart from the grace

    _phase = ""
    _since = 0.0
    _bytes = 0
    _timer: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._look()
        if len(self.connections) > self.most:
            idle = [c for c in self.connections if isinstance(c, Connection) and c._phase == "head"]
            oldest = min(idle, key=lambda one: one._since)
            self.connections.discard(oldest)  # many may come before it is told that it is lost
            oldest.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        for timer in (self._timer, self._stuck):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        self._bytes += len(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, or for the end of a body that nobody reads."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Give a peer that does not read its answer some time."""
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self.loop.call_later(self.grace, self.abort)

    def resume_writing(self) -> None:
        """Go on, once it reads."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request; it has the headers of every answer."""
        app = self.config.app
        headers = app.headers if isinstance(app, Guard) else []
        kept = [
            *headers,
            (b"cache-control", b"no-store"),
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = h11.Response(status_code=400, headers=kept, reason=b"Bad Request")
            for event in (response, h11.Data(data=f"{msg}\n".encode()), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def _look(self) -> None:
        """Notice what is waited for now, and begin to count when that is another thing than before."""
        phase = {h11.IDLE: "head", h11.SEND_BODY: "body"}.get(self.conn.their_state, "")
        if phase == "body" and self.conn.our_state is h11.DONE:
            phase = "rest"  # closed at once, it would take the answer away with it
        if phase == self._phase:
            return
        self._phase, self._since, self._bytes = phase, self.loop.time(), 0
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.head, self._late) if phase else None

    def _late(self) -> None:
        if self._phase in ("head", "rest"):
            self.abort()
            return
        if self.flow.read_paused:  # it is we who do not read
            self._since, self._bytes = self.loop.time(), 0
        if self._bytes < self.rate * (self.loop.time() - self._since - self.grace):
            self.abort()
        else:
            self._timer = self.loop.call_later(self.head / 2, self._late)
