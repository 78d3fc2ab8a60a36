"""Plots that are drawn while pages are published: words first where drawing takes long, and never drawn twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.exchange.published import Published, Publisher
from runner.tasks.load import load_tasks
from runner.views.plots import published
from runner.views.plots.published import Drawings
from runner.work.publishing import Desk
from runner.work.run_pages import Kept
from tests.worlds import records
from tests.worlds.records import World

PLOT, AWAITED = '<figure class="plot"', '<figure class="awaited"'


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


def fail(*_: object) -> None:
    raise ValueError("out of ink")


def page(seen: Published, path: str, audience: str = "team:alpha") -> str:
    found = seen.view(audience).get(path)
    assert found is not None
    return seen.view(audience).text(found)


@pytest.mark.slow
def test_pages_have_words_first_and_then_the_same_as_drawn_at_once(world: World) -> None:
    drawings, kept = Drawings(Publisher(world.config.root / "published"), seconds=1e-9), Kept()
    seen, rounds = publish(world, drawings, kept), drawings.rounds
    runs = [one.path for one in seen.view("team:alpha").below("runs/")]
    assert len(seen.view("organiser").below("plots/")) == 1  # the budget was spent with the first plot
    assert any(AWAITED in page(seen, run) for run in runs)
    drawings.collect()
    while drawings.rounds != rounds:
        rounds = drawings.rounds
        seen = publish(world, drawings, kept)
        drawings.collect()
    assert page(seen, "tasks/toy/main", "public").count(PLOT) == 1
    assert any(PLOT in page(seen, run) for run in runs)
    assert seen.pointer() == publish(world, None, {}, "at-once").pointer()


def test_published_plots_are_not_drawn_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = publish(world, None, {}).pointer()
    monkeypatch.setattr(published, "for_page", fail)
    drawings = Drawings(Publisher(world.config.root / "published"), pytest.fail)
    assert publish(world, drawings, {}).pointer() == before


def test_published_plots_that_are_gone_are_drawn_again(world: World) -> None:
    seen, root = publish(world, None, {}), world.config.root / "published"
    before = seen.pointer()
    for one in seen.view("organiser").below("plots/"):
        (root / "files" / one.data[:2] / one.data).unlink()
    assert publish(world, Drawings(Publisher(root)), {}).pointer() == before


def test_a_plot_that_cannot_be_drawn_is_left_out_and_reported_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "for_page", fail)
    said: list[str] = []
    drawings, kept = Drawings(Publisher(world.config.root / "published"), said.append), Kept()
    for _ in range(2):
        board = page(publish(world, drawings, kept), "tasks/toy/main", "public")
        assert "alpha" in board and AWAITED not in board and PLOT not in board
    assert said and len(said) == len(set(said))
