"""What people do on the pages of the front, in a real Chromium. How pages are built: test_proof_of_pages.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from runner.exchange.inbox import Inbox
from tests.runner.execution.test_pool import World
from tests.worlds.browser import watched
from tests.worlds.mini import Project
from tests.worlds.published_site import Site, published

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched
LONG = "a-name-that-is-as-long-as-names-may-be-so"[:40]


def nothing(mounts: object, out: Path) -> None:
    """A software that leaves no run file."""


@pytest.fixture
def site(project: Project) -> Iterator[Site]:
    project.write_task(uploads=True, description="Rank documents. " * 9, closes="2041-12-31 23:59 UTC")
    world = World(project)
    world.hand_in("alpha", LONG)
    world.hand_in("alpha", "nothing", script=nothing)
    world.hand_in("beta")
    world.work()
    world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    world.hand_in("alpha", "later")
    with published(project, world, "alpha", "beta", "gamma") as made:
        yield made


@pytest.mark.parametrize("script", [True, False])
def test_dates_do_not_scroll_sideways_on_a_phone(browser: Browser, site: Site, script: bool) -> None:
    whole = "one => one.scrollWidth <= one.clientWidth"
    with watched(browser, site.url, java_script_enabled=script, viewport={"width": 360, "height": 780}) as at:
        assert at.go("/tasks/mini") == 200
        assert at.page.eval_on_selector("[aria-label=Dates]", whole)
        assert "2041-12-31 23:59 UTC" in at.page.inner_text("[aria-label=Dates]")
        assert at.page.is_visible("td.here") == script


@pytest.mark.slow
def test_a_team_gets_everywhere_by_links(browser: Browser, site: Site) -> None:
    with watched(browser, site.url, java_script_enabled=False) as at:
        site.sign_in(at, "alpha")
        page = at.page
        at.follow("nav >> text=Team alpha")
        assert "31 December 2041, 23:59 UTC" in page.inner_text("main")
        at.follow("main table a >> nth=0")
        assert "/runs/" in page.url
        at.follow("nav >> text=Team alpha")
        at.follow("text=Hand in a run file")
        at.follow("nav >> text=Mini")
        at.follow("main >> text=main")
        assert page.url.endswith("/tasks/mini/main") and f"alpha/{LONG}" in page.inner_text("main")
        at.follow("nav >> text=Mini")
        assert page.url.endswith("/tasks/mini")


def test_who_is_new_is_told_what_to_do(browser: Browser, site: Site) -> None:
    with watched(browser, site.url) as at:
        at.go("/team")
        assert at.page.url.endswith("/sign-in") and "proctor_" in at.page.inner_text("main")
        site.sign_in(at, "gamma")
        at.go("/team")
        assert "50 of 50" in at.page.inner_text("main") and at.fits()
        assert at.page.locator("main a[href='/tasks/mini/hand-in']").count() > 0
        assert at.go("/runs/alpha.x.y.z") == 404


DROP = """([target, names]) => {
  const moved = new DataTransfer();
  for (const name of names) moved.items.add(new File(["dev-1 Q0 doc-01 1 9 x\\n"], name));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.querySelector(target).dispatchEvent(
      new DragEvent(kind, {dataTransfer: moved, bubbles: true, cancelable: true}));
  }
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_a_run_file_is_dropped_on_the_page(browser: Browser, site: Site, width: int) -> None:
    evil = "<img src=x onerror=alert(1)>.txt"
    with watched(browser, site.url, viewport={"width": width, "height": 800}) as at:
        site.sign_in(at, "alpha")
        at.go("/tasks/mini/hand-in")
        page = at.page
        before = page.inner_text(".drop")
        page.evaluate(DROP, ["h1", ["one.txt", "two.txt"]])
        assert page.inner_text(".drop") != before and page.input_value("#file") == ""
        page.evaluate(DROP, ["h1", [evil]])
        assert evil in page.inner_text(".drop") and page.input_value("#file").endswith(evil)
        assert at.fits()
        page.fill("#software", "dropped")
        page.fill("#tag", "my-tag")
        page.fill("#description", "by hand")
        page.select_option("#dataset", "dev")
        at.follow("main button")
        assert "/requests/" in page.url and at.said == [] and at.elsewhere == []
    inbox = Inbox(site.world.project.config.inbox)
    [(name, _)] = inbox.waiting()
    taken = inbox.take(name, site.world.project.home / "taken")
    wanted = {"software": "dropped", "tag": "my-tag", "description": "by hand", "dataset": "dev"}
    assert wanted.items() <= taken.request.data.items()
    assert taken.payload is not None and taken.payload.read_bytes() == b"dev-1 Q0 doc-01 1 9 x\n"


