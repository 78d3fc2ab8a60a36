"""Signing in at a real provider over HTTP: with state, nonce and PKCE; whatever does not hold is refused, by front and by work."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc.jwk import RSAKey

from runner.exchange.access import Access, Token
from runner.exchange.inbox import Inbox, Request, answered
from runner.exchange.oidc import FILE, MOST, TIMEOUT, Asked, NotBelieved, Unreachable, nonce_of
from runner.exchange.oidc import Provider as Named
from runner.exchange.published import Publisher
from runner.model.clock import SystemClock, stamp
from runner.work.managing import managing
from runner.work.members.identities import Identity
from tests.e2e.test_server import until
from tests.runner.test_api_remote import answering
from tests.runner.web.test_routes import task
from tests.worlds import site as site_world
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project, call
from tests.worlds.provider import CLIENT, SECRET, Provider, providing
from tests.worlds.site import serving

__all__ = ["cli"]


@dataclass
class Site(site_world.Site):
    """A front that sends people to a provider, and work that decides."""

    provider: Provider

    def sign_in(self, client: httpx2.Client) -> httpx2.Response:
        """There and back, as a browser goes."""
        there = client.get("/sign-in/provider")
        assert there.status_code == 303, there.text
        with httpx2.Client(trust_env=False, timeout=60) as elsewhere:
            back = elsewhere.get(there.headers["location"]).headers["location"]
        return client.get(back)

    def is_in(self, client: httpx2.Client) -> bool:
        return client.get("/team").status_code == 200

    def says(self) -> list[str]:
        text = (self.project.home / "security.jsonl").read_text()
        return [json.loads(line)["what"] for line in text.splitlines()]


@pytest.fixture
def site(project: Project, cli: Cli) -> Iterator[Site]:
    to = Publisher(project.config.published)
    style = to.keep(b"")
    everybody = task(to, style)
    runs = to.object("runs", "runs", "Runs", [])
    to.publish({"public": everybody, "team:alpha": [*everybody, runs], "organiser": everybody})
    to.alive()
    with managing(project.config) as office:
        office.add("team", "alpha")
    with providing() as provider:
        named = {"issuer": provider.url, "client_id": CLIENT}
        (project.home / FILE).write_text(json.dumps(named))
        cli("account", "tie", "alpha", "--subject", "ada-1")
        of = Named(**named, client_secret=SECRET, name="the university")
        with serving(project.config.exchange, project.home / "front", provider=of) as url:
            site = Site(project, url, provider)
            with site.deciding():
                yield site


def test_who_is_tied_to_an_account_signs_in(site: Site, cli: Cli) -> None:
    with site.client() as client:
        shown = client.get("/sign-in").text
        assert 'href="/sign-in/provider"' in shown and "the university" in shown
        said = site.sign_in(client)
        assert (said.status_code, said.headers["location"]) == (303, "/"), said.text
        assert site.is_in(client)
        cookies = said.headers.get_list("set-cookie")
        assert any(
            one.startswith("session=") and "HttpOnly" in one and "SameSite=lax" in one for one in cookies
        )
        cli("account", "untie", "alpha")
        assert not site.is_in(client), "revoked at once"
    with site.client() as client:
        assert site.sign_in(client).status_code == 403
    log = site.project.config.events.read_text()
    assert "account-tied" in log and "ada-1" not in log and "ada@" not in log.casefold()


def test_a_mail_address_counts_when_the_provider_says_that_it_is_theirs(site: Site, cli: Cli) -> None:
    cli("account", "untie", "alpha")
    call(site.project, "account", "tie", "alpha", "--mail", "ada@Example.org")
    for verified, good in ((None, False), (False, False), ("true", False), (True, True)):
        site.provider.who = {"sub": "other", "email": "Ada@example.org", "email_verified": verified}
        with site.client() as client:
            assert site.sign_in(client).status_code == (303 if good else 403), verified
            assert site.is_in(client) is good


def test_an_identity_is_one_accounts_and_goes_with_it(site: Site, cli: Cli) -> None:
    cli("team", "add", "beta")
    assert "E101" in cli("account", "tie", "beta", "--subject", "ada-1", expect=2).err
    cli("account", "erase", "alpha")
    assert b"ada-1" not in (site.project.home / "accounts.sqlite").read_bytes()
    with site.client() as client:
        assert site.sign_in(client).status_code == 403


def test_who_was_tied_to_an_account_that_was_closed_is_not_let_in_when_it_is_open_again(
    site: Site, cli: Cli
) -> None:
    cli("team", "close", "alpha")
    cli("team", "reopen", "alpha")
    with site.client() as client:
        assert site.sign_in(client).status_code == 403 and not site.is_in(client)
        with managing(site.project.config) as office:
            assert [one.type for one in office.store.log].count("account-untied") == 1
            alpha = office.accounts.of_team("alpha")
            office.accounts.close(alpha)  # as before closing untied anybody, or killed half-way
            office.accounts.identities.tie(alpha.id, Identity(site.provider.url, "subject", "ada-1"))
            assert office.reopen(office.accounts.of_team("alpha"))
        assert site.sign_in(client).status_code == 403
        cli("account", "tie", "alpha", "--subject", "ada-1")
        assert site.sign_in(client).status_code == 303, "tied anew"


def wrong_claims() -> list[dict[str, Any]]:
    wrong: list[dict[str, Any]] = [{name: None} for name in ("nonce", "exp", "iat", "sub")]
    wrong += [{"iss": "http://127.0.0.1:9/other"}, {"aud": "another-client"}, {"aud": [CLIENT, "another"]}]
    wrong += [{"azp": "another"}, {"nonce": "f" * 64}, {"exp": int(time.time()) - 600}]
    return [*wrong, {"sub": ""}, {"sub": "somebody-else"}]


def test_statements_that_do_not_hold_are_refused(site: Site) -> None:
    provider = site.provider
    wrong = [{"claims": claims} for claims in wrong_claims()]
    wrong += [{"signs": RSAKey.generate_key(2048, {"kid": "one"})}, {"algorithm": "none"}]
    for change in wrong:
        before = {name: getattr(provider, name) for name in change}
        vars(provider).update(change)
        with site.client() as client:
            assert site.sign_in(client).status_code == 403 and not site.is_in(client), change
        vars(provider).update(before)
    with site.client() as client:
        assert site.sign_in(client).status_code == 303


def test_no_more_of_an_answer_to_a_code_is_read_than_a_statement_takes(site: Site) -> None:
    for padding, status in ((100_000, 303), (MOST, 403)):
        site.provider.padding = padding
        with site.client() as client:
            assert site.sign_in(client).status_code == status


def test_the_way_back_belongs_to_the_browser_that_was_sent_and_is_gone_once(site: Site) -> None:
    with (
        site.client() as mine,
        site.client() as other,
        httpx2.Client(trust_env=False, timeout=60) as elsewhere,
    ):
        there = mine.get("/sign-in/provider").headers["location"]
        assert {"state", "nonce", "code_challenge"} <= parse_qs(urlsplit(there).query).keys()
        back = elsewhere.get(there).headers["location"]
        other.get("/sign-in/provider")
        assert other.get(back).status_code == 403, "a state that was planted"
        assert mine.get(back).status_code == 403, "a state is used up by whoever comes with it"
        back = elsewhere.get(mine.get("/sign-in/provider").headers["location"]).headers["location"]
        assert mine.get(back.replace("state=", "state=x")).status_code == 403
        assert mine.get(back).status_code == 303
        assert mine.get(back).status_code == 403 and site.is_in(mine)
        assert mine.get("/sign-in/provider/back").status_code == 403


def test_work_believes_no_front(site: Site) -> None:
    """A front in the attacker's hands: statements that were made for another key, or by nobody, open nothing."""
    stolen = site.provider.statement(nonce_of("0" * 64))
    forged = Provider(site.provider.url).statement(nonce_of("0" * 64))
    for statement in (stolen, forged, "x.y.z", ""):
        token = Token.new()
        data = {"statement": statement, "key": token.key}
        asked = Request.new("identity", "a-" + "0" * 16, token.id, None, stamp(SystemClock().now()), data)
        Inbox(site.project.config.inbox).put(asked, token.key)
        found = until(lambda id=asked.id: answered(site.project.config.published, id), every=0.05)
        assert not found["accepted"]
        assert Access.read(site.project.config.published).grant(token) is None
    assert (
        "statement refused" in site.says() and "request-decided" not in site.project.config.events.read_text()
    )


