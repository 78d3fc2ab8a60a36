"""Tests of the whole: real containers, a real browser. Nothing is skipped if something is missing; the test fails."""

from tests.worlds.browser import browser

__all__ = ["browser"]
