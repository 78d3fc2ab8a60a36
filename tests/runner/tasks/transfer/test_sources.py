"""Remote files: fetched from a server on this machine that behaves as badly as servers do."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner.doctor.tasks import sources_check
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.tasks import load as tasks
from runner.tasks.check_data import task_problems
from runner.tasks.files import inputs_digest, missing_sources, truths_digest, view_files
from runner.tasks.transfer import download
from runner.tasks.transfer import fetch as sources
from tests.worlds.definitions import project, told, write_task

BODY = bytes(range(256)) * 4096  # 1 MiB
SHA256, MD5 = hashlib.sha256(BODY).hexdigest(), hashlib.md5(BODY, usedforsecurity=False).hexdigest()


@dataclass
class Server:
    """A web server; ``answer`` decides what each request gets, ``asked`` holds the Range of each."""

    url: str = ""
    asked: list[str | None] = field(default_factory=list)
    answer: Callable[[BaseHTTPRequestHandler, int], None] = lambda handler, _: whole(handler)


def send(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    handler.send_response(status)
    for name, value in (headers | {"Connection": "close"}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()
    handler.close_connection = True


def whole(handler: BaseHTTPRequestHandler, body: bytes = BODY) -> None:
    send(handler, 200, {"Content-Length": str(len(body))}, body)


def ranged(handler: BaseHTTPRequestHandler, cut: int | None = None, body: bytes = BODY) -> None:
    """A server that can send a part; ``cut`` closes the connection after so many bytes."""
    start = int((handler.headers.get("Range") or "bytes=0-")[6:-1])
    if start >= len(body):
        send(handler, 416, {"Content-Range": f"bytes */{len(body)}", "Content-Length": "0"}, b"")
        return
    part = body[start:]
    headers = {"Content-Length": str(len(part))}
    if start:
        headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
    send(handler, 206 if start else 200, headers, part[:cut])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made.asked.append(self.headers.get("Range"))
            made.answer(self, len(made.asked))

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        made.url = f"http://127.0.0.1:{http.server_port}/data.bin"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        http.shutdown()
        thread.join()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return project(tmp_path / "root")


def a_task(config: Config, url: str | None, **facts: Any) -> Task:
    """The toy task whose dataset "test" lacks one file of its inputs."""
    source = {"path": "inputs/big/data.bin", "url": url, **facts}
    source = {key: value for key, value in source.items() if value is not None}
    dev = {"id": "dev", "visibility": "public", "topics": "queries.jsonl"}
    write_task(config, datasets=[dev, {"id": "test", "visibility": "blinded", "sources": [source]}])
    return tasks.load_task(config, "toy")


def pull(task: Task) -> list[sources.Fetched]:
    return [sources.pull(source, wait=lambda _: None) for source in task.datasets["test"].sources]


def refused(code: str, task: Task) -> str:
    with pytest.raises(RunnerError) as caught:
        pull(task)
    assert caught.value.code == code, told(caught.value)
    assert not task.datasets["test"].sources[0].path.exists(), "what is wrong is never put in its place"
    return told(caught.value)


def left(task: Task) -> list[str]:
    folder = task.datasets["test"].sources[0].path.parent
    return sorted(p.name for p in folder.iterdir())


def test_a_file_is_fetched_checked_and_put_in_its_place(config: Config, server: Server) -> None:
    task = a_task(config, server.url, size=len(BODY), sha256=SHA256, md5=MD5)
    seen: list[tuple[int, int | None]] = []
    [source] = task.datasets["test"].sources
    found = sources.pull(source, on_progress=lambda _, done, total: seen.append((done, total)))
    assert (found.size, found.sha256, found.verified, found.new) == (len(BODY), SHA256, True, True)
    assert found.source.path.read_bytes() == BODY and left(task) == ["data.bin"]
    assert seen[0] == (0, len(BODY)) and seen[-1] == (len(BODY), len(BODY)) and len(seen) > 2
    [again] = pull(task)
    assert not again.new and len(server.asked) == 1
    assert missing_sources(task.datasets["test"]) == []


def test_an_interrupted_download_goes_on_where_it_stopped(config: Config, server: Server) -> None:
    task = a_task(config, server.url, md5=MD5)
    server.answer = lambda handler, n: ranged(handler, 300_000 if n < 3 else None)
    [found] = pull(task)
    assert found.sha256 == SHA256
    assert server.asked == [None, "bytes=300000-", "bytes=600000-"]


@pytest.mark.parametrize(
    ("part", "facts", "ranges"),
    [
        (BODY[:1000], {"sha256": SHA256}, ["bytes=1000-"]),
        (BODY, {"sha256": SHA256}, [f"bytes={len(BODY)}-"]),
        (b"x" * 1000, {"sha256": SHA256}, ["bytes=1000-", None]),
        (b"x" * 1000, {}, [None]),
    ],
    ids=["of this file", "whole", "of another file", "no hash"],
)
def test_the_part_of_an_earlier_download(
    config: Config, server: Server, part: bytes, facts: dict[str, str], ranges: list[str | None]
) -> None:
    task = a_task(config, server.url, **facts)
    path = sources.part_of(task.datasets["test"].sources[0])
    path.parent.mkdir()
    path.write_bytes(part)
    server.answer = lambda handler, _: ranged(handler)
    [found] = pull(task)
    assert found.sha256 == SHA256 and found.verified == bool(facts)
    assert server.asked == ranges and left(task) == ["data.bin"]


def test_a_server_that_cannot_send_parts_sends_all_again(config: Config, server: Server) -> None:
    task = a_task(config, server.url, sha256=SHA256)

    def answer(handler: BaseHTTPRequestHandler, n: int) -> None:
        if n == 1:
            ranged(handler, 5000)
        else:
            whole(handler)

    server.answer = answer
    assert pull(task)[0].sha256 == SHA256
    assert server.asked == [None, "bytes=5000-"]


def test_a_server_that_sends_another_part_is_not_believed(config: Config, server: Server) -> None:
    task = a_task(config, server.url, sha256=SHA256)

    def answer(handler: BaseHTTPRequestHandler, n: int) -> None:
        if n == 1:
            ranged(handler, 5000)
        elif n == 2:
            headers = {"Content-Length": "10", "Content-Range": f"bytes 0-9/{len(BODY)}"}
            send(handler, 206, headers, BODY[:10])
        else:
            ranged(handler)

    server.answer = answer
    assert pull(task)[0].sha256 == SHA256
    assert server.asked == [None, "bytes=5000-", None]


@pytest.mark.parametrize(
    "facts", [{"sha256": "0" * 64}, {"md5": "0" * 32}, {"sha256": SHA256, "md5": "0" * 32}]
)
def test_a_wrong_hash(config: Config, server: Server, facts: dict[str, Any]) -> None:
    task = a_task(config, server.url, **facts)
    assert "0" * 32 in refused("E406", task)
    assert left(task) == [], "a wrong file is not kept to be gone on with"


@pytest.mark.parametrize(("body", "size"), [(BODY[:1000], len(BODY)), (BODY, 1000)])
def test_a_wrong_size(config: Config, server: Server, body: bytes, size: int) -> None:
    server.answer = lambda handler, _: whole(handler, body)
    task = a_task(config, server.url, size=size)
    text = refused("E406", task)
    assert f"{len(body):,}" in text and f"{size:,}" in text and left(task) == []
    assert server.asked == [None], "not tried again"


def test_a_server_that_always_breaks_off(config: Config, server: Server) -> None:
    task = a_task(config, server.url, sha256=SHA256)
    server.answer = lambda handler, n: ranged(handler, 10 if n == 1 else 0)
    text = refused("E407", task)
    assert "10 bytes" in text
    assert len(server.asked) == download.TRIES + 1
    assert left(task) == [".data.bin.part"], "kept, to go on with"


def test_larger_than_it_may_be_without_saying_so(config: Config, server: Server) -> None:
    task = a_task(config, server.url, size=1000, sha256=SHA256)
    server.answer = lambda handler, _: send(handler, 200, {"Connection": "close"}, BODY)
    assert "1,000" in refused("E406", task) and left(task) == []
    assert server.asked == [None]


def test_no_room_on_the_disk(config: Config, server: Server) -> None:
    task = a_task(config, server.url)
    server.answer = lambda handler, _: send(handler, 200, {"Content-Length": str(10**17)}, b"")
    refused("E407", task)
    assert server.asked == [None], "a download that breaks off is tried again"


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.EROFS, "mount"),
        (errno.EACCES, "chown"),
        (errno.ENOSPC, "space"),
    ],
)
def test_a_folder_that_cannot_be_written(config: Config, number: int, fix: str) -> None:
    """What helps is said, and never a setting for another folder: where a task's data lie is the task's."""
    task = a_task(config, "http://127.0.0.1:9/x")
    source = next(source for dataset in task.datasets.values() for source in dataset.sources)
    with pytest.raises(RunnerError) as caught, download.writing(source):
        raise OSError(number, os.strerror(number))
    assert caught.value.code == "E407" and fix in caught.value.fix
    assert str(source.path.parent) in caught.value.why and "RUNNER_HOME" not in caught.value.fix


@pytest.mark.parametrize("status", [403, 404, 410, 500, 503])
def test_what_the_server_says(config: Config, server: Server, status: int) -> None:
    task = a_task(config, server.url)
    server.answer = lambda handler, _: send(handler, status, {"Content-Length": "3"}, b"no!")
    assert str(status) in refused("E407", task)
    assert len(server.asked) == (download.TRIES if status >= 500 else 1)
    assert left(task) == [".data.bin.part"]


def test_redirects_lead_on_but_not_in_circles(config: Config, server: Server) -> None:
    def answer(handler: BaseHTTPRequestHandler, _: int) -> None:
        if handler.path == "/data.bin":
            send(handler, 302, {"Location": "/real.bin", "Content-Length": "0"}, b"")
        else:
            whole(handler)

    task = a_task(config, server.url, sha256=SHA256)
    server.answer = answer
    assert pull(task)[0].verified


@pytest.mark.parametrize(
    ("location", "requests"), [("/data.bin", download.REDIRECTS + 1), ("file:///etc/passwd", 1)]
)
def test_bad_redirects_are_refused(config: Config, server: Server, location: str, requests: int) -> None:
    task = a_task(config, server.url)
    headers = {"Location": location, "Content-Length": "0"}
    server.answer = lambda handler, _: send(handler, 302, headers, b"")
    refused("E407", task)
    assert len(server.asked) == requests


def test_nobody_there(config: Config) -> None:
    task = a_task(config, "http://user:secret@127.0.0.1:9/data.bin?key=secret")
    text = refused("E407", task)
    assert "127.0.0.1" in text and "secret" not in text


def test_a_file_address(config: Config, tmp_path: Path) -> None:
    (tmp_path / "a b.bin").write_bytes(BODY)
    task = a_task(config, f"file://{tmp_path}/a%20b.bin", sha256=SHA256)
    assert pull(task)[0].verified


@pytest.mark.parametrize("url", ["file:///nonexistent/x", "file://other.example/etc/passwd"])
def test_no_such_file(config: Config, url: str) -> None:
    assert url in refused("E407", a_task(config, url))


def test_two_processes_do_not_write_one_file(config: Config, server: Server) -> None:
    task = a_task(config, server.url)
    source = task.datasets["test"].sources[0]
    source.path.parent.mkdir()
    with sources.only_writer(source):
        refused("E407", task)
    assert pull(task)[0].new


def test_bringing_a_file_by_its_md5(config: Config, tmp_path: Path) -> None:
    task = a_task(config, None, md5=MD5)
    dataset = task.datasets["test"]
    (tmp_path / "wrong").write_bytes(BODY[1:])
    (tmp_path / "right").write_bytes(BODY)
    with pytest.raises(RunnerError) as caught:
        sources.add_local_file(dataset, "inputs/big/data.bin", tmp_path / "wrong")
    assert caught.value.code == "E406" and not dataset.sources[0].path.exists()
    assert sources.add_local_file(dataset, "inputs/big/data.bin", tmp_path / "right").new
    assert not sources.add_local_file(dataset, "inputs/big/data.bin", tmp_path / "right").new
    assert left(task) == ["data.bin"]


def test_bringing_what_is_not_named_or_is_there(config: Config, tmp_path: Path) -> None:
    task = a_task(config, None)
    dataset = task.datasets["test"]
    (tmp_path / "f").write_text("x")
    for name, file, code in (
        ("inputs/big/data.bim", tmp_path / "f", "E102"),
        ("inputs/big/data.bin", tmp_path / "none", "E102"),
    ):
        with pytest.raises(RunnerError, check=lambda error: error.code == code):
            sources.add_local_file(dataset, name, file)
    assert not sources.add_local_file(dataset, "inputs/big/data.bin", tmp_path / "f").verified
    (tmp_path / "f").write_text("y")
    with pytest.raises(RunnerError) as caught:
        sources.add_local_file(dataset, "inputs/big/data.bin", tmp_path / "f")
    assert caught.value.code == "E101" and dataset.sources[0].path.read_text() == "x"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"path": "truths/../../x", "url": "https://x.example/"}, "truths/../../x"),
        ({"path": "inputs/./x"}, "inputs/./x"),
        ({"path": "other/x"}, "other/x"),
        ({"path": "inputs//etc/passwd"}, "inputs//etc/passwd"),
        ({"path": "inputs/x", "url": "ftp://x.example/"}, "ftp://x.example/"),
        ({"path": "inputs/x", "url": "https://x.example/\n"}, '"url"'),
        ({"path": "inputs/x", "sha256": "sha256:0"}, "64"),
        ({"path": "inputs/x", "size": -1}, '"size"'),
        ({"url": "https://x.example/"}, '"path"'),
    ],
)
def test_wrong_entries_are_refused(config: Config, source: dict[str, Any], expected: str) -> None:
    write_task(config, datasets=[{"id": "test", "visibility": "public", "sources": [source]}])
    with pytest.raises(RunnerError) as caught:
        tasks.load_task(config, "toy")
    assert caught.value.code == "E401" and expected in told(caught.value)


def test_a_task_without_its_remote_files(config: Config) -> None:
    """It can be loaded and checked; nothing is run or evaluated on a part of a dataset."""
    task = a_task(config, "https://data.example/data.bin", size=5)
    dataset = task.datasets["test"]
    assert task_problems(task, config) == []
    [problem] = task_problems(task, config, ["test"])
    assert problem.code == "E402" and problem.fix == "runner data pull toy --dataset test"
    with pytest.raises(RunnerError, check=lambda error: error.code == "E402"):
        inputs_digest(dataset)
    with pytest.raises(RunnerError):
        view_files(dataset, task.scenarios["default"])
    assert truths_digest(dataset), "the truths are there"
    check = sources_check([task])
    assert check.status == "CAUTION" and check.fix.split() == ["runner", "data", "pull", "toy"]
    assert "toy/test" in check.detail and "inputs/big/data.bin" in check.detail
    assert sources_check([]).status == "PASS"


def test_the_command_line(
    config: Config, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.cli.app import app
    from runner.cli.commands import data  # noqa: F401

    monkeypatch.setenv("RUNNER_ROOT", str(config.root))
    task = a_task(config, server.url, sha256=SHA256)
    said = CliRunner().invoke(app, ["data", "pull", "toy", "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout)[0] == {
        "dataset": "test", "path": "inputs/big/data.bin", "size": len(BODY), "sha256": SHA256, "verified": True, "new": True,
    }  # fmt: skip
    task.datasets["test"].sources[0].path.unlink()
    (tmp_path / "f").write_bytes(BODY)
    local = ["data", "import", "toy", "test", str(tmp_path / "f")]
    said = CliRunner().invoke(app, [*local, "--as", "inputs/big/data.bin"])
    assert said.exit_code == 0 and "inputs/big/data.bin" in said.stderr
    said = CliRunner().invoke(app, local)
    assert isinstance(said.exception, RunnerError) and said.exception.code == "E101"
