"""Tokens that people make themselves: links are used up by POST, once, and what is replaced opens nothing from that moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox
from runner.exchange.published import Publisher
from runner.web.sessions import Sessions
from runner.work.managing import managing
from runner.work.members.accounts import open_accounts
from tests.runner.web.test_routes import form_of, task
from tests.worlds import site as site_world
from tests.worlds.mini import Project
from tests.worlds.site import notices, serving

SHOWN = re.compile(r"proctor_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


@dataclass
class Site(site_world.Site):
    """A front over a project, and work's side of the inbox when it is wanted."""

    state: Path
    team: Token

    @contextmanager
    def signed_in(self, token: str) -> Iterator[httpx2.Client]:
        with self.client() as client:
            form = form_of(client.get("/sign-in").text)
            assert client.post("/sign-in", data={"form-token": form, "token": token}).status_code == 303
            yield client

    def link(self, lasts: timedelta = timedelta(hours=1)) -> str:
        with managing(self.project.config) as office:
            return f"/link/{office.link(office.accounts.of_team('alpha'), lasts)[0]}"

    def accounts(self) -> list[tuple[str, ...]]:
        with open_accounts(self.project.config) as accounts:
            return [one.tokens for one in accounts.all()]


@pytest.fixture
def site(project: Project) -> Iterator[Site]:
    to = Publisher(project.config.published)
    style = to.keep(b"")
    everybody = task(to, style)
    runs = to.object("runs", "runs", "Runs", [])
    to.publish({"public": everybody, "team:alpha": [*everybody, runs]})
    to.alive()
    with managing(project.config) as office:
        token = office.add("team", "alpha")[1]
    state = project.home / "front"
    with serving(project.config.exchange, state) as url:
        yield Site(project, url, state, token)


def use(client: httpx2.Client, link: str) -> httpx2.Response:
    return client.post(link, data={"form-token": form_of(client.get(link).text)})


