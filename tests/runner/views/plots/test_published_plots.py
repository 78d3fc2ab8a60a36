"""Plots that are drawn beside the clerk: words first, the drawing a publishing later, and never drawn twice."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from runner.exchange.published import Published, Publisher
from runner.tasks.load import load_tasks
from runner.views.plots.apart import Apart
from runner.views.plots.published import Drawings
from runner.work.publishing import Desk
from runner.work.run_pages import Kept
from tests.worlds import records
from tests.worlds.records import World

PLOT, AWAITED = '<figure class="plot"', '<figure class="awaited"'
DIES = (sys.executable, "-c", "raise SystemExit(3)")
NEVER = ("/nowhere/python",)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    records.write_project(made.config.root)
    made.scored("alpha", "y", scores={"1": 0.25, "2": 0.5}, datasets=("dev", "test"))
    return made


def publish(world: World, drawings: Drawings | None, kept: Kept, folder: str = "published") -> Published:
    root, tasks = world.config.root / folder, load_tasks(world.config)[0]
    Desk(world.store, tasks, Publisher(root), pytest.fail, kept=kept, drawings=drawings).publish(["alpha"])
    return Published(root)


def wait(drawings: Drawings) -> None:
    drawn, until = drawings.drawn, time.monotonic() + 120
    while drawings.drawn == drawn and time.monotonic() < until:
        time.sleep(0.05)
        drawings.collect()
    assert drawings.drawn != drawn


def page(seen: Published, path: str, audience: str = "team:alpha") -> str:
    found = seen.view(audience).get(path)
    assert found is not None
    return seen.view(audience).text(found)


@pytest.mark.slow
def test_pages_have_words_first_and_then_the_same_as_drawn_at_once(world: World) -> None:
    to, kept = Publisher(world.config.root / "published"), Kept()
    with closing(Drawings(to, Apart())) as drawings:
        seen = publish(world, drawings, kept)
        assert not seen.view("organiser").below("plots/")
        board, plots = page(seen, "tasks/toy/main", "public"), page(seen, "plots-of/toy", "public")
        assert PLOT not in board + plots and board.count(AWAITED) == 2
        runs = [one.path for one in seen.view("team:alpha").below("runs/")]
        assert any(AWAITED in page(seen, run) for run in runs)
        wait(drawings)
        after = publish(world, drawings, kept)
        assert page(after, "tasks/toy/main", "public").count(PLOT) == 2
        assert any(PLOT in page(after, run) for run in runs)
    assert after.pointer() == publish(world, None, {}, "at-once").pointer()


def test_what_was_published_is_not_drawn_again(world: World) -> None:
    before = publish(world, None, {}).pointer()
    said: list[str] = []
    with closing(Drawings(Publisher(world.config.root / "published"), Apart(NEVER), said.append)) as drawings:
        assert publish(world, drawings, {}).pointer() == before


def test_what_was_published_and_is_gone_is_drawn_again(world: World) -> None:
    seen, root = publish(world, None, {}), world.config.root / "published"
    before = seen.pointer()
    for one in seen.view("organiser").below("plots/"):
        (root / "files" / one.data[:2] / one.data).unlink()
    with closing(Drawings(Publisher(root), Apart())) as drawings:
        publish(world, drawings, {})
        wait(drawings)
        assert publish(world, drawings, {}).pointer() == before


def test_where_nothing_can_be_drawn_pages_are_published_without_plots(world: World) -> None:
    said: list[str] = []
    to, kept = Publisher(world.config.root / "published"), Kept()
    with closing(Drawings(to, Apart(DIES), said.append)) as drawings:
        for _ in range(3):
            assert AWAITED in page(publish(world, drawings, kept), "tasks/toy/main", "public")
            wait(drawings)
        seen = publish(world, drawings, kept)
        board = page(seen, "tasks/toy/main", "public")
        assert "alpha" in board and AWAITED not in board and PLOT not in board
    assert said and len(said) == len(set(said))
