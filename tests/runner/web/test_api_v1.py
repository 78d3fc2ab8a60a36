"""``/api/v1`` over real HTTP on what a real project publishes: each route gives what its description says."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from jsonschema import Draft202012Validator

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox, answer
from runner.exchange.published import Published, Publisher
from runner.exchange.security import SecurityLog
from runner.model.clock import FixedClock
from runner.tasks.load import load_tasks
from runner.views.leaderboard.rounds import freeze
from runner.web.door import Door
from runner.web.openapi import document
from runner.web.routes import rules
from runner.web.rules import Rule
from runner.web.sessions import Sessions
from runner.work.publishing import Desk
from tests.runner.web.test_routes import ROLES, Front, grant, served
from tests.worlds import records
from tests.worlds.records import World, write_project

TEAMS = ("alpha", "beta")


def described(tmp_path: Path) -> tuple[Rule, ...]:
    door = Door(Published(tmp_path), Sessions(tmp_path), "http://localhost", SecurityLog(tmp_path))
    return rules(door, Inbox(tmp_path))


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A front over a project with runs that were scored, failed and wait, on public and hidden data, and a request."""
    folder = tmp_path_factory.mktemp("api")
    made = World.make(folder)
    write_project(made.config.root)
    definition = made.config.root / "tasks" / records.TASK / "task.yaml"
    rounds = [{"id": "final", "title": "The end", "at": "2026-01-05 23:59 UTC"}]
    more = {"rounds": rounds, "uploads": True}
    definition.write_text(json.dumps({**json.loads(definition.read_text()), **more}))
    for team in ("baselines", *TEAMS):
        made.scored(team, "y", mean=0.6, topics=5, datasets=("dev", "test"))
    submission = made.register("alpha", "x")
    bad = made.attempt(submission, dataset="dev", warnings=["odd"], refused=[("a", "a link")], log=b"log")
    made.evaluation(
        bad, {m: {"1": 0.5, "q1": 0.5} for m in records.MEASURES}, codes={"F012": ("error", 17)}, message="m"
    )
    made.attempt(made.register("alpha", "broken"), verdict="run-error", detail="exit code 77")
    exchange = folder / "exchange"
    tasks = load_tasks(made.config)[0]
    freeze(
        made.config, made.store, tasks[records.TASK], "final", clock=FixedClock(made.clock.at), anyway=True
    )
    to = Publisher(exchange / "published")
    Desk(made.store, tasks, to, lambda error: pytest.fail(error.what)).publish(TEAMS)
    to.alive()
    made.store.close()
    tokens = {role: Token.new() for role in (*ROLES, "other")}
    Access({t.id: grant(t, name) for name, t in tokens.items()}).write(exchange / "published")
    yield from served(exchange, folder / "state", tokens, "")


def hand_in(client: httpx2.Client, **more: str) -> httpx2.Response:
    files = {"file": ("run.txt", b"1 Q0 d 1 1 x\n")}
    data = {"software": "one", "dataset": "dev", **more}
    return client.post(f"/api/v1/tasks/{records.TASK}/run-files", data=data, files=files)


def begin(client: httpx2.Client, content: bytes) -> httpx2.Response:
    headers = {"Content-Range": f"bytes */{len(content)}"}
    return client.put(f"/api/v1/uploads/{hashlib.sha256(content).hexdigest()}", headers=headers)


def check(said: httpx2.Response, operation: dict[str, Any], whole: dict[str, Any]) -> None:
    """The answer is one that its operation has."""
    told = operation["responses"].get(str(said.status_code))
    assert told is not None, (said.status_code, said.text)
    assert {name.lower() for name in told.get("headers", ())} <= {*said.headers}
    content = told.get("content")
    if content is None:
        assert said.content == b""
        return
    assert said.headers["content-type"] in content
    schema = {**content[said.headers["content-type"]]["schema"], "components": whole["components"]}
    problems = [f"{e.json_path}: {e.message}" for e in Draft202012Validator(schema).iter_errors(said.json())]
    assert problems == []


def test_the_description_is_openapi(tmp_path: Path) -> None:
    from openapi_spec_validator import validate

    made = document(described(tmp_path))
    validate(json.loads(json.dumps(made)))
    assert "/api/v1/tasks/{task}/run-files" in made["paths"]


