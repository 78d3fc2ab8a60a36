"""Uploads whose server was killed: every point of the way, every state on the disk, and submissions at the same time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.cli.remote import uploading
from runner.cli.remote.servers import Server, remember
from runner.exchange.access import Access, Token
from runner.exchange.database import Database, DatabaseError
from runner.exchange.inbox import Inbox, Ready, Request, answer
from runner.exchange.published import Publisher
from tests.e2e.test_server import until
from tests.e2e.test_uploads_scored import run_text
from tests.runner.web.test_resumed_uploads import CONTENT, DIGEST, ask, begin, id_of, offset, put
from tests.runner.web.test_routes import Front, grant
from tests.worlds.killed_front import POINTS, killed_front
from tests.worlds.mini import Project, call_here
from tests.worlds.site import serving

SOFTWARES = "/api/v1/tasks/mini/softwares"
WHEN = "2026-05-01T12:00:00Z"
RUN_FILES = "/api/v1/tasks/mini/run-files"


@pytest.fixture
def front(tmp_path: Path) -> Front:
    """What a front shows; nobody serves it yet."""
    exchange = tmp_path / "exchange"
    Publisher(exchange / "published").publish({})
    tokens = {"team": Token.new(), "other": Token.new()}
    Access({t.id: grant(t, name) for name, t in tokens.items()}).write(exchange / "published")
    return Front(exchange, "", tokens, "")


@pytest.fixture
def served(front: Front, tmp_path: Path) -> Iterator[Front]:
    """The same, served by this process."""
    with serving(front.exchange, tmp_path / "state", 16_000_000) as url:
        front.url = url
        yield front


def stored(front: Front, name: str = "") -> Path:
    return front.exchange / "inbox/.uploads" / name


def sent(team: httpx2.Client, content: bytes = CONTENT) -> str:
    """The id of a complete upload."""
    where = begin(team, len(content), hashlib.sha256(content).hexdigest())
    said = put(team, where, content, 0, len(content))
    assert said.status_code == 200, said.text
    return str(said.json()["id"])


def forget_digest(front: Front, id: str) -> None:
    """Leave an upload as a server does that is killed before it notes that all is there."""
    facts = json.loads(stored(front, f"{id}.json").read_bytes())
    stored(front, f"{id}.json").write_text(json.dumps({**facts, "arrival": None}))


def software(team: httpx2.Client, id: str, name: str = "one") -> httpx2.Response:
    return team.post(SOFTWARES, data={"upload": id, "software": name})


def requests(team: httpx2.Client) -> list[str]:
    return [one["id"] for one in team.get("/api/v1/requests").json()["items"]]


def payloads(front: Front) -> list[bytes]:
    root = front.exchange / "inbox"
    return [(root / name / "payload").read_bytes() for name, _ in Inbox(root).waiting()]


@pytest.mark.parametrize("point", POINTS)
def test_a_team_submits_though_the_server_is_killed(
    front: Front,
    tmp_path: Path,
    point: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The real client submits once; its file is in the inbox once, and the list of requests has it."""
    monkeypatch.setattr(uploading, "PAUSE", 0.2)
    home = Project(tmp_path / "alpha", tmp_path / "home", tmp_path / "none")
    home.env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    home.write_task(uploads=True)
    folder = home.root / "submissions/alpha/one"
    folder.mkdir(parents=True)
    (folder / "run.txt").write_text(run_text("dev", "one"))
    definition = {"task": "mini", "run": [{"file": "run.txt", "dataset": "dev"}]}
    (folder / "submission.yaml").write_text(json.dumps(definition))
    with killed_front(front.exchange, tmp_path / "state", point) as server:
        remember(Server("local", server.url, str(front.tokens["team"]), "alpha"), home.env)
        submit = ("submit", "--to", "local", "--team", "alpha", "--no-check", "--json")
        said = call_here(home, submit, capsys)
        assert server.kills == 1, "the server passed the point"
        assert said.code == 0, said.all
        front.url = server.url
        with front.client("team") as team:
            assert requests(team) == [said.json[0]["request"]]
            assert team.get("/api/v1/uploads").json()["items"] == []
    assert payloads(front) == [run_text("dev", "one").encode()]


