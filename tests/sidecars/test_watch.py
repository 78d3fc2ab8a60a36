"""The watch over a server: healthy, not there yet, hanging, gone."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sidecars import watch
from sidecars.watch import look


class Server:
    """A server whose answer can be changed; None hangs."""

    def __init__(self, path: Path) -> None:
        self.answer: bytes | None = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        self.asked: list[bytes] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        self.held: list[socket.socket] = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            if self.answer is None:
                self.held.append(one)
                continue
            self.asked.append(one.recv(4096))
            one.sendall(self.answer)
            one.close()


@pytest.fixture
def path(short_folder: Path) -> Path:
    return short_folder / "s.sock"


def test_looks(path: Path) -> None:
    assert look(path, "/healthz")[0] is False  # nobody there
    server = Server(path)
    assert look(path, "/healthz") == (True, "status 200")
    assert server.asked[0].startswith(b"GET /healthz HTTP/1.1\r\n")
    server.answer = b"HTTP/1.1 503 Busy\r\n\r\n"
    assert look(path, "/healthz") == (False, "status 503")
    server.answer = b""
    assert look(path, "/healthz")[0] is False
    server.answer = b"nonsense\r\n"
    assert look(path, "/healthz")[0] is False
    server.answer = None
    started = time.monotonic()
    assert look(path, "/healthz", 0.3)[0] is False
    assert 0.3 <= time.monotonic() - started < 10


def test_one_that_never_becomes_healthy(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert watch.main(["--socket", str(path), "--ready", "0.3"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "0.3 s" in said.err


def test_one_that_stops_answering(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "STEP", 0.05)
    monkeypatch.setattr("sidecars.watch.look", lambda p, t: look(p, t, 0.1))
    server = Server(path)
    threading.Timer(0.4, lambda: setattr(server, "answer", None)).start()
    started = time.monotonic()
    assert watch.main(["--socket", str(path), "--patience", "0.5"]) == 3
    assert 0.8 < time.monotonic() - started < 5
    said = capsys.readouterr()
    assert said.out == "ready\n" and "0.5 s" in said.err


def test_a_moment_without_an_answer_is_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([(True, ""), (False, "busy"), (False, "busy"), (True, "")])
    monkeypatch.setattr(watch, "STEP", 0.01)
    monkeypatch.setattr(watch, "look", lambda *_: next(answers))
    with pytest.raises(StopIteration):
        watch.main(["--socket", str(path), "--patience", "0.5"])


def test_it_starts_as_a_command(path: Path) -> None:
    Server(path)
    with subprocess.Popen(
        [sys.executable, "-m", "sidecars.watch", "--socket", str(path)], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        finally:
            process.terminate()
