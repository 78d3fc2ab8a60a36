"""The simulated user as a server: the official service's wire format, on TCP and on a Unix socket."""

from __future__ import annotations

import json
import socket as connections
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.worlds.collection import ANSWERS, CLAIM, write
from tests.worlds.running import Running, serving

CHAT = "/user-sim/api/chat"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data = write(tmp_path_factory.mktemp("data"))
    with serving("sidecars.user", "--data", data, "--port", 0, "--seed", 7) as running:
        yield running
    assert running.code == 0


def opening(**options: Any) -> dict[str, Any]:
    return {"model": "base-user", "options": {"claim": CLAIM, **options}}


def test_a_debate_as_the_official_client_holds_it(user: Running) -> None:
    """The client sends only the claim, later everything that was said, with messages as it received them."""
    with user.client() as client:
        first = client.post(CHAT, json=opening())
        assert first.headers["content-type"] == "application/json"
        assert list(first.json()) == ["model", "created_at", "message"]
        messages = [first.json()["message"]]
        for turn, answer in enumerate(ANSWERS[:4], 2):
            messages.append({"role": "user", "content": answer, "arguments": [{"id": "1"}]})
            follow_up = client.post(CHAT, json={"model": "base-user", "messages": messages})
            assert list(follow_up.json()) == ["model", "created_at", "message", "retrieved", "target"]
            assert follow_up.json()["target"] == turn - 1
            again = client.post(CHAT, json={"model": "base-user", "messages": messages})
            assert again.content == follow_up.content
            messages.append({**follow_up.json()["message"], "extra": [1]})
    assert [message["role"] for message in messages] == ["assistant", "user"] * 4 + ["assistant"]


def test_half_a_character_in_an_answer_does_not_end_the_debate(user: Running) -> None:
    """GenIRSim sends on what the software said; JavaScript that cuts an emoji in two writes half a surrogate pair."""
    with user.client() as client:

        def said(answer: str) -> httpx2.Response:
            messages = [{"role": "assistant", "content": CLAIM}, {"role": "user", "content": answer}]
            return client.post(CHAT, content=json.dumps({"model": "base-user", "messages": messages}))

        whole, half = said(f"{ANSWERS[0]} \ufffd"), said(f"{ANSWERS[0]} \ud83d")
        assert whole.status_code == half.status_code == 200 and whole.content == half.content


def test_a_debate_without_a_claim_begins_with_one_of_its_own(user: Running) -> None:
    with user.client() as client:
        bodies = ({}, {"options": {}}, {"messages": []})
        answers = [client.post(CHAT, json={"model": "any-user", **body}) for body in bodies]
        assert len({answer.content for answer in answers}) == 1 and answers[0].json()["message"]["content"]


def test_paths_and_content_types_of_other_clients(user: Running) -> None:
    with user.client() as client:
        text, kind = json.dumps(opening(description="long")), "text/plain;charset=UTF-8"
        assert client.post("/api/chat", content=text, headers={"Content-Type": kind}).is_success
        assert client.get("/healthz").json() == {"ok": True, "models": ["base-user", "any-user"]}


def said(*contents: Any) -> bytes:
    roles = ("assistant", "user")
    messages = [{"role": roles[n % 2], "content": content} for n, content in enumerate(contents)]
    return json.dumps({"model": "base-user", "messages": messages}).encode()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        *((body, 400) for body in (b"", b"null", b"{", b"\xff", b"[" * 10_000, b"{}", b'{"model":5}')),
        (b'{"model":"nobody"}', 404),
        (b'{"model":"\\u001b[2J"}', 404),
        *(
            (b'{"model":"base-user",%s}' % rest, 400)
            for rest in (
                b'"options":[]',
                b'"options":{"claim":""}',
                b'"options":{"claim":["x"]}',
                b'"options":{"claim":"x","description":5}',
                b'"messages":"x"',
                b'"messages":["x"]',
                b'"messages":[{"role":"user","content":"x"}]',
            )
        ),
        *((said("x", *more), 400) for more in ((), ("y", "z"), (5,), (None,), ("y" * 70_000,))),
        (said(*["x"] * 300), 400),
        (b" " * (5 << 20), 413),
    ],
    ids=range(23),
)
def test_malformed_requests_get_json_and_a_reason(user: Running, body: bytes, status: int) -> None:
    with user.client() as client:
        answer = client.post(CHAT, content=body)
    assert answer.status_code == status
    assert answer.json()["error"].isprintable() and len(answer.text) < 500


def test_other_paths_and_methods(user: Running) -> None:
    with user.client() as client:
        answers = [client.get(CHAT), client.get("/"), client.post("/user-sim/", json={}), client.put(CHAT)]
        assert [answer.status_code for answer in answers] == [405, 404, 404, 405]
        assert all("error" in answer.json() for answer in answers)


def test_on_a_unix_socket_with_one_model(short_folder: Path) -> None:
    socket = short_folder / "s"
    with connections.socket(connections.AF_UNIX) as stale:
        stale.bind(str(socket))
    given = ("--data", write(short_folder / "data"), "--socket", socket, "--model", "base-user")
    with serving("sidecars.user", *given) as user, user.client() as client:
        assert socket.stat().st_mode & 0o777 == 0o666
        assert client.post(CHAT, json=opening()).is_success
        assert client.post(CHAT, json={"model": "any-user"}).status_code == 404
