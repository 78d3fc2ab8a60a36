"""Grants of a real S3 server: a host in the wrong hands has what its own job needs, until that is over, and nothing else."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
import requests

from runner.execution.cluster.line import hosts_now
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.grants import Granted, Grants
from runner.execution.cluster.storage.stores import store_of_host
from runner.model.errors import PlatformError, RunnerError
from runner.model.run import Run
from runner.records.contents import Content
from tests.runner.execution.cluster.test_hosts import ended_once, tried
from tests.runner.execution.test_coordinator import Notes
from tests.runner.execution.test_pool import World
from tests.worlds.cluster import Cluster
from tests.worlds.contents import read_content
from tests.worlds.mini import Project
from tests.worlds.object_store import ObjectStore, object_store

MINE, OTHERS, KEY = f"{'0' * 16}/a~mini~mine~1~00000000", f"{'0' * 16}/a~mini~others~1~00000000", b"key"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("s3")) as made:
        yield made


def host(s3: ObjectStore, grants: Grants) -> Granted:
    """The store as a host has it by these grants."""
    return Granted(s3.address, [s3.origin], grants)


def answer(method: str, url: str) -> int:
    """What the server says of a request without credentials."""
    return requests.request(method, url, data=b"x" if method == "PUT" else None, timeout=30).status_code


def test_a_grant_opens_what_it_is_for(s3: ObjectStore, tmp_path: Path) -> None:
    store = s3.store()
    content, granted = store.put(b"some data"), tmp_path / "granted"
    for name, text in (("b", b"second"), ("a", b"first"), ("empty", b"")):
        (tmp_path / name).write_bytes(text)
    mine = host(s3, store.grants([content], MINE, 600))
    assert read_content(mine, content) == b"some data"
    mine.fetch(content, granted)
    assert granted.read_bytes() == b"some data"
    assert store.delivered("0" * 16) == []
    mine.deliver(MINE, {name: tmp_path / name for name in ("b", "empty", "a")}, {"fact": 1}, KEY)
    assert store.delivered("0" * 16) == [MINE.partition("/")[2]] and store.changed(MINE) is not None
    manifest = store.manifest(MINE, KEY)
    files = {name: Content(*entry) for name, entry in manifest["files"].items()}
    store.take(MINE, files, taken := tmp_path / "taken")
    assert manifest["fact"] == 1
    assert [(taken / name).read_bytes() for name in ("a", "b", "empty")] == [b"first", b"second", b""]
    store.forget(MINE)
    assert store.attempts() == []


def test_grants_of_one_job_read_and_write_nothing_of_another(s3: ObjectStore) -> None:
    store = s3.store()
    mine, other = store.put(b"mine"), store.put(b"another's")
    grants = store.grants([mine], MINE, 600)
    with pytest.raises(PlatformError) as refused:
        read_content(host(s3, grants), other)
    assert refused.value.code == "E313"
    store.deliver(OTHERS, {}, {}, KEY)
    before = store.manifest(OTHERS, KEY)
    (read,) = grants.read.values()
    assert answer("GET", read) == 200, "the attacks begin with what works"
    for url in (read, *grants.write.values()):
        path = urlsplit(url).path
        root = path[: path.index("/contents/" if "/contents/" in path else "/attempts/")]
        places = [f"/contents/{other.sha256[:2]}/{other.sha256}", f"/attempts/{OTHERS}/manifest.json"]
        places += [f"/attempts/{OTHERS}/files", "/attempts/", "", f"/contents/{'0' * 64}"]
        for place in places:
            for method in ("GET", "PUT", "DELETE", "HEAD"):
                assert answer(method, url.replace(path, root + place)) in (400, 403), (method, place)
    for method in ("PUT", "DELETE"):
        assert answer(method, read) in (400, 403), "what may be read may not be written"
    for url in grants.write.values():
        assert answer("GET", url) in (400, 403) and answer("DELETE", url) in (400, 403)
        assert answer("GET", url.partition("?")[0]) in (400, 403)
    assert read_content(store, mine) == b"mine" and store.manifest(OTHERS, KEY) == before
    forged = s3.store("0" * 40).grants([mine], MINE, 600)
    with pytest.raises(PlatformError) as error:
        read_content(host(s3, forged), mine)
    assert "SignatureDoesNotMatch" in error.value.why and "Amz" not in repr(error.value) + repr(grants)
    store.forget(OTHERS)


@pytest.mark.slow
def test_grants_end(s3: ObjectStore, tmp_path: Path) -> None:
    store = s3.store()
    content = store.put(b"short")
    mine, until = host(s3, store.grants([content], MINE, 4)), time.monotonic() + 60
    assert read_content(mine, content) == b"short"
    refused = ""
    while not refused and time.monotonic() < until:
        try:
            read_content(mine, content)
            time.sleep(0.2)
        except PlatformError as error:
            refused = f"{error.code} {error.what} {error.why}"
    assert refused.startswith("E313") and "Amz" not in refused
    with pytest.raises(PlatformError):
        mine.deliver(MINE, {}, {}, KEY)
    assert store.attempts() == []


@pytest.mark.slow
def test_hosts_without_credentials_execute_and_evaluate_by_grants_of_three_stores(
    project: Project, s3: ObjectStore, tmp_path: Path
) -> None:
    """Open, blinded and truths, each with keys of its own. What was granted stands in no log, message, event or record, nothing but the
    store knows what opens it, and no store has what is another's."""
    cells = [{"dataset": "dev"}, {"dataset": "test"}]
    project.write_task_only(tables=[{"id": "main", "cells": cells, "rank_by": "ndcg_10"}])
    world, notes, keys = World(project), Notes(), tmp_path / "credentials.json"
    hosts, judges = Cluster(tmp_path / "cluster"), Cluster(tmp_path / "judges", "evaluations")
    with ExitStack() as stack:
        blinded, truths = (
            stack.enter_context(object_store(tmp_path / f"s3-{name}", name)) for name in ("blinded", "truths")
        )
        stores = (s3, blinded, truths)
        keys.touch(mode=0o600)
        keys.write_text(json.dumps({one.address: one.options() for one in stores}))
        hosts.artefacts, hosts.blinded, hosts.credentials = s3.address, blinded.address, keys
        hosts.origins, judges.origins = (s3.origin, blinded.origin), (truths.origin,)
        judges.artefacts, judges.credentials = truths.address, keys
        for place, names in ((hosts, ("h1", "h2")), (judges, ("j1",))):
            stack.callback(place.close)
            place.start_scheduler()
            for name in names:
                place.start_host(name, hidden=name != "h1")
        for n in range(2):
            world.hand_in(f"team{n}")
        result = tried(world, notes, hosts, judges)
        assert not result.undone and len(result.done) == 4, (result.undone, notes.lines)
        said = [hosts_now(one.address, one.certificates)[0] for one in (hosts, judges)]
        secrets = [word for one in stores for word in (one.key, one.secret)]
        for process in (*hosts.processes.values(), *judges.processes.values()):
            facts = psutil.Process(process.pid)
            mine = "\0".join([*facts.cmdline(), *facts.environ().values()])
            assert not any(word in mine for word in secrets)
        assert all(one.store().attempts() == [] for one in stores)
    assert all(placed(world, run) for run in result.done.values())
    assert ended_once(world, list(result.done)) <= {"h1", "h2"}
    assert [len(one) for one in said] == [2, 1]
    assert all(one["granted"] is True for there in said for one in there.values())
    texts = [json.dumps(said), *notes.lines, *notes.problems]
    kept = [data for at in (project.home, hosts.folder, judges.folder) for data in files(at)]
    for data in (*(text.encode() for text in texts), *kept):
        assert not any(one in data for one in (b"X-Amz", *(word.encode() for word in secrets)))
    granting = [sum(b"X-Amz" in data for data in files(one.folder)) for one in stores]
    assert granting == [2, 2, 4], "only an order has what is granted"
    hidden = (project.private / "mini" / "test" / "inputs" / "queries.jsonl").read_bytes()
    assert [any(hidden in data for data in files(one.folder)) for one in stores] == [False, True, True]
    for secret in files(project.truths):
        assert not any(secret in data for one in stores[:2] for data in files(one.folder))
    world.close()


