"""HTTP over a Unix socket: one connection a request, against a server that may be hostile or broken.

No redirect is followed, no cookie is kept, no proxy is asked, nothing is decompressed. Every exchange ends
within its time, whatever the other side sends or how slowly.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import schemas

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2

Kind = Literal[
    "timeout",
    "connection",
    "status",
    "empty",
    "too-large",
    "not-json",
    "wrong-type",
    "no-content",
    "run-limit",
    "server-ended",
]
REFUSED_BODY = 2048  # bytes that are read of an answer with another status than 200, to show them


class Failure(Exception):
    """One exchange that gave no usable answer: its class, facts in one safe line, and what is known of it."""

    def __init__(self, kind: Kind, detail: str, *, status: int | None = None, size: int = 0) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = schemas.show(detail, 300)
        self.status = status
        self.size = size


class Peer:
    """A server behind a Unix socket. ``name`` is what the Host header says (``host:port``)."""

    def __init__(self, socket: Path | str, name: str = "127.0.0.1:8080") -> None:
        import httpx2

        self.socket, self.name = str(socket), name
        # A connection of its own for every request: a server that closes idle ones can then not be mistaken
        # for one that fails, and one with a single thread is not kept busy by silence.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        self._transport = httpx2.AsyncHTTPTransport(
            uds=self.socket, trust_env=False, limits=limits, verify=_no_tls()
        )

    async def ask(
        self, method: str, path: str, body: bytes | None = None, *, seconds: float, max_bytes: int
    ) -> bytes:
        """Return the body of the answer to one request, with status 200 and at most ``max_bytes``.

        Raises :class:`Failure`, and never takes much longer than ``seconds``.
        """
        import httpx2

        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = httpx2.Request(method, f"http://{self.name}{path}", headers=headers, content=body)
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(request, max_bytes)
        except TimeoutError:
            raise Failure("timeout", f"no whole answer within {seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            raise Failure("connection", str(error) or type(error).__name__) from None
        except ValueError as error:  # numbers and texts in headers that cannot be
            raise Failure("connection", f"not HTTP: {error}") from None

    async def _exchange(self, request: httpx2.Request, max_bytes: int) -> bytes:
        response = await self._transport.handle_async_request(request)
        try:
            status = response.status_code
            if status != 200:
                said, _ = await _body(response, REFUSED_BODY)
                raise Failure("status", _status(status, said), status=status, size=len(said))
            if (coding := response.headers.get("content-encoding", "identity").lower()) != "identity":
                detail = f"the answer is encoded ({schemas.show(coding)}), which was not asked for"
                raise Failure("not-json", detail, status=status)
            body, more = await _body(response, max_bytes)
        finally:
            await response.aclose()
        if more:
            detail = f"the answer is longer than {max_bytes} bytes"
            raise Failure("too-large", detail, status=status, size=len(body))
        return body

    async def accepts(self, hold: float = 0.3) -> bool:
        """Whether a connection can be made and stays open for ``hold`` seconds. Nothing is sent.

        Behind a relay a connection always succeeds at first; it ends at once when nobody listens there.
        """
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_unix_connection(self.socket), hold + 1)
        except (OSError, TimeoutError):
            return False
        try:
            return bool(await asyncio.wait_for(reader.read(1), hold))
        except TimeoutError:
            return True
        except OSError:
            return False
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _body(response: httpx2.Response, cap: int) -> tuple[bytes, bool]:
    """The first ``cap`` bytes of a body, and whether there were more."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > cap:
            return bytes(body[:cap]), True
    return bytes(body), False


def _status(status: int, body: bytes) -> str:
    text = schemas.show(body.decode("utf-8", "replace").strip(), 200)
    return f"status {status}" + (f": {text}" if text else "")


def _no_tls() -> SSLContext:
    """A context that is never used, without the certificates that take time to load."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
