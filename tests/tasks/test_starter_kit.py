"""The starter kit's notebook runs from start to end, and gives the predictions and scores that are stored beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KIT = ROOT / "tasks" / "perspective-2024" / "starter-kit"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The starter kit in a project of its own, where it may be changed."""
    task = tmp_path / "tasks" / "perspective-2024"
    task.mkdir(parents=True)
    (task / "datasets").symlink_to(KIT.parent / "datasets")
    (tmp_path / "submissions").symlink_to(ROOT / "submissions")
    left_out = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    shutil.copytree(KIT, task / "starter-kit", ignore=left_out)
    return task / "starter-kit"


def run(kit: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The notebook's cells in a process of their own; temporary files stay in the test's folder."""
    (kit.parents[2] / "tmp").mkdir(exist_ok=True)
    env = os.environ | {"TMPDIR": str(kit.parents[2] / "tmp"), "PYTHONPATH": str(ROOT)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env.pop("STARTER_KIT_OUTPUT", None)
    command = [sys.executable, str(kit / "run.py"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)


def test_it_gives_what_is_stored(copy: Path) -> None:
    done = run(copy)
    assert done.returncode == 0, done.stdout + done.stderr


def test_storing_anew_changes_nothing(copy: Path) -> None:
    """So whoever changes the data, the baseline or the evaluator has one command to bring the kit up to date."""
    for file in (copy / "stored" / "bm25").rglob("*.*"):
        file.unlink()
    done = run(copy, "--store")
    assert done.returncode == 0, done.stdout + done.stderr
    files = [path.relative_to(KIT) for path in KIT.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(files) == 16
    for file in files:
        assert (copy / file).read_bytes() == (KIT / file).read_bytes(), file


def test_another_score_is_noticed(copy: Path) -> None:
    scores = copy / "stored" / "bm25" / "explicit" / "relevance_results.csv"
    lines = scores.read_text().splitlines()
    lines[-1] = "20,0.9,0.9"
    scores.write_text("\n".join(lines) + "\n")
    done = run(copy)
    assert done.returncode != 0
    assert "relevance_results.csv" in done.stderr


def test_the_notebook_opens_in_jupyter() -> None:
    """The keys that version 4.5 of the format requires, and no result of a failed cell."""
    notebook = json.loads((KIT / "starter-kit.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        assert {"cell_type", "id", "metadata", "source"} <= set(cell)
        if cell["cell_type"] == "code":
            assert isinstance(cell["execution_count"], int)
            assert all(out["output_type"] == "stream" for out in cell["outputs"])
