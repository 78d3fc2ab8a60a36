"""Pages of runs in a real Chromium: planted scripts stay words, nothing is fetched, they fit a phone."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from runner.kinds.debate import presenter as debating
from runner.kinds.records import presenter as recording
from runner.kinds.report import presenter as reporting
from runner.model.task import Cell, Measure, Ranking, Table
from runner.records.store import run_detail
from runner.views.audience import ORGANISER
from runner.views.leaderboard.export import export
from runner.views.leaderboard.table import build
from runner.views.pages import policy
from runner.views.redact import redact_run
from runner.views.show.page import STYLE, page
from runner.views.show.topics import Medians, topics_of
from tests.worlds import records
from tests.worlds.browser import watched
from tests.worlds.records import World
from tests.worlds.shown import (
    HOSTILE,
    INDEX,
    debate,
    debated,
    judged_line,
    record,
    reported,
    task,
    wrong_lines,
)

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched


@contextmanager
def opened(
    browser: Browser, folder: Path, text: str, width: int = 1280, scheme: Any = "light", *, quiet: bool = True
) -> Iterator[Page]:
    """A page as a file in the browser, after its scripts (if any ran) and their requests.

    A ``quiet`` page logs nothing and requests nothing; any other logs what the policy blocked or what failed.
    """
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    options: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with watched(browser, path.as_uri(), **options) as at:
        at.go("")
        at.page.wait_for_load_state("networkidle")
        yield at.page
        assert at.said == at.elsewhere == [] if quiet else at.said, (at.said, at.elsewhere)


def dom(browser: Browser, folder: Path, text: str, *, quiet: bool = True) -> str:
    """Return what the browser has made of a page, as HTML."""
    with opened(browser, folder, text, quiet=quiet) as at:
        return at.content()


def hostile_page(tmp_path: Path, kind: str, words: str = HOSTILE) -> str:
    if kind == "records":
        found, place = reported(World.make(tmp_path), wrong_lines(words)), records.task().datasets["dev"]
        return page(redact_run(found, ORGANISER, place), recording.read(found, None, ORGANISER, place))
    if kind == "report":
        line = judged_line()
        line["sentences"][0]["text"] = words
        found = reported(World.make(tmp_path), [line])
        place = records.task().datasets["dev"]
        return page(redact_run(found, ORGANISER, place), reporting.read(found, None, ORGANISER, place))
    made = task(tmp_path, index=INDEX)
    lines = [debate("c1", words, (words, words, [{"id": words[:150], "text": words}]), (words, "", []))]
    found = debated(World.make(tmp_path), made, lines, [record(1, 1), record(1, 2, ("status", words))])
    place = made.datasets["dev"]
    return page(redact_run(found, ORGANISER, place), debating.read(found, made, ORGANISER, place))


def slipped_through(text: str, words: str) -> str:
    """A page into which words of a participant came as they are."""
    return text.replace("</main>", f"<p>{words}</p></main>".replace("\x00", ""))


@pytest.mark.parametrize("kind", ["debate", "report", "records"])
def test_planted_scripts_do_not_run(browser: Browser, tmp_path: Path, kind: str) -> None:
    seen = dom(browser, tmp_path, hostile_page(tmp_path, kind))
    assert "<title>alpha.x." in seen and "<title>pwned" not in seen
    assert "<script" not in seen and "<img" not in seen and seen.count("<style") == 1
    assert "&lt;script&gt;" in seen and "zebra" in seen


def test_the_policy_alone_would_stop_a_script_that_slipped_through(browser: Browser, tmp_path: Path) -> None:
    seen = dom(browser, tmp_path, slipped_through(hostile_page(tmp_path, "debate"), HOSTILE), quiet=False)
    assert "<script>" in seen and "<title>alpha.x." in seen


def test_the_same_words_run_where_nothing_stops_them(browser: Browser, tmp_path: Path) -> None:
    # Otherwise the tests above would prove nothing about this browser.
    text = f"<!doctype html><title>alpha.x.</title><main>{HOSTILE}</main>".replace("\x00", "")
    assert policy(STYLE) not in text
    assert "<title>pwned" in dom(browser, tmp_path, text, quiet=False)


# --- nothing leaves -------------------------------------------------------------------------------------------


class Listener(http.server.ThreadingHTTPServer):
    """Notes who asks for what."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Noting)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Noting(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Listener)
        self.server.asked.append(self.path)
        self.send_response(204)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(timeout=10)


