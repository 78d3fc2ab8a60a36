"""The relay between a room without a network and the Unix sockets that lead out of it.

::

    python3 -m sidecars.relay --listen-socket /sock/software.sock --to-port 8080 \\
                              --listen-port 9200 --to-socket /search/search.sock

The software shares this container's loopback and nothing else. One ``socat`` a direction copies bytes: from a
socket that the driver connects to, to the software's port; and from a port that the software connects to, to
the search server's socket. Their children are counted apart, so that a software that floods one direction
blocks itself there and nobody in the other.

It writes ``ready`` to its standard output when everything listens: only then may the software start, which
could otherwise take a port first. It ends with code 0 on SIGTERM, 1 when a ``socat`` ended by itself, and 2 when it
was called wrongly.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from sidecars.http import IDLE_SECONDS

LOOPBACK = "127.0.0.1"
START_SECONDS = 10.0
HALF_CLOSED = 5  # seconds that the other direction of a half-closed connection may go on
CONNECT_SECONDS = 5
LINES = 400  # of what a socat says; a flood of connections would be a flood of lines
PATH = re.compile(r"/[A-Za-z0-9/._-]{1,100}")  # nothing that means something in an address of socat


@dataclass(frozen=True)
class Way:
    """One direction: the command that serves it, and how to find out that it listens."""

    name: str
    command: tuple[str, ...]
    listens: Callable[[], bool]
    prepare: Callable[[], None]  # raises OSError when its place is taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Relay until SIGTERM; see the module for the exit codes."""
    given = _parser().parse_args(arguments)
    try:
        ways = list(_ways(given))
    except ValueError as error:
        print(f"relay: {error}", file=sys.stderr)
        return 2
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for way in ways:
            way.prepare()
            running[way.name] = _start(way)
        return _watch(ways, running, ending)
    except OSError as error:
        print(f"relay: {error}", file=sys.stderr)
        return 1
    finally:
        for process in running.values():
            _end(process)


def _watch(ways: Sequence[Way], running: dict[str, subprocess.Popen[bytes]], ending: threading.Event) -> int:
    """Wait for the end, ours or that of a socat."""
    give_up = time.monotonic() + START_SECONDS
    waiting = list(ways)
    while not ending.wait(0.02 if waiting else 0.2):
        waiting = [way for way in waiting if not way.listens()]
        for name, process in running.items():
            if process.poll() is not None:
                print(f"relay: socat for the {name} ended with code {process.returncode}", file=sys.stderr)
                return 1
        if waiting and time.monotonic() > give_up:
            print(f"relay: the {waiting[0].name} does not listen", file=sys.stderr)
            return 1
        if not waiting and give_up:
            give_up = 0.0
            print("ready", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m sidecars.relay", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--listen-socket", type=Path, help="socket to listen on, for --to-port")
    parser.add_argument("--to-port", type=int, help="port on the loopback that its connections go to")
    parser.add_argument("--listen-port", type=int, help="port on the loopback to listen on, for --to-socket")
    parser.add_argument("--to-socket", type=Path, help="socket that its connections go to")
    parser.add_argument(
        "--max-children", type=int, default=32, help="connections at the same time a direction (default 32)"
    )
    parser.add_argument(
        "--idle",
        type=int,
        default=IDLE_SECONDS,
        help="seconds without a byte after which a connection is closed (default: a week)",
    )
    return parser


def _ways(given: argparse.Namespace) -> Iterator[Way]:
    """The directions that the arguments ask for. Raises ValueError."""
    if (given.listen_socket is None) != (given.to_port is None):
        raise ValueError("--listen-socket and --to-port belong together")
    if (given.listen_port is None) != (given.to_socket is None):
        raise ValueError("--listen-port and --to-socket belong together")
    if given.listen_socket is None and given.listen_port is None:
        raise ValueError("there is nothing to relay")
    for port in (given.to_port, given.listen_port):
        if port is not None and not 0 < port < 65536:
            raise ValueError(f"{port} is not a port")
    if given.listen_port is not None and given.listen_port == given.to_port:
        raise ValueError("the relay and the software cannot have the same port")
    for path in (given.listen_socket, given.to_socket):
        if path is not None and not PATH.fullmatch(str(path)):
            raise ValueError("a socket needs an absolute path of letters, digits, '.', '_' and '-'")
    if given.max_children < 1 or given.idle < 1:
        raise ValueError("--max-children and --idle are at least 1")
    socat = ("socat", "-T", str(given.idle), "-t", str(HALF_CLOSED))
    many = f"fork,max-children={given.max_children},backlog={max(given.max_children, 16)}"
    if given.listen_socket is not None:
        path = given.listen_socket
        yield Way(
            f"socket {path}",
            (
                *socat,
                f"UNIX-LISTEN:{path},{many},mode=0666",
                f"TCP4:{LOOPBACK}:{given.to_port},connect-timeout={CONNECT_SECONDS},nodelay",
            ),
            lambda: _open_to_all(path) and _accepts(socket.AF_UNIX, str(path)),
            lambda: _make_room(path),
        )
    if given.listen_port is not None:
        yield Way(
            f"port {given.listen_port}",
            (
                *socat,
                f"TCP4-LISTEN:{given.listen_port},bind={LOOPBACK},reuseaddr,nodelay,{many}",
                f"UNIX-CONNECT:{given.to_socket}",
            ),
            lambda: _accepts(socket.AF_INET, (LOOPBACK, given.listen_port)),
            lambda: _is_free(given.listen_port),
        )


def _open_to_all(path: Path) -> bool:
    """Whether the socket is there with its final mode."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o666


def _accepts(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    """Whether somebody listens there. The other end, which may not be there yet, does not matter."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        probe.connect(address)
        return True
    return False


def _make_room(path: Path) -> None:
    """Remove a socket that an earlier relay left; anything else at that path stays, and socat then fails."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


def _is_free(port: int) -> None:
    """Raise OSError when somebody listens there, who would else pass for ours until it has failed."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((LOOPBACK, port))


def _start(way: Way) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        way.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        process_group=0,  # so that it can be ended with the children that serve connections
    )
    assert process.stderr is not None
    threading.Thread(target=_pass_on, args=(process.stderr,), daemon=True).start()
    return process


def _pass_on(stream: IO[bytes]) -> None:
    """Pass on the first lines, read and drop the others."""
    for number, line in enumerate(iter(lambda: stream.readline(500), b"")):
        if number < LINES:
            sys.stderr.write(line.decode("ascii", "backslashreplace"))
            sys.stderr.flush()
        elif number == LINES:
            print("relay: more lines are not shown", file=sys.stderr, flush=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
            return


if __name__ == "__main__":
    sys.exit(main())
