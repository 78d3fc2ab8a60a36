"""Plots drawn in a process of its own: the same bytes, and no harm where it dies or hangs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runner.tasks.load import load_tasks
from runner.views.audience import ORGANISER
from runner.views.leaderboard.table import build
from runner.views.plots import run, scores
from runner.views.plots.apart import Apart, Undrawn
from runner.views.plots.base import Plot
from runner.views.plots.drawing import for_page
from runner.views.plots.making import KINDS, Board
from tests.worlds import records
from tests.worlds.records import World

SERIES = {"value": "this run", "median": "median", "best": "best of these"}
OF_RUN = Plot(
    "run",
    "</script> — ünïcode",
    "It says.",
    run.COLUMNS,
    ({"topic": "1", "value": 0.1 + 0.2, "median": None, "best": None},),
    run.chart,
    {"axis": "nDCG", "series": SERIES},
)
# Programs that draw badly, and what is done with them.
BAD: Mapping[str, str] = {
    "dies": "raise SystemExit(3)",
    "is killed": f"import os; os.kill(os.getpid(), {signal.SIGKILL})",
    "hangs and reads nothing": "import time; time.sleep(600)",
    "hangs over a plot": "import sys, time; sys.stdin.readline(); time.sleep(600)",
    "answers with something else": "import sys; sys.stdin.readline(); print('drawn!')",
    "fails": 'import sys; sys.stdin.readline(); print(\'{"failed": "out of ink"}\', flush=True); sys.stdin.read()',
}


@pytest.fixture
def apart() -> Iterator[Apart]:
    with closing(Apart()) as made:
        yield made
        made.rest()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World.make(tmp_path_factory.mktemp("apart"))
    records.write_project(made.config.root)
    for n in range(1, 4):
        scores = {"1": 0.1 * n, "2": 0.3 * n}
        made.scored(f"team-{n}", "y", tag="<&>", scores=scores, datasets=("dev", "test"))
    return made


@pytest.mark.slow
def test_it_draws_what_is_drawn_here(apart: Apart) -> None:
    assert apart.draw(OF_RUN) == for_page(OF_RUN) == apart.draw(OF_RUN)


@pytest.mark.slow
def test_a_plot_that_cannot_be_drawn_stops_no_other(apart: Apart) -> None:
    broken = Plot("run", "broken", "", run.COLUMNS, (), scores.chart, {})
    with pytest.raises(Undrawn):
        apart.draw(broken)
    assert apart.draw(OF_RUN)[0].startswith("<svg")


def children() -> set[str]:
    """The processes that this one started and has not heard the end of."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD)
def test_whatever_becomes_of_the_process_a_plot_is_not_drawn_and_nothing_else(case: str) -> None:
    plot = Plot("run", "x" * 1_000_000, "", (), (), run.chart, {})  # more than a pipe holds
    before = children()  # of other tests
    with closing(Apart((sys.executable, "-c", BAD[case]), longest=2.0)) as made:
        for _ in range(2):
            with pytest.raises(Undrawn):
                made.draw(plot)
            made.rest()
    assert children() <= before


def test_without_a_program_nothing_is_drawn() -> None:
    with closing(Apart(("/nowhere/python",))) as made, pytest.raises(Undrawn):
        made.draw(OF_RUN)


def test_closed_it_draws_no_more() -> None:
    made: Any = Apart()
    made.close()
    with pytest.raises(Undrawn):
        made.draw(OF_RUN)
    made.rest()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "run"])
def test_every_kind_of_plot_is_drawn_there_as_here(kind: str, apart: Apart, world: World) -> None:
    task = load_tasks(world.config)[0]["toy"]
    board = Board(world.store, task, build(world.store, task, "main", ORGANISER), ORGANISER)
    plot = board.plot(kind)
    assert apart.draw(plot) == for_page(plot)
