"""A shared task on the web, as people live it: each in a browser of their own, real work, a real engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from runner.model.container import ImageRef
from tests.e2e.test_debate import TASK as DEBATE
from tests.e2e.test_debate import elastic, write_short
from tests.e2e.test_from_afar import ROOT, away
from tests.e2e.test_server import serving, until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.browser import Watched, watched
from tests.worlds.mini import Project, cli

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]
SOON = 180_000  # milliseconds for a run, on a machine that does other things too
REGISTRATION = {"approve": "at-once", "asks": {"contact": "required", "purpose": "off"}}


def sign_in(at: Watched, token: str) -> None:
    at.go("/sign-in")
    at.page.fill("#token", token)
    at.follow("main button")


@pytest.mark.slow
@pytest.mark.smoke
def test_from_registration_to_a_row_that_everybody_sees(
    browser: Browser, live: Project, tmp_path: Path
) -> None:
    live.write_task(uploads=True, registration=REGISTRATION)
    home = away(live, tmp_path)
    entry = {"file": "run.txt", "dataset": "test"}
    home.run_files({"run.txt": run_text("test", "one")}, entry, name="one")

    with serving(live) as server, watched(browser, server.url) as at, watched(browser, server.url) as other:
        page, public = at.page, other.page
        at.go("/tasks/mini")
        at.follow("text=Register")
        page.fill("#team", "alpha")
        page.fill("#contact", "alpha@example.org")
        at.follow("main button")
        token = page.inner_text(".token").strip()
        page.wait_for_selector("text=The team is in")
        at.follow("text=Sign in with it")
        at.go("/team")
        page.wait_for_selector("text=What is new appears by itself")

        cli(home, "login", server.url, env={"RUNNER_TOKEN": token})
        environment = home.environment(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        line = ["make", "-C", str(ROOT), "-o", "setup", "submit", "TEAM=alpha", "SERVER=local"]
        said = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=400)
        assert said.returncode == 0, said.stdout + said.stderr
        page.wait_for_selector("main table tr:has-text('alpha.one') >> text=scored", timeout=SOON)
        [row] = cli(home, "runs", "--to", "local", "--json").json
        assert row["run"].startswith("alpha.one.") and row["outcome"]["name"] == "scored"
        assert row["run"] in cli(home, "show", row["run"], "--to", "local").out
        assert not list(home.home.glob("archive")), "nothing was executed here"

        assert other.go("/tasks/mini/main") == 404, "its scores are not published"
        other.go("/tasks/mini")
        cli(live, "publish", "mini", "test")
        until(lambda: other.go("/tasks/mini/main") == 200)
        assert "alpha" in public.inner_text("main table") and "alpha@example.org" not in public.content()
        failed = [one for one in other.said if "404" not in one]
        assert at.said == failed == [] and at.elsewhere == other.elsewhere == []


@pytest.mark.slow
def test_a_debate_is_held_and_its_team_reads_it(
    browser: Browser, live: Project, sidecars_image: ImageRef
) -> None:
    write_short(live)
    elastic(live, "one")
    with serving(live) as server, watched(browser, server.url) as at:
        page = at.page
        sign_in(at, cli(live, "team", "add", "alpha").out.strip())
        cli(live, "submit", "--team", "alpha", "--no-check")
        at.go("/team")
        row = f"main table tr:has-text('alpha.one'):has-text('{DEBATE}')"
        page.wait_for_selector(f"{row} >> text=scored", timeout=2 * SOON)
        at.follow("main table a:has-text('alpha.one') >> nth=0")
        assert re.search(r"homework|uniform", page.inner_text("main"), re.IGNORECASE)
        assert at.said == [] and at.elsewhere == []