@pytest.mark.parametrize("point", ["after move 1", "after move 2", "before the note"])
def test_a_request_that_is_decided_before_the_server_is_back_is_listed(
    front: Front, tmp_path: Path, point: str
) -> None:
    with killed_front(front.exchange, tmp_path / "state", point, restart=False) as server:
        front.url = server.url
        inbox = Inbox(front.exchange / "inbox")
        with front.client("team") as team, front.client("other") as other:
            id = sent(team)
            with pytest.raises(httpx2.HTTPError):
                software(team, id)
            server.wait_killed()
            if not inbox.waiting():
                inbox.sweep()
            [(name, request)] = inbox.waiting()
            facts = {"team": "alpha", "kind": "software", "accepted": True, "sha256": DIGEST, "arrival": WHEN}
            answer(front.exchange / "published", request, facts)
            inbox.remove(name)
            server.start()
            assert requests(team) == [request] and requests(other) == []
            again = software(team, id)
            assert (again.status_code, again.json()["request"]) == (202, request)
            assert (again.json()["sha256"], again.json()["size"]) == (DIGEST, len(CONTENT))
    assert inbox.waiting() == []


def test_an_upload_without_its_digest_note_is_complete_when_it_is_looked_at(served: Front) -> None:
    with served.client("team") as team:
        for looks in (True, False):
            id = sent(team)
            forget_digest(served, id)
            if looks:
                assert ask(team).json()["offset"] == len(CONTENT)
                assert json.loads(stored(served, f"{id}.json").read_bytes())["arrival"]
            assert software(team, id, f"s-{id[:8]}").status_code == 202
    assert payloads(served) == [CONTENT, CONTENT]


def test_an_upload_without_its_digest_note_is_finished_when_the_server_starts(
    front: Front, tmp_path: Path
) -> None:
    def served() -> Any:
        return serving(front.exchange, tmp_path / "state", 16_000_000)

    with served() as front.url, front.client("team") as team:
        id, other = sent(team), sent(team, CONTENT[1:])
        partial = begin(team, 2000, hashlib.sha256(CONTENT[:2000]).hexdigest())
        put(team, partial, CONTENT[:1000], 0, 2000)
    forget_digest(front, id)
    forget_digest(front, other)
    stored(front, other).write_bytes(
        b"x" * (len(CONTENT) - 1)
    )  # as a server leaves it that is killed before a checksum
    with served() as front.url, front.client("team") as team:
        until(lambda: json.loads(stored(front, f"{id}.json").read_bytes())["arrival"], every=0.02)
        until(lambda: not stored(front, other).exists(), every=0.02)
        assert offset(team, partial) == 1000


def test_other_content_of_the_same_size_is_no_upload(served: Front) -> None:
    with served.client("team") as team:
        for look in ("PUT", "POST"):
            id = sent(team)
            forget_digest(served, id)
            stored(served, id).write_bytes(b"x" * len(CONTENT))
            if look == "PUT":
                assert ask(team).status_code == 422
            said = software(team, id)
            assert said.status_code == 400 and said.json()["code"] == "E201"
            assert team.get("/api/v1/uploads").json()["items"] == []
    assert payloads(served) == []


