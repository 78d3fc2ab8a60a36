"""A leaderboard in a real Chromium: what its script does, what its address keeps, and that it is whole without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.worlds.browser import Watched, watched
from tests.worlds.pages import Pages, pages

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched
BOARD = "/tasks/mini/main"
NAMES = "rows => rows.filter(row => row.checkVisibility()).map(row => row.dataset.name)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    with pages(tmp_path_factory.mktemp("pages"), runs=70) as made:
        yield made


@pytest.fixture(params=["front", "alone"])
def board(browser: Browser, site: Pages, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """The leaderboard of the front, and the one that stands alone."""
    with watched(browser, site.url, viewport={"width": 1280, "height": 900}) as at:
        at.page.goto(site.url + BOARD if request.param == "front" else site.alone["board"].as_uri())
        yield at
        assert at.said == [], "nothing is said to the console, the policy holds"


def names(page: Page) -> list[str]:
    """The rows that are seen, in their order."""
    found: list[str] = page.eval_on_selector_all("#board tbody tr", NAMES)
    return found


def column(page: Page, key: str) -> list[float]:
    at = page.eval_on_selector_all(
        "#board thead th", "(heads, key) => heads.findIndex(h => h.dataset.key === key)", key
    )
    cells = page.locator(
        f"#board tbody tr td:nth-child({at + 1}) .figure, #board tbody tr td.interval:nth-child({at + 1})"
    )
    return [float(text.rstrip("†‡")) for text in cells.all_inner_texts()]


def test_a_head_sorts_both_ways_and_then_as_it_was(board: Watched) -> None:
    page, ranked = board.page, names(board.page)
    head = page.locator("th[data-key='P@10'] button")
    head.click()
    assert column(page, "P@10") == sorted(column(page, "P@10"), reverse=True)
    assert page.locator("th[aria-sort=descending]").count() == 1
    head.press("Enter")
    assert column(page, "P@10") == sorted(column(page, "P@10")) and names(page) != ranked
    head.click()
    assert names(page) == ranked and "#" not in page.url


def test_a_head_of_several_words_sorts_and_what_has_no_value_stands_last(board: Watched) -> None:
    page = board.page
    last = names(page)[0]
    page.locator(f"tr[data-name='{last}'] td .figure").evaluate_all(
        "cells => cells.forEach(cell => { cell.textContent = '–'; })"
    )
    for _ in range(2):  # either way
        page.locator("th[data-key='P@10'] button").click()
        assert names(page)[-1] == last
    page.locator("th[data-key='95 %'] button").click()
    assert page.locator("th[data-key='95 %'][aria-sort]").count() == 1


def test_a_column_of_steps_is_no_button_and_sorts_nothing(board: Watched) -> None:
    page, ranked = board.page, names(board.page)
    page.locator("th[data-key='P@10']").evaluate(
        "head => { head.dataset.unsorted = ''; head.textContent = 'P@10'; location.hash = 'sort=P@10+up'; }"
    )
    page.evaluate("document.dispatchEvent(new Event('changed'))")
    assert page.locator("th[data-key='P@10'] button").count() == 0
    assert page.locator("th[aria-sort]").count() == 0 and names(page) == ranked


def test_rows_are_found_and_teams_have_one(board: Watched) -> None:
    page, ranked = board.page, names(board.page)
    page.fill("#find", "ALPHA dense")
    assert names(page) == ["alpha/dense"] and "1 of " in page.inner_text("#rows")
    page.fill("#find", "")
    page.select_option("#one", "best")
    best = names(page)
    teams = [name.partition("/")[0] for name in ranked]
    assert best == [name for n, name in enumerate(ranked) if teams.index(teams[n]) == n] != ranked
    page.select_option("#one", "latest")
    assert len(names(page)) == len(best) and names(page) != best
    page.check("#apart")
    assert names(page)[-1] == "baselines/bm25"
    page.click("#again")
    assert names(page) == ranked


def test_columns_can_be_left_out_and_a_link_shows_the_same(board: Watched) -> None:
    page = board.page
    page.click("details.columns summary")
    page.uncheck("[data-column='RR']")
    page.click("th[data-key='AP'] button")
    page.select_option("#against", "baselines/bm25")
    assert not page.is_visible("th[data-key='RR']") and page.is_visible("th[data-key='AP']")
    seen = names(page), page.locator(".difference").all_inner_texts()
    assert len(seen[1]) == 4 * (len(seen[0]) - 1), "four measures of every other row"
    page.goto("about:blank")
    page.go_back()
    page.reload()
    assert (names(page), page.locator(".difference").all_inner_texts()) == seen
    assert not page.is_visible("th[data-key='RR']") and not page.is_checked("[data-column='RR']")


def test_differences_are_those_of_the_means(board: Watched) -> None:
    page = board.page
    page.select_option("#against", "baselines/bm25")
    row, base = (
        page.locator(f"tr[data-name='{name}'] td .figure >> nth=1")
        for name in ("alpha/dense", "baselines/bm25")
    )
    said = page.locator("tr[data-name='alpha/dense'] .difference >> nth=1").inner_text().replace("−", "-")
    assert float(said) == pytest.approx(float(row.inner_text()) - float(base.inner_text()), abs=1e-4)
    assert page.locator("tr[data-name='baselines/bm25'] .difference").count() == 0


def test_what_is_seen_is_copied_as_tsv(browser: Browser, site: Pages) -> None:
    with watched(browser, site.url, permissions=["clipboard-read", "clipboard-write"]) as at:
        at.go(BOARD)
        at.page.fill("#find", "alpha/dense")
        at.page.focus("#as-tsv")
        at.page.keyboard.press("Enter")
        at.page.wait_for_function("document.querySelector('#as-tsv').textContent === 'Copied'")
        head, *rows = str(at.page.evaluate("navigator.clipboard.readText()")).splitlines()
        assert head.split("\t")[:4] == ["rank", "software", "nDCG@10", "95 %"]
        assert [row.split("\t")[1] for row in rows] == ["alpha/dense"] and len(rows[0].split("\t")) == len(
            head.split("\t")
        )


def test_without_a_script_the_page_is_whole_and_has_no_dead_controls(browser: Browser, site: Pages) -> None:
    with watched(browser, site.url, java_script_enabled=False, viewport={"width": 360, "height": 780}) as at:
        at.go(BOARD)
        assert (
            at.page.locator("#board tbody tr").count() > 60 and at.page.locator("svg.whiskers").count() > 60
        )
        assert not at.page.is_visible(".controls") and at.page.locator("main button:visible").count() == 0


def test_scores_come_first_on_a_phone_and_head_and_names_stay(browser: Browser, site: Pages) -> None:
    with watched(browser, site.url, viewport={"width": 360, "height": 780}) as at:
        at.go(BOARD)
        assert at.fits()
        box = at.page.locator("tr[data-n='0'] td .figure >> nth=0").bounding_box()
        assert box is not None and box["x"] + box["width"] < 360
        at.page.eval_on_selector(".scroll.tall", "box => box.scrollTo(300, 900)")
        head, name = (
            at.page.locator(one).bounding_box() for one in ("#board thead th.software", "tr[data-n='20'] th")
        )
        frame = at.page.locator(".scroll.tall").bounding_box()
        assert head and name and frame
        assert head["y"] == pytest.approx(frame["y"], abs=2) and name["x"] == pytest.approx(frame["x"], abs=2)


def test_a_row_leads_to_its_software_and_from_there_to_the_runs_that_are_ones_own(
    browser: Browser, site: Pages
) -> None:
    with watched(browser, site.url) as at:
        at.go(BOARD)
        at.follow("#board >> text=alpha/dense")
        assert at.page.url.endswith("/tasks/mini/softwares/alpha/dense")
        said = at.page.inner_text("main")
        assert "A dense retriever" in said and " of 6" in said
        assert at.page.locator("main a[href^='/runs/']").count() == 0, "runs are their team's"
        at.go("/sign-in")
        at.page.fill("#token", str(site.tokens["team"]))
        at.follow("main button")
        at.go("/tasks/mini/softwares/alpha/dense")
        at.follow("main a[href^='/runs/'] >> nth=0")
        assert at.page.url.startswith(f"{site.url}/runs/alpha.dense.") and at.page.locator("h1").count() == 1
        assert at.go("/tasks/mini/softwares/alpha/none") == 404
        assert at.said == [one for one in at.said if "404" in one] and at.elsewhere == []


@pytest.mark.slow
def test_a_row_leads_to_tests_against_it_without_a_script_and_with_one(browser: Browser, site: Pages) -> None:
    with watched(browser, site.url, java_script_enabled=False, viewport={"width": 360, "height": 780}) as at:
        at.go(BOARD)
        at.follow("#tests")
        at.follow("main td ~ td >> xpath=../th/a[contains(@href, 'alpha.dense')]")
        assert at.page.url == f"{site.url}/tasks/mini/against/alpha.dense/main" and at.fits()
        rows = at.page.locator("table tbody tr")
        assert rows.count() > 60 and "this row" in at.page.inner_text("[aria-current=page] >> xpath=../..")
        marks = set(at.page.locator("tbody .badge").all_inner_texts())
        assert {one.split()[-1].strip("✓✗") for one in marks} <= {"better", "worse"} and marks
        assert at.said == []
    with watched(browser, site.url) as at:
        at.go(BOARD)
        at.page.select_option("#against", "alpha/dense")
        at.follow("#tests")
        assert at.page.url.endswith("/against/alpha.dense/main")
        assert at.said == []


def test_a_leaderboard_is_downloaded_in_every_format(browser: Browser, site: Pages) -> None:
    with watched(browser, site.url) as at:
        at.go(BOARD)
        links = at.page.locator(".taken a[download]")
        endings = []
        for n in range(links.count()):
            with at.page.expect_download() as download:
                links.nth(n).click()
            endings.append(download.value.suggested_filename)
            text = download.value.path().read_text("utf-8")
            seen = ("alpha/dense", '"dense"', "alpha,dense", "alpha\tdense", "alpha.dense")
            assert any(one in text.replace("/<wbr>", "/") for one in seen), download.value.suggested_filename
        of_trec = ("ir_measures", "tot", "jsonl")
        assert endings == [
            f"mini-main.{end}" for end in ("txt", "json", "csv", "tsv", "md", "tex", "html", *of_trec)
        ]


def test_leaderboards_of_a_task_stand_beside_each_other(browser: Browser, site: Pages) -> None:
    with watched(browser, site.url, java_script_enabled=False) as at:
        at.go(BOARD)
        assert at.page.inner_text("nav [aria-current]") == "main"
        at.follow("nav >> text=By precision")
        assert (
            at.page.url.endswith("/tasks/mini/precision")
            and at.page.inner_text("nav [aria-current]") == "By precision"
        )
