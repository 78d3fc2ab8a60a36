"""The log of a run that goes on, in a real Chromium: its end is followed unless somebody has scrolled up, and it is replaced once it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from runner.exchange import tails
from runner.exchange.published import Publisher
from runner.exchange.tails import Tail
from tests.runner.web.test_routes import Front, front
from tests.worlds.browser import watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["front"]
pytestmark = pytest.mark.timeout(1200)  # a package may have to be fetched
LINES = "".join(f"line {n}\n" for n in range(200))
MORE = "<img src=x onerror=alert(1)>\U0001f642 more\n"
_AT_END = "one => one.scrollHeight - one.scrollTop - one.clientHeight < 8"


@pytest.mark.slow
def test_its_end_is_followed_and_the_sealed_log_takes_its_place(front: Front, browser: Browser) -> None:
    to, name = Publisher(front.exchange / "published"), tails.new_name()
    goes_on = to.object("runs/r", "run", "r", {}, '<main id="main"><h1>r</h1><div id="log-now"></div></main>')
    over = to.object("runs/r", "run", "r", {}, '<main id="main"><h1>r</h1><pre>sealed words</pre></main>')
    tail, text = to.object("tails/r", "tail", "r", {"file": name}), "\n" + LINES

    def write(more: str) -> None:
        nonlocal text
        text += more
        tails.write(to.root, name, Tail(0, text))

    def publish(*objects: Any) -> None:
        tasks = to.object("tasks", "tasks", "Tasks", [])
        to.publish({"public": [tasks], "team:alpha": [tasks, *objects]})

    write("")
    publish(goes_on, tail)
    with watched(browser, front.url) as one:
        one.go("/sign-in")
        one.page.fill("#token", str(front.tokens["team"]))
        one.follow("main button")
        one.go("/runs/r")
        log = one.page.locator("section.log pre")
        assert log.evaluate("one => one.textContent") == text and log.evaluate(_AT_END)
        one.page.get_by_text("More appears by itself").wait_for()
        write(MORE)
        log.get_by_text("more").wait_for()
        assert log.evaluate("one => one.textContent") == text and log.evaluate(_AT_END)
        log.evaluate("one => { one.scrollTop = 40; }")
        write("the last\n")
        log.get_by_text("the last").wait_for()
        assert log.evaluate("one => one.scrollTop") == 40, "who has scrolled up reads on"
        assert log.evaluate("one => one.textContent") == text and "hidden" in str(
            one.page.locator(".cut").evaluate("one => one.outerHTML")
        )
        publish(over)
        one.page.get_by_text("sealed words").wait_for()
        assert one.page.locator("section.log").count() == 0 and one.said == []
    with watched(browser, front.url, java_script_enabled=False) as one:
        publish(goes_on, tail)
        one.go("/sign-in")
        one.page.fill("#token", str(front.tokens["team"]))
        one.page.click("main button")
        one.page.goto(f"{front.url}/runs/r")
        assert "the last" in one.page.content()
        assert one.page.is_visible(".again") and not one.page.is_visible(".follows")
