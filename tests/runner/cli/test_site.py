"""``runner site build``: what everybody may see, as files that hold together without a server."""

from __future__ import annotations

import itertools
import json
import re
import threading
import uuid
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runner.cli.site import MARK, build
from runner.model.clock import FixedClock
from runner.tasks.load import load_tasks
from runner.views.leaderboard.rounds import freeze
from runner.web.links import check
from tests.worlds import records
from tests.worlds.browser import launched
from tests.worlds.mini import TASK, Project, call_here
from tests.worlds.records import World, write_project


class Quiet(SimpleHTTPRequestHandler):
    """Any server of files."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


SERVER_ONLY = re.compile(r'(href|src|action)="/|<form[^>]* method="post"|/sign-in|data-page=')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of a task with scored and failed runs on public and hidden data, and a frozen round."""
    folder = tmp_path_factory.mktemp("site")
    made = World.make(folder)
    write_project(made.config.root)
    definition = made.config.root / "tasks" / records.TASK / "task.yaml"
    rounds = [{"id": "final", "title": "The end", "at": "2026-01-05 23:59 UTC"}]
    data = json.loads(definition.read_text()) | {"rounds": rounds, "uploads": True}
    definition.write_text(json.dumps(data))
    for team in ("baselines", "alpha", "beta"):
        made.scored(team, "y", mean=0.6, topics=5, datasets=("dev", "test"))
    made.attempt(made.register("alpha", "broken"), verdict="run-error", detail="exit code 77")
    tasks, clock = load_tasks(made.config)[0], FixedClock(made.clock.at)
    freeze(made.config, made.store, tasks[records.TASK], "final", clock=clock, anyway=True)
    target = folder / "public"
    pages, files = build(made.store, tasks, target, lambda error: pytest.fail(error.what), clock)
    assert pages and files == len(names(target))
    again = {name: (target / name).read_bytes() for name in names(target)}
    build(made.store, tasks, target, lambda error: pytest.fail(error.what), clock)
    assert again == {name: (target / name).read_bytes() for name in names(target)}
    made.store.close()
    return target


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_every_page_is_there_with_its_data_beside_it(site: Path) -> None:
    found = names(site)
    at = f"tasks/{records.TASK}"
    below = ("main", "rounds/final/main", "plots", "softwares/alpha/y")
    for page in ("index", at, *(f"{at}/{name}" for name in below)):
        assert f"{page}.html" in found and f"{page}.json" in found
        json.loads((site / f"{page}.json").read_text())
    assert f"{at}/calendar.ics" in found
    assert f"badges/{records.TASK}/main.svg" in found and f"badges/{records.TASK}/main/alpha/y.svg" in found
    assert {"feed.atom", "site.css", "look.js", "board.js", "robots.txt", MARK} <= {*found}
    assert any(name.endswith("main.csv") for name in found)


def test_nothing_needs_a_server_and_every_link_leads_somewhere(site: Path) -> None:
    pages, broken = check(site)
    assert pages > 4 and not broken
    for name in names(site):
        if name.endswith(".html") and not name.startswith("downloads/"):
            assert not SERVER_ONLY.search((site / name).read_text()), name


def test_pages_lead_to_their_data_and_plots_to_files_for_papers(site: Path) -> None:
    at = site / "tasks" / records.TASK
    for name, data in ((at.with_suffix(".html"), f"{records.TASK}.json"), (at / "main.html", "main.json")):
        page = name.read_text()
        assert f'<a href="{data}">' in page and f'type="application/json" href="{data}"' in page
    plots = [name.removesuffix(".csv") for name in names(site) if re.fullmatch("plots/.*[.]csv", name)]
    text = (at / "plots.html").read_text()
    begin = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert plots
    for plot, (form, word) in itertools.product(plots, begin.items()):
        assert (site / f"{plot}.{form}").read_bytes().startswith(word)
    assert all(f'href="../../{plot}.{form}"' in text for plot in plots for form in begin if plot in text)


def test_search_engines_are_asked_to_leave_tasks_with_hidden_data_alone(site: Path) -> None:
    told = (site / "robots.txt").read_text().splitlines()
    at = f"tasks/{records.TASK}"
    paths = (f"/{at}$", f"/{at}.html$", f"/{at}/", f"/downloads/{at}/")
    assert told[1:] == [f"Disallow: {path}" for path in paths]
    meta = '<meta name="robots" content="noindex">'
    for name in names(site):
        if name.startswith("tasks/") and name.endswith(".html"):
            assert meta in (site / name).read_text(), name
    assert meta not in (site / "index.html").read_text()


def test_the_feed_leads_to_pages(site: Path) -> None:
    root = ElementTree.fromstring((site / "feed.atom").read_text())
    links = [one.get("href", "") for one in root.iter("{http://www.w3.org/2005/Atom}link")]
    assert len(links) == 4 and all((site / one).is_file() for one in links)


def test_nothing_of_a_run_is_there_but_what_everybody_may_see(site: Path) -> None:
    assert not [name for name in names(site) if "runs/" in name or "logs/" in name]
    assert not [name for name in names(site) if b"exit code 77" in (site / name).read_bytes()]


