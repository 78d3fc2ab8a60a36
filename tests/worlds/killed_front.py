"""A real server process that kills itself at one point of an upload, and is started again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.worlds.ports import free_port

# Points in the order in which a submitted upload passes them.
POINTS = (
    "before the digest",
    "before the digest note",
    "before the request",
    "before move 1",
    "after move 1",
    "before move 2",
    "after move 2",
    "before the note",
    "after the note",
    "before the removal",
    "after the removal",
)
_SERVER = """
import os, signal, sys
from pathlib import Path
from runner.exchange import inbox
from runner.web import uploads
from runner.web.server import serve
from runner.web.sessions import Sessions

point, exchange, state, port = sys.argv[1:]
moves = 0

def reach(here):
    if point == here:
        os.kill(os.getpid(), signal.SIGKILL)

def kill_around(owner, name, before, after=""):
    real = getattr(owner, name)
    def wrapped(*given, **named):
        reach(before)
        result = real(*given, **named)
        reach(after)
        return result
    setattr(owner, name, wrapped)

def rename(self, target, real=Path.rename):
    global moves
    if not str(self).startswith(exchange + "/inbox"):
        return real(self, target)
    moves += 1
    reach(f"before move {moves}")
    result = real(self, target)
    reach(f"after move {moves}")
    return result

Path.rename = rename
kill_around(uploads, "file_sha256", "before the digest", "before the digest note")
kill_around(inbox, "prove", "before the request")
kill_around(Sessions, "note", "before the note", "after the note")
kill_around(uploads.Uploads, "forget", "before the removal", "after the removal")
serve(Path(exchange), Path(state), "127.0.0.1", int(port), None, lambda text: print(text, flush=True))
"""


@dataclass
class KilledFront:
    """A server over an exchange folder. It is started again whenever it was killed, but not at ``point`` again."""

    exchange: Path
    state: Path
    point: str
    port: int = field(default_factory=free_port)
    kills: int = 0
    _process: subprocess.Popen[str] | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, point: str = "none") -> None:
        """Start the server, and return once it listens."""
        words = [point, str(self.exchange), str(self.state), str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, *words], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("ready")

    def wait_killed(self) -> None:
        """Wait until the server has killed itself."""
        assert self._process is not None
        assert self._process.wait(60) == -signal.SIGKILL
        self.kills += 1

    def supervise(self) -> None:
        """Start the server again whenever it was killed, until :meth:`stop`."""
        while not self._stop.is_set():
            assert self._process is not None
            is_killed = self._process.wait() == -signal.SIGKILL
            with self._lock:  # a server that starts while :meth:`stop` runs would stay
                if is_killed and not self._stop.is_set():
                    self.kills += 1
                    self.start()

    def stop(self) -> None:
        """End the server."""
        self._stop.set()
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                self._process.wait(60)


@contextmanager
def killed_front(exchange: Path, state: Path, point: str, *, restart: bool = True) -> Iterator[KilledFront]:
    """Run a server that kills itself at ``point``; with ``restart`` it is started again then."""
    front = KilledFront(exchange, state, point)
    front.start(point)
    thread = threading.Thread(target=front.supervise)
    if restart:
        thread.start()
    try:
        yield front
    finally:
        front.stop()
        if restart:
            thread.join()
