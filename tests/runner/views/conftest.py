"""What the tests of views share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.records import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A data directory with a store and nothing in it."""
    return World.make(tmp_path)
