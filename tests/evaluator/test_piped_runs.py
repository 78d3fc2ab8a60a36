"""Runs that come through standard input or a pipe, and names of runs in what ``evaluator trec`` prints."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = "301 Q0 d1 1 2.5 mine\n301 Q0 d2 2 1.5 mine\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").write_text("301 0 d1 1\n301 0 d2 0\n")
    (tmp_path / "good").write_text(GOOD)
    (tmp_path / "bad").write_text("301 Q0 d1\n")
    (tmp_path / "packed").write_bytes(gzip.compress(GOOD.encode()))
    return tmp_path


def evaluator(folder: Path, words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """``evaluator`` with these words in a bash, where ``<(…)`` is a pipe."""
    line = f"{sys.executable} -m evaluator {words}"
    root = Path(__file__).parents[2]
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}, input=given,
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "words", ["trec qrels -", "trec qrels <(cat good)", "trec qrels <(cat packed)", "trec qrels good"]
)
def test_a_run_from_a_pipe_is_scored_as_from_a_file(folder: Path, words: str) -> None:
    done = evaluator(folder, f"{words} -m P@1", (folder / "packed").read_bytes())
    assert done.stdout == b"P@1  1.0000\n", done.stderr
    assert done.returncode == 0


def test_a_run_from_a_pipe_is_checked(folder: Path) -> None:
    fine, wrong = evaluator(folder, "check -", GOOD.encode()), evaluator(folder, "check <(cat bad)")
    assert (fine.returncode, wrong.returncode) == (0, 1)
    assert b"-: " in fine.stdout and b"F010" in wrong.stdout


def test_a_lone_good_run_keeps_its_name(folder: Path) -> None:
    both = evaluator(folder, "trec qrels bad good -m P@1")
    assert both.returncode == 1 and both.stdout == b"good\nP@1  1.0000\n"
    alone = evaluator(folder, "trec qrels good -m P@1")
    assert alone.stdout == b"P@1  1.0000\n"
