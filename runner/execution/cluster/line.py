"""The coordinator's end of its line to a cluster: starts the process that holds Dask's client, and the next one when that ends.

What comes from it is JSON of bounded length; whoever holds that process can say that runs ended, and no more than a host could.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runner.model.errors import RunnerError
from runner.records.contents import Content
from schemas import show

MAX_LINE = 1 << 21
MAX_WISH = 1 << 15  # bytes of a line to the process, which takes lines of 1 << 16
WRITING = 10.0  # seconds within which the process has to read one
AWAY = "does not answer"  # what is said of a scheduler that is not there
SETTLED = 1.5  # seconds without another host after which all have said what they are
AGAIN = 2.0  # seconds after which a line that broke is opened again
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FILES = ("ca.pem", "cert.pem", "key.pem")
Told = Callable[[dict[str, Any]], None]


def hosts_now(
    address: str, certificates: Path | None, seconds: float = 10.0
) -> tuple[dict[str, Any], list[str]]:
    """What the hosts of the cluster at an address say of themselves, by their addresses, and what went wrong; within that time."""
    problems, heard = list[str](), queue.Queue[dict[str, Any]]()
    line = Line(address, certificates, problems.append)
    found: dict[str, Any] = {}
    line.start(heard.put, "")  # nobody's home: nothing that runs is dropped
    until = time.monotonic() + seconds
    try:
        while not any(AWAY in one for one in problems) and (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                found = dict(heard.get(timeout=left)["hosts"])
                until = min(until, time.monotonic() + SETTLED) if found else until
    finally:
        line.close()
    silent = not line.connected and not any(AWAY in one for one in problems)
    return found, problems + ([f"{address} {AWAY}"] if silent else [])


def check_installed() -> None:
    """Raise E101 where the packages of the extra ``cluster`` are not there."""
    missing = [name for name in ("distributed", "fsspec") if find_spec(name) is None]
    if missing:
        what = f"a cluster needs packages that are not installed: {', '.join(missing)}"
        raise RunnerError(
            "E101", what, fix="pip install 'proctor-ir[cluster]' (in the project's own folder: make tools)"
        )


def check_address(address: str, folder: Path | None) -> None:
    """Raise E101 for what is no address of a scheduler, where TLS lacks its files, or plain connections would leave this machine."""
    try:
        place = urlsplit(address)
        scheme, host, port = place.scheme, place.hostname, place.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in ("tls", "tcp") or not host or port is None:
        raise RunnerError(
            "E101", f"{address!r} is no address of a scheduler", fix="give one with its port: tls://HOST:8786"
        )
    if scheme == "tcp" and host not in LOOPBACK:
        what, why = (
            f"{address} is not encrypted",
            "Whoever can talk to a scheduler can run programs on its hosts.",
        )
        fix = f"use tls://{place.netloc} and certificates: runner cluster certificates FOLDER HOST …"
        raise RunnerError("E101", what, why=why, fix=fix)
    if scheme == "tcp" and folder is not None:
        what, why = f"there are certificates, and {address} uses none", f"They are in {folder}."
        raise RunnerError("E101", what, why=why, fix=f"use tls://{place.netloc}, or name no certificates")
    absent = [name for name in FILES if folder is None or not (folder / name).is_file()]
    if scheme == "tls" and absent:
        what = f"certificates for {address} are missing: {', '.join(absent)} in {folder or 'no folder that is named'}"
        raise RunnerError("E101", what, fix="make them with runner cluster certificates FOLDER HOST …")


class Line:
    """The line to the scheduler at ``address``, by TLS with the files in ``certificates``; ``say`` is told what goes wrong."""

    def __init__(self, address: str, certificates: Path | None, say: Callable[[str], None]) -> None:
        self._command = [sys.executable, "-m", "runner.execution.cluster.client", address]
        self._certificates = [str(certificates)] if certificates else []
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: set[str] = set()
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self.connected = False  # whether the scheduler ever answered
        self._away = False  # whether it was said that the scheduler does not answer
        self._closing = threading.Event()
        self._told: Told = lambda _: None
        self._reader: threading.Thread | None = None

    def start(self, told: Told, home: str) -> None:
        """Open it for the coordinator of a ``home``; ``told`` is called with what comes: ``hosts``, or ``ended``, ``lost`` or ``tail`` of an order.

        What is lost because the scheduler is away is ``unheard``, too.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="line-")
        self._command += [home, self._folder.name, *self._certificates]
        self._told = told
        self._reader = threading.Thread(target=self._read, name="line", daemon=True)
        self._reader.start()

    def begin(
        self, name: str, host: str, order: Content, key: bytes, *, hidden: bool = False, url: str = ""
    ) -> None:
        """Have a host carry out an order, and sign with ``key`` what it delivers; ``hidden``: by the store for hidden data; ``url`` grants
        it the order.

        It is told as ``lost`` where the line is broken, and ``unheard`` where that is because the scheduler is away.
        """
        with self._lock:
            self._orders.add(name)
            what = {"name": name, "order": list(order), "key": key.hex(), "hidden": hidden, "url": url}
            process = self._process
        sent = self._wish(process, {"do": "begin", "host": host, **what})
        with self._lock:
            known = name in self._orders
            if not sent:
                self._orders.discard(name)
        if not sent and known:
            self._told({"lost": name, "unheard": self._away})

    def stop(self, host: str, name: str, *, drop: bool) -> None:
        """Have a host end an order; with ``drop`` it delivers nothing."""
        self._wish(self._process, {"do": "stop", "host": host, "names": [name], "drop": drop})

    def tail(self, host: str, name: str, start: int) -> None:
        """Have a host asked what the software of an order has written after its first ``start`` bytes; it is told as ``tail``."""
        self._wish(self._process, {"do": "tail", "host": host, "name": name, "start": start})

    def close(self) -> None:
        """Close it; what was going on is not told any more."""
        self._closing.set()
        with self._lock:
            process = self._process
        self._wish(process, {"do": "quit"})
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10 if self.connected else 0.1)  # who is still connecting hears nothing
            self._end(process)
        if self._reader is not None:
            self._reader.join(10)
            self._folder.cleanup()

    def _wish(self, process: subprocess.Popen[bytes] | None, wish: dict[str, Any]) -> bool:
        """Without the lock, which who hears needs: write a line as a whole; a process that does not read it in time is ended."""
        line = json.dumps(wish).encode() + b"\n"
        if process is None or process.stdin is None or len(line) > MAX_WISH:
            return False
        left, until = memoryview(line), time.monotonic() + WRITING
        with self._writing, suppress(OSError, ValueError):  # where it has ended
            (free := select.poll()).register(process.stdin, select.POLLOUT)
            while left and free.poll(max(0.0, until - time.monotonic()) * 1000):
                left = left[os.write(process.stdin.fileno(), left) :]
        if left and process.poll() is None:
            self._end(process)
        return not left

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(OSError):  # with whatever it became
            os.killpg(process.pid, signal.SIGKILL)

    def _read(self) -> None:
        while not self._closing.is_set():
            try:
                self._open()
            except Exception as error:  # noqa: BLE001 - the thread's border: what is read next may be better
                self._say(f"the line to the cluster broke: {type(error).__name__}")
            self._broken()
            self._closing.wait(AGAIN)

    def _open(self) -> None:
        """One process, until it ends."""
        process = subprocess.Popen(
            self._command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ}
            | {"TMPDIR": self._folder.name},
            start_new_session=True,  # Ctrl-C is for the coordinator, which ends what runs first
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            os.set_blocking(process.stdin.fileno(), False)
            with self._lock:
                self._process = process
            with open(process.stdout.fileno(), "rb", closefd=False) as said:
                while not self._closing.is_set() and (text := said.readline(MAX_LINE)):
                    self._heard(text)
        finally:
            with self._lock:
                self._process = None
            self._end(process)
            process.wait()
            with self._writing:
                process.stdin.close()
            process.stdout.close()

    def _heard(self, text: bytes) -> None:
        try:
            what = json.loads(text)
            if not isinstance(what, dict):
                raise ValueError
        except (ValueError, RecursionError):
            self._say("the line to the cluster said what is no JSON")
            return
        name = what.get("tail") or what.get("ended") or what.get("lost")
        if problem := what.get("failed") or what.get("warning"):
            if not (self._away and "failed" in what):  # of a scheduler that is away once, however long it is
                self._say(show(str(problem), 300))
            self._away = self._away or "failed" in what
        elif "hosts" in what:
            self._answers()
            self._told(what)
        elif isinstance(name, str):
            with self._lock:
                known = name in self._orders
                if "tail" not in what:
                    self._orders.discard(name)
            if known:
                self._told(
                    {key: what[key] for key in ("ended", "lost", "tail", "answer", "said") if key in what}
                )

    def _answers(self) -> None:
        """The scheduler is there."""
        if self.connected and self._away:
            self._say("the scheduler answers again")
        self.connected, self._away = True, False

    def _broken(self) -> None:
        with self._lock:
            lost, self._orders = self._orders, set()
        if not self._closing.is_set():
            self._told({"hosts": {}})
            for name in lost:
                self._told({"lost": name, "unheard": self._away})