def asking(url: str) -> str:
    """What in HTML asks a server for something by itself."""
    return (
        f'</style></p><img src="{url}/img"><link rel="stylesheet" href="{url}/css">'
        f'<style>@import "{url}/import"; body {{background: url({url}/bg)}}</style>'
        f'<p style="background: url({url}/inline)">p</p><script>fetch("{url}/fetch")</script>'
    )


def asking_more(url: str) -> str:
    """The rest of it; a browser without a policy may wait for some of these without end."""
    return (
        f'<img srcset="{url}/srcset 1x"><link rel="prefetch" href="{url}/prefetch"><iframe src="{url}/frame"></iframe>'
        f'<object data="{url}/object"></object><video src="{url}/video" autoplay></video><embed src="{url}/embed">'
        f'<svg><image href="{url}/svg"/></svg><form action="{url}/form"><input autofocus onfocus="this.form.submit()"></form>'
        f'<base href="{url}/base/"><script>new WebSocket("{url}/ws".replace("http", "ws"))</script>'
    )


@pytest.mark.parametrize("kind", ["debate", "report", "records"])
def test_nothing_is_asked_of_anybody(browser: Browser, tmp_path: Path, kind: str, listener: Listener) -> None:
    words = (
        asking(listener.url)
        + asking_more(listener.url)
        + f'<meta http-equiv="refresh" content="0;url={listener.url}/refresh">'
    )
    seen = dom(browser, tmp_path, hostile_page(tmp_path, kind, words))
    assert f"{listener.url}/img" in seen  # as words
    assert listener.asked == []


def test_nor_by_words_that_slipped_through(browser: Browser, tmp_path: Path, listener: Listener) -> None:
    words = asking(listener.url) + asking_more(listener.url)
    seen = dom(browser, tmp_path, slipped_through(hostile_page(tmp_path, "debate"), words), quiet=False)
    assert "<iframe" in seen and listener.asked == []


def test_the_same_words_ask_where_nothing_stops_them(
    browser: Browser, tmp_path: Path, listener: Listener
) -> None:
    text = f"<!doctype html><title>x</title><main><style>{asking(listener.url)}</main>"
    dom(browser, tmp_path, text, quiet=False)
    assert {"/img", "/css", "/import", "/bg", "/inline", "/fetch"} <= {*listener.asked}


# --- how it looks ---------------------------------------------------------------------------------------------

MEASURE = """() => {
  document.querySelectorAll("details").forEach(one => one.open = true);
  const inner = [...document.querySelectorAll("main *")].filter(one => !one.closest(".scroll"));
  return {
    fits: document.documentElement.scrollWidth <= innerWidth,
    over: inner.filter(one => one.getBoundingClientRect().right > innerWidth + 1).length,
    ground: getComputedStyle(document.body).backgroundColor,
  };
}"""
LIGHT, DARK = "rgb(252, 251, 249)", "rgb(20, 22, 25)"


@pytest.mark.parametrize("kind", ["debate", "report", "records"])
@pytest.mark.parametrize(("scheme", "ground"), [("light", LIGHT), ("dark", DARK)])
def test_it_fits_a_phone_in_light_and_dark(
    browser: Browser, tmp_path: Path, kind: str, scheme: str, ground: str
) -> None:
    text = hostile_page(tmp_path, kind, f"{HOSTILE} {'unbroken' * 300}")
    with opened(browser, tmp_path, text, 390, scheme) as at:
        assert at.evaluate(MEASURE) == {"fits": True, "over": 0, "ground": ground}


@pytest.mark.parametrize("width", [390, 1280])
def test_scores_by_topic_and_a_hint_fit(browser: Browser, tmp_path: Path, width: int) -> None:
    world = World.make(tmp_path)
    task = records.task()
    names = {f"{HOSTILE} {'unbroken' * 20} {n}": n / 40 for n in range(40)}
    run = world.scored("alpha", "a-name-that-is-as-long-as-names-may-be-so", scores=names, datasets=("dev",))
    view = redact_run(run_detail.detail(world.store, f"{run}.dev", [task]), ORGANISER, task.datasets["dev"])
    medians = Medians("ndcg", 12, dict(view["topic_scores"]["ndcg"]))
    text = page(view, topics=topics_of(view, task, medians), hint=f"{HOSTILE} {'unbroken' * 30}")
    with opened(browser, tmp_path, text, width) as at:
        assert at.evaluate(MEASURE) == {"fits": True, "over": 0, "ground": LIGHT}
        seen = at.content()
    assert "<title>pwned" not in seen and "<script" not in seen and "median of 12" in seen


