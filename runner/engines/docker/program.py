"""A program that the engine runs in a container that is there already ("exec"): what it says, how it ends, what it leaves."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator

from runner.engines.docker.client import FRAME, STDERR, STDOUT, Clients
from runner.engines.docker.handle import POLL
from runner.engines.text import printable
from runner.model.errors import PlatformError

FORGOTTEN = 30 * 24 * 3600.0  # seconds after which a program is no longer listened to
LEAVING = 1.0  # seconds that processes may still be there after the program's end
CHUNK = 1 << 20
MEMORY = 8 * CHUNK  # bytes of its output that are kept in memory; more is a file


class Program:
    """A program: the last ``cap`` bytes of its two streams, its exit code, and at most ``most`` bytes of what follows ``mark``
    on its standard output."""

    def __init__(self, clients: Clients, program: str, cap: int, mark: bytes, most: int) -> None:
        self._clients, self._id, self._cap, self._mark, self._most = clients, program, cap, mark, most
        self._output = tempfile.SpooledTemporaryFile(MEMORY)  # noqa: SIM115 (until it is closed)
        self._marked, self._maybe = False, b""
        self._tails = {STDOUT: bytearray(), STDERR: bytearray()}
        self.truncated = False
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="reads a program", daemon=True)

    def _read(self) -> None:
        """Start it, and read until the engine has nothing more to give."""
        try:
            # Its end, or that of the room, ends the answer; the time is for an engine that forgets to say so.
            with self._clients.streaming("running a program in a room", FORGOTTEN) as (api, _):
                answer = api.post(
                    f"{api.base_url}/v{api.api_version}/exec/{self._id}/start",
                    json={"Detach": False, "Tty": False},
                    stream=True,
                )
                if answer.status_code >= 400:
                    why = printable(answer.text, 500)
                    raise PlatformError("a program could not be started in a room", why=why)
                while len(mark := answer.raw.read(FRAME.size)) == FRAME.size:
                    stream, length = FRAME.unpack(mark)
                    self._hear(stream, answer.raw.read(length))
                self._keep(STDOUT, self._maybe)
        except BaseException as error:  # noqa: BLE001  (a thread's border: raised again where it is waited for)
            self._failure = error

    def _hear(self, stream: int, said: bytes) -> None:
        """One piece. The end of a piece may be the beginning of the mark."""
        if stream == STDOUT and not self._marked:
            before, found, said = (self._maybe + said).partition(self._mark)
            self._marked = bool(found)
            cut = len(before) if found else max(0, len(before) - len(self._mark) + 1)
            self._keep(STDOUT, before[:cut])
            self._maybe = before[cut:]
        if stream == STDERR:
            self._keep(STDERR, said)
        elif self._marked:
            with self._lock:
                if not self._output.closed:
                    self._output.write(said[: max(0, self._most + 1 - self._output.tell())])

    def _keep(self, stream: int, said: bytes) -> None:
        with self._lock:
            tail = self._tails[stream]
            tail += said
            self.truncated = self.truncated or len(tail) > self._cap
            if len(tail) > 2 * self._cap:  # seldom: each time costs as much as what is kept
                del tail[: -self._cap]

    def start(self) -> None:
        """Start it."""
        self._reader.start()

    def wait(self, seconds: float) -> None:
        """Wait until it is silent for good, at most ``seconds``; a moment if it is already."""
        if not self._reader.is_alive():
            time.sleep(min(seconds, POLL / 10))
        self._reader.join(seconds)

    def exit_code(self) -> int | None:
        """Its exit code, None while it runs. Raises PlatformError when it cannot be started or heard."""
        with self._clients.calling("looking at a program in a room") as api:
            facts = api.exec_inspect(self._id)
        if not facts["Running"] and facts["ExitCode"] is not None and self._failure is None:
            return int(facts["ExitCode"])
        if self._failure is not None:
            raise self._failure
        return None

    def talking(self, seconds: float = LEAVING) -> bool:
        """Whether more of it may come, ``seconds`` after its end: something can still write, or it is slow to arrive."""
        self._reader.join(seconds)
        return self._reader.is_alive()

    def output(self) -> Iterator[bytes]:
        """What came after the mark; nothing more is taken up."""
        with self._lock:
            output, self._output = self._output, tempfile.SpooledTemporaryFile()  # noqa: SIM115
            self._output.close()
        with output:
            output.seek(0)
            while chunk := output.read(CHUNK):
                yield chunk

    def close(self) -> None:
        """Forget what came after the mark."""
        with self._lock:
            self._output.close()

    def said(self) -> tuple[bytes, bytes]:
        """The last bytes of both streams."""
        with self._lock:
            return bytes(self._tails[STDOUT][-self._cap :]), bytes(self._tails[STDERR][-self._cap :])