def test_the_routes_that_exist_are_those_that_are_described(tmp_path: Path) -> None:
    rules = described(tmp_path)
    there = {(r.method.lower(), r.path.replace(":path", "")) for r in rules if r.path.startswith("/api/")}
    told = {(method, path) for path, one in document(rules)["paths"].items() for method in one}
    assert there - told == {("get", "/api/v1/openapi.json")}, "a route of the API says what it gives"
    assert told - there == set(), "what is described is there"


def test_every_route_answers_as_it_is_described(front: Front, tmp_path: Path) -> None:
    with front.client("team") as team:
        whole = team.get("/api/v1/openapi.json").json()
        assert whole == json.loads(json.dumps(document(described(tmp_path))))
        mine = hand_in(team).json()["request"]
        runs = [one["run"] for one in team.get("/api/v1/runs").json()["items"]]
        begin(team, b"five!")
    done = {"team": "alpha", "kind": "run-file", "accepted": True, "arrival": "x", "sha256": None}
    answer(front.exchange / "published", mine, done)
    parts = {
        "task": [records.TASK],
        "table": ["main"],
        "round": ["final"],
        "run": runs,
        "submission": [runs[0].rpartition(".")[0]],
        "team": ["alpha"],
        "software": [name.split(".")[1] for name in runs],
        "id": [mine, "e" * 32],
        "sha256": [hashlib.sha256(b"five!").hexdigest(), "e" * 32],
        **{"dataset": ["dev"], "side": ["inputs"], "name": ["corpus.txt"]},
    }
    # Nothing is offered for download here: what is answered then is in test_downloads.py.
    offers = {path for path in whole["paths"] if "/data" in path or path.endswith("/terms")}
    good: set[str] = set()
    for role in (None, *front.tokens):
        with front.client(role) as client:
            for path, operations in whole["paths"].items():
                names = re.findall(r"\{(\w+)\}", path)
                values = parts[names[-1]] if names else [""]
                for value in values:
                    where = path.replace(f"{{{names[-1]}}}", value) if names else path
                    where = where.format(**{name: one[0] for name, one in parts.items()})
                    if path.endswith("/comparison"):
                        two = [("run", run) for run in runs if re.match(r"alpha\.[xy]\..*\.dev$", run)]
                        where += f"?{urlencode(two)}"
                    for method, operation in operations.items():
                        said = (
                            client.request(method, where)
                            if method != "post" or names[-1:] != ["task"] or path in offers
                            else hand_in(client)
                        )
                        check(said, operation, whole)
                        if said.is_success:
                            good.add(path)
                        if said.status_code == 200 and method == "get":
                            again = client.get(where, headers={"if-none-match": said.headers["etag"]})
                            check(again, operation, whole)
                            assert again.status_code == 304 and again.headers["etag"] == said.headers["etag"]
    assert good | offers == set(whole["paths"])


def test_an_upload_is_sent_by_what_is_described_of_it(front: Front, tmp_path: Path) -> None:
    whole = document(described(tmp_path))
    one = whole["paths"]["/api/v1/uploads/{sha256}"]
    sent = {p["name"] for p in one["put"]["parameters"] if p["in"] == "header" and p["required"]}
    assert sent == {"Content-Range"} and [*one["put"]["requestBody"]["content"]] == [
        "application/octet-stream"
    ]
    with front.client("team") as team:
        made = begin(team, b"five!")
        where = made.request.url.path

        def put(content: bytes, range_: str) -> httpx2.Response:
            return team.put(where, content=content, headers={"Content-Range": range_})

        for said, operation, status in (
            (made, one["put"], 200),
            (begin(team, b""), one["put"], 200),
            (put(b"x", "bytes 0-1/5"), one["put"], 400),
            (put(b"x", "bytes 3-3/5"), one["put"], 409),
            (put(b"five!", "bytes 0-4/5"), one["put"], 200),
            (team.delete(where), one["delete"], 204),
            (put(b"seven", "bytes 0-4/5"), one["put"], 422),
        ):
            assert said.status_code == status, said.text
            check(said, operation, whole)


def test_a_refusal_is_read_by_who_still_sends_and_the_connection_goes_on(front: Front) -> None:
    """The front does not read a body that it refuses by its head: neither side may wait for the other then."""
    large = b"x" * 99_000  # more than the server takes in before it asks for it
    with front.client("team") as team:
        where = begin(team, large).request.url.path
        for range_, status in (("bytes 7-99006/99007", 409), ("bytes 0-5/99000", 400)):
            said = team.put(where, content=large, headers={"Content-Range": range_})
            assert said.status_code == status and said.json()["why"]
            assert begin(team, large).json()["offset"] == 0
        said = team.put(where, content=large, headers={"Content-Range": "bytes 0-98999/99000"})
        assert said.status_code == 200


