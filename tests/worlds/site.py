"""A front in this process, over a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from runner.exchange.oidc import Provider
from runner.model.clock import Clock
from runner.web.limits import Waiting
from runner.web.server import application, settings
from tests.worlds.proxy import Proxy


@contextmanager
def serving(
    exchange: Path,
    state: Path,
    most: int = 100_000,
    *,
    work_key: str | None = None,
    through: Proxy | None = None,
    connection: Any = None,
    provider: Provider | None = None,
    clock: Clock | None = None,
    waiting: Waiting = Waiting(),
) -> Iterator[str]:
    """The address of a front over the exchange folder, for as long as the block lasts; ``through`` a proxy, that of the proxy.

    It has the settings of the real one; ``connection`` takes the place of its class of connections.
    """
    # Named as TCP, or asyncio leaves Nagle's algorithm on, and every answer waits 40 ms for an acknowledgement.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        if through is not None:
            through.target, port = port, through.port
        url = f"http://127.0.0.1:{port}"
        app = application(
            exchange,
            state,
            url,
            most=most,
            ending=lambda: server.should_exit,
            work_key=work_key,
            provider=provider,
            clock=clock,
            waiting=waiting,
        )
        config = settings(app)
        config.http = connection or config.http
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()