def test_public_data_on_a_site(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dev = {**TASK["datasets"][0], "downloads": {"inputs": "everybody", "truths": "teams"}}
    folder = project.write_task(
        datasets=[dev, TASK["datasets"][1]], registration={"terms": {"file": "terms.txt", "version": "1"}}
    )
    (folder / "terms.txt").write_text("Be fair.")
    large = folder / "datasets/dev/inputs/large.txt"
    large.write_bytes(b"a line\n" * 100_000)
    said = call_here(project, ["site", "build", str(tmp_path / "public")], capsys)
    assert said.code == 0, said.all
    data = tmp_path / "public/tasks/mini/data/dev"
    assert (data / "inputs/large.txt").read_bytes() == large.read_bytes()
    assert names(data) == ["inputs/documents.jsonl.gz", "inputs/large.txt", "inputs/queries.jsonl"]
    text = (tmp_path / "public/tasks/mini.html").read_text()
    assert 'href="mini/data/dev/inputs/large.txt"' in text
    assert "truths/qrels.txt" in text and 'href="mini/data/dev/truths/qrels.txt"' not in text
    assert "<form" not in text and "curl" not in text and "sign-in" not in text


def test_a_folder_with_something_else_is_not_replaced(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    assert "E101" in call_here(project, ["site", "build", str(other)], capsys).err
    assert (other / "thesis.txt").read_text() == "mine"


def test_the_feed_has_the_address(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = set()
    for at in ("https://Task.example.org:8443/2031/", "https://other.example.org"):
        target = tmp_path / str(len(found))
        call_here(project, ["site", "build", str(target), "--url", at], capsys)
        root = ElementTree.fromstring((target / "feed.atom").read_text())
        found.add(root.findtext("{http://www.w3.org/2005/Atom}id"))
    expected = uuid.uuid5(uuid.NAMESPACE_URL, "https://other.example.org/feed.atom").urn
    assert len(found) == 2 and expected in found
    assert "E101" in call_here(project, ["site", "build", str(tmp_path / "x"), "--url", "x"], capsys).err


def test_check_of_broken_links(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "public"
    for more in ([], ["--check"]):
        assert call_here(project, ["site", "build", str(target), *more], capsys).code == 0
    page = target / "index.html"
    bad = '\n<a href="none.html">x</a><a href="#nowhere">x</a><a href="/tasks">x</a><a href="../x">x</a>'
    bad += '<img src="https://example.org/x.png"><form method="post" action="x"></form>'
    page.write_text(page.read_text() + bad + '<a href="https://example.org">fine</a>')
    line = page.read_text().count("\n") + 1
    checked = call_here(project, ["site", "build", str(target), "--check", "--json"], capsys)
    broken = checked.json["broken"]
    assert checked.code == 1 and {one["line"] for one in broken} == {line}
    assert len(broken) == 6 and len({one["why"] for one in broken}) == 5, "two lead out of the folder"
    missing = call_here(project, ["site", "build", str(tmp_path / "none"), "--check"], capsys)
    assert missing.code == 2 and "E102" in missing.err


@pytest.mark.slow
def test_a_folder_in_a_browser_shows_every_page_without_an_error(site: Path) -> None:
    at = site / "tasks" / records.TASK
    wrong: list[str] = []
    with launched() as browser:
        page = browser.new_page()
        page.on(
            "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith("file:") else wrong.append(asked.url))
        page.on("requestfailed", lambda asked: wrong.append(asked.url))
        page.goto((site / "index.html").as_uri())
        page.get_by_role("link", name="main").first.click()
        page.wait_for_url("**/main.html")
        assert page.locator("#board tr:visible").count() == 4  # one of them is the header
        page.locator("#find").fill("alpha")
        page.wait_for_function("document.querySelectorAll('#board tbody tr:not([hidden])').length === 1")
        page.locator("#board tbody a").first.hover()
        page.locator("#board tbody tr:not([hidden]) th a").click()
        page.wait_for_url("**/softwares/alpha/y.html")
        for name in (at.with_suffix(".html"), at / "plots.html", at / "rounds" / "final" / "main.html"):
            page.goto(name.as_uri())
            for n, plot in enumerate(page.locator("figure.plot").all()):
                plot.hover()
                page.wait_for_selector(f"figure.plot[data-answers=yes] >> nth={n}")
            assert page.evaluate("getComputedStyle(document.body).fontFamily") != ""
            assert page.evaluate("document.styleSheets.length") >= 1
    assert not wrong


def told(said: Any) -> bool:
    """Whether a message of the console is an error of ours: every browser asks a host for an icon by itself."""
    return said.type == "error" and not said.location["url"].endswith("/favicon.ico")


@pytest.mark.slow
def test_below_a_path_plots_answer(site: Path) -> None:
    wrong: list[str] = []
    handler = partial(Quiet, directory=str(site.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with launched() as browser:
                page = browser.new_page()
                page.on("console", lambda said: wrong.append(said.text) if told(said) else None)
                page.on("pageerror", lambda error: wrong.append(str(error)))
                page.goto(
                    f"http://127.0.0.1:{server.server_port}/{site.name}/tasks/{records.TASK}/plots.html"
                )
                page.locator("figure.plot").first.hover()
                page.wait_for_selector("figure.plot[data-answers=yes]")
                page.get_by_role("link", name=re.compile("^Toy$")).first.click()
                page.wait_for_url(f"**/{site.name}/tasks/{records.TASK}.html")
        finally:
            server.shutdown()
            thread.join()
    assert not wrong
