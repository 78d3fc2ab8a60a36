"""Work behind a firewall: the link to a real front over a real proxy that breaks, and to a front in the hands of an attacker."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.exchange import tails
from runner.exchange.access import Access, Grant, Token, verifier
from runner.exchange.inbox import Inbox, Refused, Request, answer, answered
from runner.exchange.link import Key
from runner.exchange.pieces import Pieces, keep
from runner.exchange.published import FILE, Object, Published, Publisher
from runner.exchange.security import SecurityLog
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.model.limits import MIB
from runner.web.door import Door
from runner.web.routes import rules
from runner.web.sessions import Sessions
from runner.work import link as work_link
from runner.work.front import SLICE, Front, LinkDown, check_front
from runner.work.link import MOST_HERE, Link, last_contact
from schemas import canonical
from tests.e2e.test_server import until
from tests.worlds.hostile_server import Answer, Making, hostile
from tests.worlds.proxy import Proxy, proxy
from tests.worlds.site import serving
from tests.worlds.small_disk import small_disk

TOKEN = Token.new()
PAYLOAD = b"1 Q0 d1 1 2.0 x\n" * 2000


@dataclass
class Away:
    """A front with an exchange folder of its own, behind a proxy."""

    exchange: Path
    proxy: Proxy
    url: str

    @property
    def published(self) -> Published:
        return Published(self.exchange / "published")

    @property
    def inbox(self) -> Inbox:
        return Inbox(self.exchange / "inbox")

    def ask(self, content: bytes = PAYLOAD) -> Request:
        grant = granted(TOKEN)
        data = {"task": "mini", "software": "one", "file": "run.txt"}
        asked = Request.new("run-file", grant.account, TOKEN.id, "alpha", "2026-06-01T12:00:00Z", data)
        return self.inbox.put(asked, TOKEN.key, io.BytesIO(content))


def granted(token: Token) -> Grant:
    return Grant(token.id, verifier(token.key), "a-0123456789abcdef", "team", "alpha", ("read", "hand-in"))


@contextmanager
def front_of(key: str | None, folder: Path) -> Iterator[Away]:
    exchange = folder / "exchange"
    with (
        proxy() as between,
        serving(exchange, folder / "state", 10**8, work_key=key, through=between) as url,
    ):
        yield Away(exchange, between, url)


@dataclass
class Here:
    """Work's side: its folders, and what it said."""

    config: Config
    key: Key
    said: list[str]
    problems: list[RunnerError]

    def link(self, url: str) -> Link:
        return Link(self.config, Front(url, self.key), self.said.append, self.problems.append)

    def publish(self, text: str) -> None:
        to = Publisher(self.config.published)
        style = to.keep(b"p {}")
        board = to.object("tasks/mini/main", "board", "Mini", {"rows": text}, f"<h1>{text}</h1>", style)
        to.publish({"public": [board], "team:alpha": [board, to.object("runs", "runs", "Runs", [text])]})
        Access({TOKEN.id: granted(TOKEN)}).write(self.config.published)
        to.alive()

    def decide(self, into: Path) -> list[str]:
        """Do what the clerk does with everything that waits; the digests of what was taken."""
        into.mkdir()
        inbox, found = Inbox(self.config.inbox), []
        for name, identity in inbox.waiting():
            taken = inbox.take(name, into / name)
            assert taken.payload is not None and taken.request.is_proven(TOKEN.key)
            found.append(hashlib.sha256(taken.payload.read_bytes()).hexdigest())
            facts = {
                "team": "alpha",
                "kind": "run-file",
                "accepted": True,
                "arrival": "",
                "sha256": found[-1],
            }
            answer(self.config.published, identity, facts)
            inbox.remove(name)
        return found


@pytest.fixture
def here(tmp_path: Path) -> Here:
    config = Config(root=tmp_path, home=tmp_path / "home", truths=None, web=tmp_path / "work")
    config.home.mkdir()
    return Here(config, Key.at(tmp_path / "link.key"), [], [])


