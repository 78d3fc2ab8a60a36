"""Pages of runs in a real browser, which ``TEST_BROWSER`` names (Chromium): planted scripts stay words.

``apt-get install chromium``, then ``TEST_BROWSER=/usr/bin/chromium pytest tests/e2e/test_pages_in_browser.py``. Without the
variable these tests are not collected; tests/runner/test_show_page.py reads the same pages with a parser.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from runner.audience import ORGANISER, redact_run
from runner.show import debates as debating
from runner.show import reports as reporting
from runner.show.page import page, policy
from tests.runner import records
from tests.runner.records import World
from tests.runner.shown import HOSTILE, INDEX, debate, debated, judged_line, record, reported, task


def dom(path: Path, profile: Path) -> str:
    """What the browser has made of a page after its scripts (if any ran), as HTML."""
    command = [
        os.environ["TEST_BROWSER"], "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
        f"--user-data-dir={profile}", "--virtual-time-budget=3000", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def written(folder: Path, text: str) -> Path:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


def hostile_page(tmp_path: Path, kind: str) -> str:
    if kind == "report":
        found = reported(World.make(tmp_path), [judged_line()])
        place = records.task().datasets["dev"]
        return page(redact_run(found, ORGANISER, place), None, reporting.read(found, ORGANISER, place))
    made = task(tmp_path, index=INDEX)
    lines = [debate("c1", HOSTILE, (HOSTILE, HOSTILE, [{"id": HOSTILE, "text": HOSTILE}]), (HOSTILE, "", []))]
    found = debated(World.make(tmp_path), made, lines, [record(1, 1), record(1, 2, ("status", HOSTILE))])
    place = made.datasets["dev"]
    return page(redact_run(found, ORGANISER, place), debating.read(found, made, ORGANISER, place))


@pytest.mark.parametrize("kind", ["debate", "report"])
def test_planted_scripts_do_not_run(tmp_path: Path, kind: str) -> None:
    text = hostile_page(tmp_path, kind)
    seen = dom(written(tmp_path, text), tmp_path / "profile")
    assert "<title>alpha.x." in seen and "<title>pwned" not in seen
    assert "<script" not in seen and "<img" not in seen
    assert "&lt;script&gt;" in seen and "zebra" in seen


def test_the_policy_alone_would_stop_a_script_that_slipped_through(tmp_path: Path) -> None:
    text = hostile_page(tmp_path, "debate").replace("</main>", f"<p>{HOSTILE}</p></main>".replace("\x00", ""))
    seen = dom(written(tmp_path, text), tmp_path / "profile")
    assert "<script>" in seen and "<title>alpha.x." in seen


def test_the_same_words_run_where_nothing_stops_them(tmp_path: Path) -> None:
    # Otherwise the tests above would prove nothing about this browser.
    text = f"<!doctype html><title>alpha.x.</title><main>{HOSTILE}</main>".replace("\x00", "")
    assert policy() not in text
    assert "<title>pwned" in dom(written(tmp_path, text), tmp_path / "profile")
