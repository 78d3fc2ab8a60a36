"""How every server of ours listens: on a Unix socket that all may connect to, or on TCP, and says so when it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Application = Callable[
        [Scope, Callable[[], Awaitable[Scope]], Callable[[Scope], Awaitable[None]]], Awaitable[None]
    ]

CONNECTIONS = 512
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
    config = uvicorn.Config(
        app,
        uds=str(socket) if socket is not None else None,
        host=host,
        port=port or 0,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE,
    )
    Announced(config).run()