def test_while_a_large_file_is_sent_requests_come_and_what_else_is_new_is_seen(
    here: Here, tmp_path: Path
) -> None:
    content, path = bytes(range(256)) * 200, "data/mini/dev/inputs/large"
    (tmp_path / "large").write_bytes(content)
    with front_of(here.key.public, tmp_path / "front") as away:
        here.publish("one")
        here.link(away.url).round()
        to = Publisher(here.config.published)
        found = keep(to, tmp_path / "large", 10_000)
        large = Object(path, FILE, "large", to.keep(canonical({**found.as_dict(), "name": "large"})))
        row = {"name": "inputs/large", "open": True}
        data = {"datasets": [{"id": "dev", "files": [row]}], "coming": 1}
        listed = to.object("data/mini", "data", "Mini", data)
        board = Published(to.root).view("public").get("tasks/mini/main")
        assert board is not None
        to.publish({"public": [board, large, listed]})
        link = Link(here.config, Front(away.url, here.key), here.said.append, here.problems.append, 0.0)
        away.ask()
        rounds = 1
        while link.round() and rounds < 4:
            rounds += 1
        assert len(Inbox(here.config.inbox).waiting()) == 1
        there = away.published.view("public")
        assert there.get("tasks/mini/main") and there.get(path) is None
        to.publish({"public": [large, listed]})  # the scores are taken back
        for file in away.published.root.glob("files/*/*"):
            os.utime(file, (0, 0))  # what was sent before is not swept while the rest is on its way
        while link.round() and away.published.view("public").get("tasks/mini/main"):
            rounds += 1
        there = away.published.view("public")
        assert there.get("tasks/mini/main") is None and there.get(path) is None and rounds < len(found.pieces)
        one = there.get("data/mini")
        assert one is not None
        assert there.data(one) == {"datasets": [{"id": "dev", "files": []}], "coming": 2}
        while link.round():
            rounds += 1
        assert len(found.pieces) <= rounds <= len(found.pieces) + 6, "no piece is sent twice"
        there = away.published.view("public")
        assert there.get(path) == large and there.get("data/mini") == listed
        got = Pieces.read(there.data(large))
        assert b"".join(got.blocks(away.published.root, 0, got.size)) == content
        assert (
            httpx2.get(f"{away.url}/tasks/mini/data/dev/inputs/large", trust_env=False, timeout=60).content
            == content
        )


def test_what_is_published_goes_and_requests_come_and_are_forgotten_once_answered(
    here: Here, tmp_path: Path
) -> None:
    with front_of(here.key.public, tmp_path / "front") as away:
        here.publish("one")
        asked = away.ask()
        link = here.link(away.url)
        link.round()
        view = away.published.view("team:alpha")
        assert {one.path for one in view.below("")} == {"tasks/mini/main", "runs"}
        assert [view.data(one) for one in view.below("runs")] == [["one"]]
        assert Access.read(away.exchange / "published").grant(TOKEN) == granted(TOKEN)
        assert (away.published.age() or 99) < 60 and len(away.inbox.waiting()) == 1
        link.round()
        assert len(away.inbox.waiting()) == 1, "it is not forgotten before it was decided"
        assert here.decide(tmp_path / "taken") == [hashlib.sha256(PAYLOAD).hexdigest()]
        link.round()
        assert away.inbox.waiting() == []
        assert answered(away.exchange / "published", asked.id) == answered(here.config.published, asked.id)
        before = away.proxy.passed
        link.round()
        assert away.proxy.passed - before < 2000, "what is there is not sent again"
        here.publish("two")
        link.round()
        view = away.published.view("public")
        assert [view.text(one) for one in view.below("tasks/")] == ["<h1>two</h1>"]
        contact = last_contact(here.config)
        assert contact is not None and contact.front == away.url and contact.seconds < 60