def test_a_request_in_any_state_of_its_way_is_in_the_inbox_once_after_a_sweep(tmp_path: Path) -> None:
    """The states of :meth:`Inbox.put`, made by an error at each of its steps and a copy of the folder before it is cleared."""
    token = Token.new()
    found: dict[int, tuple[int, bool]] = {}
    for step in range(8):
        root = tmp_path / str(step)
        (root / "inbox/.uploads").mkdir(parents=True)
        upload = root / "inbox/.uploads/u"
        upload.write_bytes(CONTENT)
        calls = 0

        def stop(*_: object, root: Path = root, step: int = step) -> None:
            nonlocal calls
            calls += 1
            if calls == step + 1 and not (root / "copy").exists():
                shutil.copytree(root / "inbox", root / "copy")

        with pytest.MonkeyPatch.context() as patched:
            for name in ("mkdir", "rename", "chmod", "open"):
                real = getattr(Path, name)

                def stepped(self: Path, *given: Any, real: Any = real, **named: Any) -> Any:
                    if "inbox" in self.parts and "copy" not in self.parts:
                        stop()
                    return real(self, *given, **named)

                patched.setattr(Path, name, stepped)
            request = Request.new("software", "a-" + "0" * 16, token.id, "alpha", WHEN, {})
            Inbox(root / "inbox").put(request, token.key, Ready(upload, DIGEST, len(CONTENT)))
        if not (root / "copy").exists():
            continue
        inbox = Inbox(root / "copy")
        inbox.sweep()
        waiting = inbox.waiting()
        kept = (root / "copy/.uploads/u").exists()
        for name, _ in waiting:
            taken = inbox.take(name, root / "taken")
            assert taken.payload is not None and taken.payload.read_bytes() == CONTENT
        found[step] = (len(waiting), kept)
        assert not [path for path in (root / "copy").glob(".*") if path.name != ".uploads"]
    assert len(found) >= 4 and {*found.values()} == {(0, True), (1, False)}, found


def test_submissions_of_one_upload_at_the_same_time_are_one_request(served: Front) -> None:
    def run_file(id: str) -> httpx2.Response:
        with served.client("team") as team:
            return team.post(
                RUN_FILES, data={"upload": id, "software": "one", "dataset": "dev", "name": "r.txt"}
            )

    def of_software(id: str) -> httpx2.Response:
        with served.client("team") as team:
            return software(team, id)

    for submit in (run_file, of_software):
        with served.client("team") as team:
            id, before = sent(team), requests(team)
            with ThreadPoolExecutor(4) as pool:
                said = list(pool.map(submit, [id] * 4))
            assert [one.status_code for one in said] == [202] * 4, [one.text for one in said]
            assert len({json.dumps(one.json(), sort_keys=True) for one in said}) == 1
            assert requests(team) == [said[0].json()["request"], *before]
            assert software(team, id, "other").status_code == 400, "an upload is submitted once"
        with served.client("other") as other:
            assert software(other, id).status_code == 400 and requests(other) == []
    assert payloads(served) == [CONTENT, CONTENT]


def test_a_request_that_a_full_disk_did_not_note_is_listed(
    served: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Database.execute

    def full(self: Database, query: str, *given: Any) -> Any:
        if query.startswith(("INSERT", "DELETE")):
            raise DatabaseError("disk full")
        return real(self, query, *given)

    with served.client("team") as team:
        id = sent(team)
        with monkeypatch.context() as patched:
            patched.setattr(Database, "execute", full)
            first = software(team, id)
            assert requests(team) == [first.json()["request"]]
        assert requests(team) == [first.json()["request"]]
        assert software(team, id).json()["request"] == first.json()["request"]


def test_an_upload_that_somebody_works_on_is_locked(
    served: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest of a large upload takes minutes: who asks meanwhile is told to ask again."""
    from runner.web import uploads

    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    real = uploads.file_sha256

    def slow(path: Path) -> str:
        pipe.read_bytes()
        return real(path)

    monkeypatch.setattr(uploads, "file_sha256", slow)
    monkeypatch.setattr("runner.web.routes.handing_in.LOCK_SECONDS", 0.2)
    with served.client("team") as team, ThreadPoolExecutor(1) as pool:
        where = begin(team)
        id, last = id_of(team, where), pool.submit(put, team, where, CONTENT, 0)
        try:
            with served.client("team") as second:
                until(
                    lambda: stored(served, id).stat().st_size == len(CONTENT),
                    every=0.02,
                )
                until(lambda: ask(second).status_code == 423, every=0.02)
                said = software(second, id)
                assert said.status_code == 423 and said.headers["retry-after"]
        finally:
            pipe.write_bytes(b"go")
        assert last.result().status_code == 200
        assert software(team, id).status_code == 202