BOARD = """() => {
  const table = document.querySelector("table"), scroll = table.parentElement;
  const right = cell => Math.round(cell.getBoundingClientRect().right);
  const whole = scroll.scrollWidth <= scroll.clientWidth, score = right(table.querySelector("td + th + td"));
  scroll.scrollLeft = 10000;
  const name = table.querySelector("tbody th").getBoundingClientRect();
  return {
    fits: document.documentElement.scrollWidth <= innerWidth, whole, score: score <= innerWidth,
    name: name.left >= 0 && name.right <= innerWidth,
  };
}"""


@pytest.mark.parametrize(("width", "whole"), [(390, False), (1280, True)])
def test_a_board_shows_names_and_scores_at_any_width(
    browser: Browser, tmp_path: Path, width: int, whole: bool
) -> None:
    world = World.make(tmp_path)
    for n, name in enumerate(("first", "second", "a-name-that-is-as-long-as-names-may-be-so")):
        world.scored("team-with-a-name", name, tag=f"{name}-tag", mean=0.5 + n / 10, topics=50)
    text = export(build(world.store, records.task(), "main", ORGANISER), "html")
    with opened(browser, tmp_path, text, width) as at:
        assert at.evaluate(BOARD) == {"fits": True, "whole": whole, "score": True, "name": True}


def test_long_names_of_many_measures_wrap(browser: Browser, tmp_path: Path) -> None:
    world = World.make(tmp_path)
    names = {f"m{n}": Measure(f"m{n}", f"alpha-nDCG-of-something_weighted@4,8,16,{n}", "q") for n in range(8)}
    many = replace(
        records.task(),
        measures=names,
        tables={"main": Table("main", (Cell("test"),), Ranking(("m0",)), (*names,))},
    )
    world.by = many
    for team in ("alpha", "beta"):
        attempt = world.attempt(world.register(team, "x"))
        world.evaluation(attempt, {name: {"1": 0.5, "2": 0.25} for name in names})
    text = export(build(world.store, many, "main", ORGANISER), "html")
    with opened(browser, tmp_path, text) as at:
        assert at.evaluate(BOARD)["whole"]


@pytest.mark.slow
def test_the_policy_allows_this_style_sheet_and_no_other(browser: Browser, tmp_path: Path) -> None:
    text = hostile_page(tmp_path, "debate")
    other = text.replace("--ground: #fcfbf9", "--ground: #ffffee")
    without = re.sub("<style>.*?</style>", "", text, flags=re.S)
    assert text != other != without
    grounds = []
    for body in (text, other, without):
        with opened(browser, tmp_path, body, quiet=body != other) as at:
            grounds.append(at.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] == LIGHT != grounds[1] == grounds[2]


ON_PAPER = """() => {
  const options = {contentVisibilityAuto: true};
  const seen = found => [...document.querySelectorAll(found)].filter(one => one.checkVisibility(options)).length;
  const notes = [...document.querySelectorAll(".paper")].map(one => parseInt(one.textContent));
  return [["section.one", "section.one details > ul > li", ".paper"].map(seen), [...new Set(notes)].sort()];
}"""


def test_the_first_items_of_long_lists_are_printed_with_the_number_of_the_others(
    browser: Browser, tmp_path: Path
) -> None:
    """A run of twelve debates with forty arguments each is a few sheets of paper, not fifty."""
    made = task(tmp_path, index=INDEX)
    arguments = [{"id": f"a{n}", "text": "Cars are loud."} for n in range(40)]
    lines = [debate(f"c{n}", "Cars are loud.", ("Why?", "So.", arguments)) for n in range(12)]
    found = debated(World.make(tmp_path), made, lines, [record(n, 1) for n in range(1, 13)])
    place = made.datasets["dev"]
    text = page(redact_run(found, ORGANISER, place), debating.read(found, made, ORGANISER, place))
    with opened(browser, tmp_path, text, 800) as at:
        assert at.evaluate(ON_PAPER)[0] == [12, 0, 0]
        at.emulate_media(media="print")
        assert at.evaluate(ON_PAPER) == [[10, 30, 11], [2, 37]]  # debates, arguments, notes
