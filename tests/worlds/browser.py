"""A real Chromium for tests: found, brought or asked for, and driven by Playwright.

``TEST_BROWSER`` names another browser of that family. Where there is none, root on Debian gets the package ``chromium``, as
`make setup` brings the engine; elsewhere these tests fail and say what to install.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from filelock import FileLock

from runner.provision.engine import can_install, install

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PATIENCE = 120_000  # milliseconds that are waited for anything, on a machine that does other things too
# What a keyboard has to reach on a page, as long as it is shown and not inside something closed.
CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
_REACHED = """selector => {
  const shown = one => one.checkVisibility() && !one.disabled;
  return [...document.querySelectorAll(selector)].filter(shown).map((one, at) => (one.dataset.at ??= String(at)));
}"""


def executable() -> str:
    """The browser's program; a test that needs it fails where there is none and none can be had."""
    named = os.environ.get("TEST_BROWSER") or _found()
    if named is None and can_install():
        with FileLock(Path(tempfile.gettempdir()) / "install-browser-for-tests.lock", timeout=1000):
            if _found() is None:
                install("chromium", "fonts-dejavu-core")
        named = _found()
    if named is None:
        pytest.fail(
            "there is no browser. Fix: apt-get install chromium (or name one of that family in TEST_BROWSER)",
            pytrace=False,
        )
    return named


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """The browser, driven from here."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module.

    It cannot last for the session: Playwright leaves an event loop running in its thread, where ``asyncio.run`` fails.
    """
    with launched() as launched_browser:
        yield launched_browser


@dataclass
class Watched:
    """A page on which everything is noted that nobody should see: ``said`` by the console, ``elsewhere`` what it asked of others."""

    page: Page
    url: str
    said: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def go(self, path: str) -> int:
        """Open a page of the site; its status."""
        answer = self.page.goto(self.url + path)
        assert answer is not None
        return answer.status

    def follow(self, selector: str) -> None:
        """Click what leads to another page, and wait until that one is whole. A click alone returns with the first bytes of it."""
        with self.page.expect_navigation():
            self.page.click(selector)

    def fits(self) -> bool:
        """Whether nothing of the page lies beyond its width. A click returns before the style sheet of the next page is there."""
        self.page.wait_for_load_state("load")
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    def unreached(self) -> list[str]:
        """Controls that no number of tabs reaches, as HTML."""
        wanted = set(self.page.evaluate(_REACHED, CONTROLS))
        self.page.evaluate("document.activeElement.blur()")
        for _ in range(3 * len(wanted) + 10):
            self.page.keyboard.press("Tab")
            wanted.discard(self.page.evaluate("document.activeElement.dataset.at"))
            if not wanted:
                break
        left = [self.page.locator(f"[data-at='{at}']") for at in wanted]
        # A page that follows takes a control away that is no longer needed.
        return [str(one.evaluate("one => one.outerHTML")) for one in left if one.is_visible()]


@contextmanager
def watched(browser: Browser, url: str, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own, with Playwright's ``options`` for it."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    made = Watched(page, url)
    here = urlsplit(url).netloc
    page.on("console", lambda message: made.said.append(f"{message.text} {message.location['url']}"))
    page.on("dialog", lambda dialog: (made.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("pageerror", lambda error: made.said.append(str(error)))
    page.on(
        "request", lambda one: made.elsewhere.append(one.url) if urlsplit(one.url).netloc != here else None
    )
    try:
        yield made
    finally:
        context.close()