def seeds_of(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The seeds that fronts of this process make from now on."""
    made: list[bytes] = []
    before = Sessions.seed

    def seed(sessions: Sessions, form: str, *said: str) -> bytes:
        made.append(before(sessions, form, *said))
        return made[-1]

    monkeypatch.setattr(Sessions, "seed", seed)
    return made


def test_looking_at_a_link_uses_nothing_up_and_its_button_does(site: Site) -> None:
    link = site.link()
    with site.deciding(), site.client() as scanner, site.client() as person:
        for _ in range(5):
            assert scanner.get(link).status_code == 200 and scanner.head(link).status_code in (200, 405)
        assert scanner.post(link).status_code == 403 and len(Inbox(site.project.config.inbox).waiting()) == 0
        said = use(person, link)
        assert said.status_code == 200 and said.headers["cache-control"] == "no-store"
        [token, again] = SHOWN.findall(said.text)
        assert token == again and notices(said.text) == ["good"] and site.opens(token)
        assert site.opens(str(site.team)), "a link takes no other token away"
        signed = person.post("/sign-in", data={"form-token": form_of(said.text), "token": token})
        assert signed.status_code == 303 and person.get("/team").status_code == 200
        for client in (scanner, person):
            assert client.get(link).status_code == 404


def all_of(client: httpx2.Client, page: str) -> dict[str, str]:
    shown = client.get(page).text
    return {"form-token": form_of(shown), "once": shown.split('name="once" value="')[1].split('"')[0]}


def test_a_form_that_is_sent_again_makes_no_other_token(site: Site) -> None:
    link = site.link()
    with site.deciding(), site.client() as person, site.client() as other:
        data = all_of(person, link)
        shown = [SHOWN.findall(person.post(link, data=data).text)[0] for _ in range(3)]
        assert len(set(shown)) == 1 and site.opens(shown[0])
        assert other.post(link, data=data).status_code == 403, "the form was another's"
        assert person.post(link, data={**data, "once": "0" * 32}).status_code == 404, "another form"
        with site.signed_in(str(site.team)) as signed:
            data = {**all_of(signed, "/token"), "scopes": "read", "keep": "yes"}
            shown = [SHOWN.findall(signed.post("/token", data=data).text)[0] for _ in range(3)]
            assert len(set(shown)) == 1 and site.opens(shown[0])
    assert [len(tokens) for tokens in site.accounts()] == [3]


@pytest.mark.slow
def test_no_id_of_a_request_tells_of_the_seed_of_its_token(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds, link = seeds_of(monkeypatch), site.link()
    with site.client() as person:
        use(person, link)
        with site.signed_in(str(site.team)) as signed:
            data = {**all_of(signed, "/token"), "scopes": "read", "keep": "yes"}
            assert [signed.post("/token", data=data).status_code for _ in range(2)] == [200, 200]
    ids = {id for _, id in Inbox(site.project.config.inbox).waiting()}
    assert len(ids) == len(set(seeds)) == 2 and all(len(id) == 32 for id in ids)
    assert not [id for id in ids for seed in seeds for n in range(25) if id[n : n + 8] in seed.hex()]


@pytest.mark.slow
def test_a_link_is_used_up_once_also_when_the_front_has_forgotten_everything(site: Site) -> None:
    link = site.link()
    with site.client() as first:
        one = use(first, link)
        assert notices(one.text) == ["wait"], "work is down"
        assert first.get(link).status_code == 404
    (site.state / "front.sqlite").rename(site.state / "lost")
    with (
        serving(site.project.config.exchange, site.state / "other") as url,
        httpx2.Client(base_url=url, trust_env=False, timeout=30) as second,
    ):
        other = use(second, link)
    assert len(Inbox(site.project.config.inbox).waiting()) == 2
    site.decide()
    tokens = [SHOWN.findall(said.text)[0] for said in (one, other)]
    assert [site.opens(token) for token in tokens] == [True, False]
    assert [len(found) for found in site.accounts()] == [2]
    site.decide()
    assert [len(found) for found in site.accounts()] == [2]


def test_a_link_that_is_over_or_was_taken_away_opens_nothing_without_work(site: Site) -> None:
    over, closed = site.link(timedelta(seconds=-1)), site.link()
    with site.client() as client:
        assert client.get(over).status_code == 404 and client.get(closed).status_code == 200
        with managing(site.project.config) as office:
            office.close(office.accounts.of_team("alpha"))
        assert client.get(closed).status_code == 404
        form = form_of(client.get("/sign-in").text)
        said = client.post("/sign-in", data={"form-token": form, "token": closed.removeprefix("/link/")})
        assert said.status_code == 403, "a link is no token"
    assert Inbox(site.project.config.inbox).waiting() == []


def test_a_link_opens_nothing_but_its_page(site: Site) -> None:
    link = site.link().removeprefix("/link/")
    for path in ("/team", "/token", "/requests/" + "d" * 32):
        with site.client(link) as program:
            assert program.get(path).status_code == 303, path


@pytest.mark.slow
def test_a_team_replaces_its_token_at_once_while_work_is_down(site: Site) -> None:
    with site.signed_in(str(site.team)) as team, site.signed_in(str(site.team)) as elsewhere:
        form = form_of(team.get("/token").text)
        assert team.post("/token", data={"form-token": "x"}).status_code == 403
        said = team.post("/token", data={"form-token": form, "scopes": "read hand-in"})
        token = SHOWN.findall(said.text)[0]
        assert elsewhere.get("/team").status_code == 303 and not site.opens(str(site.team))
        site.decide()
        assert site.opens(token) and not site.opens(str(site.team))
        grants = Access.read(site.project.config.published).grants
        assert [one.scopes for one in grants.values()] == [("read", "hand-in")]
    with site.signed_in(token) as team:
        assert team.get("/team").status_code == 200 and team.get("/token").status_code == 403


def test_a_token_gives_no_more_than_it_has(site: Site) -> None:
    with site.deciding(), site.signed_in(str(site.team)) as team:
        form = form_of(team.get("/token").text)
        said = team.post("/token", data={"form-token": form, "scopes": "read", "keep": "yes"})
        look = SHOWN.findall(said.text)[0]
        assert site.opens(look) and site.opens(str(site.team)) and team.get("/team").status_code == 200
        evil = team.post("/token", data={"form-token": form, "scopes": "read link"})
        assert evil.status_code == 403
    with site.client(look) as program:
        assert program.post("/token", data={"scopes": "read manage"}).status_code == 403
        assert program.post("/tasks/mini/hand-in", data={}).status_code == 403
    with site.client(str(site.team)) as program:
        made = program.post("/token", data={"scopes": "read", "keep": "yes"}).json()
    site.decide()
    assert site.opens(made["token"]) and made["scopes"] == ["read"]


def test_a_token_that_was_not_made_takes_none_away(site: Site) -> None:
    """An account has at most 20 tokens: the one that asked opens on when work says no."""
    with managing(site.project.config) as office:
        account = office.accounts.of_team("alpha")
        for _ in range(19):
            office.link(account, timedelta(hours=1))
    with site.deciding(), site.signed_in(str(site.team)) as team:
        form = form_of(team.get("/token").text)
        said = team.post("/token", data={"form-token": form, "scopes": "read", "keep": "yes"})
        assert said.status_code == 403 and "20" in said.text
        assert team.get("/team").status_code == 200
