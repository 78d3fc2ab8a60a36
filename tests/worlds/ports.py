"""Ports for servers that are started later, in processes that take a number and nothing else."""

from __future__ import annotations

import secrets
import socket

# Below those that Linux gives to whoever asks for any port, and to every connection that goes out: none of them takes it meanwhile.
_FIRST, _COUNT = 10_000, 20_000


def free_port() -> int:
    """A port of loopback at which nobody listens, and which nobody gets by chance. Raises OSError where none is found."""
    for _ in range(100):
        port = _FIRST + secrets.randbelow(_COUNT)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise OSError("no port is free")
