"""Streams of events: they say that a page changed and nothing else, to whom may see it, and are bounded."""

from __future__ import annotations

import os
import re
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import httpx2
import pytest

from runner.exchange.access import Access
from runner.exchange.inbox import answer
from runner.exchange.published import Published, Publisher
from runner.web.live import Bounds, Live
from tests.runner.web.test_routes import Front, front, task

__all__ = ["front"]
EVENT = re.compile(r"id: ([0-9a-f]{32})\nevent: page\ndata: \1\n\n")


class Stream:
    """What comes out of a stream, piece by piece."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status, self._response, self._pieces = response.status_code, response, Queue[str | None]()
        self.text = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for piece in self._response.iter_text():
                self._pieces.put(piece)
        except httpx2.HTTPError:
            pass
        self._pieces.put(None)

    def next(self, seconds: float = 60) -> str | None:
        """The next tag; None at the end of the stream, "" when nothing comes."""
        last = time.monotonic() + seconds
        while not (found := EVENT.search(self.text)):
            try:
                piece = self._pieces.get(timeout=max(0.01, last - time.monotonic()))
            except Empty:
                return ""
            if piece is None:
                return None
            self.text += piece
        rest = self.text[: found.start()] + self.text[found.end() :]
        assert re.fullmatch(r"(retry: \d+\n\n|:\n\n|event: page\ndata: gone\n\n)*", rest), (
            f"only tags: {rest!r}"
        )
        self.text = rest
        return found[1]


@contextmanager
def following(
    front: Front, page: str, role: str | None = None, have: str = "", **headers: str
) -> Iterator[Stream]:
    with (
        front.client(role, **headers) as client,
        client.stream("GET", "/live", params={"page": page, "have": have}) as response,
    ):
        yield Stream(response)


def publish(front: Front, text: str, of: str = "team:alpha") -> None:
    """Publish another board to an audience, and a run of alpha's."""
    to = Publisher(front.exchange / "published")
    everybody = task(to, front.style)
    board = to.object("tasks/mini/main", "board", "Mini", {}, f"<h1>{text}</h1>", front.style)
    runs = to.object("runs", "runs", "Runs", [])
    found: dict[str, Any] = {name: [*everybody, runs] for name in ("public", "team:alpha", "team:beta")}
    to.publish(found | {of: [*everybody, runs, board]})


@pytest.mark.slow
def test_a_stream_says_that_its_page_changed_and_nothing_when_it_did_not(front: Front) -> None:
    publish(front, "one")
    with following(front, "/tasks/mini/main", "team") as stream:
        first = stream.next()
        assert first
        publish(front, "one", of="team:alpha")
        Publisher(front.exchange / "published").alive()
        assert stream.next(1.5) == "", "the same content"
        publish(front, "two")
        second = stream.next()
        assert second and second != first
    with following(front, "/tasks/mini/main", "team", have=second) as stream:
        assert stream.next(1.5) == "", "who has it is told nothing"
    headers = {"last-event-id": first}
    with following(front, "/tasks/mini/main", "team", have=second, **headers) as stream:
        assert stream.next() == second, "what was missed while the stream was cut comes at once"
    page = front.client("team").get("/tasks/mini/main").text
    assert f'data-page="/tasks/mini/main" data-tag="{second}"' in page, (
        "a page names the tag of what it shows"
    )


def test_nobody_is_told_of_pages_that_are_not_theirs(front: Front) -> None:
    publish(front, "one")
    for page, role in (
        ("/tasks/mini/main", None), ("/tasks/mini/main", "other"), ("/team", None), ("/team", "organiser"),
        ("/requests/" + "d" * 32, "other"), ("/styles/" + front.style, None), ("/../access.json", "team"), ("", None),
    ):  # fmt: skip
        with following(front, page, role) as stream:
            assert stream.status == 404, (page, role)
    with following(front, "/team", "other") as stream:
        assert stream.next()
        publish(front, "two")
        assert stream.next(1.5) == "", "a team's stream is about what is published to it"


def test_a_request_is_told_as_soon_as_it_is_taken_and_answered(front: Front) -> None:
    with following(front, "/team", "team") as stream, front.client("team") as client:
        before = stream.next()
        said = client.post("/tasks/mini/hand-in", data={"software": "one"}, files={"file": ("run.txt", b"x")})
        taken, id = stream.next(), said.json()["request"]
        answer(
            front.exchange / "published",
            id,
            {"team": "alpha", "accepted": True, "arrival": "", "sha256": None},
        )
        answered = stream.next()
        assert len({before, taken, answered}) == 3 and answered


def test_a_stream_ends_with_the_token_that_opened_it(front: Front) -> None:
    with following(front, "/team", "team") as stream:
        assert stream.next()
        access = Access.read(front.exchange / "published")
        rest = {k: g for k, g in access.grants.items() if k != front.tokens["team"].id}
        Access(rest).write(front.exchange / "published")
        assert stream.next() is None and stream.text.endswith("data: gone\n\n")


@pytest.mark.slow
def test_streams_of_one_account_are_bounded_and_come_free_again(front: Front) -> None:
    with ExitStack() as opened:
        for _ in range(Bounds().each):
            assert opened.enter_context(following(front, "/team", "team")).status == 200
        with following(front, "/team", "team") as refused, following(front, "/team", "other") as other:
            assert (refused.status, other.status) == (503, 200)
    last = time.monotonic() + 60
    while True:
        with following(front, "/team", "team") as stream:
            if stream.status == 200:
                break
        assert time.monotonic() < last
        time.sleep(0.2)


@pytest.mark.parametrize("have", ["\n\ndata: x", "x" * 5000, "é"])
def test_what_a_listener_says_it_has_comes_back_nowhere(front: Front, have: str) -> None:
    with following(front, "/tasks/mini", have=have) as stream:
        assert stream.next()


def test_pages_that_are_not_there_take_no_memory(front: Front) -> None:
    """Strangers may ask for as many as they like, each with a name as long as a head may be."""
    live = Live(front.exchange / "published", lambda: 0)
    view = Published(front.exchange / "published").view("public")
    assert live.tag("public", "/", lambda: "a") == "a" and live.tag("public", "/", lambda: "b") == "a"
    tracemalloc.start()
    try:
        for number in range(2000):
            page = f"/tasks/{number}/" + "x" * 20_000
            assert live.tag("public", page, lambda: None) is None and view.get(page) is None
        assert tracemalloc.get_traced_memory()[0] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_change_within_the_same_tick_of_the_clock_is_seen_at_a_later_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 6.13 the times of files stand still for 4 to 10 ms: two answers in one of them leave one time."""
    (tmp_path / "answers").mkdir()
    live, made, at = Live(tmp_path, lambda: 0), iter("abcdef"), time.time_ns()

    def look(after: int, answers: str = "") -> str | None:
        """The tag so many ms after the tick in which ``answers`` came."""
        for name in answers:
            (tmp_path / "answers" / name).touch()
        os.utime(tmp_path / "answers", ns=(at, at))
        monkeypatch.setattr(time, "time_ns", lambda: at + after * 1_000_000)
        return live.tag("public", "/", lambda: next(made))

    assert look(1, "1") == "a" and look(2, "2") == "a", "nothing shows it yet"
    assert look(100) == "b", "it is looked at again once another change would show"
    assert look(200) == look(60_000) == "b", "and no more after that"
