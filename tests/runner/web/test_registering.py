"""Registering on the web: from the form to an account, by hostile people, too; nobody learns here who takes part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from runner.exchange.access import Token
from runner.exchange.inbox import Inbox, Request, answered
from runner.model.clock import FixedClock, stamp
from runner.records.store.connect import open_store
from runner.tasks.load import load_tasks
from runner.web.limits import REGISTERING
from runner.work.daily_limits import LIMITS, DailyLimits
from runner.work.members.accounts import open_accounts
from runner.work.requests import Requests
from tests.runner.web.test_routes import form_of
from tests.runner.web.test_tokens import SHOWN, seeds_of
from tests.worlds import site as site_world
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project, call
from tests.worlds.site import notices, serving

__all__ = ["cli"]

TERMS = "Be fair.\nName your sources."
REGISTER = 'href="/tasks/mini/register"'
SHA256 = hashlib.sha256(TERMS.encode()).hexdigest()
SAID = {
    **{
        "team": "alpha",
        "contact": "ada@example.org",
        "members": "Ada Lovelace\nGrace Hopper",
        "accepted": "yes",
    },
    **{"affiliation": "Somewhere", "purpose": "research", "terms": SHA256},
}


@dataclass
class Site(site_world.Site):
    """A front over a project that lets teams register, with somebody who decides."""

    cli: Cli

    def open(self, approve: str = "organiser", **more: Any) -> None:
        """Write the task anew, and publish it."""
        registration = {"approve": approve, "terms": {"file": "terms.txt", "version": "2031-1"}, **more}
        folder = self.project.write_task(uploads=True, registration=registration)
        (folder / "terms.txt").write_text(TERMS)
        self.publish()

    def register(self, **changes: str) -> httpx2.Response:
        with self.client() as client:
            form = form_of(client.get("/tasks/mini/register").text)
            return client.post("/tasks/mini/register", data={"form-token": form, **SAID, **changes})

    def teams(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cli("team", "list", "--people", "--json").json
        return found

    def waiting(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cli("team", "waiting", "--json").json
        return found


@pytest.fixture
def site(project: Project, cli: Cli) -> Iterator[Site]:
    made = Site(project, "", cli)
    made.open()
    with serving(project.config.exchange, project.home / "front") as url, made.deciding():
        made.url = url
        yield made


def registration_of(page: str) -> str:
    """Return the id in the address where a registration is followed."""
    return page.split('href="/registrations/')[1].split('"')[0]


def test_a_team_registers_and_is_in_once_the_organiser_lets_it(site: Site, cli: Cli) -> None:
    with site.client() as client:
        assert REGISTER in client.get("/tasks/mini").text
        assert TERMS in client.get("/tasks/mini/register").text
    said = site.register()
    assert said.status_code == 200 and notices(said.text) == ["wait"]
    [token] = SHOWN.findall(said.text)
    assert not site.opens(token) and site.teams() == []
    [waits] = site.waiting()
    assert (waits["team"], waits["contact"], waits["members"]) == (
        "alpha",
        SAID["contact"],
        ["Ada Lovelace", "Grace Hopper"],
    )
    address = registration_of(said.text)
    cli("team", "approve", "alpha")
    assert site.opens(token)
    with site.client() as client:
        assert notices(client.get(f"/registrations/{address}").text) == ["good"]
    [team] = site.teams()
    assert team["id"] == waits["account"] and team["affiliation"] == "Somewhere"
    [terms] = cli("team", "people", "alpha", "--json").json["terms"]
    assert (terms["version"], terms["sha256"], terms["purpose"]) == ("2031-1", SHA256, "research")
    assert terms["accepted"].endswith("Z") and site.waiting() == []
    log = site.project.config.events.read_text()
    assert team["id"] in log and not any(word in log for word in ("alpha", "ada@", "Lovelace", "Somewhere"))
    cli("account", "erase", team["id"])
    assert cli("team", "people", team["id"], "--json", expect=None).code == 2


def test_who_is_not_let_in_is_told_and_forgotten(site: Site, cli: Cli) -> None:
    said = site.register()
    [token] = SHOWN.findall(said.text)
    address = registration_of(said.text)
    cli("team", "reject", "alpha", "--reason", "we <b>do not</b> know you")
    with site.client() as client:
        text = client.get(f"/registrations/{address}").text
        assert notices(text) == ["bad"] and "we &lt;b&gt;do not" in text
    assert not site.opens(token)
    left = (site.project.home / "accounts.sqlite").read_bytes()
    assert b"Lovelace" not in left and b"ada@" not in left


def fields(client: httpx2.Client, **changes: str) -> dict[str, str]:
    page = client.get("/tasks/mini/register").text
    [once] = re.findall('name="once" value="([0-9a-f]{32})"', page)
    return {"form-token": form_of(page), "once": once, **SAID, **changes}


@pytest.mark.parametrize("approve", ["organiser", "at-once"])
def test_a_form_that_is_sent_again_is_the_same_registration(site: Site, approve: str, cli: Cli) -> None:
    """A page loaded anew, a button pressed twice, an answer lost on its way: one account, one token, one count of the limit."""
    site.open(approve)
    with site.client() as client:
        data = fields(client)
        with ThreadPoolExecutor(4) as pool:
            both = list(pool.map(lambda _: client.post("/tasks/mini/register", data=data), range(4)))
        for _ in range(int(REGISTERING.burst) + 2):
            both.append(client.post("/tasks/mini/register", data=data))
        assert {said.status_code for said in both} == {200}, [said.text for said in both]
        assert len({token for said in both for token in SHOWN.findall(said.text)}) == 1
        waiting = site.waiting()
        assert len([*waiting, *site.teams()]) == 1
        if approve == "at-once":
            signing = {"form-token": form_of(both[-1].text), "token": SHOWN.findall(both[-1].text)[0]}
            assert client.post("/sign-in", data=signing).status_code == 303
    with site.client() as other:
        assert other.post("/tasks/mini/register", data=data).status_code == 403, "the form was another's"


def test_no_id_tells_of_the_seed_that_the_token_is_drawn_from(
    site: Site, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    seeds = seeds_of(monkeypatch)
    with site.client() as client:
        data = fields(client)
        both = [client.post("/tasks/mini/register", data=data) for _ in range(2)]
    [one] = site.waiting()
    [id] = {registration_of(said.text) for said in both}
    [token] = {token for said in both for token in SHOWN.findall(said.text)}
    [seed] = set(seeds)
    assert str(Token.drawn(seed)) == token and re.fullmatch("a-[0-9a-f]{16}", one["account"])
    ids = [id, one["account"].removeprefix("a-"), Token.drawn(seed).id]
    assert not [shared for shared in ids for n in range(len(shared) - 7) if shared[n : n + 8] in seed.hex()]
    assert not [known for known in ids for other in ids if known != other and known[:12] in other]


def test_what_was_filled_in_stays_in_a_form_that_is_refused(site: Site) -> None:
    with site.client() as client:
        said = client.post(
            "/tasks/mini/register",
            data=fields(client, team="not a name", contact="nobody", members="Ada\nx\x1bx"),
        )
    assert said.status_code == 400 and len(reasons(said.text)) == 3
    assert 'value="yes" required checked' in said.text
    assert "not a name" in said.text and "research" in said.text
    assert "required checked" not in site.register(terms="0" * 64).text, "these nobody has read"


def test_at_once_means_at_once(site: Site) -> None:
    site.open("at-once")
    said = site.register()
    assert notices(said.text) == ["good"] and site.opens(SHOWN.findall(said.text)[0])
    again = site.register(team="ALPHA")
    assert again.status_code == 400
    assert "alpha" not in again.text.split("</nav>")[-1].replace("ALPHA", "")
    assert SAID["contact"] in again.text, "what was filled in stays"
    assert [one["team"] for one in site.teams()] == ["alpha"]


@pytest.mark.parametrize("approve", ["organiser", "at-once"])
def test_nobody_learns_who_takes_part_without_being_on_a_board(site: Site, approve: str, cli: Cli) -> None:
    """With the organiser in between a name that is taken looks like any other; at once, only that it cannot be had is told."""
    site.open(approve)
    cli("team", "add", "secret-team")
    answers = set()
    for name in (
        ("secret-team", "SECRET_TEAM", "secret-tearn")
        if approve == "organiser"
        else ("secret-team", "SECRET.team", "secret_team")
    ):
        text = site.register(team=name).text
        answers.add(
            " ".join(
                SHOWN.sub("", text)
                .replace(name, "")
                .split("<main")[1]
                .split('role="')[1]
                .split("</p>")[0]
                .split("</ul>")[0]
                .split("/registrations/")[0]
                .split()
            )
        )
    assert len(answers) == 1, answers
    if approve == "organiser":
        assert "E101" in cli("team", "approve", "secret-team", expect=2).err
        cli("team", "approve", "secret-team", "--name", "gamma")
        assert [one["team"] for one in site.teams()] == ["secret-team", "gamma"]


def test_softwares_of_a_team_without_account_are_not_had_by_registering(site: Site, cli: Cli) -> None:
    from tests.runner.execution.test_pool import World

    world = World(site.project)
    world.hand_in("beta")
    world.close()
    site.register(team="beta")
    assert "E101" in cli("team", "approve", "beta", expect=2).err
    site.open("at-once")
    assert site.register(team="beta").status_code == 400 and site.teams() == []


def reasons(page: str) -> list[str]:
    """Return why a registration was refused, as its page lists it."""
    return re.findall("<li>(.*)</li>", page.partition('role="alert">')[2].partition("</ul>")[0])


def test_what_is_missing_or_hostile_is_told_and_only_words(
    site: Site, cli: Cli, golden: Callable[[str, str], None]
) -> None:
    evil, shown = '"><script>alert(1)</script>', ""
    for changes in (
        {"team": ""},
        {"contact": ""},
        {"accepted": ""},
        {"terms": "0" * 64},
        {"team": evil},
        {"team": "../../x"},
        {"contact": "a\x1b[31m@b"},
        {"purpose": "research\r\nand\0more"},
        {"members": f"{evil}\n" + "x" * 101},
        {"members": "\n".join(f"m{n}" for n in range(51))},
    ):
        said = site.register(**changes)
        assert said.status_code == 400, changes
        shown += f"{next(iter(changes))}: {' | '.join(reasons(said.text))}\n"
        assert "<script" not in re.sub(r'<script src="/(site|look).js" defer></script>', "", said.text)
    golden("registration-refusals.txt", shown)
    assert site.waiting() == []
    with site.client() as client:
        assert client.post("/tasks/mini/register", data=SAID).status_code == 403, "not from our page"
    site.register(members=evil, purpose=evil, affiliation=evil)
    assert "\x1b" not in call(site.project, "team", "waiting").out


def test_registering_has_its_dates_and_a_task_without_it_has_no_page(site: Site) -> None:
    site.open(closes="2031-05-01 23:59 AoE", opens="2031-01-01 00:00 UTC")
    with site.client() as client:
        text = client.get("/tasks/mini/register").text
        assert "2031-05-01 23:59 AoE" in text and 'name="team"' not in text
    for dates in ({"opens": "2031-01-01 00:00 UTC"}, {"closes": "2999-01-01 00:00 UTC"}):
        site.open(**dates)
        with site.client() as client:
            assert next(iter(dates.values())) in client.get("/tasks/mini/register").text
    site.project.write_task()
    site.publish()
    with site.client() as client:
        assert client.get("/tasks/mini/register").status_code == 404
        assert REGISTER not in client.get("/tasks/mini").text


@pytest.mark.slow
def test_registrations_are_counted_by_address(site: Site, cli: Cli) -> None:
    codes = [site.register(team=f"team-{n}").status_code for n in range(int(REGISTERING.burst) + 2)]
    assert codes[-1] == 429 and codes[0] == 200
    last = site.register(team="one-more")
    assert 'value="one-more"' in last.text and last.headers["retry-after"]
    assert len(site.waiting()) >= REGISTERING.burst


def test_whoever_comes_after_so_many_in_a_day_is_told_when_to_come_again(project: Project) -> None:
    """Nobody waits for ever for an answer; far beyond the bound nothing is kept, so that strangers fill no disk."""
    project.write_task(registration={"asks": {"contact": "optional"}})
    inbox, asked = Inbox(project.config.inbox), []
    with (
        open_store(project.config) as store,
        open_accounts(project.config, clock=FixedClock(NOW)) as accounts,
    ):
        limits = DailyLimits({**LIMITS, "register": 2})
        requests = Requests(project.config, store, accounts, lambda _: None, FixedClock(NOW), limits=limits)
        for n in range(3 + 10 * 2):
            token = Token.new()
            data = {"task": "mini", "team": f"team-{n}", "key": token.key}
            one = Request.new("register", f"a-{n:016x}", token.id, None, stamp(NOW), data)
            asked.append(inbox.put(one, token.key))
        for _ in range(2):
            requests.round(load_tasks(project.config)[0])
        assert [one.team for one in accounts.registrations.waiting()] == ["team-0", "team-1"]
    answers = [answered(project.config.published, one.id) for one in asked]
    assert [one and one["accepted"] for one in answers] == [True, True, *[False] * 20, None]
    assert answers[2] is not None and "2031-05-02T12:00:0" in answers[2]["fix"]
    assert inbox.waiting() == []


def test_so_many_teams_a_day_are_let_in_at_once(project: Project, cli: Cli) -> None:
    project.write_task(registration={"asks": {"contact": "optional"}, "approve": "at-once", "per_day": 2})
    tasks = load_tasks(project.config)[0]
    said = []
    for n, hours in enumerate((0, 1, 23, 24.0003, 24.9, 25.01)):
        at, token = NOW + timedelta(hours=hours), Token.new()
        data = {"task": "mini", "team": f"team-{n}", "key": token.key}
        one = Request.new("register", f"a-{n:016x}", token.id, None, stamp(at), data)
        Inbox(project.config.inbox).put(one, token.key)
        with (
            open_store(project.config) as store,
            open_accounts(project.config, clock=FixedClock(at)) as accounts,
        ):
            Requests(project.config, store, accounts, lambda _: None, FixedClock(at)).round(tasks)
            shown = accounts.registrations.shown(tasks.values(), at)
        said.append(answered(project.config.published, one.id) or {})
        assert shown["at_once"] == [{"task": "mini", "teams": min(n + 1, 2), "of": 2}]
    assert [one["accepted"] for one in said] == [True, True, False, True, False, True]
    assert said[2]["code"] == "E210" and "2031-05-02T12:00:00Z" in said[2]["fix"]


def test_registrations_are_decided_by_both_words_and_ids_go_before_names(site: Site, cli: Cli) -> None:
    """A team may call itself like the id of another's registration, or like the number of a proposal."""
    site.register(team="alpha")
    [alpha] = cli("requests", "list", "--json").json
    assert (alpha["kind"], alpha["team"]) == ("registration", "alpha")
    site.register(team=alpha["account"])
    site.register(team="17")
    shown = cli("requests", "show", alpha["account"]).out
    assert "alpha" in shown and SAID["contact"] in shown
    assert "E101" in cli("requests", "approve", alpha["account"], expect=2).err
    cli("requests", "approve", alpha["account"], "--yes")
    assert "E102" in cli("requests", "approve", "17", "--yes", expect=2).err
    [like, _] = site.waiting()
    assert like["team"] == alpha["account"]
    cli("requests", "reject", like["account"], "--reason", "that is no name")
    cli("team", "approve", "17")
    assert [one["team"] for one in site.teams()] == ["alpha", "17"]
    assert cli("requests", "list", "--json").json == []


