"""How every server of ours listens: on a Unix socket that all may connect to, or on TCP, and says so when it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    import uvicorn

    Scope = MutableMapping[str, Any]
    Application = Callable[
        [Scope, Callable[[], Awaitable[Scope]], Callable[[Scope], Awaitable[None]]], Awaitable[None]
    ]

CONNECTIONS = 512
# Seconds that a connection may be idle, here and in the relay: longer than any run. A client that thinks for as long as
# its task lets it must not find the connection closed that it kept; whoever holds many of them blocks only itself.
IDLE_SECONDS = 7 * 24 * 3600
GRACE = 2  # seconds for open requests after SIGTERM


def serve(
    app: Application,
    *,
    socket: Path | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    connections: int = CONNECTIONS,
) -> None:
    """Serve ``app`` until SIGTERM or SIGINT. Prints ``ready`` to stdout once it listens.

    ``port`` 0 picks a free one; the line is then ``ready <port>``. A stale socket is removed. Beyond ``connections``
    open ones clients get 503. Raises SystemExit when the address cannot be listened on.
    """
    import uvicorn

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                bound = (
                    [] if socket else [str(bound.getsockname()[1]) for bound in self.servers[0].sockets[:1]]
                )
                print("ready", *bound, flush=True)

        async def shutdown(self, sockets: Any = None) -> None:
            await super().shutdown(sockets)
            self._captured_signals.clear()  # else they are raised again, and a clean end looks like a kill

    if socket is not None:
        socket.unlink(missing_ok=True)
    config = settings(
        app,
        uds=str(socket) if socket is not None else None,
        host=host,
        port=port or 0,
        http="h11",
        loop="asyncio",
        lifespan="on",
        log_level="warning",
        limit_concurrency=connections,
    )
    Announced(config).run()


def settings(app: Application, **more: Any) -> uvicorn.Config:
    """What all servers of ours have in common, and ``more`` of uvicorn's settings."""
    import uvicorn

    return uvicorn.Config(
        app,
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE,
        **more,
    )
