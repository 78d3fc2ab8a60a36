"""A project whose runs are compared, the command that compares them, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds import records
from tests.worlds.commands import Answer, At
from tests.worlds.records import World

Refused = Callable[..., None]


@pytest.fixture
def world(tmp_path: Path) -> World:
    records.write_project(tmp_path)
    return World.make(tmp_path)


@pytest.fixture
def cli(world: World) -> Callable[..., Answer]:
    """Return a function that runs ``runner compare``."""
    return lambda *words: At(world.config.root, world).run("compare", *words, env={"COLUMNS": "80"})


@pytest.fixture
def refused(cli: Callable[..., Answer]) -> Refused:
    """Return a function that asserts that a comparison ends with an error, and which values this names."""

    def check(words: tuple[str, ...], code: str, *values: str) -> None:
        error = cli(*words).error
        assert error.code == code, (words, error.code)
        assert all(value in f"{error.what} {error.why} {error.fix}" for value in values), (words, error)

    return check
