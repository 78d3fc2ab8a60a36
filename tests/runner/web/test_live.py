"""An open page asks whether it changed: only whether, and only for pages that the visitor may see."""

from __future__ import annotations

from typing import Any

import pytest

from runner.exchange.access import Access
from runner.exchange.inbox import answer
from runner.exchange.published import Publisher
from tests.runner.web.test_routes import Front, front, task

__all__ = ["front"]


def tag(front: Front, page: str, role: str | None = None) -> str | None:
    """The tag of a page for a visitor; None if there is none."""
    with front.client(role) as client:
        said = client.get("/live", params={"page": page})
    assert said.status_code in (200, 404)
    return said.text if said.status_code == 200 else None


def publish(front: Front, text: str, of: str = "team:alpha") -> None:
    """Publish another board to an audience, and a run of alpha's."""
    to = Publisher(front.exchange / "published")
    everybody = task(to, front.style)
    board = to.object("tasks/mini/main", "board", "Mini", {}, f"<h1>{text}</h1>", front.style)
    runs = to.object("runs", "runs", "Runs", [])
    found: dict[str, Any] = {name: [*everybody, runs] for name in ("public", "team:alpha", "team:beta")}
    to.publish(found | {of: [*everybody, runs, board]})


def test_a_tag_changes_with_its_page_and_with_nothing_else(front: Front) -> None:
    publish(front, "one")
    first = tag(front, "/tasks/mini/main", "team")
    publish(front, "one")
    Publisher(front.exchange / "published").alive()
    assert first and tag(front, "/tasks/mini/main", "team") == first, "the same content"
    publish(front, "two")
    second = tag(front, "/tasks/mini/main", "team")
    assert second and second != first
    with front.client("team") as client:
        page = client.get("/tasks/mini/main").text
    assert f'data-page="/tasks/mini/main" data-tag="{second}"' in page, (
        "a page names the tag of what it shows"
    )


@pytest.mark.parametrize(
    ("page", "role"),
    [
        ("/tasks/mini/main", None),
        ("/tasks/mini/main", "other"),
        ("/team", None),
        ("/team", "organiser"),
        ("/requests/" + "d" * 32, "other"),
        ("/../access.json", "team"),
        ("/tasks/" + "x" * 20_000, None),
        ("", None),
    ],
)
def test_nobody_is_told_of_pages_that_are_not_theirs(front: Front, page: str, role: str | None) -> None:
    publish(front, "one")
    assert tag(front, page, role) is None


def test_the_tag_of_another_team_stays(front: Front) -> None:
    publish(front, "one")
    before = tag(front, "/team", "other")
    publish(front, "two")
    assert before and tag(front, "/team", "other") == before


def test_a_request_is_told_once_it_is_taken_and_answered(front: Front) -> None:
    before = tag(front, "/team", "team")
    with front.client("team") as client:
        said = client.post("/tasks/mini/hand-in", data={"software": "one"}, files={"file": ("run.txt", b"x")})
    taken, id = tag(front, "/team", "team"), said.json()["request"]
    decided = {"team": "alpha", "accepted": True, "arrival": "", "sha256": None}
    answer(front.exchange / "published", id, decided)
    answered = tag(front, "/team", "team")
    assert len({before, taken, answered}) == 3 and answered


def test_a_revoked_token_is_told_nothing(front: Front) -> None:
    assert tag(front, "/team", "team")
    access = Access.read(front.exchange / "published")
    rest = {k: g for k, g in access.grants.items() if k != front.tokens["team"].id}
    Access(rest).write(front.exchange / "published")
    with front.client("team") as client:
        assert client.get("/live", params={"page": "/team"}).status_code in (401, 404)
