"""What is seen of a transfer that the server refuses in the middle: one clean error, and no bar left behind, on a terminal and in a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runner.exchange.access import Access, Token
from runner.exchange.published import Publisher
from tests.runner.web.test_routes import grant
from tests.worlds.site import serving
from tests.worlds.small_disk import small_disk

MIDDLE = 8 * 1024 * 1024  # what is taken before it is refused
SIZE = 3 * MIDDLE

# The command's own transfer, to a server that was logged in to; without its pauses between two tries.
SENDING = """
import io, sys
from runner.cli import output
from runner.cli.remote import uploading
from runner.cli.remote.client import Client
from runner.cli.remote.servers import Server
from runner.cli.terminal import transfers
from runner.model.errors import RunnerError
url, token, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
output.say("before")
try:
    with Client(Server("lab", url, token, "alpha")) as client, transfers() as bars:
        file = io.BytesIO(bytes(size))
        uploading.upload(client, file, size, "0" * 64, lambda done: bars("run.txt", done, size), lambda _: None)
except RunnerError as error:
    output.show_error(error)
    sys.exit(error.exit_code)
"""


@contextmanager
def refusing(status: int) -> Iterator[str]:
    """A server of uploads that takes one part and refuses the next so."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        there = 0

        def tell(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            part, size = (
                int(self.headers["Content-Length"] or 0),
                self.headers["Content-Range"].partition("/")[2],
            )
            if Handler.there and part:
                self.close_connection = True  # as a proxy does: in the middle of what is sent
                self.tell(status)
                return
            self.rfile.read(part)
            Handler.there += part
            state = {"id": "a" * 32, "sha256": "0" * 64, "size": int(size), "offset": Handler.there}
            self.tell(200, json.dumps(state).encode(), Content_Type="application/json")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def on_terminal(command: list[str], env: dict[str, str]) -> tuple[int, str]:
    """How a command ended, and all that its terminal got."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env=env, start_new_session=True
    ) as process:
        os.close(its)
        said, last = b"", time.monotonic() + 60
        while time.monotonic() < last:
            if select.select([ours], [], [], 0.5)[0]:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                said += part
            elif process.poll() is not None:
                break
        os.close(ours)
    return process.returncode, said.decode()


def seen(text: str) -> list[str]:
    """The lines that a terminal shows in the end: what was erased or written over is gone."""
    lines, at = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        code = re.fullmatch(r"\x1b\[([0-9;?]*)([A-Za-z])", part)
        if part == "\n":
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif code and code[2] == "A":
            at = max(0, at - int(code[1] or 1))
        elif code and code[2] == "K":
            lines[at] = ""
        elif part == "\r" or code:
            continue
        else:
            lines[at] = part if part.strip() else lines[at]
    return [line.strip() for line in lines if line.strip()]


def sent(url: str, token: str, *, terminal: bool) -> tuple[int, str]:
    """How a transfer to a server ended, and what was said of it."""
    command = [sys.executable, "-c", SENDING, url, token, str(SIZE)]
    root = str(Path(__file__).parents[4])
    env = {"PATH": os.environ["PATH"], "HOME": root, "TERM": "xterm", "PYTHONPATH": root, "COLUMNS": "200"}
    if terminal:
        return on_terminal(command, env)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize(("status", "value"), [(413, "8 MiB"), (409, ""), (507, "507")])
def test_a_refusal_in_the_middle_is_a_clean_error(status: int, value: str, terminal: bool) -> None:
    with refusing(status) as url:
        code, said = sent(url, str(Token.new()), terminal=terminal)
    lines = seen(said)
    assert code == 3 and lines[0] == "before" and lines[-2].startswith("E312  "), said
    assert value in lines[-2]
    assert lines[-1].startswith("Fix: ") and not [one for one in lines if "━" in one or "MB" in one]
    assert len(lines) == (3 if status == 413 else 4), "other refusals are tried again"
    if terminal:
        assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l"), "the cursor is there again"


def test_the_front_of_a_disk_that_fills_up_is_understood(tmp_path: Path) -> None:
    """It answers before it has read what is sent, and ends the connection."""
    exchange, token = tmp_path / "exchange", Token.new()
    Publisher(exchange / "published").publish({"public": [], "team:alpha": []})
    Access({token.id: grant(token, "team")}).write(exchange / "published")
    (exchange / "inbox").mkdir()
    with (
        small_disk(exchange / "inbox/.uploads", 540) as disk,
        serving(exchange, tmp_path / "state", 10**9) as url,
    ):
        ended, filler = threading.Event(), disk.path / ".filler"

        def fill() -> None:
            """As soon as the first part is there."""
            while not ended.wait(0.01):
                if any(one.stat().st_size for one in disk.path.glob("[0-9a-f]*") if one.suffix == ""):
                    filler.write_bytes(bytes(20 * 1024 * 1024))
                    return

        thread = threading.Thread(target=fill)
        thread.start()
        code, said = sent(url, str(token), terminal=True)
        ended.set()
        thread.join()
    lines = seen(said)
    assert code == 3 and lines[-3].startswith("E306  lab: "), said
