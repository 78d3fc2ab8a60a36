"""A server's data frames: the same as those of the data directory behind it, for each audience; and what is no server."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pandas as pd
import pytest

from runner.api import Home, Remote, connect, open_home
from runner.exchange.access import Access, Token
from runner.model.errors import RunnerError
from runner.views.leaderboard import frames
from tests.runner.test_api import every_frame
from tests.runner.web import test_api_v1
from tests.runner.web.test_routes import Front
from tests.worlds import records

front = test_api_v1.front
WHO = {"team": "team:alpha", "other": "team:beta", None: "public"}


def remote(front: Front, role: str | None) -> Remote:
    return connect(front.url, str(front.tokens[role]) if role else None)


def local(front: Front, audience: str) -> Home:
    return open_home(front.exchange.parent / "home", audience)


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one, other)
    assert one.attrs == other.attrs


@pytest.mark.parametrize("role", WHO)
def test_frames_are_those_of_the_data_directory(front: Front, role: str | None) -> None:
    far, near = remote(front, role), local(front, WHO[role])
    assert far.audience == WHO[role]
    for name, frame in every_frame(near).items():
        asked = getattr(far, name)(*([records.TASK] if name == "leaderboard" else []))
        same(frame, asked)
        assert len(asked) > 0 or role != "team", name
    for choices in ({"table": "main"}, {"round": "final"}, {"unit": "software", "pick": "latest"}):
        same(
            near.leaderboard(records.TASK, **choices),  # type: ignore[arg-type]
            far.leaderboard(records.TASK, **choices),  # type: ignore[arg-type]
        )
    same(near.runs("nothing"), far.runs("nothing"))


def test_an_organiser_gets_what_teams_see_of_their_own_runs(front: Front) -> None:
    far = remote(front, "organiser")
    audiences = [f"team:{team}" for team in far.runs()["team"].unique()]
    assert audiences == ["team:alpha", "team:beta", "team:baselines"]
    for name in ("runs", "topic_scores", "findings"):
        parts = [getattr(local(front, audience), name)() for audience in audiences]
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), getattr(far, name)())
    same(local(front, "public").leaderboard(records.TASK), far.leaderboard(records.TASK))


def test_rows_are_tested_against_a_row_as_beside_the_data_directory(front: Front) -> None:
    for name in ("alpha/y", "beta.y"):
        same(
            local(front, "public").leaderboard(records.TASK, against=name),
            remote(front, "organiser").leaderboard(records.TASK, against=name),
        )
    with pytest.raises(RunnerError) as error:
        remote(front, "organiser").leaderboard(records.TASK, round="final", against="alpha/y")
    assert error.value.code == "E101"


def test_runs_are_compared_here_and_there(front: Front) -> None:
    far, near = remote(front, "team"), local(front, "team:alpha")
    listed = near.runs(records.TASK)
    runs = list(listed[(listed["dataset"] == "dev") & (listed["outcome"] == "scored")]["run"])
    found = [seen.comparison(records.TASK, runs) for seen in (near, far)]
    common = [
        "measure",
        "first",
        "second",
        "first_value",
        "second_value",
        "difference",
        "wins",
        "losses",
        "ties",
    ]
    pd.testing.assert_frame_equal(found[0][common], found[1][common])
    assert len(runs) == 2 and len(found[0]) == len(records.MEASURES)
    for frame in found:
        dtypes = {column: str(dtype) for column, dtype in frame.dtypes.items()}
        assert dtypes == {column.name: column.dtype for column in frames.COMPARISON}
        assert frame.attrs["runs"] == runs and frame.attrs["task"] == records.TASK
    hidden = list(listed[listed["dataset"] == "test"]["run"])[:2]
    for wanted, codes in (
        (runs[:1], "E101 E101"),
        ([*runs, runs[0]], "E101 E101"),
        ([runs[0], "x"], "E102 E102"),
        (hidden, "E103 E101"),
    ):
        for seen, code in zip((near, far), codes.split(), strict=True):
            with pytest.raises(RunnerError) as error:
                seen.comparison(records.TASK, wanted)
            assert error.value.code == code, (seen, wanted)


def test_a_server_has_the_methods_of_a_data_directory() -> None:
    for name, method in vars(Home).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            assert inspect.signature(getattr(Remote, name)) == inspect.signature(method)
            assert "| column | dtype |" in (getattr(Remote, name).__doc__ or "")


def test_what_is_not_there_is_told_as_from_the_data_directory(front: Front) -> None:
    far, near = remote(front, "team"), local(front, "team:alpha")
    for words, code in (
        (("nothing",), "E102"),
        ((records.TASK, "nothing"), "E102"),
        ((records.TASK, None, "nothing"), "E102"),
    ):
        for seen in (near, far):
            with pytest.raises(RunnerError) as error:
                seen.leaderboard(*words)
            assert error.value.code == code, (seen, words)
    for choice in ({"unit": "team"}, {"pick": "best"}, {"topics": "private"}):
        with pytest.raises(RunnerError) as error:
            far.leaderboard(records.TASK, **choice)  # type: ignore[arg-type]
        assert error.value.code == "E101"


def test_what_has_not_changed_is_not_sent_again(front: Front) -> None:
    said: list[tuple[int, int]] = []
    far = remote(front, "team")
    with relayed(front.url, said) as url:
        through = connect(url, str(front.tokens["team"]))
        first = through.leaderboard(records.TASK)
        count = len(said)
        same(first, through.leaderboard(records.TASK))
    assert [status for status, _ in said[count:]] == [304] * 2 and all(not size for _, size in said[count:])
    same(first, far.leaderboard(records.TASK))


def test_a_token_that_was_taken_away_opens_nothing_any_more(front: Front) -> None:
    far = remote(front, "assessor")
    published = front.exchange / "published"
    access = Access.read(published)
    Access({k: g for k, g in access.grants.items() if k != front.tokens["assessor"].id}).write(published)
    for asked in (far.runs, lambda: connect(front.url, str(Token.new()))):
        with pytest.raises(RunnerError) as error:
            asked()
        assert error.value.code == "E105"


@pytest.mark.parametrize(
    "url",
    [
        "http://task.example.org",
        "ftp://task.example.org",
        "task.example.org",
        "https://",
        "https://me:secret@task.example.org",
        "https://task.example.org/tasks",
        "http://127.0.0.1.example.org",
        "https://[",
        "https://task.example.org:x",
    ],
)
def test_tokens_go_by_tls_or_stay_on_this_machine(url: str) -> None:
    with pytest.raises(RunnerError) as error:
        connect(url, str(Token.new()))
    assert error.value.code == "E101"


def test_what_is_no_token_is_not_sent() -> None:
    with pytest.raises(RunnerError) as error:
        connect("https://task.example.org", "nonsense")
    assert error.value.code == "E105" and "nonsense" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (302, b""),
        (404, b"<h1>none</h1>"),
        (500, b"{}"),
        (404, json.dumps({"code": "E999", "what": "x", "why": "", "fix": ""}).encode()),
    ],
)
def test_what_is_no_such_server_is_told(status: int, body: bytes) -> None:
    with answering(lambda _: (status, {"Location": "http://localhost:1/"}, body)) as url:
        with pytest.raises(RunnerError) as error:
            connect(url, str(Token.new()))
        assert error.value.code == "E309"
    with pytest.raises(RunnerError) as error:
        connect(url, str(Token.new()))
    assert error.value.code == "E309" and url in error.value.what


def test_a_token_is_not_shown_by_a_notebook(front: Front) -> None:
    far = remote(front, "team")
    assert str(front.tokens["team"]) not in repr(far) + repr(far.server)


@contextmanager
def answering(answer: Any) -> Iterator[str]:
    """A server that answers each GET as ``answer(handler)`` says: status, headers, body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answer(self)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def relayed(url: str, said: list[tuple[int, int]]) -> Iterator[str]:
    """A server that asks another one, and notes status and size of each answer."""
    import httpx2

    def answer(handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        sent = {k: v for k, v in handler.headers.items() if k.lower() in ("authorization", "if-none-match")}
        got = httpx2.get(url + handler.path, headers=sent, trust_env=False, timeout=60)
        said.append((got.status_code, len(got.content)))
        kept = {k: v for k, v in got.headers.items() if k in ("etag", "content-type")}
        return got.status_code, kept, got.content

    with answering(answer) as here:
        yield here
