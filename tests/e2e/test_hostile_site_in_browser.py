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

from runner.exchange.published import Published
from runner.records.review import comment_run
from tests.e2e.test_uploads_scored import run_text
from tests.runner.execution.test_pool import World, good
from tests.runner.web.test_routes import form_of
from tests.worlds.browser import watched
from tests.worlds.mini import Project
from tests.worlds.published_site import Site, published

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched
RUN = "document.title='pwned'"
EVIL = f'<script>{RUN}</script><img src=x onerror="{RUN}"></title></textarea><svg onload="{RUN}"><a href="javascript:{RUN}">"\'{{{{7*7}}}}'
SHORT = f"<img src=x onerror={RUN}>"
TEXTS = {"description": EVIL, "affiliation": EVIL[:90], "paper": f"javascript:{RUN}"}


def talkative(mounts: Any, out: Path) -> None:
    mounts.say(EVIL)
    good(mounts, out)


def fill(site: Site) -> list[str]:
    """Fill every field there is; the pages that show what became of it."""
    pages = []
    headers = {"authorization": f"Bearer {site.tokens['alpha']}"}
    with httpx2.Client(base_url=site.url, trust_env=False, timeout=30) as client:
        valid = {**TEXTS, "dataset": "dev", "paper": "https://example.org/p"}
        for fields, content in (
            ({**TEXTS, "software": SHORT, "dataset": SHORT, "scenario": SHORT, "method": SHORT}, EVIL),
            ({**valid, "software": "fine"}, run_text("dev", "x")),
            ({**valid, "software": "bad"}, f"1 Q0 {EVIL} 1 1 {EVIL}\n{EVIL}\n"),
        ):
            files = {"file": (f"{EVIL}.svg", content.encode(), f"text/html;{SHORT}")}
            said = client.post("/tasks/mini/hand-in", data=fields, files=files, headers=headers)
            if said.status_code == 400:  # refused at once: nothing of it is kept
                assert fields["software"] == SHORT and SHORT not in said.text
            else:
                pages.append(said.json()["at"])
        run = next(iter(Published(site.project.config.published).view("team:alpha").below("runs/")))
        submission = run.path.removeprefix("runs/").rpartition(".")[0]
        said = client.post(
            f"/submissions/{submission}/choose", data={"reason": EVIL, "table": SHORT}, headers=headers
        )
        pages.append(said.json()["at"])
        for team in (SHORT, "gamma"):
            form = form_of(client.get("/tasks/mini/register").text)
            fields = {"form-token": form, "accepted": "yes", "team": team, "members": f"{EVIL[:90]}\n{SHORT}"}
            fields |= {"contact": SHORT, "affiliation": SHORT, "purpose": EVIL}
            said = client.post("/tasks/mini/register", data=fields)
            pages += re.findall(r"/registrations/[0-9a-f]{32}", said.text + said.headers.get("location", ""))
    return pages


def pages(site: Site, who: str) -> list[str]:
    reflected = [
        f"/{place}/{quote(EVIL)}" for place in ("tasks", "runs", "link", "registrations", "requests", EVIL)
    ]
    asked = [
        f"/sign-in?next={quote(EVIL)}",
        f"/tasks/mini?{quote(EVIL)}={quote(EVIL)}",
        "/tasks/mini/register",
    ]
    own = []
    if who != "public":
        view = Published(site.project.config.published).view(
            "organiser" if who == "organiser" else f"team:{who}"
        )
        own = [f"/{one.path}" for one in view.below("runs/")]
        own += [f"{one}/log" for one in own] + ["/team", "/console", "/token", "/tasks/mini/hand-in"]
    return ["/", "/tasks/mini", "/tasks/mini/main", *asked, *reflected, *own]


@pytest.fixture
def site(project: Project) -> Iterator[Site]:
    """A front behind which everything is hostile."""
    asks = {"description": "optional", "affiliation": "optional", "paper": "optional"}
    project.write_task(uploads=True, asks=asks, registration={"approve": "organiser"})
    world = World(project)
    run = world.hand_in("alpha", "loud", talkative, description=EVIL)
    world.work()
    comment_run(world.store, world.tasks, run, EVIL, "team")
    world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    with published(project, world, "alpha") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("who", ["public", "alpha", "organiser"])
def test_no_field_of_a_stranger_runs_anything(browser: Browser, site: Site, who: str) -> None:
    shown = fill(site)
    site.decide()
    site.publish()
    words = 0
    with watched(browser, site.url) as at:
        at.page.on("dialog", lambda dialog: at.said.append(f"dialog {dialog.message}"))
        if who != "public":
            site.sign_in(at, who)
        for path in pages(site, who) + (shown if who == "alpha" else []):
            at.go(path)
            assert at.page.title() != "pwned", path
            made = at.page.locator(
                "[onerror], [onload], script:not([src]), a[href^='javascript:'], img, svg a, svg script, foreignObject, iframe"
            )
            assert made.count() == 0, (path, made.first.evaluate("one => one.outerHTML"))
            words += at.page.inner_text("body").count("<script>")
    # The console reports inline scripts and foreign addresses, and each status of 4xx.
    status = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d ")
    assert [line for line in at.said if not status.match(line)] == []
    assert at.elsewhere == []
    assert who != "alpha" or words > 1, "the words are shown, as words"
