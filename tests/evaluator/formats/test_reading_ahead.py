"""How many threads read a large run."""

from __future__ import annotations

import os

import pytest

from evaluator.formats.fast.ahead import threads


def test_where_the_system_does_not_say_which_processors_are_ours_all_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for processors, wanted in ((None, 1), (1, 1), (2, 2), (8, 2)):
        monkeypatch.setattr(os, "cpu_count", lambda processors=processors: processors)
        assert threads() == wanted
