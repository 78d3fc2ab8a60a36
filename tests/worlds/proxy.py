"""A small TCP proxy that breaks: after so many bytes it closes a connection in the middle, as a bad line does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Proxy:
    """Passes connections on. ``passed`` counts bytes in both directions; at ``cut_at`` the connection that carries that
    byte is closed behind it, and ``cuts`` counts one. While ``down``, nobody is connected."""

    def __init__(self, target: int | str, listening: socket.socket) -> None:
        self.target, self._listening = target, listening
        self.port: int = listening.getsockname()[1]
        self.passed = self.cuts = 0
        self.cut_at: int | None = None
        self.down = False
        self._lock = threading.Lock()

    def accept(self) -> None:
        """Accept connections until the listening socket is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.down:
                    client.close()
                    continue
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    server = self._connected()
                except OSError:  # nobody is there now; later somebody may be
                    client.close()
                    continue
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _connected(self) -> socket.socket:
        if isinstance(self.target, str):
            made = socket.socket(socket.AF_UNIX)
            made.connect(self.target)
            return made
        made = socket.create_connection(("127.0.0.1", self.target))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(4096):
                with self._lock:
                    left = len(part) if self.cut_at is None else max(0, self.cut_at - self.passed)
                    here = part[:left]
                    self.passed += len(here)
                    cut = len(here) < len(part)
                    if cut:
                        self.cut_at, self.cuts = None, self.cuts + 1
                sink.sendall(here)
                if cut or self.down:
                    break
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy(target: int | str = 0) -> Iterator[Proxy]:
    """A proxy on a port of this machine, to another port or the path of a socket; its target can be set later."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = Proxy(target, listening)
        thread = threading.Thread(target=made.accept, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
