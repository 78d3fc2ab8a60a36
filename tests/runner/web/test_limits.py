"""Who comes too often is told when to come again; where somebody comes from; what the security log says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox
from runner.exchange.published import Publisher
from runner.web.limits import STRANGERS, WRONG, Limits, Rate, address
from runner.web.routes.handing_in import MOST_WAITING
from tests.runner.web.test_routes import Front, form_of, grant, served, task


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    exchange = tmp_path / "exchange"
    to = Publisher(exchange / "published")
    style = to.keep(b"")
    to.publish({"public": task(to, style), "team:alpha": task(to, style)})
    tokens = {"team": Token.new(), "other": Token.new()}
    Access({one.id: grant(one, name) for name, one in tokens.items()}).write(exchange / "published")
    yield from served(exchange, tmp_path / "state", tokens, style)


def sign_in(client: httpx2.Client, token: str, **headers: str) -> httpx2.Response:
    form = form_of(client.get("/sign-in").text)
    return client.post("/sign-in", data={"form-token": form, "token": token}, headers=headers)


def log(front: Front) -> list[dict[str, Any]]:
    text = (front.exchange.parent / "state/security.jsonl").read_text("ascii")
    return [json.loads(line) for line in text.splitlines()]


def test_a_bucket_fills_up_again_at_an_even_rate() -> None:
    now = Seconds()
    limits, rate = Limits(now=now), Rate(3, 0.5)
    assert [limits.take("x", "a", rate) for _ in range(5)] == [0, 0, 0, 2, 2]
    assert limits.take("x", "b", rate) == 0 and limits.take("y", "a", rate) == 0
    now.now = 1.9
    assert limits.take("x", "a", rate) == 1
    now.now = 2.0
    assert [limits.take("x", "a", rate) for _ in range(2)] == [0, 2]
    now.now = 1000.0
    assert [limits.take("x", "a", rate) for _ in range(4)] == [0, 0, 0, 2]


def test_buckets_take_bounded_memory() -> None:
    limits = Limits(most=100)
    for number in range(1000):
        limits.take("address", str(number), STRANGERS)
    assert len(limits) == 100


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),  # no proxy of ours: it may say what it likes
        ("127.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["203.0.113.1, 198.51.100.7"], "198.51.100.7"),  # what the client wrote comes first
        ("127.0.0.1", ["203.0.113.1", "198.51.100.7, 10.0.0.2"], "198.51.100.7"),  # two proxies of ours
        ("127.0.0.1", ["nonsense"], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.7, <script>"], "127.0.0.1"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", [], "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", [], "192.0.2.1"),
        (None, [], "local"),
    ],
)
def test_where_somebody_comes_from_is_said_by_our_proxies_alone(
    peer: str | None, forwarded: list[str], expected: str
) -> None:
    assert address(peer, forwarded, frozenset({"127.0.0.1", "10.0.0.2"})) == expected


def test_who_tries_too_many_tokens_is_told_when_to_come_again(front: Front) -> None:
    wrong = replace(front.tokens["team"], secret="x" * 43)
    with front.client() as client:
        for forged in range(int(WRONG.burst) + 3):  # some more: while we ask, it fills up again
            said = sign_in(client, str(wrong), **{"x-forwarded-for": f"198.51.100.{forged}"})
        assert said.status_code == 429 and 1 <= int(said.headers["retry-after"]) <= 10
        assert "Try again in" in said.text
        right = sign_in(client, str(front.tokens["team"]))
        assert right.status_code == 303, "others' wrong tries close nobody out"
    with front.client(authorization=f"Bearer {wrong}") as program:
        assert 429 in {program.get("/").status_code for _ in range(3)}
    with front.client() as client:
        assert client.get("/").status_code == 200
        said = [client.post("/sign-in", data={}) for _ in range(int(STRANGERS.burst) + 20)]
        late = [one for one in said if one.status_code == 429]
        assert late and all(int(one.headers["retry-after"]) == 1 for one in late)
    refused = [one for one in log(front) if one["what"] == "token refused"]
    assert WRONG.burst <= len(refused) <= WRONG.burst + 5 and {one["address"] for one in refused} == {
        "127.0.0.1"
    }


def test_the_security_log_says_who_came_and_who_was_refused_and_holds_no_secret(front: Front) -> None:
    with front.browser() as team:
        assert team.get("/tasks/mini/hand-in").status_code == 200
    with front.client() as client:
        for text in ('proctor_x\n{"what": "signed in"}', f"proctor_{'0' * 12}_{'y' * 43}"):
            sign_in(client, text)
    token = front.tokens["team"]
    found = log(front)
    assert [one["what"] for one in found] == ["signed in", "token refused", "token refused"]
    assert (found[0]["token"], found[0]["role"]) == (token.id, "team") and "token" not in found[1]
    text = (front.exchange.parent / "state/security.jsonl").read_text()
    assert token.secret not in text and token.key not in text and "y" * 43 not in text


def test_a_team_whose_hand_ins_wait_leaves_room_for_others(front: Front) -> None:
    """Work looks at the first thousand that wait: one team shall not be all of them."""

    def hand_in(client: httpx2.Client) -> int:
        data, files = {"software": "one"}, {"file": ("run.txt", b"x")}
        return client.post("/tasks/mini/hand-in", data=data, files=files).status_code

    with front.client("team") as team, front.client("other") as other:
        assert {hand_in(team) for _ in range(MOST_WAITING)} == {202}
        assert (hand_in(team), hand_in(other)) == (429, 202)
        inbox = Inbox(front.exchange / "inbox")
        assert len(inbox.waiting()) == MOST_WAITING + 1
        assert inbox.remove(inbox.waiting()[0][0]) and hand_in(team) == 202
