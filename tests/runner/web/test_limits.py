"""Who comes too often is told when to come again; where somebody comes from; what the security log says of it."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox, Request, answer
from runner.exchange.published import Publisher
from runner.web.limits import ASKING, STRANGERS, WRONG, Limits, NoRoom, Rate, Room, Waiting, address
from runner.web.uploads import Uploads
from tests.e2e.test_server import until
from tests.runner.web.test_routes import Front, form_of, grant, served, task
from tests.worlds.site import serving


@dataclass
class Seconds:
    now: float = 0.0

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


@contextmanager
def another(front: Front, state: Path, waiting: Waiting) -> Iterator[Front]:
    """Serve the same exchange folder with other bounds."""
    with serving(front.exchange, state, waiting=waiting) as url:
        yield replace(front, url=url)


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
        assert {hand_in(team) for _ in range(Waiting().requests)} == {202}
        assert (hand_in(team), hand_in(other)) == (429, 202)
        inbox = Inbox(front.exchange / "inbox")
        assert len(inbox.waiting()) == Waiting().requests + 1
        assert inbox.remove(inbox.waiting()[0][0]) and hand_in(team) == 202


def test_small_requests_of_a_team_wait_in_a_room_of_their_own(front: Front, tmp_path: Path) -> None:
    """Nobody takes the place of others by asking without end, nor closes themselves out of handing in, withdrawing or their tokens."""
    withdraw, notices = "/api/v1/submissions/s/withdraw", "/api/v1/notices"
    with another(front, tmp_path / "few", Waiting(others=3, requests=1)) as one:
        with one.client("team") as team, one.client("other") as other:
            assert [team.post(withdraw).status_code for _ in range(4)] == [202, 202, 202, 429]
            said = team.post(notices, params={"about": "done"})
            assert said.status_code == 429, said.text
            assert said.headers["retry-after"] == "60"
            assert (other.post(withdraw).status_code, other.post("/token").status_code) == (202, 202)
            told = {one["id"]: (one["used"], one["most"]) for one in bounds_of(team)}
            assert (told["waiting-others"], told["waiting"]) == ((3, 3), (0, 1))
            data, files = {"software": "one"}, {"file": ("run.txt", b"x")}
            handed = [team.post("/api/v1/tasks/mini/run-files", data=data, files=files) for _ in range(2)]
            assert [one.status_code for one in handed] == [202, 429]
            inbox = Inbox(front.exchange / "inbox")
            first = inbox.waiting()[0]
            answer(front.exchange / "published", first[1], {"team": "alpha", "accepted": True})
            assert team.post(withdraw).status_code == 202, (
                "what is decided takes no room, also before it is removed"
            )
            assert team.post(withdraw).status_code == 429
        with another(front, tmp_path / "again", Waiting(others=3)) as again, again.client("team") as team:
            assert team.post(withdraw).status_code == 429, "a front that was started anew knows it, too"


def test_a_token_that_is_asked_for_again_waits_once(front: Front, tmp_path: Path) -> None:
    with another(front, tmp_path / "few", Waiting(others=1)) as one, one.client("team") as team:
        said = [team.post("/token", data={"once": once, "keep": "yes"}) for once in ("a", "a", "b")]
    assert [one.status_code for one in said] == [202, 202, 429]
    assert said[0].json() == said[1].json() and len(Inbox(front.exchange / "inbox").waiting()) == 1


def test_a_team_asks_for_so_much_in_an_hour_however_fast_it_is_decided(tmp_path: Path) -> None:
    """Each request leaves an event and an answer for ever; hand-ins are bounded by quotas, and not by this."""
    inbox, now = Inbox(tmp_path / "inbox"), Seconds()
    room = Room(tmp_path, inbox, Uploads(tmp_path / "uploads"), Waiting(), Limits(now=now))

    def ask(kind: str, team: str | None = "alpha") -> bool:
        try:
            room.put(Request.new(kind, f"a-{1:016}", f"{0:012}", team, "2031-01-01T00:00:00Z", {}), "k")
        except NoRoom:
            return False
        return inbox.remove(inbox.waiting()[0][0])

    asked = [ask("choose") for _ in range(int(ASKING.burst) + 1)]
    assert asked == [True] * int(ASKING.burst) + [False]
    assert ask("token") and ask("run-file") and ask("choose", "beta") and ask("review", None)
    now.now = 61.0
    assert [ask("choose") for _ in range(2)] == [True, False]


@pytest.mark.parametrize(("flood", "other"), [("register", "identity"), ("identity", "register")])
def test_strangers_who_register_and_who_sign_in_by_a_provider_have_a_room_each(
    tmp_path: Path, flood: str, other: str
) -> None:
    room = Room(tmp_path, Inbox(tmp_path / "inbox"), Uploads(tmp_path / "uploads"), Waiting(strangers=2))
    numbers = itertools.count()

    def put(kind: str, team: str | None = None) -> None:
        account, at = f"a-{next(numbers):016}", "2031-01-01T00:00:00Z"
        room.put(Request.new(kind, account, f"{0:012}", team, at, {}), "k")

    put(flood)
    put(flood)
    with pytest.raises(NoRoom):
        put(flood)
    put(other)
    put("withdraw", "alpha")


def test_files_that_wait_have_so_many_bytes_of_a_team(front: Front, tmp_path: Path) -> None:
    with (
        another(front, tmp_path / "few", Waiting(size=1000)) as small,
        small.client("team") as team,
        small.client("other") as other,
    ):

        def hand_in(client: httpx2.Client, size: int) -> httpx2.Response:
            data, files = {"software": "one"}, {"file": ("run.txt", b"x" * size)}
            return client.post("/api/v1/tasks/mini/run-files", data=data, files=files)

        assert [hand_in(team, 600).status_code for _ in range(2)] == [202, 202], "the second goes over"
        said = hand_in(team, 1)
        assert said.status_code == 429 and "1.17 KiB" in said.json()["why"], said.text
        told = {one["id"]: (one["used"], one["most"]) for one in bounds_of(team)}
        assert (told["waiting"], told["waiting-bytes"]) == ((2, 100), (1200, 1000))
        with small.browser() as browser:
            for page in ("/team", "/tasks/mini/hand-in"):
                assert "1.17 KiB of 1,000 B" in browser.get(page).text
        with small.browser("other") as browser:
            form = browser.get("/tasks/mini/hand-in").text
            assert all(one in form for one in ("100 of 100", "1,000 B of 1,000 B", "4 of 4"))
        assert bounds_of(other)[1]["used"] == 0, "of each team its own"
        assert said.headers["retry-after"] and hand_in(other, 1).status_code == 202
        inbox = Inbox(front.exchange / "inbox")
        assert inbox.remove(inbox.waiting()[0][0]) and hand_in(team, 1).status_code == 202


def test_only_so_many_files_of_a_team_are_on_their_way(front: Front, tmp_path: Path) -> None:
    """Forms that were begun and not ended: the next is refused, other teams are not, and who ends one may send another."""
    with another(front, tmp_path / "few", Waiting(forms=2)) as one:
        begun = [begin(one.url, one.tokens["team"]) for _ in range(2)]
        data, files = {"software": "one"}, {"file": ("run.txt", b"x")}
        path = "/api/v1/tasks/mini/run-files"
        with one.client("team") as team, one.client("other") as other:
            until(lambda: team.post(path, data=data, files=files).status_code == 429)
            said = team.post(path, data=data, files=files)
            assert said.headers["retry-after"]
            assert {one["id"]: (one["used"], one["most"]) for one in bounds_of(team)}["forms"] == (2, 2)
            assert other.post(path, data=data, files=files).status_code == 202
            for line in begun:
                line.close()
            until(lambda: team.post(path, data=data, files=files).status_code == 202)


def bounds_of(client: httpx2.Client) -> list[dict[str, Any]]:
    """What the API tells a team of its bounds."""
    return list(client.get("/api/v1/bounds").json()["bounds"])


def begin(url: str, token: Token) -> socket.socket:
    """A form that does not end."""
    at = urlsplit(url)
    line = socket.create_connection((str(at.hostname), at.port or 80))
    head = f"POST /api/v1/tasks/mini/run-files HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: Bearer {token}\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 5000\r\n\r\n--b\r\n"
    line.sendall(head.encode())
    return line