def placed(world: World, run: Run) -> bool:
    """Whether a run was executed where its data may be, and evaluated by the host for that."""
    (attempt,) = world.store.archive.attempts("mini", run.id)
    evaluation = json.loads((attempt.path / "evaluations/1/evaluation.json").read_bytes())
    may = {"test": {"h2"}, "dev": {"h1", "h2"}}[run.dataset]
    return attempt.record()["placed"]["host"] in may and evaluation["placed"]["host"] == "j1"


def files(folder: Path) -> list[bytes]:
    """What all files below it hold."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize(("length", "why"), [(20_000, ""), (40_000, "temporary credentials")])
def test_grants_of_temporary_credentials_are_long(
    project: Project, s3: ObjectStore, tmp_path: Path, length: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold a token of the store's that may have thousands of characters; here a fragment does, of which the server hears nothing."""
    grants = Artefacts.grants

    def longer(self: Artefacts, *asked: Any) -> Grants:
        made = grants(self, *asked)
        return replace(made, read={one: f"{url}#{'x' * length}" for one, url in made.read.items()})

    monkeypatch.setattr(Artefacts, "grants", longer)
    world, hosts, notes = World(project), Cluster(tmp_path / "cluster"), Notes()
    hosts.artefacts, hosts.credentials, hosts.origins = s3.address, s3.credentials, (s3.origin,)
    try:
        hosts.start_scheduler()
        hosts.start_host("h1")
        run = world.hand_in("team0")
        result = tried(world, notes, hosts)
    finally:
        hosts.close()
    assert list(result.undone) == ([run] if why else []), (result.undone, notes.lines)
    assert all(why in one.why and "X-Amz" not in one.why for one in result.undone.values())
    assert s3.store().attempts() == [] and world.store.archive.live() == {}
    world.close()


