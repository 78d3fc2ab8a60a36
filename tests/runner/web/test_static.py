"""Answers of an application as files: where each goes, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.published import Publisher
from runner.web import server
from runner.web.static import Got, Missing, collect, place_of, write

PAGES = {
    "/": '<a href="/tasks/a?x=1#top">a</a> <a href="https://example.org/">b</a> <a href="#c">c</a>',
    "/tasks/a": '<a title="/x" href="/">up</a> <a href="/gone">gone</a><svg><text>a name href="/no"</text></svg><link rel="alternate" href="/api/v1/tasks/a">',
    "/robots.txt": "User-agent: *",
    "/api/v1/tasks/a": "{}",
}


async def application(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
    text = PAGES.get(scope["path"])
    kinds = {"/robots.txt": b"text/plain", "/api/v1/tasks/a": b"application/json"}
    headers = [(b"content-type", kinds.get(scope["path"], b"text/html; charset=utf-8"))]
    await send({"type": "http.response.start", "status": 404 if text is None else 200, "headers": headers})
    await send({"type": "http.response.body", "body": (text or "").encode()})


def test_links_are_followed_and_lead_from_file_to_file(tmp_path: Path) -> None:
    found, missing = collect(application, "localhost", tmp_path)
    assert missing == [Missing("/tasks/a", "/gone", 404)]
    write(found, tmp_path)
    first, second = ((tmp_path / name).read_text() for name in ("index.html", "tasks/a.html"))
    for link in ('href="tasks/a.html#top"', 'href="https://example.org/"', 'href="#c"'):
        assert link in first
    for link in ('href="../index.html"', 'href="a.json"', 'title="/x"', 'name href="/no"'):
        assert link in second
    assert (tmp_path / "tasks/a.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("path", "is_page", "place"),
    [
        ("/", True, "index.html"),
        ("/tasks/a", True, "tasks/a.html"),
        ("/tasks/a.b", True, "tasks/a.b.html"),
        ("/downloads/tasks/a/main.html", False, "downloads/tasks/a/main.html"),
        ("/api/v1/tasks", False, "index.json"),
        ("/api/v1/tasks/a/rounds/r/boards/main", False, "tasks/a/rounds/r/main.json"),
        ("/api/v1/tasks/a/boards/boards", False, "tasks/a/boards.json"),
    ],
)
def test_each_address_has_its_file(path: str, is_page: bool, place: str) -> None:
    assert place_of(path, is_page) == place


@pytest.mark.parametrize("path", ["/../x", "/a/%2e%2e/x", "/a//x", "/a/%5c..", "/a/%00", "/a/"])
def test_no_address_leads_out_of_the_folder(path: str) -> None:
    with pytest.raises(ValueError):
        place_of(path, False)


def test_many_files_take_no_longer_each(tmp_path: Path) -> None:
    found = {f"/tasks/a/data/{n}": Got("text/plain", True, b"") for n in range(20_000)}
    began = time.process_time()
    with pytest.raises(ValueError):
        write({**found, "/tasks/a/Data/19999": found["/tasks/a/data/0"]}, tmp_path)
    assert time.process_time() - began < 5  # looked up in all that came before, it is a minute


def test_the_list_of_tasks_that_is_kept_has_all(tmp_path: Path) -> None:
    """A page of the API ends at a hundred and says where it goes on, where nobody answers later."""
    to = Publisher(tmp_path / "exchange" / "published")
    one = {"title": "A task", "description": "", "takes": [], "tables": []}
    one["dates"] = {"opens": None, "closes": None}
    tasks = to.object("tasks", "tasks", "Tasks", [{**one, "id": f"t{n}"} for n in range(130)])
    to.publish({"public": [tasks]})
    app = server.application(tmp_path / "exchange", tmp_path / "state", "http://localhost", kept=True)
    found, _ = collect(app, "localhost", tmp_path)
    said = json.loads(found["/api/v1/tasks"].content)
    assert len(said["items"]) == 130 and said["next"] is None
