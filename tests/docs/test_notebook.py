"""The tutorial's notebook gives the results that stand in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.notebook import NOTEBOOK, executed, small_project


def test_every_cell_gives_what_the_notebook_shows(tmp_path: Path) -> None:
    """``python -m tests.docs.notebook`` writes the results anew."""
    small_project(tmp_path)
    stored = json.loads(NOTEBOOK.read_text("utf-8"))
    assert executed(stored, tmp_path) == stored
    cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    source = "".join("".join(cell["source"]) for cell in cells)
    assert all(f".{name}(" in source for name in ("leaderboard", "runs", "topic_scores", "findings"))
    assert sum(bool(cell["outputs"]) for cell in cells) >= 5


def test_a_cell_that_fails_fails_the_run(tmp_path: Path) -> None:
    notebook = {"cells": [{"cell_type": "code", "source": ["x = 1\n", "x / 0"], "outputs": []}]}
    with pytest.raises(ZeroDivisionError):
        executed(notebook, tmp_path)
