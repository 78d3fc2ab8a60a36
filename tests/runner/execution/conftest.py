"""A project with a scripted engine, for planning, executing and evaluating."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runner.cli import context
from runner.execution.machine import Machine
from tests.runner.execution.test_pool import EVALUATOR, World
from tests.worlds.mini import Project


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    made = World(project)
    yield made
    made.close()


@pytest.fixture
def machine(world: World, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The machine with the scripted engine, which commands use too."""
    made = Machine(world.project.config, engine=world.engine, images={"evaluator": EVALUATOR})
    monkeypatch.setattr(context, "machine", lambda *_: made)
    return made
