"""Tests of the whole: real containers, a real browser. Nothing is skipped if something is missing; the test fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.worlds.browser import launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for the tests of one module."""
    with launched() as made:
        yield made
