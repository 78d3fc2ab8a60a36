"""The relay between a loopback without a network and the Unix sockets that lead out of it.

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
from functools import partial
from pathlib import Path
from typing import IO

from sidecars.http import IDLE_SECONDS

LOOPBACK = "127.0.0.1"
START_SECONDS = 10.0
HALF_CLOSED = 5  # seconds that the other direction of a half-closed connection may go on
CONNECT_SECONDS = 5
LINES = 400  # of what a socat says; a flood of connections would be a flood of lines
PATH = re.compile(r"/[A-Za-z0-9/._-]{1,100}")  # nothing that means something in an address of socat


@dataclass(frozen=True)
class Direction:
    """A direction in which connections are made: the command that serves it, and how to find out that it listens."""

    name: str
    command: tuple[str, ...]
    listens: Callable[[], bool]
    prepare: Callable[[], None]  # raises OSError when its place is taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Relay until SIGTERM; see the module for the exit codes."""
    given = _parser().parse_args(arguments)
    try:
        _check(given)
    except ValueError as error:
        print(f"relay: {error}", file=sys.stderr)
        return 2
    directions = list(_directions(given))
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for direction in directions:
            direction.prepare()
            running[direction.name] = _start(direction)
        return _watch(directions, running, ending)
    except OSError as error:
        print(f"relay: {error}", file=sys.stderr)
        return 1
    finally:
        for process in running.values():
            _end(process)


def _watch(
    directions: Sequence[Direction], running: dict[str, subprocess.Popen[bytes]], ending: threading.Event
) -> int:
    """Say ``ready`` when all directions listen, then wait for the end: ours (0), or that of a socat (1).

    A socat cannot say when it listens, so each direction is tried out until a connection succeeds.
    """
    give_up = time.monotonic() + START_SECONDS
    waiting = list(directions)
    while not ending.wait(0.02 if waiting else 0.2):
        waiting = [direction for direction in waiting if not direction.listens()]
        for name, process in running.items():
            if process.poll() is not None:
                print(f"relay: socat for the {name} ended with code {process.returncode}", file=sys.stderr)
                return 1
        if waiting and time.monotonic() > give_up:
            print(f"relay: the {waiting[0].name} does not listen", file=sys.stderr)
            return 1
        if not waiting and give_up:
            give_up = 0.0  # said once; from now on there is nothing to wait for
            print("ready", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m sidecars.relay", description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    add = parser.add_argument
    add("--listen-socket", type=Path, help="socket to listen on, for --to-port")
    add("--to-port", type=int, help="port on the loopback that its connections go to")
    port = "port on the loopback to listen on, for --to-socket; repeatable, each with a socket"
    add("--listen-port", type=int, action="append", default=[], help=port)
    add("--to-socket", type=Path, action="append", default=[], help="socket that its connections go to")
    add("--max-children", type=int, default=32, help="connections at the same time a direction (default 32)")
    idle = "seconds without a byte after which a connection is closed (default: a week)"
    add("--idle", type=int, default=IDLE_SECONDS, help=idle)
    return parser


def _check(given: argparse.Namespace) -> None:
    """Raise ValueError for arguments that cannot be meant."""
    ports, sockets = given.listen_port, given.to_socket
    if (given.listen_socket is None) != (given.to_port is None):
        raise ValueError("--listen-socket and --to-port belong together")
    if len(ports) != len(sockets):
        raise ValueError("--listen-port and --to-socket belong together")
    if given.listen_socket is None and not ports:
        raise ValueError("there is nothing to relay")
    for port in (given.to_port, *ports):
        if port is not None and not 0 < port < 65536:
            raise ValueError(f"{port} is not a port")
    if given.to_port in ports:
        raise ValueError("the relay and the software cannot have the same port")
    if len(set(ports)) < len(ports):
        raise ValueError("a port can be listened on once")
    for path in (given.listen_socket, *sockets):
        if path is not None and not PATH.fullmatch(str(path)):
            raise ValueError("a socket needs an absolute path of letters, digits, '.', '_' and '-'")
    if given.max_children < 1 or given.idle < 1:
        raise ValueError("--max-children and --idle are at least 1")


def _directions(given: argparse.Namespace) -> Iterator[Direction]:
    """The directions that the arguments ask for."""
    socat = ("socat", "-T", str(given.idle), "-t", str(HALF_CLOSED))
    # A child a connection. Those that find none free wait in the backlog of their own direction.
    many = f"fork,max-children={given.max_children},backlog={max(given.max_children, 16)}"
    if (path := given.listen_socket) is not None:
        yield Direction(
            f"socket {path}",
            (
                *socat,
                # Whoever mounts the socket's volume may connect: sidecars run under another user than the relay's client.
                f"UNIX-LISTEN:{path},{many},mode=0666",
                f"TCP4:{LOOPBACK}:{given.to_port},connect-timeout={CONNECT_SECONDS},nodelay",
            ),
            lambda: _open_to_all(path) and _accepts(socket.AF_UNIX, str(path)),
            lambda: _make_room(path),
        )
    for port, target in zip(given.listen_port, given.to_socket, strict=True):
        yield Direction(
            f"port {port}",
            (
                *socat,
                # reuseaddr: a port that a connection of before still holds in TIME_WAIT can be listened on again.
                f"TCP4-LISTEN:{port},bind={LOOPBACK},reuseaddr,nodelay,{many}",
                f"UNIX-CONNECT:{target}",
            ),
            partial(_accepts, socket.AF_INET, (LOOPBACK, port)),
            partial(_is_free, port),
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


def _start(direction: Direction) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        direction.command,
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
    """End a socat with all its children, which are in its process group: politely, after a second by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
            return


if __name__ == "__main__":
    sys.exit(main())
