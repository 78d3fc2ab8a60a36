"""What our HTTP servers share: the address they listen on, start-up and end, bounded bodies, and errors as answers."""

from __future__ import annotations

import argparse
import asyncio
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from socket import AF_UNIX, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo
from socket import socket as Socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

CONNECTIONS = 512
# Seconds that a connection may be idle, here and in the relay: longer than any run. A client that thinks for as long as
# its task lets it must not find the connection closed that it kept; whoever holds many of them blocks only itself.
IDLE_SECONDS = 7 * 24 * 3600
GRACE = 2  # seconds for open requests after SIGTERM
BODY_SECONDS = 30.0  # for the whole body of a request
WAITING = 128  # connections that wait to be accepted


class HttpError(Exception):
    """A request that is not served: an HTTP status, a stable code, and what to say."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class AddressError(Exception):
    """The address cannot be listened on; the words name it and say why."""


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a server listens: ``--socket``, or ``--port`` and ``--host``."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=Path, metavar="PATH", help="Unix socket to listen on")
    where.add_argument("--port", type=int, metavar="N", help="TCP port to listen on (0: any that is free)")
    parser.add_argument("--host", default="127.0.0.1", help="with --port (default: %(default)s)")


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request. Raises :class:`HttpError`: 413 beyond ``most`` bytes, 408 after 30 seconds."""
    too_long = HttpError(413, "too_large", f"the body is longer than {most} bytes")
    if int(request.headers.get("content-length", 0)) > most:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise too_long
    except TimeoutError:
        raise HttpError(408, "timeout", f"the body took longer than {BODY_SECONDS:g} s") from None
    return bytes(body)


def application(
    routes: Sequence[Route],
    error_body: Callable[[str, str], Any],
    *,
    unknown: tuple[str, str],
    broken: tuple[str, str],
    error_headers: dict[str, str] | None = None,
    lifespan: Any = None,
) -> Starlette:
    """The ASGI application of ``routes``, with an answer of the same form for everything that goes wrong.

    Args:
        routes: Their functions may raise :class:`HttpError`.
        error_body: Makes the JSON of such an answer from code and message.
        unknown: Code and message for a path or method that no route has.
        broken: Code and message (status 500) for an exception that nobody expected.
        error_headers: Headers of these answers.
        lifespan: As Starlette takes it.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response

    def answer(status: int, code: str, message: str) -> Response:
        headers = dict(error_headers or {})
        if status in (408, 413):
            headers["connection"] = "close"  # what is left of the body would be taken for the next request
        return JSONResponse(error_body(code, message), status, headers)

    async def respond(_: Request, problem: Exception) -> Response:
        if isinstance(problem, HttpError):
            return answer(problem.status, problem.code, problem.message)
        if isinstance(problem, HTTPException):
            return answer(problem.status_code, *unknown)
        return Response(status_code=400) if isinstance(problem, ClientDisconnect) else answer(500, *broken)

    handlers = dict.fromkeys((HttpError, HTTPException, ClientDisconnect, Exception), respond)
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)


def end_on_sigterm() -> None:
    """Let SIGTERM end the process with code 0 and clean-up, also before it serves anybody. For the main thread."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def serve(
    app: Any,
    *,
    socket: Path | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    note: str = "",
    connections: int | None = CONNECTIONS,
) -> None:
    """Serve an ASGI application until SIGTERM or SIGINT. Prints ``ready`` (or ``ready <port>``) once it listens.

    Args:
        app: The application.
        socket: A Unix socket to listen on, which every user may connect to. One that was left there is replaced.
        host: An address to listen on, when there is no socket.
        port: A TCP port; 0 picks a free one.
        note: What to print to stderr then, with the address.
        connections: Clients get status 503 beyond so many open ones; None for no bound.

    Raises:
        AddressError: The address cannot be listened on.
    """
    import uvicorn

    listener = _on_path(socket) if socket is not None else _on_port(host, port or 0)
    bound = [] if socket is not None else [listener.getsockname()[1]]
    where = str(socket) if socket is not None else f"http://{host}:{bound[0]}"

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                print(f"{note} at {where}", file=sys.stderr, flush=True)
                print("ready", *bound, flush=True)

        async def shutdown(self, sockets: Any = None) -> None:
            await super().shutdown(sockets)
            self._captured_signals.clear()  # else they are raised again, and a clean end looks like a kill

    config = uvicorn.Config(
        app,
        http="h11",
        loop="asyncio",
        ws="none",
        log_level="error",  # clients could fill a log with warnings
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE,
    )
    try:
        Announced(config).run(sockets=[listener])
    finally:
        if socket is not None:
            socket.unlink(missing_ok=True)


def run(app: Any, given: argparse.Namespace, note: str) -> int:
    """Serve where the options of :func:`add_address` say. Returns the exit code: 0, or 1 for an address that is no use."""
    end_on_sigterm()
    try:
        serve(app, socket=given.socket, host=given.host, port=given.port, note=note)
    except AddressError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _on_path(path: Path) -> Socket:
    listener = Socket(AF_UNIX, SOCK_STREAM)
    try:
        if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(WAITING)
    except OSError as error:
        listener.close()
        raise AddressError(f"{path}: {error.strerror or error}") from error
    return listener


def _on_port(host: str, port: int) -> Socket:
    try:
        family, kind, proto, _, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        # With its protocol named, asyncio sends small answers at once instead of waiting for more (Nagle's algorithm).
        listener = Socket(family, kind, proto)
        try:
            listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(WAITING)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        raise AddressError(f"{host}:{port}: {error}") from error
    return listener
