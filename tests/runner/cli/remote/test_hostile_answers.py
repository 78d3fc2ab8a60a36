"""Whatever a server answers, a command ends with a sentence: hostile answers × commands, over real HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runner.exchange.access import Token
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.hostile_server import (
    ID,
    ROW,
    RUN,
    Answer,
    Making,
    always,
    as_json,
    bomb,
    every,
    good,
    hostile,
    replaced,
)
from tests.worlds.mini import Project, Said, call_here

TOKEN = str(Token.new())
COMMANDS = {
    "login": ("login", "URL"),
    "status": ("status",),
    "status of one": ("status", ID),
    "status as JSON": ("status", "--json"),
    "runs": ("runs", "--to", "local"),
    "runs as JSON": ("runs", "--to", "local", "--json"),
    "show": ("show", RUN, "--to", "local"),
    "logs": ("logs", RUN, "--to", "local"),
    "leaderboard": ("leaderboard", "mini", "--to", "local"),
    "task list": ("task", "list", "--to", "local"),
    "task show": ("task", "show", "mini", "--to", "local"),
    "receipt": ("receipt", "get", ID, "--to", "local"),
    "withdraw": ("withdraw", RUN, "--to", "local"),
    "data get": ("data", "get", "mini", "dev", "--to", "local", "--out", "OUT"),
    "submit": ("submit", "--team", "alpha", "--to", "local", "--wait"),
}


def page(*items: object, then: object = None) -> Answer:
    return Answer(json.dumps({"items": items, "next": then}).encode())


def lists(*items: object, then: object = None) -> Making:
    return lambda method, path: page(*items, then=then)


def offset(value: object) -> Making:
    """Everything is good, but how far an upload is."""

    def answer(method: str, path: str) -> Answer:
        state = {"id": ID, "sha256": "0" * 64, "size": 1, "offset": value}
        return Answer(json.dumps(state if method == "PUT" else good(method, path)).encode())

    return answer


def pages(method: str, path: str) -> Answer:
    """Pages without end."""
    return Answer(json.dumps({"items": [ROW] * 500, "next": f"/api/v1/x?after={id(path)}"}).encode())


def compressed(body: bytes, coding: str = "gzip") -> Making:
    return always(body, Content_Encoding=coding)


ANSWERS: dict[str, Making] = {
    "nothing": always(),
    "HTML": always("<html>", Content_Type="text/html"),
    "no UTF-8": always(b'"\xff\xfe"'),
    "null": always("null"),
    "a list": always("[]"),
    "a mapping": always("{}"),
    "a number": always("5"),
    "no list in a page": always('{"items": null, "next": null}'),
    "a page without next": always('{"items": []}'),
    "numbers in a page": lists(5, None, "x"),
    "empty entries": lists({}),
    "next is a number": lists(then=5),
    "next is elsewhere": lists(ROW, then="https://evil.example/?after=1"),
    "next is no address": lists(ROW, then="http://[::1"),
    "pages without end": pages,
    "nested": always("[" * 100_000),
    "nested in a good one": as_json(lambda one: {**one, "deep": json.loads("[" * 900 + "]" * 900)}),
    "digits": always("9" * 100_000),
    "every value is huge": lambda m, p: Answer(json.dumps(every(7)(good(m, p))).replace("7", "9" * 400).encode()),
    "every value is infinite": lambda m, p: Answer(json.dumps(every(7)(good(m, p))).replace("7", "1e999").encode()),
    "every value is no number": as_json(every(float("nan"))),
    "every value is text": as_json(every("x")),
    "every value is half a character": as_json(every("\ud800")),
    "every value is an escape": as_json(every("\x1b[2J\x1b]0;evil\x07")),
    "every value is null": as_json(every(None)),
    "every key has a list": as_json(replaced([1])),
    "every key has a mapping": as_json(replaced({"a": {"b": 1}})),
    "every key has a number": as_json(replaced(-1)),
    "redirected": always(status=302, Location="ELSEWHERE"),

    "a bomb": compressed(bomb()),
    "half a compression": compressed(bomb(2_000_000)[:500]),
    "no compression": compressed(b"{}"),
    "another compression": compressed(b"{}", "br"),
    "two compressions": compressed(b"{}", "gzip, gzip"),
    "shorter than it says": always("{}", Content_Length="500"),
    "a length that is none": always("{}", Content_Length="²"),
    "chunks that are none": always("zz\r\n", Transfer_Encoding="chunked"),
    "without end": lambda m, p: Answer(b'"', endless=b"x" * 1_000_000),
    "no HTTP": lambda m, p: Answer(raw=b"\x00\x01SSH-2.0\r\n\r\n"),
    "silence": lambda m, p: Answer(raw=b""),
    "a head without end": lambda m, p: Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5000),
    "a status that is none": lambda m, p: Answer(raw=b"HTTP/1.1 999999 x\r\n\r\n"),
    "no words": always(status=404),
    "words of another": always('{"code": 5, "what": [], "why": {}}', 404),
    "evil words": always(json.dumps({"title": "", "status": 400, "code": "E999", "what": "\x1b[2J", "why": "x" * 10**6, "fix": "\ud800"}), 400),
    "later, at once": always(status=429, Retry_After="²"),
    "later, much": always(status=429, Retry_After="9" * 30),
    "never": always("{}", 410),
    "an offset that is none": offset("²"),
    "an offset below zero": offset(-1),
    "an offset beyond the end": offset(999999999),
    "an offset of words": offset("1e3"),
    "more than is known": as_json(lambda one: {**one, "later": {"version": 2}}),
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, project: Project) -> Project:
    project.write_task(uploads=True)
    folder = project.root / "submissions/alpha/one"
    folder.mkdir(parents=True)
    (folder / "run.txt").write_text(run_text("dev", "one"))
    definition = {"task": "mini", "run": [{"file": "run.txt", "dataset": "dev"}]}
    (folder / "submission.yaml").write_text(json.dumps(definition))
    project.env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "RUNNER_TOKEN": TOKEN}
    return project


def known(home: Project, url: str) -> None:
    """As if somebody had logged in there."""
    folder = Path(home.env["XDG_CONFIG_HOME"]) / "proctor/servers"
    folder.mkdir(parents=True, mode=0o700)
    facts = {"name": "local", "url": url, "token": TOKEN, "team": "alpha"}
    (folder / "local.json").write_text(json.dumps(facts))
    (folder / "local.json").chmod(0o600)


def said(home: Project, words: tuple[str, ...], url: str, capsys: pytest.CaptureFixture[str]) -> Said:
    places = {"URL": url, "OUT": str(home.home / "got")}
    return call_here(home, [places.get(word, word) for word in words], capsys)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_hostile_answer_ends_no_command_in_a_traceback(
    home: Project, answer: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two tries
    with hostile(always()) as (elsewhere, theirs):
        making = ANSWERS[answer]

        def answering(method: str, path: str) -> Answer:
            made = making(method, path)
            for name, value in made.headers.items():
                made.headers[name] = value.replace("ELSEWHERE", f"{elsewhere}/api/v1/me")
            return made

        with hostile(answering) as (url, ours):
            known(home, url)
            # What is the same at every address is read at the same place by all commands.
            same = making("GET", "/api/v1/me") == making("GET", "/api/v1/runs")
            for name, words in COMMANDS.items():
                if same and name not in ("login", "status", "submit"):
                    continue
                found = said(home, words, url, capsys)
                assert found.code in (0, 1, 2, 3, 4), (name, found.all)
                assert "E308" not in found.all and "\x1b" not in found.all, (name, found.all)
                error = re.search(r"^E\d{3}  ", found.err, re.M) and "Fix:" in found.err
                assert found.code == 0 or error, (name, found.err)
                assert len(found.all) < 200_000, name
    assert theirs == [], "no token goes to another server"
    assert ours and {*ours} == {f"Bearer {TOKEN}"}