def test_frozen_rounds_are_there_as_they_were_frozen(front: Front) -> None:
    with front.client() as client:
        told = client.get(f"/api/v1/tasks/{records.TASK}").json()
        assert told["rounds"] == [{"id": "final", "title": "The end", "tables": ["main"]}]
        board = client.get(f"/api/v1/tasks/{records.TASK}/rounds/final/boards/main").json()
        assert board["round"]["frozen"] and board["rows"]


def test_lists_come_in_pages_of_one_order(front: Front) -> None:
    with front.client("organiser") as client:
        whole = client.get("/api/v1/runs").json()
        assert whole["next"] is None and len(whole["items"]) > 4
        found, at = [], "/api/v1/runs?limit=2"
        while at:
            page = client.get(at).json()
            assert len(page["items"]) <= 2
            found += page["items"]
            at = page["next"]
        assert found == whole["items"]
        of_task = client.get("/api/v1/runs", params={"task": records.TASK, "limit": 1}).json()
        assert f"task={records.TASK}" in of_task["next"]
        assert client.get("/api/v1/runs?task=other").json() == {"items": [], "next": None}
        for wrong in ("limit=0", "limit=501", "limit=x", "limit=٣", "after=nobody"):
            said = client.get(f"/api/v1/runs?{wrong}")
            assert said.status_code == 400 and said.json()["code"] == "E101", wrong


def test_problems_say_what_why_and_what_helps(front: Front) -> None:
    with front.client() as client, front.client("team") as team, front.client("other") as other:
        for said, status, code in (
            (client.get("/api/v1/me"), 401, "E105"),
            (client.get("/api/v1/nothing"), 404, "E102"),
            (client.delete("/api/v1/tasks"), 405, "E101"),
            (client.get("/api/v1/tasks", headers={"authorization": "Bearer nonsense"}), 401, "E105"),
            (client.get("/api/v1/tasks", headers={"host": "evil.example"}), 400, "E101"),
            (team.post("/api/v1/tasks/toy/run-files", content=b"x" * 100_001), 413, "E101"),
            (team.post("/api/v1/tasks/toy/run-files", data={"software": "x"}), 400, "E201"),
        ):
            assert (said.status_code, said.json()["code"]) == (status, code), said.text
            assert said.headers["content-type"] == "application/problem+json"
            more = {"problems"} & {*said.json()}
            assert {*said.json()} == {"title", "status", "code", "what", "why", "fix"} | more
        assert client.get("/api/v1/me").headers["www-authenticate"] == "Bearer"
        run = team.get("/api/v1/runs").json()["items"][0]["run"]
        assert other.get(f"/api/v1/runs/{run}").content == other.get("/api/v1/runs/none").content


def test_whoever_guesses_is_told_when_to_come_again(front: Front) -> None:
    wrong = replace(front.tokens["other"], secret="x" * 43)
    with front.client() as client:
        said = [client.get("/api/v1", headers={"authorization": f"Bearer {wrong}"}) for _ in range(12)]
    assert [one.status_code for one in said[:10]] == [401] * 10
    assert said[-1].status_code == 429 and said[-1].json()["code"] == "E106"
    assert int(said[-1].headers["retry-after"]) >= 1


def test_a_cookie_opens_nothing_here(front: Front) -> None:
    with front.browser() as team:
        assert team.get("/team").status_code == 200
        assert team.get("/api/v1/me").status_code == 401
        assert team.get("/api/v1/runs").json()["items"] == []
        assert hand_in(team).status_code == 401


def test_what_is_handed_in_is_in_the_inbox_as_from_the_form(front: Front) -> None:
    before = len(Inbox(front.exchange / "inbox").waiting())
    with front.client("team") as team:
        said = hand_in(team, description="mine")
        assert said.status_code == 202 and said.headers["location"] == said.json()["at"]
        known = team.get(said.json()["at"]).json()
        assert known["answer"] is None and known["sha256"] == said.json()["sha256"]
        assert team.get("/api/v1/requests").json()["items"][0]["id"] == said.json()["request"]
    waiting = Inbox(front.exchange / "inbox").waiting()
    taken = Inbox(front.exchange / "inbox").take(waiting[-1][0], front.exchange / "taken")
    assert len(waiting) == before + 1 and taken.request.data["description"] == "mine"