def test_both_routes_are_for_everybody_and_only_where_there_is_a_provider(site: Site) -> None:
    with managing(site.project.config) as office:
        tokens = [str(office.add(role)[1]) for role in ("organiser", "assistant", "assessor")]
    for token in ("", *tokens):
        with site.client(token) as client:
            assert client.get("/sign-in/provider").status_code == 303
            assert client.get("/sign-in/provider/back").status_code == 403
    with serving(site.project.config.exchange, site.project.home / "another") as url:
        assert httpx2.get(f"{url}/sign-in/provider", trust_env=False, timeout=60).status_code == 404


def test_a_provider_that_is_down_is_said(site: Site) -> None:
    url = site.provider.url
    site.provider.url = "http://127.0.0.1:9"
    with site.client() as client:
        assert client.get("/sign-in/provider").status_code == 403
    site.provider.url = url
    with site.client() as client:
        assert site.sign_in(client).status_code == 303


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
def test_a_provider_that_sends_a_byte_now_and_then_holds_nobody_up(
    site: Site, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("runner.exchange.oidc", "runner.web.routes.oidc"):
        monkeypatch.setattr(f"{module}.WHOLE", 1.0)
    site.provider.drips = path
    with site.client() as client:
        begins = path.startswith("/.well-known")
        said = client.get("/sign-in/provider") if begins else site.sign_in(client)
        assert said.status_code == 403
    assert path in site.provider.asked


@pytest.mark.slow
def test_only_the_newest_sign_ins_are_kept_and_a_statement_is_good_once(site: Site, cli: Cli) -> None:
    for _ in range(7):
        with site.client() as client:
            assert site.sign_in(client).status_code == 303
    [alpha] = cli("team", "list", "--json").json
    assert len(alpha["tokens"]) == 1 + 5


@pytest.mark.parametrize("text", ["{", "{}", '{"issuer": "http://idp.example.org", "client_id": "x"}'])
def test_a_file_that_names_no_provider_is_told(project: Project, text: str, cli: Cli) -> None:
    project.home.mkdir(exist_ok=True)
    (project.home / FILE).write_text(text)
    assert "E101" in cli("account", "tie", "alpha", "--subject", "x", expect=2).err


@pytest.mark.slow
def test_a_provider_that_does_not_answer_is_not_waited_for_again_at_once() -> None:
    """Strangers begin sign-ins: each that waited would hold a thread, and hand-ins behind it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = Asked(Named(f"http://127.0.0.1:{silent.getsockname()[1]}", CLIENT))
        begun = time.monotonic()
        for _ in range(10):
            with pytest.raises(Unreachable):
                asked.metadata()
        assert time.monotonic() - begun < 2 * TIMEOUT + 5


def test_what_is_nested_without_end_is_not_believed() -> None:
    """A provider's answer, and a statement, which a stranger may have written."""
    deep = b"[" * 40_000
    with answering(lambda _: (200, {}, deep)) as url, pytest.raises(NotBelieved):
        Asked(Named(url, CLIENT)).metadata()
    statement = base64.urlsafe_b64encode(b'{"alg":' + deep).decode().rstrip("=") + ".e30.e30"
    with pytest.raises(NotBelieved):
        Asked(Named("http://127.0.0.1:9", CLIENT)).claims(statement, "x", SystemClock().now())
