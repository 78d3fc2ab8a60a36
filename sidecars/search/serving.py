"""Listening: on a Unix socket or on a port, until SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import uvicorn

from sidecars.search.api import Api
from sidecars.search.app import application
from sidecars.search.errors import DataError
from sidecars.search.prepared import open_collection
from sidecars.search.served import LOG_BYTES, ServedLog
from sidecars.serving import settings


class _Server(uvicorn.Server):
    """Signals are ours: the server ends, the process ends well."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    folder: Path,
    *,
    index: str,
    prefix: str,
    path: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    log: Path | None = None,
    log_bytes: int = LOG_BYTES,
    threads: int | None = None,
) -> None:
    """Open the data folder, then listen on the Unix socket ``path`` or on ``host``:``port`` until SIGTERM or SIGINT.

    There is nothing to connect to before everything is ready. Raises DataError for a bad folder or address.
    """
    began = time.monotonic()
    with (
        _ending_well(),
        open_collection(folder) as collection,
        contextlib.closing(ServedLog(log, log_bytes)) as served,
    ):
        listener = _on_path(path) if path is not None else _on_port(host, port)
        where = str(path) if path is not None else f"http://{host}:{listener.getsockname()[1]}"
        taken = time.monotonic() - began
        print(
            f"{collection.text.count} arguments, {len(collection.matrices)} fields of vectors, {collection.note},"
            f" ready in {taken:.1f} s at {where}",
            file=sys.stderr,
            flush=True,
        )
        config = settings(
            application(Api(collection, index, prefix, served), threads),
            log_level="error",  # clients could fill a log with warnings
            lifespan="off",
        )
        try:
            asyncio.run(_until_signalled(_Server(config), listener))
        finally:
            if path is not None:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def _ending_well() -> Iterator[None]:
    """SIGTERM before the server runs: there is nobody to answer yet; clean up, and end well."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def _until_signalled(server: _Server, listener: socket.socket) -> None:
    def end() -> None:
        server.should_exit = True

    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, end)
    await server.serve(sockets=[listener])


def _on_path(path: Path) -> socket.socket:
    """Listen on a Unix socket that every user may connect to; one left over from before is replaced."""
    try:
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise DataError([f"{path}: {error.strerror}"], "give another path with --socket") from error
    return listener


def _on_port(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With its protocol named, asyncio sends small answers at once instead of waiting for the client's nod.
        listener = socket.socket(family, kind, proto)
    except OSError as error:
        raise DataError([f"{host}:{port}: {error.strerror}"], "give another address") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise DataError([f"{host}:{port}: {error}"], "give another address") from error
    return listener
