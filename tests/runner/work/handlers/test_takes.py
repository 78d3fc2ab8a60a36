"""Every kind of hand-in for every kind of task: what a task does not take is refused at once, in work's own words."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from runner.exchange.access import Token
from runner.exchange.published import Publisher
from runner.work.publishing import Desk as Publishing
from tests.e2e.test_server import form_of
from tests.e2e.test_uploads_scored import run_text
from tests.runner.web.test_resumed_uploads import begin, put
from tests.runner.work.test_requests import Desk, desk
from tests.worlds.site import serving

__all__ = ["desk"]

RUN = run_text("dev", "one").encode()
TASKS = {
    "software": ({"uploads": False}, {"software"}),
    "both": ({}, {"software", "run files"}),
    "run files": ({"workflow": "upload"}, {"run files"}),
}
WAYS = {
    "a form of a program": "run files",
    "an upload": "run files",
    "a form of a browser": "run files",
    "a parcel": "software",
}


@contextmanager
def front(desk: Desk, **changes: Any) -> Iterator[httpx2.Client]:
    """A client of a front over what work publishes of the task ``mini``."""
    desk.load_tasks(**changes)
    config = desk.project.config
    Publishing(desk.requests.store, desk.tasks, Publisher(config.published), pytest.fail).publish(["alpha"])
    desk.accounts.tokens.access().write(config.published)
    with (
        serving(config.exchange, desk.project.home / "front") as url,
        httpx2.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        yield client


def sent(client: httpx2.Client, token: Token, way: str, fields: dict[str, str]) -> httpx2.Response:
    if way == "a form of a browser":
        page = client.get("/sign-in").text
        client.post("/sign-in", data={"form-token": form_of(page), "token": str(token)})
        data = {**fields, "form-token": form_of(client.get("/team").text)}
        return client.post("/tasks/mini/hand-in", data=data, files={"file": ("run.txt", RUN)})
    client.headers["authorization"] = f"Bearer {token}"
    if way == "a form of a program":
        return client.post("/api/v1/tasks/mini/run-files", data=fields, files={"file": ("run.txt", RUN)})
    id = upload(client)
    where = "softwares" if way == "a parcel" else "run-files"
    return client.post(f"/api/v1/tasks/mini/{where}", data={**fields, "upload": id, "name": "run.txt"})


def upload(client: httpx2.Client) -> str:
    where = begin(client, len(RUN), hashlib.sha256(RUN).hexdigest())
    said = put(client, where, RUN, 0, len(RUN))
    assert said.status_code == 200
    return str(said.json()["id"])


def of_work(desk: Desk, kind: str, fields: dict[str, str]) -> dict[str, Any]:
    """What work says of the same, from a front that let it through."""
    file = {"file": "run.txt"} if kind == "run-file" else {}
    data = {"task": "mini", **fields, **file}
    return desk.decided(desk.send(kind, data, payload=io.BytesIO(RUN)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", TASKS)
def test_what_a_task_does_not_take_is_refused_at_once(desk: Desk, task: str, way: str) -> None:
    changes, takes = TASKS[task]
    given = WAYS[way]
    fields = {"software": "one", "dataset": "dev"} if given == "run files" else {"software": "one"}
    with front(desk, **changes) as client:
        said = sent(client, desk.token, way, fields)
        waits = len(desk.inbox.waiting())
        page = client.get("/tasks/mini/hand-in", follow_redirects=False)
    if given in takes:
        assert said.status_code in (202, 303) and waits == 1, said.text
        return
    assert said.status_code == 400 and waits == 0
    told = of_work(desk, "run-file" if given == "run files" else "software", fields)
    assert told["code"] == "E207" and all(one in told["what"] for one in ("mini", *takes, given))
    if way == "a form of a browser":
        assert all(told[one] in said.text for one in ("code", "what", "why", "fix"))
        assert page.status_code == 404 and told["what"] in page.text, "no form is shown"
    else:
        assert {one: said.json()[one] for one in ("code", "what", "why", "fix")} == {
            one: told[one] for one in ("code", "what", "why", "fix")
        }


WRONG_FIELDS = (
    {"software": ""},
    {"software": "../x"},
    {"software": "x" * 41},
    {"dataset": ""},
    {"dataset": "tets"},
    {"scenario": "none"},
    {"tag": "a b"},
    {"method": "magic"},
    {"affiliation": "\u202ex"},
    {"paper": "https://x.example"},
)


def test_a_wrong_field_is_named_with_its_allowed_values(
    desk: Desk, golden: Callable[[str, str], None]
) -> None:
    shown = ""
    with front(desk) as client:
        for fields in WRONG_FIELDS:
            known = {"software": "one", "dataset": "dev", **fields}
            data = {name: value for name, value in known.items() if value}
            said = sent(client, desk.token, "a form of a program", data)
            assert said.status_code == 400 and desk.inbox.waiting() == []
            found, told = said.json(), of_work(desk, "run-file", data)
            for key in ("code", "what", "fix", "problems"):
                assert told[key] == found[key], (fields, key)
            [(name, value)] = fields.items()
            shown += f"{name}={value!a}: {found['code']} {found['problems']}\n"
    golden("run-file-fields.txt", shown)


def test_everything_that_is_missing_is_said_at_once(desk: Desk) -> None:
    with front(desk) as client:
        client.headers["authorization"] = f"Bearer {desk.token}"
        for path, expected in (
            ("run-files", {"software", "dataset", "file"}),
            ("softwares", {"software", "upload"}),
        ):
            said = client.post(f"/api/v1/tasks/mini/{path}", data={"method": "manual"})
            text = " ".join(said.json()["problems"])
            assert said.status_code == 400 and all(one in text for one in expected), said.text
        form = {"software": "one", "dataset": "dev", "upload": upload(client)}
        said = client.post("/api/v1/tasks/mini/run-files", data=form)
        assert len(said.json()["problems"]) == 1 and '"name"' in said.json()["problems"][0]
        form["name"] = "run.txt"
        assert client.post("/api/v1/tasks/mini/run-files", data=form).status_code == 202, (
            "the upload is still there"
        )
