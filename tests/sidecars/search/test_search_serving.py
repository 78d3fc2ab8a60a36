"""The server as a process: sockets, signals, the log, and clients that mean no good."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sidecars.search.__main__ import main
from sidecars.search.served import ServedLog
from tests.worlds.search_arguments import write


class OnPath(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("search", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(str(self._path))


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> Any:
    raw = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
    connection.request(method, path, raw, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    content = answer.read()
    return answer.status, answer.headers, json.loads(content) if content else None


@pytest.fixture
def to_server(server: Any) -> http.client.HTTPConnection:
    host, port = server.where.removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=20)


def raw(server: Any, data: bytes, seconds: float = 20.0) -> bytes:
    host, port = server.where.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as client:
        client.sendall(data)
        found = b""
        while part := client.recv(65536):
            found += part
        return found


def test_on_a_unix_socket_that_everybody_may_use(serving: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "search.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    server = serving("--socket", str(path), "--prefix", "arguments", "--index", "other")
    assert server.where == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    connection = OnPath(path)
    assert ask(connection, "GET", "/healthz")[2] == {"status": "ready", "arguments": 6}
    assert ask(connection, "GET", "/arguments/healthz")[0] == 200
    assert ask(connection, "POST", "/arguments/other/_search", {})[2]["hits"]["total"]["value"] == 6
    assert ask(connection, "POST", "/arguments/claimrev/_search", {})[0] == 404
    assert server.end() == (0, "")
    assert not path.exists()


def test_a_socket_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert main(["serve", "--data", str(write(tmp_path / "data")), "--socket", str(tmp_path / "file")]) == 4
    assert (tmp_path / "file").read_text() == "mine"


def test_the_log_says_what_was_served(serving: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "served.jsonl"
    server = serving("--socket", str(tmp_path / "s"), "--log", str(log))
    connection = OnPath(tmp_path / "s")
    knn = {"field": "text_embedding_stella", "query_vector": [1, 2, 3, 4], "k": 1}
    ask(connection, "POST", "/claimrev/_search", {"query": {"match": {"text": "night"}}, "_source": False})
    both = {"knn": knn, "query": {"match": {"text": "trams"}}, "size": 1}
    ask(connection, "POST", "/claimrev/_search", both)
    ask(connection, "POST", "/claimrev/_search", {"query": {"none\n": {}}})
    ask(connection, "GET", "/claimrev/_doc/2.2")
    ask(connection, "GET", "/claimrev/_doc/9.9")
    ask(connection, "GET", "/claimrev/_count")
    lines = b'{}\n{"size":1}\n{}\n{"query":{}}\n'
    ask(connection, "POST", "/claimrev/_msearch", lines, **{"Content-Type": "application/x-ndjson"})
    ask(connection, "GET", "/healthz")
    ask(connection, "POST", "/claimrev/_search", {"size": 0})
    assert server.end() == (0, "")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["n"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["at_ms"] for row in rows] == sorted(row["at_ms"] for row in rows)
    assert [(row["kind"], row["status"], len(row["hits"])) for row in rows] == [
        ("match", 200, 2), ("knn+match", 200, 1), ("refused", 400, 0), ("doc", 200, 1), ("doc", 404, 0),
        ("count", 200, 0), ("match_all", 200, 1), ("refused", 400, 0), ("match_all", 200, 0),
    ]  # fmt: skip
    assert rows[0]["hits"] == ["1.2", "1.3"]
    assert rows[3]["hits"] == ["2.2"]


def test_the_log_is_capped_and_says_so(serving: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "served.jsonl"
    server = serving("--socket", str(tmp_path / "s"), "--log", str(log), "--log-bytes", "400")
    connection = OnPath(tmp_path / "s")
    for _ in range(20):
        assert ask(connection, "POST", "/claimrev/_search", {})[0] == 200
    server.end()
    lines = log.read_text().splitlines()
    assert log.stat().st_size <= 400
    assert json.loads(lines[-1]) == {"truncated": True}
    assert 3 <= len(lines) <= 5


@pytest.mark.parametrize("log", ["/dev/full", "/nowhere/served.jsonl"])
def test_a_log_that_cannot_be_written_never_fails_a_query(
    serving: Callable[..., Any], tmp_path: Path, log: str
) -> None:
    served = ServedLog(Path(log))
    for _ in range(3):
        served.add("match", 200, ["1"])
    served.close()
    if log == "/dev/full":
        server = serving("--socket", str(tmp_path / "s"), "--log", log)
        assert ask(OnPath(tmp_path / "s"), "POST", "/claimrev/_search", {})[0] == 200
        code, rest = server.end()
        assert code == 0 and rest.startswith("warning: ") and rest.count("\n") == 1


def test_every_answer_has_the_header_of_the_product(to_server: http.client.HTTPConnection) -> None:
    requests = {
        200: ["GET /", "HEAD /"],
        400: ["GET /_cat/indices", "GET /claimrev/_search?q=cars", "GET /claimrev/_search?size=1&size=2",
              "GET /claimrev/_search?pretty=maybe", "GET /claimrev/a/b/c/d"],
        404: ["GET /nope", "GET /..%2f..%2fetc/passwd", "GET /claimrev/_doc/..%2F..%2Fetc%2Fpasswd",
              "GET /claimrev%00/_search"],
        405: ["DELETE /claimrev", "PUT /claimrev/_doc/1", "PATCH /claimrev/_search", "OPTIONS /"],
    }  # fmt: skip
    for status, request in [(status, request) for status, lines in requests.items() for request in lines]:
        method, path = request.split(" ")
        found, headers, content = ask(to_server, method, path)
        assert (found, headers["x-elastic-product"]) == (status, "Elasticsearch"), path
        assert headers["content-type"] == "application/json"
        assert (content is None) == (method == "HEAD")
        if status >= 400 and "_doc/.." not in path:
            assert content["error"]["reason"]
            assert content["status"] == status


def test_long_and_packed_bodies_are_refused(server: Any, to_server: http.client.HTTPConnection) -> None:
    status, headers, content = ask(to_server, "POST", "/claimrev/_search", b" " * ((1 << 20) + 1))
    assert (status, content["error"]["type"]) == (413, "content_too_long_exception")
    assert headers["x-elastic-product"] == "Elasticsearch"
    head = b"POST /claimrev/_search HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    assert b" 413 " in raw(server, head + b"Content-Length: 99999999999999\r\n\r\n").split(b"\r\n")[0]
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    assert (
        b" 413 " in raw(server, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 17).split(b"\r\n")[0]
    )
    assert ask(to_server, "POST", "/claimrev/_search", b" " * 1000 + b"{}")[0] == 200
    packed = {"Content-Encoding": "gzip"}
    status, _, content = ask(to_server, "POST", "/claimrev/_search", b"\x1f\x8b", **packed)
    assert (status, content["status"]) == (415, 415)


def test_nonsense_and_half_requests_harm_nobody(server: Any, to_server: http.client.HTTPConnection) -> None:
    assert b" 400 " in raw(server, b"\x00\x01\x02\r\n\r\n").split(b"\r\n")[0]
    with contextlib.suppress(ConnectionError):  # it may hang up while we still talk
        assert b" 400 " in raw(server, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    host, port = server.where.removeprefix("http://").split(":")
    half = [socket.create_connection((host, int(port)), timeout=20) for _ in range(50)]
    for client in half:
        client.sendall(b"POST /claimrev/_search HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert ask(to_server, "POST", "/claimrev/_search", {})[0] == 200
    for client in half:
        client.close()
    assert ask(to_server, "POST", "/claimrev/_search", {})[0] == 200


def test_many_clients_at_once(server: Any) -> None:
    host, port = server.where.removeprefix("http://").split(":")
    body = {"query": {"match": {"text": "cars"}}}

    def run(_: int) -> None:
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        for _ in range(25):
            status, _, content = ask(connection, "POST", "/claimrev/_search", body)
            assert status == 200
            assert [hit["_id"] for hit in content["hits"]["hits"]] == ["2.2", "1.2", "1.1"]

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(run, range(16)))


def test_an_open_connection_does_not_hold_up_the_end_and_no_file_is_left(
    serving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    server = serving("--socket", str(tmp_path / "s"))
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(tmp_path / "s"))
    client.sendall(b"POST /claimrev/_search HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    began = time.monotonic()
    code, _ = server.end()
    assert code == 0
    assert time.monotonic() - began < 10
    client.close()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_errors_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["serve", "--data", str(tmp_path / "empty"), "--port", "0"]) == 4
    said = capsys.readouterr().err
    assert "arguments.jsonl" in said and "arguments.jsonl.gz" in said and "Fix:" in said
    # Options alone are for the server.
    for words in (["--data", str(tmp_path / "empty")], ["--debug", "--data", str(tmp_path / "empty")]):
        assert main([*words, "--port", "0"]) == 4
    with pytest.raises(SystemExit) as caught:
        main(["serve", "--data", str(tmp_path)])
    assert caught.value.code == 2
    listener = socket.create_server(("127.0.0.1", 0))
    port = str(listener.getsockname()[1])
    assert main(["serve", "--data", str(write(tmp_path / "data")), "--port", port]) == 4
    listener.close()
