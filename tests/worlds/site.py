"""A front in this process, over a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from runner.web.server import application


@contextmanager
def serving(exchange: Path, state: Path, most: int = 100_000) -> Iterator[str]:
    """The address of a front over the exchange folder, for as long as the block lasts."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = application(exchange, state, url, most=most, ending=lambda: server.should_exit)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", server_header=False, proxy_headers=False, lifespan="off")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()