def test_an_account_is_meant_by_its_id_before_a_team_that_is_called_so(cli: Cli) -> None:
    first = cli("account", "add", "organiser", "--json").json["account"]
    cli("team", "add", first)
    cli("account", "close", first)
    closed = {one["role"]: one["closed"] for one in cli("account", "list", "--json").json}
    assert closed["organiser"] and closed["team"] is None


NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)
CLOSES = "2031-05-01 11:59 UTC"


@pytest.mark.parametrize(
    ("opens", "closes", "arrival", "good"),
    [
        ("2031-05-01 12:00 UTC", "2031-06-01 00:00 UTC", "2031-05-01T11:59:59Z", False),
        ("2031-05-01 12:00 UTC", "2031-06-01 00:00 UTC", "2031-05-01T12:00:00Z", True),
        ("2031-01-01 00:00 UTC", "2031-05-01 11:59 UTC", "2031-05-01T11:59:59Z", True),
        ("2031-01-01 00:00 UTC", "2031-05-01 11:59 UTC", "2031-05-01T12:00:00Z", False),
        ("2031-01-01 00:00 UTC", "2031-05-01 13:59 CEST", "2031-05-01T11:59:59Z", True),
    ],
)
def test_work_looks_at_the_dates_to_the_second(
    project: Project, opens: str, closes: str, arrival: str, good: bool
) -> None:
    asked = directly(project, arrival, {}, opens=opens, closes=closes)
    found = answered(project.config.published, asked.id)
    assert found is not None and found["accepted"] is good and (good or found["code"] == "E210")