@contextmanager
def answering(reply: Callable[[bytes], bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers each request with the bytes of ``reply``: its origin, and what it was asked."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as ear:

        def serve() -> None:
            while True:
                try:
                    caller, _ = ear.accept()
                except OSError:
                    return
                with caller:
                    heard.append(caller.recv(100_000))
                    caller.sendall(reply(heard[-1]))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{ear.getsockname()[1]}", heard
        finally:
            ear.shutdown(socket.SHUT_RDWR)
    thread.join(60)


OK = b"HTTP/1.1 200 OK\r\n"
WRONG = {
    "other bytes": OK + b"Content-Length: 4\r\n\r\nmime",
    "too few": OK + b"Content-Length: 3\r\n\r\nmin",
    "cut": OK + b"Content-Length: 4\r\n\r\nmi",
    "too many": OK + b"Content-Length: 5\r\n\r\nminem",
    "without end": OK + b"\r\n" + b"mine" * 100_000,
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 4\r\n\r\nmine",
    "partial": b"HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n\r\nmine",
    "headers that are none": OK + b"no header\r\nContent-Length: 4\r\n\r\nmime",
    "no HTTP": b"mine",
    "nothing": b"",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_store_that_answers_wrongly_is_refused(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = Content(hashlib.sha256(b"mine").hexdigest(), 4)
    with answering(lambda _: WRONG[name]) as (origin, heard):
        store = Granted("s3://x", [origin], Grants({content.sha256: f"{origin}/x?X-Amz-Signature=SECRET"}))
        for _ in range(2):
            with pytest.raises(PlatformError) as error:
                store.fetch(content, tmp_path / "taken")
            assert error.value.code == "E313" and "SECRET" not in f"{error.value} {error.value.why}"
            assert error.value.__cause__ is None
    assert not (tmp_path / "taken").exists() and len(heard) == 2, "it is asked once each time"
    assert "SECRET" not in caplog.text


def test_grants_lead_to_no_other_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = Content("0" * 64, 4)
    with answering(lambda _: OK + b"Content-Length: 4\r\n\r\nmine") as (origin, heard):
        monkeypatch.setenv("HTTP_PROXY", origin)
        for url in (f"{origin}/x", f"{origin}@127.0.0.1:1/x", f"{origin}1/x", "file:///etc/passwd"):
            store = Granted("s3://x", ["http://127.0.0.1:1"], Grants({content.sha256: url}))
            with pytest.raises(PlatformError) as error:
                read_content(store, content)
            assert error.value.code == "E313"
    assert heard == []


@pytest.mark.parametrize("origin", ["http://s3.example.org", "https://u:p@s3.example.org", "https://s3.example.org/b", "s3://b", "https://", "https://s3:x"])  # fmt: skip
def test_what_is_no_origin(origin: str) -> None:
    with pytest.raises(RunnerError) as error:
        store_of_host("s3://bucket", None, [origin])
    assert error.value.code == "E101" and error.value.fix and "u:p" not in f"{error.value.what}"


def test_a_host_has_grants_or_credentials(tmp_path: Path) -> None:
    store = store_of_host("s3://bucket", None, ["https://s3.example.org/"])
    assert isinstance(store, Granted) and store.place == "s3://bucket"
    for address, file in (("s3://bucket", tmp_path / "credentials.json"), ("s3://key:secret@bucket", None)):
        with pytest.raises(RunnerError) as error:
            store_of_host(address, file, ["https://s3.example.org"])
        assert error.value.code == "E101"


def test_a_folder_grants_nothing(tmp_path: Path) -> None:
    store: Any = Artefacts(f"file://{tmp_path}")
    assert not store.signs