@pytest.mark.slow
def test_cut_anywhere_nothing_is_lost_or_doubled(here: Here, tmp_path: Path) -> None:
    """The line breaks behind each of many bytes of a whole conversation; the link begins anew and ends at the same."""
    with front_of(here.key.public, tmp_path / "front") as away:

        def conversation(cut: int | None) -> int:
            here.publish(f"cut at {cut}")
            asked = [away.ask(PAYLOAD + str((cut, n)).encode()) for n in range(2)]
            away.proxy.passed, away.proxy.cut_at = 0, cut
            link, taken = here.link(away.url), list[str]()
            for turn in range(3):
                try:
                    link.round()
                except LinkDown:
                    link.front.drop()
                    link = here.link(away.url) if (cut or 0) % 2 else link  # also work that was started anew
                taken += here.decide(tmp_path / f"taken-{cut}-{turn}")
            link.round()
            assert away.inbox.waiting() == [] and Inbox(here.config.inbox).waiting() == []
            assert sorted(taken) == sorted(one.sha256 or "" for one in asked), "each came once"
            answers = [answered(away.exchange / "published", one.id) for one in asked]
            assert None not in answers
            assert answers == [answered(here.config.published, one.id) for one in asked]
            assert away.published.pointer() == Published(here.config.published).pointer()
            view = away.published.view("team:alpha")
            assert [view.data(one) for one in view.below("runs")] == [[f"cut at {cut}"]]
            left = [path for path in (away.exchange, here.config.exchange) for path in path.rglob(".*")]
            assert left == []
            return away.proxy.passed

        conversation(None)
        total = conversation(10**9)
        assert total > 2 * len(PAYLOAD) and away.proxy.cuts == 0
        points = [*range(1, 6000, 251), *range(6001, total - 4000, total // 40)]
        for point in points:
            conversation(point)
        assert away.proxy.cuts == len(points)


def test_a_file_goes_on_where_it_was_cut(here: Here, tmp_path: Path) -> None:
    with front_of(here.key.public, tmp_path / "front") as away:
        content = b"x" * 3_000_000
        away.ask(content)
        link = here.link(away.url)
        away.proxy.cut_at = 2_000_000
        with pytest.raises(LinkDown):
            link.round()
        away.proxy.passed = 0
        link.front.drop()
        link.round()
        assert away.proxy.passed < 1_200_000, "the first part came once"
        assert here.decide(tmp_path / "taken") == [hashlib.sha256(content).hexdigest()]


def test_a_large_request_holds_nothing_up(here: Here, tmp_path: Path) -> None:
    """It comes in parts, and between them everything else: hand-ins behind it, and what is published."""
    with front_of(here.key.public, tmp_path / "front") as away:
        here.publish("one")
        content = bytes(10 * 1024 * 1024)
        large, small = away.ask(content), away.ask()
        link = here.link(away.url)
        assert link.round(), "there is more to bring"
        assert [identity for _, identity in Inbox(here.config.inbox).waiting()] == [small.id]
        here.publish("two")
        assert link.round()
        view = away.published.view("public")
        assert [view.text(one) for one in view.below("tasks/")] == ["<h1>two</h1>"]
        rounds = 2
        while link.round():
            rounds += 1
        assert rounds == 2, "ten MiB are three parts"
        assert set(here.decide(tmp_path / "taken")) == {large.sha256, small.sha256}


def test_work_whose_disk_is_near_full_fetches_nothing_more_says_so_and_goes_on(
    here: Here, tmp_path: Path
) -> None:
    """What is fetched is copied and loaded, so four times its size has to be there; what came of it is no longer asked for."""
    content = bytes(6 * MIB)  # two parts
    with small_disk(here.config.exchange, 25) as disk, front_of(here.key.public, tmp_path / "front") as away:
        here.publish("one")
        link = here.link(away.url)
        large = away.ask(content)
        assert link.round(), "one part is there"
        ballast = disk.path / "ballast"
        ballast.write_bytes(bytes(3 * MIB))
        small, away.proxy.passed = away.ask(), 0
        here.publish("two")
        assert not link.round() and not link.round(), "nothing is left to bring now"
        assert away.proxy.passed < SLICE, "the large one is not fetched"
        assert [one for _, one in Inbox(here.config.inbox).waiting()] == [small.id], "what fits comes"
        assert [
            away.published.view("public").text(one) for one in away.published.view("public").below("tasks/")
        ] == ["<h1>two</h1>"]
        [warning] = here.said
        assert str(here.config.inbox) in warning and "6 MiB" in warning
        ballast.unlink()
        while link.round():
            pass
        assert set(here.decide(tmp_path / "taken")) == {large.sha256, small.sha256}
        messages = len(here.said)
        assert here.said[-1] != warning and away.url in here.said[-1]
        link.round()
        assert away.inbox.waiting() == [] and len(here.said) == messages


@pytest.mark.slow
def test_only_so_many_requests_are_begun_at_a_time(here: Here, tmp_path: Path) -> None:
    """Whatever a front has, what is here in part counts, too: it could fill the disk with beginnings."""
    with front_of(here.key.public, tmp_path / "front") as away:
        here.publish("one")
        for _ in range(MOST_HERE + 3):
            away.ask(bytes(SLICE + 1))
        link = here.link(away.url)
        assert link.round()
        assert len(list(here.config.inbox.iterdir())) == MOST_HERE
        while link.round():
            assert len(list(here.config.inbox.iterdir())) <= MOST_HERE
        assert len(here.decide(tmp_path / "taken")) == MOST_HERE
        while link.round():
            pass
        assert len(here.decide(tmp_path / "rest")) == 3


def test_only_work_comes_in_with_the_key_and_a_nonce_opens_once(here: Here, tmp_path: Path) -> None:
    with (
        front_of(here.key.public, tmp_path / "front") as away,
        httpx2.Client(base_url=away.url, timeout=60) as client,
    ):
        away.ask()

        def begun(nonce: str, signature: str) -> int:
            said = json.dumps({"nonce": nonce, "signature": signature})
            return client.post("/exchange/hello", content=said).status_code

        nonce = client.get("/exchange/hello").json()["nonce"]
        assert begun(nonce, Key.at(tmp_path / "other.key").sign(away.url, nonce)) == 403
        assert begun(nonce, here.key.sign("https://other.example", nonce)) == 403, "signed for another front"
        assert begun("1.x.y", here.key.sign(away.url, "1.x.y")) == 403, "no nonce of this front"
        assert begun(nonce, "no signature") == begun("\ud800.x", "\ud800") == 403
        assert begun(nonce, here.key.sign(away.url, nonce)) == 200
        assert begun(nonce, here.key.sign(away.url, nonce)) == 403, "replayed"
        Access({TOKEN.id: granted(TOKEN)}).write(away.exchange / "published")
        for said in ("", "Exchange", "Exchange x", f"Bearer {TOKEN}"):
            headers = {"authorization": said}
            assert client.get("/exchange/inbox", headers=headers).status_code == 404
            assert client.post("/exchange/published/access.json", headers=headers).status_code == 404
    with front_of(None, tmp_path / "closed") as away, pytest.raises(LinkDown) as error:
        here.link(away.url).round()
    assert f"--work-key {here.key.public}" in str(error.value)


def test_work_is_nobody_on_the_pages_of_people(here: Here, tmp_path: Path) -> None:
    with (
        front_of(here.key.public, tmp_path / "front") as away,
        httpx2.Client(base_url=away.url, timeout=60) as client,
    ):
        nonce = client.get("/exchange/hello").json()["nonce"]
        signed = {"nonce": nonce, "signature": here.key.sign(away.url, nonce)}
        session = client.post("/exchange/hello", json=signed).json()["session"]
        client.headers["authorization"] = f"Exchange {session}"
        assert client.get("/exchange/inbox").json() == {"waiting": []}
        door = Door(Published(tmp_path), Sessions(tmp_path), away.url, SecurityLog(tmp_path))
        for rule in rules(door, Inbox(tmp_path)):
            if not rule.path.startswith("/exchange/"):
                assert client.request(rule.method, rule.path).status_code == 403, rule.path


def test_what_gets_a_name_at_the_front_is_what_it_says(here: Here, tmp_path: Path) -> None:
    here.publish("one")
    with front_of(here.key.public, tmp_path / "front") as away:
        front = Front(away.url, here.key)
        front.enter()
        digest = hashlib.sha256(b"x").hexdigest()
        pointer = (here.config.published / "current.json").read_bytes()
        for name, said, content in (
            ("access.json", "0" * 64, b"x"),
            (f"files/ab/{digest}", digest, b"x"),
            (f"files/{digest[:2]}/{digest}", "0" * 64, b"x"),
            ("../access.json", digest, b"x"),
            ("..%2f..%2fstate", digest, b"x"),
            ("answers/.hidden", digest, b"x"),
            ("current.json", hashlib.sha256(pointer).hexdigest(), pointer),
        ):
            with pytest.raises(LinkDown) as error:
                front.send(name, said, io.BytesIO(content))
            assert {"409", "404", "403"} & {*re.findall(r"\d+", str(error.value))}
        assert [path for path in away.exchange.rglob("*") if path.is_file()] == []


def test_only_a_front_that_proves_itself_is_called() -> None:
    assert check_front("https://task.example.org/") == "https://task.example.org"
    assert check_front("http://127.0.0.1:8080") == "http://127.0.0.1:8080"
    for url in ("http://task.example.org", "ftp://task.example.org", "task.example.org"):
        with pytest.raises(RunnerError) as error:
            check_front(url)
        assert error.value.code == "E101"


def test_while_the_link_is_down_it_is_said_once_and_tried_again(here: Here, tmp_path: Path) -> None:
    with front_of(here.key.public, tmp_path / "front") as away:
        away.proxy.down = True
        stop = threading.Event()
        thread = threading.Thread(target=here.link(away.url).run, args=(stop,))
        thread.start()
        try:
            until(lambda: here.said, every=0.05)
            here.publish("one")
            away.proxy.down = False
            until(lambda: "team:alpha" in away.published.pointer() and len(here.said) > 1)
        finally:
            stop.set()
            thread.join(30)
        assert [line.split()[0] for line in here.said] == ["no", "linked"] and here.problems == []


ENTRY = f"0000000001-{'a' * 32}"
NOT_MANY = [{"entry": f"{n:010}-{'b' * 32}", "files": {}} for n in range(400)]
LISTS: dict[str, Any] = {
    "nothing": {},
    "a number": {"waiting": 7},
    "rows": {"waiting": [7, None, []]},
    "another name": {"waiting": [{"entry": "../../etc", "files": {}}]},
    "a path": {"waiting": [{"entry": ENTRY, "files": {"../../../evil": 4}}]},
    "an absolute path": {"waiting": [{"entry": ENTRY, "files": {"/evil": 4}}]},
    "sizes below nothing": {"waiting": [{"entry": ENTRY, "files": {"payload": -4}}]},
    "sizes that are none": {"waiting": [{"entry": ENTRY, "files": {"payload": 1e3}}]},
    "more than there is": {"waiting": [{"entry": ENTRY, "files": {"payload": 10_000_000}}]},
    "a huge one": {"waiting": [{"entry": ENTRY, "files": {"payload": 10**15}}]},
    "many": {"waiting": NOT_MANY},
    "no request": {"waiting": [{"entry": ENTRY, "files": {"request.json": 4, "payload": 4}}]},
}


def inbox_with(waiting: Any, others: Any) -> Making:
    """Answer what waits in the inbox, "evil" for its files, and ``others`` for everything else."""

    def answer(_: str, path: str) -> Answer:
        if path == "/exchange/inbox":
            return Answer(json.dumps(waiting).encode())
        is_file = "/inbox/" in path and not path.endswith("/done")
        return Answer(b"evil" if is_file else json.dumps(others).encode())

    return answer


@pytest.mark.parametrize("case", LISTS)
def test_a_hostile_front_gets_nothing_but_what_is_published(here: Here, tmp_path: Path, case: str) -> None:
    here.publish("one")
    secret = here.config.home / "events.jsonl"
    secret.write_text("secret")
    before = {path for path in tmp_path.rglob("*") if "work/inbox" not in str(path)}

    hello = {"nonce": "x", "session": "y\r\nX: z", "missing": ["../events.jsonl", "access.json"]}
    asked: list[tuple[str, bytes]] = []
    with hostile(inbox_with(LISTS[case], hello), asked) as (url, _):
        link = here.link(url)
        for _ in range(5):
            try:
                link.round()
            except LinkDown:
                link.front.drop()
    assert asked and not any(b"secret" in body for _, body in asked)
    after = {path for path in tmp_path.rglob("*") if "work/inbox" not in str(path)}
    assert after - before <= {here.config.home / "link.json", here.config.inbox}
    waiting = Inbox(here.config.inbox).waiting()
    assert (
        len(waiting) <= 40
        and sum(p.stat().st_size for p in here.config.inbox.rglob("*") if p.is_file()) < 10**6
    )
    for name, _ in waiting:
        with pytest.raises(Refused):
            Inbox(here.config.inbox).take(name, tmp_path / "taken")


def test_a_request_that_could_not_be_held_is_never_asked_for(here: Here) -> None:
    """It is read whole once it is here, other than its payload."""

    waiting = {"waiting": [{"entry": ENTRY, "files": {"request.json": 2**30, "payload": 4}}]}
    asked: list[tuple[str, bytes]] = []
    with hostile(inbox_with(waiting, {"nonce": "x", "session": "y", "missing": []}), asked) as (url, _):
        here.link(url).round()
    assert asked[-1][0] == f"/exchange/inbox/{ENTRY}/done"
    assert not any(path.endswith("request.json") for path, _ in asked)


def test_answers_without_end_and_redirects_are_not_followed(here: Here) -> None:
    endless = Answer(headers={"Content-Encoding": "gzip"}, endless=b"x" * 65536)
    redirect = Answer(status=302, headers={"Location": "/redirected"})
    for given, word in ((redirect, " 302 "), (endless, " bytes")):
        asked: list[tuple[str, bytes]] = []
        with hostile(lambda *_, given=given: given, asked) as (url, _), pytest.raises(LinkDown) as error:
            here.link(url).round()
        assert word in str(error.value)
        assert asked and not any("redirected" in path for path, _ in asked)


class Recording:
    """A front that has nothing, and takes everything."""

    known, url = True, "https://front.example.org"

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []

    def ask(self, _method: str, what: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        return {"waiting": []} if what == "inbox" else {"missing": list(body or {})}

    def send(self, name: str, _digest: str, file: io.BytesIO) -> None:
        self.sent.append((name, file.read()))


def test_logs_that_grow_come_last_now_and_then_and_each_in_its_turn(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, names, front = here.config.published, [tails.new_name() for _ in range(3)], Recording()
    given: Any = front
    link = Link(here.config, given, here.said.append, here.problems.append, 0.0)

    def round_of(text: str) -> list[str]:
        front.sent.clear()
        for name in names:
            tails.write(root, name, tails.Tail(0, text))
        Publisher(root).alive()
        link.round()
        return [name for name, _ in front.sent]

    here.publish("one")
    monkeypatch.setattr(work_link, "TAILS", 1000.0)
    round_of("first")
    assert not [one for one in round_of("second") if one.startswith("tails/")], "they were just looked at"
    monkeypatch.setattr(work_link, "TAILS", 0.0)
    link = Link(here.config, given, here.said.append, here.problems.append, 0.0)
    sent: list[str] = []
    while not any(one.startswith("tails/") for one in sent):
        sent = round_of("third")
    assert "alive.json" in sent and sent.index("alive.json") < len(sent) - 1
    turns = [sent[-1], round_of("fourth")[-1], round_of("fifth")[-1]]
    assert {one.removeprefix("tails/").removesuffix(".json") for one in turns} == set(names)


def test_a_log_that_is_not_published_any_more_goes_from_the_front_with_the_next_pointer(
    here: Here, tmp_path: Path
) -> None:
    name = tails.new_name()
    with front_of(here.key.public, tmp_path / "front") as away:
        to = Publisher(here.config.published)
        here.publish("one")
        to.publish({"public": [to.object("tails/run", "tail", "run", {"file": name})]})
        tails.write(to.root, name, tails.Tail(0, "text"))
        link = here.link(away.url)
        link.round()
        assert tails.read(away.published.root, name) == tails.Tail(0, "text")
        tails.remove(to.root, name)
        here.publish("two")
        link.round()
        assert tails.read(away.published.root, name) == tails.Tail()
