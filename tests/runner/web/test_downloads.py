"""Data of a task: from task.yaml to a file on somebody's disk, under its terms, for those and only those whom it is for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.exchange import pieces
from runner.exchange.access import Token
from runner.exchange.published import Published, file_of
from runner.work.members.accounts import open_accounts, publish_access
from tests.runner.web.test_routes import form_of
from tests.worlds import site as site_world
from tests.worlds.mini import TASK, Project
from tests.worlds.site import notices, serving

TERMS = "Be fair.\nName your sources."
CORPUS = b"a line of the corpus\n" * 5000
OPEN, BEHIND = "/tasks/mini/data/dev/inputs/corpus.txt", "/tasks/mini/data/dev/truths/qrels.txt"
API = "/api/v1"


@dataclass
class Site(site_world.Site):
    """A front over a project that offers data; ``alpha`` and ``beta`` have accounts from the terminal."""

    tokens: Mapping[str, Token]

    def write(self, terms: str = TERMS, version: str = "1", **downloads: str) -> None:
        """Write the task anew, and publish it."""
        registration = {"terms": {"file": "terms.txt", "version": version}} if terms else {}
        rows = [
            {**TASK["datasets"][0], "licence": "CC BY 4.0", "citation": "Ada, 2031.", "downloads": downloads}
        ]
        folder = self.project.write_task(datasets=[*rows, TASK["datasets"][1]], registration=registration)
        (folder / "terms.txt").write_text(terms)
        (folder / "datasets/dev/inputs/corpus.txt").write_bytes(CORPUS)
        self.publish()

    def decide(self) -> None:
        """Decide what was asked for, and publish."""
        super().decide()
        self.publish()

    def client(self, token: object = "") -> httpx2.Client:
        """Return a client of a team or role."""
        return super().client(self.tokens.get(str(token), ""))

    def status(self, role: str, path: str) -> int:
        with self.client(role) as client:
            return client.get(path).status_code

    def listed(self, role: str = "") -> dict[str, Any]:
        with self.client(role) as client:
            found: dict[str, Any] = client.get(f"{API}/tasks/mini/data").json()
            return found


@pytest.fixture
def site(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(pieces.keep, "__defaults__", (10_000,))  # a small file has several pieces
    project.write_task()
    with open_accounts(project.config) as accounts:
        made = {team: accounts.add("team", team)[1] for team in ("alpha", "beta")}
        made["organiser"] = accounts.add("organiser")[1]
        publish_access(project.config, accounts)
    with serving(project.config.exchange, project.home / "front") as url:
        found = Site(project, url, made)
        found.write(inputs="everybody", truths="teams")
        yield found


def test_everybody_gets_what_is_for_everybody_as_it_is(site: Site) -> None:
    with site.client() as client:
        for path in (OPEN, API + OPEN):
            said = client.get(path)
            assert said.content == CORPUS and said.headers["content-length"] == str(len(CORPUS))
            assert said.headers["etag"].strip('"') == hashlib.sha256(CORPUS).hexdigest()
            assert said.headers["content-disposition"] == 'attachment; filename="corpus.txt"'
            assert said.headers["content-type"] == "application/octet-stream"
            assert said.headers["x-content-type-options"] == "nosniff" and "last-modified" not in said.headers
            head = client.head(path)
            assert (head.content, head.headers["content-length"]) == (b"", str(len(CORPUS)))
        known = client.get(OPEN, headers={"if-none-match": said.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")
        text = client.get("/tasks/mini").text
    assert "CC BY 4.0" in text and "Ada, 2031." in text and hashlib.sha256(CORPUS).hexdigest() in text
    assert (
        f'href="{OPEN}"' in text and BEHIND not in text and "truths/qrels.txt" in text and "Sign in" in text
    )
    [dataset] = site.listed()["datasets"]
    assert {one["name"]: (one["to"], one["open"]) for one in dataset["files"]} == {
        **dict.fromkeys(
            ("inputs/corpus.txt", "inputs/documents.jsonl.gz", "inputs/queries.jsonl"), ("everybody", True)
        ),
        "truths/qrels.txt": ("teams", False),
    }


@pytest.mark.parametrize(
    ("asked", "status", "span"),
    [
        ("bytes=0-", 200, (0, 105_000)),
        ("bytes=0-0", 206, (0, 1)),
        ("bytes=9999-10000", 206, (9999, 10_001)),
        ("bytes=104999-", 206, (104_999, 105_000)),
        ("bytes=50000-999999999999", 206, (50_000, 105_000)),
        ("bytes=-5", 206, (104_995, 105_000)),
        ("bytes=-999999", 200, (0, 105_000)),
        ("bytes=105000-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=5-2", 200, (0, 105_000)),
        ("bytes=-", 200, (0, 105_000)),
        ("bytes=0-1,5-6", 200, (0, 105_000)),
        ("lines=1-2", 200, (0, 105_000)),
        ("bytes=²-", 200, (0, 105_000)),
    ],
)
def test_a_range_is_what_was_asked_for(
    site: Site, asked: str, status: int, span: tuple[int, int] | None
) -> None:
    with site.client() as client:
        said = client.get(OPEN, headers={"range": asked.encode()})
        assert said.status_code == status, asked
        if span is None:
            assert said.headers["content-range"] == "bytes */105000" and said.content == b""
            return
        assert said.content == CORPUS[slice(*span)]
        if status == 206:
            assert said.headers["content-range"] == f"bytes {span[0]}-{span[1] - 1}/105000"


def test_the_rest_of_another_file_is_not_sent(site: Site) -> None:
    with site.client() as client:
        tag = client.head(OPEN).headers["etag"]
        for given, status in ((tag, 206), ('"other"', 200), (f"W/{tag}", 200)):
            said = client.get(OPEN, headers={"range": "bytes=5-", "if-range": given})
            assert said.status_code == status, given


def test_teams_accept_the_terms_on_the_page_and_then_have_the_files(site: Site) -> None:
    assert {site.status(role, path) for role in ("", *site.tokens) for path in (BEHIND, API + BEHIND)} == {
        404
    }
    with site.client() as browser:
        form = form_of(browser.get("/sign-in").text)
        browser.post("/sign-in", data={"form-token": form, "token": str(site.tokens["alpha"])})
        text = browser.get("/tasks/mini").text
        assert "Be fair." in text and 'action="/tasks/mini/terms"' in text and f'href="{BEHIND}"' not in text
        given = {"form-token": form_of(text), **_read(site)}
        assert browser.post("/tasks/mini/terms", data=given).status_code == 400, "the box was not ticked"
        foreign = browser.post("/tasks/mini/terms", data={**given, "form-token": "x", "accepted": "yes"})
        old = browser.post("/tasks/mini/terms", data={**given, "sha256": "e" * 64, "accepted": "yes"})
        assert (foreign.status_code, old.status_code) == (403, 400)
        sent = browser.post("/tasks/mini/terms", data={**given, "accepted": "yes"})
        assert sent.status_code == 303
        site.decide()
        page = browser.get(sent.headers["location"]).text
        assert notices(page) == ["good"] and '/tasks/mini#data"' in page
        text = browser.get("/tasks/mini").text
        assert f'href="{BEHIND}"' in text and 'action="/tasks/mini/terms"' not in text
        assert (
            browser.get(BEHIND).content
            == (site.project.root / "tasks/mini/datasets/dev/truths/qrels.txt").read_bytes()
        )
        assert browser.get(BEHIND).headers["cache-control"] == "private, no-cache"
    assert site.status("alpha", API + BEHIND) == 200
    assert {site.status(role, API + BEHIND) for role in ("", "beta", "organiser")} == {404}


def test_other_terms_are_accepted_anew(site: Site) -> None:
    def accept() -> int:
        with site.client("alpha") as client:
            said = client.post(f"{API}/tasks/mini/terms", params=_read(site))
        site.decide()
        return said.status_code

    assert accept() == 202 and site.status("alpha", API + BEHIND) == 200
    with open_accounts(site.project.config) as accounts:
        [one] = accounts.registrations.terms_of(accounts.of_team("alpha").id)
    assert (one["task"], one["version"]) == ("mini", "1") and one["accepted"]
    site.write(terms="Be very fair.", inputs="everybody", truths="teams")
    assert site.status("alpha", API + BEHIND) == 404, "another text under the same version"
    assert accept() == 202 and accept() == 202 and site.status("alpha", API + BEHIND) == 200
    site.write(version="2", inputs="everybody", truths="teams")
    assert site.status("alpha", API + BEHIND) == 404 and site.listed("alpha")["accepted"] is False
    site.write(terms="", inputs="everybody", truths="teams")
    assert site.status("alpha", API + BEHIND) == site.status("beta", API + BEHIND) == 200, (
        "signed in is enough"
    )
    assert site.status("", API + BEHIND) == 404
    with open_accounts(site.project.config) as accounts:
        assert len(accounts.registrations.terms_of(accounts.of_team("alpha").id)) == 2
        accounts.people.erase(accounts.of_team("alpha").id)
        assert accounts.registrations.acceptances() == {}


def test_what_is_not_named_is_not_there_for_anybody(site: Site) -> None:
    site.write(inputs="teams")
    found = site.project.config.published
    for role in ("", *site.tokens):
        assert site.status(role, OPEN.replace("dev", "test")) == 404
        assert site.status(role, BEHIND) == 404
        for name in (
            "../truths/qrels.txt",
            "..%2Ftruths%2Fqrels.txt",
            "%2e%2e/truths/qrels.txt",
            "corpus.txt/",
        ):
            assert site.status(role, OPEN.replace("corpus.txt", name)) == 404
    hidden = [*site.project.truths.rglob("*"), *site.project.private.rglob("*")]
    there = {path.read_bytes() for path in found.glob("files/*/*")}
    assert not any(
        path.read_bytes() in there for path in hidden if path.is_file() and path.name != "documents.jsonl.gz"
    )


def test_a_damaged_piece_is_never_sent(site: Site) -> None:
    view = Published(site.project.config.published).view("public")
    found = view.get(OPEN.removeprefix("/tasks/").replace("mini/data/", "data/mini/"))
    assert found is not None
    file = pieces.Pieces.read(view.data(found))
    path = file_of(site.project.config.published, file.pieces[-1])
    path.write_bytes(b"x" * path.stat().st_size)
    with site.client() as client, pytest.raises(httpx2.RemoteProtocolError):
        client.get(OPEN)
    Path(path).unlink()
    with site.client() as client:
        assert client.get(OPEN).status_code == 503
        assert client.get(OPEN, headers={"range": "bytes=0-9"}).content == CORPUS[:10]


def _read(site: Site) -> dict[str, str]:
    """Version and SHA-256 of the terms as a team reads them."""
    terms = site.listed("alpha")["terms"]
    return {name: terms[name] for name in ("version", "sha256")}


def test_only_who_can_hand_in_is_asked_to(site: Site) -> None:
    site.project.write_task(uploads=True)
    site.publish()
    for role, asked in (("", True), ("alpha", True), ("organiser", False)):
        with site.client(role) as client:
            assert ("/tasks/mini/hand-in" in client.get("/tasks/mini").text) is asked, role


@pytest.mark.parametrize(
    ("dates", "invited"),
    [
        ({}, True),
        ({"opens": "2020-01-01 00:00 UTC", "closes": "2020-02-01 00:00 UTC"}, False),
        ({"opens": "2090-01-01 00:00 UTC", "announced": "2020-01-01 00:00 UTC"}, False),
    ],
)
def test_a_task_invites_only_while_it_accepts_submissions(
    site: Site, dates: dict[str, str], invited: bool
) -> None:
    site.project.write_task(uploads=True, **dates)
    site.publish()
    for role, page in (("", "/tasks/mini"), ("alpha", "/tasks/mini"), ("alpha", "/team")):
        with site.client(role) as client:
            assert ("/tasks/mini/hand-in" in client.get(page).text) is invited, (role, page)


def test_the_command_to_copy_accepts_the_terms_that_are_shown(site: Site) -> None:
    with site.client("alpha") as client:
        sha256 = site.listed("alpha")["terms"]["sha256"]
        assert f"--accept-terms &#34;1@{sha256}&#34;" in client.get("/tasks/mini").text