@pytest.mark.slow
def test_an_open_page_shows_a_new_row_by_itself(browser: Browser, site: Site) -> None:
    with watched(browser, site.url) as at:
        site.sign_in(at, "alpha")
        page = at.page
        at.go("/team")
        page.wait_for_selector("text=What is new appears by itself")
        page.evaluate("document.body.dataset.same = 'yes'")
        page.focus("main table a >> nth=0")
        site.world.hand_in("alpha", "newest")
        site.publish()
        page.wait_for_selector("main table >> text=alpha.newest")
        assert "46 of 50" in page.inner_text("main") and page.evaluate("document.body.dataset.same") == "yes"
        assert page.evaluate("document.activeElement.closest('table') !== null"), "the focus stays"
        site.world.work()
        site.publish()
        page.wait_for_selector("main table tr:has-text('alpha.newest') >> text=scored")
        page.wait_for_selector("text=What is new appears by itself")
        assert at.said == [] and at.elsewhere == []


@pytest.mark.slow
def test_an_open_leaderboard_follows_and_keeps_what_was_opened(browser: Browser, site: Site) -> None:
    with watched(browser, site.url) as at:
        page = at.page
        at.go("/tasks/mini/main")
        page.click("#board summary >> nth=0")
        page.click("th[data-key=software] button")
        page.click("th[data-key=software] button")
        site.world.hand_in("beta", "second")
        site.world.work()
        site.publish()
        page.wait_for_selector("th >> text=beta/second")
        assert page.locator("#board details").evaluate_all("all => all.map(one => one.open)").count(True) == 1
        rows = page.locator("#board tbody tr").evaluate_all("rows => rows.map(row => row.dataset.name)")
        assert rows == sorted(rows, reverse=True), "it is still sorted as it was"
        at.go("/tasks/mini/main")
        site.world.store.commit(
            "dataset-unpublished", {"task": "mini", "dataset": "test", "reason": ""}, actor="organiser"
        )
        site.publish()
        page.wait_for_selector("text=There is no such page")


def test_without_scripts_the_page_says_how_to_see_what_is_new(browser: Browser, site: Site) -> None:
    with watched(browser, site.url, java_script_enabled=False) as at:
        site.sign_in(at, "alpha")
        at.go("/team")
        site.world.hand_in("alpha", "newest")
        site.publish()
        at.follow("text=Load this page again")
        assert "alpha.newest" in at.page.inner_text("main table")


@pytest.mark.slow
def test_an_open_console_shows_what_comes_in(browser: Browser, site: Site) -> None:
    with watched(browser, site.url) as at:
        site.sign_in(at, "organiser")
        at.follow("nav >> text=Console")
        at.page.wait_for_selector("text=What is new appears by itself")
        site.world.hand_in("gamma", "newest")
        site.publish()
        at.page.wait_for_selector("main >> text=gamma.newest")
        assert "2 wait" in at.page.inner_text("main") and at.said == []


@pytest.mark.slow
def test_an_organiser_proposes_and_the_page_says_what_to_do_at_the_terminal(
    browser: Browser, site: Site
) -> None:
    site.world.store.commit(
        "dataset-unpublished", {"task": "mini", "dataset": "test", "reason": ""}, actor="organiser"
    )
    site.publish()
    with watched(browser, site.url, viewport={"width": 390, "height": 800}) as at:
        site.sign_in(at, "organiser")
        at.go("/console")
        page = at.page
        page.click("summary:has-text('Propose something')")
        page.select_option("#propose-dataset", "mini/test")
        at.follow("form:has(#propose-dataset) button")
        page.wait_for_selector("text=It was received")  # the request's own page
        at.go("/console")
        page.wait_for_selector("text=received, and not looked at yet")
        site.decide()
        site.publish()
        page.wait_for_selector("text=publish mini test")
        page.wait_for_selector("text=runner requests show")
        assert at.fits() and at.said == []
    with watched(browser, site.url) as at:
        assert at.go("/tasks/mini/main") == 404, "nothing happened"
