"""The coordinator's end of its line to a cluster: starts the process that holds Dask's client, and the next one when that ends.

What comes from it is JSON of bounded length; whoever holds that process can say that runs ended, and no more than a host could.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.records.contents import Content

MAX_LINE = 1 << 21
SETTLED = 1.5  # seconds without another host after which all have said what they are
AGAIN = 2.0  # seconds after which a line that broke is opened again
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
FILES = ("ca.pem", "cert.pem", "key.pem")
Told = Callable[[dict[str, Any]], None]


def hosts_now(config: Config, seconds: float = 10.0) -> tuple[dict[str, Any], list[str]]:
    """What the hosts of a cluster say of themselves, by their addresses, and what went wrong; within that time.

    Raises E101 where the settings are not there.
    """
    check_line(config)
    problems, heard = list[str](), queue.Queue[dict[str, Any]]()
    line = Line(config.cluster or "", config.certificates, problems.append)
    found: dict[str, Any] = {}
    line.start(heard.put, "")  # nobody's home: nothing that runs is dropped
    until = time.monotonic() + seconds
    try:
        while not problems and (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                found = dict(heard.get(timeout=left)["hosts"])
                until = min(until, time.monotonic() + SETTLED) if found else until
    finally:
        line.close()
    return found, problems


def check_line(config: Config) -> None:
    """Raise E101 unless the settings of a cluster are there, and nothing goes over a network without TLS."""
    address = config.cluster or ""
    scheme, _, place = address.partition("://")
    if scheme not in ("tls", "tcp") or not place:
        what, fix = f"RUNNER_CLUSTER={address!r} is no address of a scheduler", "give one: tls://HOST:8786"
        raise RunnerError("E101", what, fix=fix)
    if not config.artefacts:
        what, why = "RUNNER_ARTEFACTS is not set", "Hosts of a cluster are brought their data there."
        raise RunnerError(
            "E101",
            what,
            why=why,
            fix="name a place that all hosts reach: RUNNER_ARTEFACTS=file:///srv/artefacts",
        )
    check_certificates(scheme, place, config.certificates)
    check_installed()


def check_installed() -> None:
    """Raise E101 where the packages of the extra ``cluster`` are not there."""
    missing = [name for name in ("distributed", "fsspec") if find_spec(name) is None]
    if missing:
        what = f"a cluster needs packages that are not installed: {', '.join(missing)}"
        raise RunnerError(
            "E101", what, fix="pip install 'proctor-ir[cluster]' (in the project's own folder: make tools)"
        )


def check_certificates(scheme: str, place: str, folder: Path | None) -> None:
    """Raise E101 where TLS lacks its files, or plain connections would leave this machine."""
    if scheme == "tcp" and place.rpartition(":")[0] not in LOOPBACK:
        what, why = (
            f"tcp://{place} is not encrypted",
            "Whoever can talk to a scheduler can run programs on its hosts.",
        )
        raise RunnerError(
            "E101",
            what,
            why=why,
            fix=f"use tls://{place} and certificates: runner cluster certificates FOLDER HOST …",
        )
    absent = [name for name in FILES if folder is None or not (folder / name).is_file()]
    if scheme == "tls" and absent:
        what = f"certificates for tls://{place} are missing: {', '.join(absent)} in RUNNER_CERTIFICATES ({folder or 'not set'})"
        raise RunnerError("E101", what, fix="make them with runner cluster certificates FOLDER HOST …")


class Line:
    """The line to the scheduler at ``address``, by TLS with the files in ``certificates``; ``say`` is told what goes wrong."""

    def __init__(self, address: str, certificates: Path | None, say: Callable[[str], None]) -> None:
        self._command = [sys.executable, "-m", "runner.execution.cluster.client", address]
        self._certificates = [str(certificates)] if certificates else []
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: set[str] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._last_hosts = time.monotonic()
        self._hosts = False
        self._reader: threading.Thread | None = None

    def start(self, told: Told, home: str) -> None:
        """Open it for the coordinator of a ``home``; ``told`` is called, by one thread, with what comes: ``hosts``, or ``ended`` or ``lost`` of an order."""
        self._folder = tempfile.TemporaryDirectory(prefix="line-")
        self._command += [home, self._folder.name, *self._certificates]
        self._last_hosts = time.monotonic()
        self._reader = threading.Thread(target=self._read, args=(told,), name="line", daemon=True)
        self._reader.start()

    def without_hosts(self) -> float:
        """For how many seconds there has been no host."""
        return 0.0 if self._hosts else time.monotonic() - self._last_hosts

    def begin(self, name: str, host: str, order: Content) -> None:
        """Have a host carry out an order. It is told as ``lost`` where the line is broken."""
        with self._lock:
            self._orders.add(name)
        self._wish({"do": "begin", "name": name, "host": host, "order": list(order)})

    def stop(self, host: str, names: Sequence[str], *, drop: bool) -> None:
        """Have a host end orders; with ``drop`` they deliver nothing."""
        self._wish({"do": "stop", "host": host, "names": list(names), "drop": drop})

    def close(self) -> None:
        """Close it; what was going on is not told any more."""
        self._closing.set()
        self._wish({"do": "quit"})
        process = self._process
        if process is not None:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._reader is not None:
            self._reader.join()
            self._folder.cleanup()

    def _wish(self, wish: dict[str, Any]) -> None:
        process = self._process
        with self._lock, suppress(OSError, ValueError):  # a line that broke says so where it is read
            if process is not None and process.stdin is not None:
                process.stdin.write(json.dumps(wish).encode() + b"\n")
                process.stdin.flush()

    def _read(self, told: Told) -> None:
        while not self._closing.is_set():
            with subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _KEPT if name in os.environ}
                | {"TMPDIR": self._folder.name},
                start_new_session=True,  # Ctrl-C is for the coordinator, which ends what runs first
            ) as process:
                self._process = process
                assert process.stdout is not None
                while text := process.stdout.readline(MAX_LINE):
                    self._heard(text, told)
                process.kill()
            self._broken(told)
            self._closing.wait(AGAIN)

    def _heard(self, text: bytes, told: Told) -> None:
        try:
            what = json.loads(text)
            if not isinstance(what, dict):
                raise ValueError
        except (ValueError, RecursionError):
            self._say("the line to the cluster said what is no JSON")
            return
        if problem := what.get("failed") or what.get("warning"):
            self._say(str(problem)[:300])
        elif "hosts" in what:
            self._seen(bool(what["hosts"]))
            told(what)
        elif (name := what.get("ended") or what.get("lost")) in self._orders:
            with self._lock:
                self._orders.discard(name)
            told(what)

    def _broken(self, told: Told) -> None:
        with self._lock:
            lost, self._orders = self._orders, set()
        self._seen(False)
        if not self._closing.is_set():
            told({"hosts": {}})
            for name in lost:
                told({"lost": name, "why": "the line to the scheduler broke"})

    def _seen(self, hosts: bool) -> None:
        if self._hosts and not hosts:
            self._last_hosts = time.monotonic()
        self._hosts = hosts
