"""Plots on pages, in a real browser: without a script, and answering with one under the strict policy of the front."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runner.exchange.access import Access
from runner.exchange.published import Published, Publisher
from runner.model.errors import RunnerError
from runner.tasks.load import load_task
from runner.work.publishing import Desk
from tests.worlds import records
from tests.worlds.browser import launched, watched
from tests.worlds.records import World
from tests.worlds.site import serving

HOSTILE = "<img src=x onerror=alert(1)>"


@dataclass
class Front:
    """A front with a board of a public dataset, and where what was published lies."""

    url: str
    published: Path


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    root = tmp_path_factory.mktemp("plots")
    records.write_project(root)
    place = root / "tasks" / records.TASK / "task.yaml"
    data = json.loads(place.read_text())
    data["tables"].append({"id": "open", "cells": [{"dataset": "dev"}], "rank_by": "ndcg"})
    place.write_text(json.dumps(data))
    world = World.make(root)
    for n in range(8):
        world.scored(f"team-{n}", "x", mean=0.3 + n / 20, tag=HOSTILE, datasets=("dev", "test"))
    world.scored("baselines", "bm25", mean=0.4, datasets=("dev", "test"))
    exchange = root / "exchange"

    def problem(error: RunnerError) -> None:
        raise error

    task = load_task(world.config, records.TASK)
    Desk(world.store, {task.id: task}, Publisher(exchange / "published"), problem).publish(["team-0"])
    Access({}).write(exchange / "published")
    with serving(exchange, tmp_path_factory.mktemp("state")) as url:
        yield Front(url, exchange / "published")


@pytest.mark.slow
@pytest.mark.parametrize("scripted", [True, False])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plot_stands_there_and_answers(front: Front, scripted: bool, scheme: Any, tmp_path: Path) -> None:
    with launched() as browser:
        options: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "color_scheme": scheme}
        with watched(browser, front.url, java_script_enabled=scripted, **options) as seen:
            assert seen.go(f"/tasks/{records.TASK}/open") == 200
            figures = seen.page.locator("figure.plot")
            assert figures.count() == 1
            first = figures.first
            assert first.locator("svg").count() == 1 and first.locator("svg").bounding_box() is not None
            assert "95 % intervals" in first.locator(".says").inner_text()
            ink = seen.page.evaluate("getComputedStyle(document.body).color") if scripted else ""
            if scripted:
                first.hover()
                seen.page.wait_for_selector("figure.plot[data-answers='yes']")
                mark = first.locator(".mark-symbol.role-mark path").last
                mark.hover(force=True)
                assert seen.said == []
                seen.page.wait_for_selector(".tip:not([hidden])")
                assert "team-" in seen.page.locator(".tip").inner_text()
                assert HOSTILE in seen.page.locator(".tip").inner_text()
                fill = first.locator("text").first.evaluate("one => getComputedStyle(one).fill")
                assert fill == ink
            assert (seen.said, seen.elsewhere) == ([], [])
            assert seen.fits() and (not scripted or seen.unreached() == [])


def test_what_is_published_is_what_everybody_may_read(front: Front) -> None:
    seen = Published(front.published).view("public")
    plots = [seen.data(one) for one in seen.below("plots/")]
    assert {one["kind"] for one in plots} == {"scores"}
    on_hidden = [one for one in plots if "test" in one["title"] or "main" in one["title"]]
    assert {one["kind"] for one in on_hidden} == {"scores"}
    of_team = Published(front.published).view("team:team-0")
    runs = [seen for seen in map(of_team.data, of_team.below("plots/")) if seen["kind"] == "run"]
    assert len(runs) == 1 and ".dev" in runs[0]["title"]  # none of hidden data
    assert runs[0]["csv"].count("\n") == 31 and runs[0]["says"]
    with httpx2.Client(base_url=front.url, timeout=60) as client:
        digest = next(
            one.path.removeprefix("plots/")
            for one in of_team.below("plots/")
            if of_team.data(one)["kind"] == "run"
        )
        for end in ("csv", "json"):
            assert client.get(f"/plots/{digest}.{end}").status_code == 404
