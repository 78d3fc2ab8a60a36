"""The baselines that need nothing but Python do what their README says. (BM25 runs in its container only.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.__main__ import main as evaluator

ROOT = Path(__file__).resolve().parents[2]
DEV = ROOT / "tasks" / "vaswani" / "datasets" / "dev"
PROGRAMS = {"dirichlet": "dirichlet/dirichlet.py", "random": "random/random_run.py"}


def run(name: str, into: Path, seed: str = "0") -> Path:
    into.mkdir()
    env = {"inputDataset": str(DEV / "inputs"), "outputDir": str(into), "PYTHONHASHSEED": seed}
    program = ROOT / "submissions" / "baselines" / PROGRAMS[name]
    subprocess.run([sys.executable, program], env=env, check=True, timeout=120)
    return into / "run.txt"


@pytest.mark.parametrize(("name", "expected"), [("dirichlet", "0.4265"), ("random", "0.0031")])
def test_its_run_is_valid_and_scores_as_expected(
    name: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = run(name, tmp_path / "out")
    inputs = DEV / "inputs"
    checked = ["--topics", str(inputs / "queries.jsonl"), "--corpus", str(inputs / "documents.jsonl.gz")]
    assert evaluator(["check", str(made), *checked, "--max-documents", "1000"]) == 0
    assert "no problems" in capsys.readouterr().out, "and nothing to warn of"
    assert evaluator(["trec", str(DEV / "truths" / "qrels.txt"), str(made), "-m", "nDCG@10"]) == 0
    assert capsys.readouterr().out.split() == ["nDCG@10", expected]


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_writes_the_same_bytes_every_time(name: str, tmp_path: Path) -> None:
    assert run(name, tmp_path / "a", "1").read_bytes() == run(name, tmp_path / "b", "2").read_bytes()
