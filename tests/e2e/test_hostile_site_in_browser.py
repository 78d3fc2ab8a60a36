"""Every field that a stranger or a team can fill holds a script: no page of the site runs it, in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser

from runner.exchange.access import Token
from runner.exchange.published import Published, Publisher
from runner.records.review import comment_run
from runner.work.members.accounts import open_accounts, publish_access
from runner.work.publishing import Desk
from runner.work.requests import Requests
from tests.e2e.test_uploads_scored import run_text
from tests.runner.execution.test_pool import World, good
from tests.runner.web.test_routes import form_of
from tests.worlds.browser import browser, watched
from tests.worlds.mini import Project
from tests.worlds.site import serving

__all__ = ["browser"]

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched
RUN = "document.title='pwned'"
EVIL = f'<script>{RUN}</script><img src=x onerror="{RUN}"></title></textarea><svg onload="{RUN}"><a href="javascript:{RUN}">"\'{{{{7*7}}}}'
SHORT = f"<img src=x onerror={RUN}>"
TEXTS = {"description": EVIL, "affiliation": EVIL[:90], "paper": f"javascript:{RUN}"}


def talkative(mounts: Any, out: Path) -> None:
    mounts.say(EVIL)
    good(mounts, out)


class Site:
    """A front behind which everything is hostile."""

    def __init__(self, project: Project) -> None:
        asks = {"description": "optional", "affiliation": "optional", "paper": "optional"}
        project.write_task(uploads=True, asks=asks, registration={"approve": "organiser"})
        self.project, self.world, self.url = project, World(project), ""
        self.runs = [self.world.hand_in("alpha", "loud", talkative, description=EVIL)]
        self.world.work()
        comment_run(self.world.store, self.world.tasks, self.runs[0], EVIL, "team")
        self.world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
        with open_accounts(project.config) as accounts:
            self.tokens: dict[str, Token] = {"alpha": accounts.add("team", "alpha")[1]}
            self.tokens["organiser"] = accounts.add("organiser")[1]
            publish_access(project.config, accounts)
        self.publish()

    def publish(self) -> None:
        to, problems = Publisher(self.project.config.published), list[Exception]()
        Desk(self.world.store, self.world.tasks, to, problems.append).publish(["alpha"])
        to.alive()
        assert problems == []

    def decide(self) -> None:
        with open_accounts(self.project.config) as accounts:
            Requests(self.project.config, self.world.store, accounts, lambda _: None).round(self.world.tasks)

    def fill(self) -> list[str]:
        """Fill every field there is; the pages that show what became of it."""
        pages = []
        headers = {"authorization": f"Bearer {self.tokens['alpha']}"}
        with httpx2.Client(base_url=self.url, trust_env=False, timeout=30) as client:
            for fields, content in (
                ({"software": SHORT, "dataset": SHORT, "scenario": SHORT, "method": SHORT, **TEXTS}, EVIL),
                (
                    {"software": "fine", "dataset": "dev", **TEXTS, "paper": "https://example.org/p"},
                    run_text("dev", "x"),
                ),
                (
                    {"software": "bad", "dataset": "dev", **TEXTS, "paper": "https://example.org/p"},
                    f"1 Q0 {EVIL} 1 1 {EVIL}\n{EVIL}\n",
                ),
            ):
                files = {"file": (f"{EVIL}.svg", content.encode(), f"text/html;{SHORT}")}
                said = client.post("/tasks/mini/hand-in", data=fields, files=files, headers=headers)
                if said.status_code == 400:  # refused at once: nothing of it is kept
                    assert fields["software"] == SHORT and SHORT not in said.text
                else:
                    pages.append(said.json()["at"])
            submission = self.runs[0].removesuffix(".test")
            said = client.post(
                f"/submissions/{submission}/choose", data={"reason": EVIL, "table": SHORT}, headers=headers
            )
            pages.append(said.json()["at"])
            for team in (SHORT, "gamma"):
                form = form_of(client.get("/tasks/mini/register").text)
                fields = {
                    "team": team,
                    "members": f"{EVIL[:90]}\n{SHORT}",
                    "contact": SHORT,
                    "affiliation": SHORT,
                    "purpose": EVIL,
                }
                said = client.post(
                    "/tasks/mini/register", data={"form-token": form, "accepted": "yes", **fields}
                )
                pages += re.findall(
                    r"/registrations/[0-9a-f]{32}", said.text + said.headers.get("location", "")
                )
        return pages

    def pages(self, who: str) -> list[str]:
        reflected = [
            f"/{place}/{quote(EVIL)}"
            for place in ("tasks", "runs", "link", "registrations", "requests", EVIL)
        ]
        asked = [
            f"/sign-in?next={quote(EVIL)}",
            f"/tasks/mini?{quote(EVIL)}={quote(EVIL)}",
            "/tasks/mini/register",
        ]
        own = []
        if who != "public":
            view = Published(self.project.config.published).view(
                "organiser" if who == "organiser" else f"team:{who}"
            )
            own = [f"/{one.path}" for one in view.below("runs/")]
            own += [f"{one}/log" for one in own] + ["/team", "/console", "/token", "/tasks/mini/hand-in"]
        return ["/", "/tasks/mini", "/tasks/mini/main", *asked, *reflected, *own]


@pytest.fixture
def site(project: Project) -> Iterator[Site]:
    made = Site(project)
    with serving(project.config.exchange, project.home / "front") as url:
        made.url = url
        yield made
    made.world.close()


@pytest.mark.parametrize("who", ["public", "alpha", "organiser"])
def test_no_field_of_a_stranger_runs_anything(browser: Browser, site: Site, who: str) -> None:
    shown = site.fill()
    site.decide()
    site.publish()
    words = 0
    with watched(browser, site.url) as at:
        at.page.on("dialog", lambda dialog: at.said.append(f"dialog {dialog.message}"))
        if who != "public":
            at.go("/sign-in")
            at.page.fill("#token", str(site.tokens[who]))
            at.follow("main button")
        for path in site.pages(who) + (shown if who == "alpha" else []):
            at.go(path)
            assert at.page.title() != "pwned", path
            made = at.page.locator(
                "[onerror], [onload], script:not([src]), a[href^='javascript:'], img, svg a, svg script, foreignObject, iframe"
            )
            assert made.count() == 0, (path, made.first.evaluate("one => one.outerHTML"))
            words += at.page.inner_text("body").count("<script>")
    # An inline script or a foreign address that slipped through would be told here; pages that are not there are told, too.
    assert [
        line for line in at.said if not line.startswith("Failed to load resource: the server responded")
    ] == []
    assert at.elsewhere == []
    assert who != "alpha" or words > 1, "the words are shown, as words"
