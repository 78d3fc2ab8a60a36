"""What the client does with answers of a server that is none, or leads elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from runner.cli.remote.client import Client
from runner.cli.remote.servers import Server
from runner.exchange.access import Token
from runner.model.errors import RunnerError


@contextmanager
def answering(status: int, headers: dict[str, str], body: bytes = b"{}") -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything so; its address, and the tokens that it was sent."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(url: str) -> Client:
    return Client(Server("local", url, str(Token.new()), "alpha"))


def test_a_token_goes_to_its_server_alone() -> None:
    with (
        answering(200, {}) as (other, theirs),
        answering(302, {"Location": f"{other}/api/v1/me"}) as (url, ours),
        client(url) as asked,
        pytest.raises(RunnerError) as error,
    ):
        asked.get("api-me", "me")
    assert error.value.code == "E312" and theirs == [] and ours[0].startswith("Bearer proctor_")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, b"[" * 100_000),
        (500, b"{}"),
        (502, b"<html>"),
        (404, b"[]"),
        (400, b'{"code": 5}'),
    ],
)
def test_what_is_no_answer_of_ours_is_said_in_words(status: int, body: bytes) -> None:
    with answering(status, {}, body) as (url, _), client(url) as asked, pytest.raises(RunnerError) as error:
        asked.get("api-me", "me")
    assert error.value.code == "E312" and error.value.fix