@pytest.mark.parametrize(
    "change",
    [{"account": "a-" + "0" * 16}, {"team": "alpha"}, {"proof": "0" * 64}, {"data": {"key": "0" * 64}}],
)
def test_what_strangers_cannot_prove_is_dropped(project: Project, change: dict[str, Any], cli: Cli) -> None:
    asked = directly(project, stamp(NOW), change)
    assert answered(project.config.published, asked.id) is None
    assert cli("team", "waiting", "--json").json == []


def directly(project: Project, arrival: str, change: dict[str, Any], **dates: str) -> Request:
    """A registration that a front writes, decided at a fixed time; ``change`` is made of it afterwards."""
    project.write_task(registration={"asks": {"contact": "optional"}, **dates})
    token = Token.new()
    data = {"task": "mini", "team": "alpha", "key": token.key}
    asked = Request.new("register", "a-" + "1" * 16, token.id, None, arrival, data)
    inbox = Inbox(project.config.inbox)
    done = inbox.put(asked, token.key)
    if change:
        import json

        import schemas

        [(name, _)] = inbox.waiting()
        path = inbox.root / name / "request.json"
        there = json.loads(path.read_bytes())
        path.write_bytes(schemas.canonical({**there, **change, "data": {**data, **change.get("data", {})}}))
    for _ in range(2):  # once more, as after a crash
        with (
            open_store(project.config) as store,
            open_accounts(project.config, clock=FixedClock(NOW)) as accounts,
        ):
            Requests(project.config, store, accounts, lambda _: None, FixedClock(NOW)).round(
                load_tasks(project.config)[0]
            )
    return done


def test_a_token_of_somebody_else_is_not_had_by_registering(project: Project) -> None:
    """A front makes the ids up: one that there is already is refused, and work goes on."""
    project.write_task(registration={"asks": {"contact": "optional"}, "approve": "at-once"})
    inbox, mine = Inbox(project.config.inbox), Token.new()
    with open_store(project.config) as store, open_accounts(project.config) as accounts:
        account, theirs = accounts.add("organiser")
        data = {"task": "mini", "team": "alpha", "key": mine.key}
        asked = Request.new("register", "a-" + "1" * 16, theirs.id, None, stamp(NOW), data)
        inbox.put(asked, mine.key)
        Requests(project.config, store, accounts, print).round(load_tasks(project.config)[0])
        found = answered(project.config.published, asked.id)
        assert found is not None and found["accepted"] is False and inbox.waiting() == []
        assert accounts.known(account.id, theirs.id) == (account, theirs.key) and accounts.teams() == []
