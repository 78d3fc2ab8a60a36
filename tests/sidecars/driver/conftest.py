"""A room for each test; its path is short, because those of sockets are bounded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.standins import Room


@pytest.fixture
def room() -> Iterator[Room]:
    with tempfile.TemporaryDirectory(prefix="d-") as folder:
        made = Room(Path(folder))
        made.claims("Cars are bad", "Cars are good")
        yield made
