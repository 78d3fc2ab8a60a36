"""What became of softwares on hidden data is told at even times: what is published in between says nothing of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.exchange.published import Published, Publisher
from runner.model.clock import FixedClock
from runner.model.config import News
from runner.work.news import EVERY, Told
from runner.work.publishing import Desk
from tests.runner.execution.test_pool import World, good
from tests.worlds.mini import Project

NOW = datetime(2031, 5, 1, 12, 0, 1, tzinfo=UTC)


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task(uploads=True, quota={"submissions": 9, "failures": 3})
    made = World(project)
    made.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    yield made
    made.close()


class Paper:
    """What is published at times."""

    def __init__(self, world: World, news: News = "ten-minutes") -> None:
        self.world, self.clock = world, FixedClock(NOW)
        self.told = Told(self.clock, news)
        self.published = Published(world.project.config.published)

    def publish(self, later: float = 0.0) -> dict[str, str]:
        """Publish after so many seconds; the pointer: it is another one as soon as anything that anybody sees is."""
        self.clock.at += timedelta(seconds=later)
        with self.told.store(self.world.store, self.world.tasks) as store:
            to = Publisher(self.world.project.config.published)
            Desk(store, self.world.tasks, to, self.problem).publish(["alpha", "beta"])
        return dict(self.published.pointer())

    def problem(self, error: Exception) -> None:
        raise error

    def outcomes(self, team: str = "alpha") -> list[str]:
        view = self.published.view(f"team:{team}")
        found = view.get("runs")
        assert found is not None
        return [row["outcome"]["name"] for row in view.data(found)]


def fails(mounts: Any, out: Path) -> None:
    """A software that leaves no run file: it gets its place in the quota back."""


@pytest.mark.parametrize("script", [good, fails])
def test_between_two_even_times_nothing_is_told_of_it(world: World, script: Any) -> None:
    paper = Paper(world)
    world.hand_in("alpha", script=script)
    before = paper.publish()
    assert paper.outcomes() == ["pending"]
    seen: list[dict[str, str]] = []

    def while_it_runs(mounts: Any, out: Path) -> None:
        seen.append(paper.publish(60))
        script(mounts, out)

    world.engine.script["alpha/one"] = while_it_runs
    world.work()
    assert world.store.archive.live() == {} and seen == [before], "nor that it is being executed"
    assert paper.publish(300) == before, "boards, quotas, rows and pages are as they were"
    after = paper.publish(240)
    assert paper.outcomes() == ["scored" if script is good else "failed"]
    assert after != before and paper.publish(60) == after


def test_a_clock_that_is_set_back_is_no_even_time(world: World) -> None:
    """Who corrects the clock while a run goes on shall not publish what it did at that moment; nor be told nothing for a day."""
    paper = Paper(world)
    world.hand_in("alpha")
    paper.publish()
    before = paper.publish(86_400)
    world.work()
    assert paper.publish(-86_400 + 30) == before, "set back"
    assert paper.publish(300) == before
    assert paper.publish(300) != before and paper.outcomes() == ["scored"]


def test_what_people_do_and_what_is_public_is_told_at_once(world: World) -> None:
    paper = Paper(world)
    world.hand_in("alpha")
    before = paper.publish()
    world.work()
    world.hand_in("beta", "new")
    now = paper.publish()
    assert now["team:beta"] != before["team:beta"] and paper.outcomes("beta") == ["pending"]
    assert paper.outcomes() == ["pending"], "and nothing comes with it"
    paper.publish(600)
    world.store.commit(
        "dataset-unpublished", {"task": "mini", "dataset": "test", "reason": ""}, actor="organiser"
    )
    assert paper.publish()["public"] != now["public"]


def test_others_may_write_while_it_is_published(world: World) -> None:
    paper = Paper(world)
    world.hand_in("alpha")
    began = time.monotonic()
    with paper.told.store(world.store, world.tasks):
        world.hand_in("beta", "meanwhile")
    assert time.monotonic() - began < 20
    assert (
        EVERY["at-once"] == 0.0
        and Paper(world, "at-once").publish()
        and paper.outcomes("beta") == ["pending"]
    )


def test_a_demonstration_hides_nothing(world: World) -> None:
    world.project.write_task(uploads=True, demo=True)
    paper = Paper(world)
    world.hand_in("alpha")
    paper.publish()
    world.work()
    paper.publish()
    assert paper.outcomes() == ["scored"]
