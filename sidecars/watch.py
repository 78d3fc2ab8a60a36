"""Watches a server of ours while a run goes on, so that one that hangs is not taken for one that has no answer.

::

    python3 -m sidecars.watch --socket /search/search.sock --path /healthz --ready 60 --patience 30

It writes ``ready`` to its standard output at the first healthy answer (status 200). It ends with code 1 when there
was none within ``--ready`` seconds, and with code 3 when later there was none for ``--patience`` seconds. It comes
to the server past the relay, so that a software's flood of connections there does not keep it out.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

STEP = 2.0  # seconds between looks, and for one look
FIRST_STEP = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch until ended; see the module for the exit codes."""
    parser = argparse.ArgumentParser(prog="python3 -m sidecars.watch", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--path", default="/healthz")
    parser.add_argument("--ready", type=float, default=60.0, help="seconds until the first healthy answer")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds without one that are too many")
    given = parser.parse_args(arguments)
    last, limit, step, ready = time.monotonic(), given.ready, FIRST_STEP, False
    while True:
        healthy, why = look(given.socket, given.path)
        if healthy:
            last = time.monotonic()
            if not ready:
                print("ready", flush=True)
                ready, limit, step = True, given.patience, STEP
        elif time.monotonic() - last > limit:
            print(f"watch: no healthy answer for {limit:g} s: {why}", file=sys.stderr)
            return 3 if ready else 1
        time.sleep(step)


def look(path: Path, target: str, seconds: float = STEP) -> tuple[bool, str]:
    """Whether the server behind the socket answers ``GET target`` with status 200 in time, and if not, why."""
    until = time.monotonic() + seconds
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(seconds)
            peer.connect(str(path))
            peer.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            head = b""
            while b"\r\n" not in head and len(head) < 4096:
                peer.settimeout(max(until - time.monotonic(), 0.01))
                piece = peer.recv(4096)
                if not piece:
                    return False, "it closed the connection"
                head += piece
    except OSError as error:
        return False, "it does not answer" if isinstance(error, TimeoutError) else str(error)
    parts = head.split(b"\r\n", 1)[0].split(b" ", 2)
    status = parts[1].decode("ascii", "replace") if len(parts) > 1 else "?"
    return status == "200", f"status {status}"


if __name__ == "__main__":
    sys.exit(main())
