"""Whoever is asked by HTTP may answer with a redirect whose body has no end: nobody reads it, whether they go on or not."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import requests

from runner.cli.remote.client import Client
from runner.cli.remote.servers import Server as Kept
from runner.exchange.client import Server
from runner.exchange.http import Session, bounded, within
from runner.exchange.link import Key
from runner.exchange.oidc import Asked, Provider, Unreachable
from runner.execution.cluster.storage.grants import Granted, Grants
from runner.model.errors import RunnerError
from runner.records.contents import Content
from runner.tasks.transfer.download import as_anybody
from runner.work.front import Front, LinkDown
from tests.worlds.contents import read_content

MEGABYTES = 100  # what stands for no end: more than answers may have and connections hold


@dataclass
class Endless:
    """A server that leads elsewhere in very many words, and how often they were read to the end."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)


@pytest.fixture(params=["plain", "chunked"])
def server(request: pytest.FixtureRequest) -> Iterator[Endless]:
    made, chunked = Endless(), request.param == "chunked"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made.asked.append(self.path)
            self.close_connection = True
            if self.path == "/there":
                self.send_response(200)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"there")
                return
            self.send_response(302)
            self.send_header("Location", "/there")
            if chunked:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            block = b"x" * 1_000_000
            try:
                for _ in range(MEGABYTES):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block) if chunked else block)
                self.wfile.write(b"0\r\n\r\n" if chunked else b"")
            except OSError:
                return
            made.read.append(self.path)

        do_POST = do_PUT = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    service = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=service.serve_forever)
    thread.start()
    try:
        made.url = f"http://127.0.0.1:{service.server_port}"
        yield made
    finally:
        service.shutdown()
        service.server_close()  # waits for what is still being answered
        thread.join()


def granted(url: str) -> None:
    content = Content("0" * 64, 4)
    read_content(Granted("s3://x", [url], Grants({content.sha256: f"{url}/x"})), content)


def delivered(url: str) -> None:
    grants = Grants(write={"files": f"{url}/x", "manifest.json": f"{url}/x"})
    Granted("s3://x", [url], grants).deliver("x", {}, {}, b"key")


def linked(url: str) -> None:
    Front(url, Key.at(Path("key"))).enter()


ASKING: dict[str, tuple[Callable[[str], object], type[Exception]]] = {
    "a host by grants": (granted, RunnerError),
    "a host that delivers": (delivered, RunnerError),
    "work at the front": (linked, LinkDown),
    "runner.api": (lambda url: Server(url).get("tasks"), RunnerError),
    "the command line": (lambda url: Client(Kept("x", url, "x", "x")).send("GET", "x"), RunnerError),
    "sign-in": (lambda url: Asked(Provider(url, "x")).metadata(), Unreachable),
}


@pytest.mark.parametrize("who", ASKING)
def test_who_follows_no_redirect_reads_nothing_of_it(
    who: str, server: Endless, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask, error = ASKING[who]
    with pytest.raises(error):
        ask(server.url)
    assert server.read == [] and len(server.asked) == 1 and "/there" not in server.asked


def test_who_follows_reads_where_it_leads_only(server: Endless) -> None:
    with as_anybody(f"{server.url}/x", {}) as answer:
        assert answer.content == b"there"
    assert server.asked == ["/x", "/there"] and server.read == []


def test_a_bounded_answer_is_not_read_any_further(server: Endless) -> None:
    with requests.Session() as session, pytest.raises(requests.RequestException) as caught:
        session.get(f"{server.url}/x", stream=True, hooks={"response": bounded(1000)})
    assert " 1000 " in str(caught.value)
    with Session(1) as session:
        said = session.get(f"{server.url}/there", stream=True, hooks={"response": bounded(5)})
        assert said.text == "there"


@pytest.mark.parametrize(
    "said", ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\n"], ids=["line", "head", "body"]
)
def test_an_answer_that_drips_is_cut_when_its_time_is_up(said: str) -> None:
    over = Event()

    def answer(listening: socket.socket) -> None:
        with listening.accept()[0] as connection, suppress(OSError):
            connection.sendall(said.encode())
            while not over.wait(0.1):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=answer, args=(listening,))
        thread.start()
        try:
            with Session() as session, pytest.raises(requests.Timeout), within(session, 1):
                url = f"http://127.0.0.1:{listening.getsockname()[1]}"
                session.get(url, timeout=50, stream=True, hooks={"response": bounded(1 << 20)})
            thread.join(60)  # its connection is cut, also on its side
            assert not thread.is_alive()
        finally:
            over.set()
            thread.join()


def test_an_answer_in_time_is_not_cut(server: Endless) -> None:
    with Session() as session, within(session, 100):
        assert session.get(f"{server.url}/there").text == "there"
