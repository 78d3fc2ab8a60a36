"""Every page of :mod:`tests.worlds.pages` in a real Chromium: accessible, without foreign requests, hostile names as text."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import html5lib
import pytest

from tests.worlds.browser import Watched, watched
from tests.worlds.pages import ROLES, Pages, pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched

WIDTHS = {360: 780, 768: 1024, 1440: 900}
MOST, WITH_PLOTS = 150_000, 800_000  # bytes of a page over the line, with all that it loads
LARGE = (
    "board",
    "against a row",
    "style",
)  # their tables scroll by themselves; some of their links stand for all
PAINT = 1000.0  # milliseconds until the first paint of the large board
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
COLOURS = ("color-contrast", "link-in-text-block")  # what another scheme can break
_SERIOUS = """async rules => {
  const found = await axe.run(document, {runOnly: rules, resultTypes: ['violations']});
  return found.violations.filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.target.join(' ')).join(', ')}`);
}"""
_UNSEEN = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none';
  if (one === document.body) return '';  // behind the last stop
  return ring && box.width && box.height ? '' : one.outerHTML.slice(0, 120);
}"""


# What cannot be read without scrolling aside, but for matrices, and columns with a word or two in each of many lines.
_CUT_OFF = """() => [...document.querySelectorAll('#content :is(.badge, button, .button, td, th)')].flatMap(one => {
  if (!one.checkVisibility() || one.closest('thead, .readme, .matrix')) return [];
  const box = one.getBoundingClientRect(), said = one.innerText.trim();
  if (box.right > innerWidth + 1) return [`cut off: ${one.outerHTML.slice(0, 90)}`];
  const lines = one.tagName === 'TD' && !one.children.length ? box.height / parseFloat(getComputedStyle(one).lineHeight) : 0;
  return lines > 4 && said.length / lines < 14 ? [`a word a line: ${said.slice(0, 60)}`] : [];
})"""


_ON_PAPER = """() => {
  const heads = [...document.querySelectorAll('thead th')].filter(one => one.checkVisibility() && one.textContent.trim());
  const nameless = heads.filter(one => !one.innerText.trim()).map(one => `on paper a column has no head: ${one.textContent}`);
  const cut = [...document.querySelectorAll('th, td, figure svg')].filter(one => one.getBoundingClientRect().right > innerWidth + 1);
  const shown = [...document.querySelectorAll('nav, form, button:not(.sort)')].filter(one => one.checkVisibility());
  const ground = getComputedStyle(document.body).color.match(/[0-9]+/g).slice(0, 3).every(part => part < 128) ? [] : ['on paper it is dark'];
  return [...nameless, ...[...cut, ...shown].slice(0, 3).map(one => `on paper: ${one.outerHTML.slice(0, 90)}`), ...ground];
}"""
_BEYOND = """() => [...document.querySelectorAll('figure.plot .drawing')].filter(one => one.scrollWidth > one.clientWidth
  || [...one.querySelectorAll('svg text')].some(text => text.getBoundingClientRect().right > innerWidth)).map(one => one.ariaLabel)"""
_PLOTS = """() => new Blob([...document.querySelectorAll('figure.plot')].map(one => one.outerHTML)).size
  + performance.getEntriesByType('resource').filter(one => one.name.includes('/vega/')).reduce((sum, one) => sum + one.transferSize, 0)"""
_LOADED = """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  .reduce((sum, one) => sum + one.transferSize, 0)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    with pages(tmp_path_factory.mktemp("pages"), 150) as made:
        yield made


@pytest.fixture(scope="module")
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


def _seen(
    site: Pages, browser: Browser, role: str, state: Any, **options: Any
) -> Iterator[tuple[str, Watched]]:
    """Each page of a role, opened by a browser that loads everything for the first time."""
    for name, address in site.of(role).items():
        url = address if role == "alone" else site.url
        with watched(browser, url, storage_state=state, **options) as one:
            one.page.goto(address)
            yield name, one


def _signed_in(site: Pages, browser: Browser, role: str) -> Any:
    """What a browser keeps once somebody has signed in; nothing of those who need not."""
    if role not in site.tokens:
        return None
    with watched(browser, site.url) as one:
        one.go("/sign-in")
        one.page.fill("#token", str(site.tokens[role]))
        one.follow("main button")
        return one.page.context.storage_state()


def _kept_out(one: Watched, axe: str) -> Iterator[str]:
    """What keeps people out of a page, by axe: serious and critical violations, in both schemes."""
    one.page.evaluate(axe)
    for scheme in ("light", "dark"):
        one.page.emulate_media(color_scheme=scheme)
        for found in one.page.evaluate(_SERIOUS, list(RULES if scheme == "light" else COLOURS)):
            yield f"{scheme}: {found}"


def _too_wide(one: Watched) -> Iterator[str]:
    """At which widths something of a page lies beyond it; zoomed to 200 %, a page has half the width."""
    for width, height in {**WIDTHS, 720: 450}.items():
        one.page.set_viewport_size({"width": width, "height": height})
        if not one.fits():
            yield f"wider than {width} px"


def _cut_off(one: Watched) -> list[str]:
    """What lies beyond a phone's width although the page does not, and columns that are too narrow to read."""
    one.page.set_viewport_size({"width": 360, "height": WIDTHS[360]})
    return list(one.page.evaluate(_CUT_OFF))


def _printed(one: Watched, *, wide: bool) -> list[str]:
    """What is cut, or is not there, on paper (A4 with margins of 12 mm): columns, and heads of columns. ``wide``: it is printed across."""
    one.page.set_viewport_size({"width": 1031 if wide else 703, "height": 1000})
    one.page.emulate_media(media="print", color_scheme="dark")
    found: list[str] = one.page.evaluate(_ON_PAPER)
    one.page.emulate_media(media="screen", color_scheme="light")
    return found


def _without_mouse(one: Watched, *, whole: bool) -> Iterator[str]:
    """What nobody can do, or follow, with a keyboard alone. ``whole``: walk over all controls of the page."""
    one.page.keyboard.press("Tab")
    if one.page.evaluate("document.activeElement.className") != "skip":
        yield "the first stop is no link to the content"
    for _ in range(8):
        if unseen := one.page.evaluate(_UNSEEN):
            yield f"nobody sees that this has the focus: {unseen}"
        one.page.keyboard.press("Tab")
    if whole:
        yield from (f"no tab reaches {html[:120]}" for html in one.unreached())


def _as_sent(one: Watched, said: int) -> Iterator[str]:
    """What a strict parser of HTML finds wrong in a page as it is sent, and whether scripts have ``said`` more than that holds."""
    at = urlsplit(one.page.url)
    text = (
        Path(unquote(at.path)).read_text("utf-8")
        if at.scheme == "file"
        else one.page.request.get(one.page.url).text()
    )
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(text)
    for (line, _), code, facts in parser.errors[:3]:
        yield f"line {line}: {code} {facts}"
    rows = len(tree.findall(".//tbody/tr")) + len([*tree.iter("h1"), *tree.iter("h2")])
    if len([*tree.iter("h1")]) != 1 or rows < said:
        yield f"without scripts it has {rows} headings and rows, with them {said}"


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_page_is_for_everybody_and_ours_alone(
    site: Pages, browser: Browser, axe: str, role: str
) -> None:
    """axe, keyboard, widths and zoom, weight, HTML, console, requests to others, and scripts of strangers, page by page."""
    wrong: list[str] = []
    state = _signed_in(site, browser, role)
    for name, one in _seen(site, browser, role, state):
        said = one.page.locator("h1, h2, tbody tr").count()
        size = one.page.evaluate(_LOADED)
        found = [*_kept_out(one, axe), *_too_wide(one), *_as_sent(one, said)]
        found += _printed(one, wide=one.page.locator("#board").count() > 0)
        if role != "alone":
            found += [] if name in LARGE else _cut_off(one)
            found += _without_mouse(one, whole=name not in LARGE)
            plots = one.page.locator("script[src^='/vega/']").count()
            found += [f"{size} bytes"] if size > (WITH_PLOTS if plots else MOST) else []
            if plots and state:  # pages for those who signed in are sent as they are, others compressed
                without = size - one.page.evaluate(_PLOTS)
                found += [f"{without} bytes without its plots"] if without > MOST else []
        found += [f"says {line}" for line in one.said if not (name == "problem" and "404" in line)]
        found += [f"asks {url}" for url in one.elsewhere]
        found += ["a script of a stranger ran"] if one.page.title() == "pwned" else []
        wrong += [f"{role} {name}: {what}" for what in found]
    assert wrong == []


def test_what_is_wrong_with_a_page_is_found(tmp_path: Path, browser: Browser, axe: str) -> None:
    """The checks themselves, on a page that fails each."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<title>x</title><main><h1>x</h1><img src='http://127.0.0.1:9/x.png'><div style='width: 1500px'>wide</div>"
        "<div id=content><p class=badge style='margin-left: 400px'>scored</p><table><tr><td style='width: 1em; line-height: 20px'>"
        "a b c d e f g h</td></tr></table></div>"
        "<button style='outline: none'>go</button><script>console.error('said'); alert('asked')</script></div></main>"
    )
    with watched(browser, bad.as_uri()) as one:
        one.page.goto(bad.as_uri())
        assert any("image-alt" in found for found in _kept_out(one, axe))
        assert len([*_too_wide(one)]) == 4
        assert [found[:8] for found in _cut_off(one)] == ["cut off:", "a word a"]
        assert any("doctype" in found for found in _as_sent(one, 1))
        assert "scripts" in [*_as_sent(one, 9)][-1]
        without = [*_without_mouse(one, whole=False)]
        assert "content" in without[0] and "focus" in without[1]
        assert one.elsewhere == ["http://127.0.0.1:9/x.png"] and {"said", "asked"} <= {
            word for line in one.said for word in line.split()
        }


def test_plots_fit_a_phone_as_a_whole(site: Pages, browser: Browser) -> None:
    with watched(browser, site.url, viewport={"width": 360, "height": 780}) as one:
        one.go("/tasks/mini/plots")
        assert one.page.locator("figure.plot svg").count() >= 2
        assert one.page.evaluate(_BEYOND) == []
        captions = one.page.locator("figcaption").all_inner_texts()
        assert "nDCG@10" in {caption.split(" ")[0] for caption in captions}, (
            "a caption has no words of the headings"
        )


@pytest.mark.slow
def test_a_large_board_is_painted_in_a_second(site: Pages, browser: Browser) -> None:
    times = []
    for _ in range(3):  # the machine may be busy
        with watched(browser, site.url) as one:
            one.go("/tasks/mini/main")
            one.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            times.append(
                one.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            )
            assert one.page.locator("tbody tr").count() >= 140
    assert min(times) <= PAINT, times
