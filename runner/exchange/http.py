"""HTTP to servers that need not be trusted. It imports requests: import it inside functions."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter


class Session(requests.Session):  # noqa: TID251 - it is the one
    """A session that reads nothing of what a redirect brings along, and goes on to where it leads at most ``redirects`` times.

    That of requests reads and unpacks such a body whole, also where it is told not to follow: it may have no end.
    """

    def __init__(self, redirects: int = 0) -> None:
        super().__init__()
        self.max_redirects = redirects

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Where an answer leads to; None where nobody goes there."""
        target = super().get_redirect_target(resp) if self.max_redirects else None
        if target is not None:
            resp.close()
        return target


def bounded(most: int) -> Callable[..., None]:
    """A hook for answers of streams: their bodies are read at once, unpacked, up to ``most`` bytes; a longer one is a RequestException."""

    def read(answer: requests.Response, **_: object) -> None:
        try:
            body = answer.raw.read(most + 1, decode_content=True)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise requests.ConnectionError(f"the connection broke: {type(error).__name__}") from error
        finally:
            answer.close()
        if len(body) > most:
            raise requests.RequestException(f"an answer has more than {most} bytes")
        answer.raw = io.BytesIO(body)

    return read


@contextmanager
def within(session: Any, seconds: float) -> Iterator[None]:
    """All that a session asks for in the block, over connections that it opens there, takes at most so many seconds together.

    The timeouts of requests are for each piece of an answer: whoever sends a byte now and then never reaches them. Raises
    requests.Timeout where that time was up.
    """
    deadline = _Deadline()
    for prefix in ("https://", "http://"):
        session.mount(prefix, _Adapter(deadline))
    timer = threading.Timer(seconds, deadline.cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if deadline.over:
            raise requests.Timeout(f"no whole answer within {seconds:g} s") from error
        raise
    else:
        if deadline.over:  # what has no length looks whole when it is cut
            raise requests.Timeout(f"no whole answer within {seconds:g} s")
    finally:
        timer.cancel()
        deadline.done()


class _Deadline:
    """Connections that are cut together."""

    def __init__(self) -> None:
        self.over = False
        self._held: list[socket.socket] = []
        self._lock = threading.Lock()

    def holds(self, made: socket.socket) -> None:
        """Cut this connection, too: by a second handle, which stays good when TLS takes over the first."""
        with self._lock:
            self._held.append(made.dup())
        if self.over:
            self.cut()

    def cut(self) -> None:
        """The time is up."""
        with self._lock:
            self.over = True
            for one in self._held:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def done(self) -> None:
        """Let go of all."""
        with self._lock:
            held, self._held = self._held, []
        for one in held:
            one.close()


class _Adapter(HTTPAdapter):
    """Has each connection that it opens held by a deadline."""

    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """The pool that a request takes its connection from."""
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        if "ConnectionCls" not in vars(pool):
            pool.ConnectionCls = _held_by(self._deadline, pool.ConnectionCls)
        return pool


def _held_by(deadline: _Deadline, kind: Any) -> type:
    class Held(kind):  # type: ignore[misc]
        def _new_conn(self) -> socket.socket:
            made: socket.socket = super()._new_conn()
            deadline.holds(made)
            return made

    return Held
