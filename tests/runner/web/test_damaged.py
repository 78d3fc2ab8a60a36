"""What is published is cut, changed or there in part, or the front's own disk refuses: pages say so, and hand-ins are whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from runner.exchange.inbox import Inbox
from runner.exchange.published import Published
from runner.web.sessions import Sessions
from tests.runner.web.test_routes import Front, form_of, front  # noqa: F401  (a fixture)


def cut_files(published: Path) -> None:
    for path in published.glob("files/*/*"):
        path.write_bytes(path.read_bytes()[:-1])


def other_files(published: Path) -> None:
    for path in published.glob("files/*/*"):
        path.write_bytes(b"<script>alert(1)</script>")


def no_files(published: Path) -> None:
    for path in published.glob("files/*/*"):
        path.unlink()


def cut_databases(published: Path) -> None:
    for path in published.glob("audiences/*"):
        path.write_bytes(path.read_bytes()[:5000])


def no_databases(published: Path) -> None:
    for path in published.glob("audiences/*"):
        path.unlink()


def cut_pointer(published: Path) -> None:
    path = published / "current.json"
    path.write_bytes(path.read_bytes()[:-5])


DAMAGES = (cut_files, other_files, no_files, cut_databases, no_databases, cut_pointer)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_what_cannot_be_read_is_said_and_nothing_of_it_shown(
    front: Front,  # noqa: F811
    damage: Callable[[Path], None],
) -> None:
    damage(front.exchange / "published")
    with front.client("team") as client:
        for path in ("/tasks/mini", "/tasks/mini/main", "/runs/alpha.one.x.dev", "/team", "/api/v1/runs"):
            said = client.get(path)
            assert said.status_code == 503 and said.headers["retry-after"] == "60", path
            assert "<script>" not in said.text and "sqlite" not in said.text
        assert client.get("/healthz").status_code == 200


def test_a_hand_in_that_is_in_the_inbox_counts_whatever_the_fronts_own_disk_does(front: Front) -> None:  # noqa: F811
    state = front.exchange.parent / "state/front.sqlite"
    with front.browser() as team:
        form = form_of(team.get("/tasks/mini/hand-in").text)
        with sqlite3.connect(state) as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON requests BEGIN SELECT RAISE(FAIL, 'full'); END"
            )
            connection.execute(
                "CREATE TRIGGER more BEFORE INSERT ON sessions BEGIN SELECT RAISE(FAIL, 'full'); END"
            )
        fields = {"form-token": form, "software": "one"}
        said = team.post("/tasks/mini/hand-in", data=fields, files={"file": ("run.txt", b"x")})
        assert said.status_code == 303
        assert len(Inbox(front.exchange / "inbox").waiting()) == 1
        with front.client() as other:
            form = form_of(other.get("/sign-in").text)
            said = other.post("/sign-in", data={"form-token": form, "token": str(front.tokens["team"])})
            assert said.status_code == 503 and "full" not in said.text


def test_a_hand_in_that_cannot_be_kept_is_refused_whole(front: Front) -> None:  # noqa: F811
    (front.exchange / "inbox").write_text("where the folder should be")
    with front.client("team") as client:
        said = client.post("/tasks/mini/hand-in", data={"software": "one"}, files={"file": ("r", b"x")})
    assert said.status_code == 507


def test_a_clock_that_was_set_back_does_not_make_work_alive(front: Front) -> None:  # noqa: F811
    seen = Published(front.exchange / "published")
    said = (seen.root / "alive.json").stat().st_mtime
    assert seen.age(said - 30) == 0 and seen.age(said - 3600) is None


@pytest.mark.parametrize("content", [b"no database at all" * 500, b"", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_database_of_the_front_that_is_none_is_made_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "front.sqlite").write_bytes(content)
    (tmp_path / "front.sqlite-journal").write_bytes(b"x")
    with closing(Sessions(tmp_path)) as sessions:
        secret = sessions.begin("0" * 12, "key")
        assert sessions.get(secret) is not None
    with closing(Sessions(tmp_path)) as again:
        assert again.get(secret) is not None, "a good one is kept"
