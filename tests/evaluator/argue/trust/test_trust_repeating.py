"""Judges that are asked the same again, over the real client and a scripted server."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.argue.asking import Question, Verdict
from evaluator.argue.models import JudgmentType
from evaluator.argue.trust import probes
from evaluator.argue.trust.consistency import consistency, repeated
from tests.worlds.openai_server import OpenAIServer
from tests.worlds.trust_play import LOOKUP, NUGGETS, REPORT

T = JudgmentType


class Scripted:
    """Says what its script says for a sentence, the next thing each time."""

    name, width = "scripted", 3

    def __init__(self, said: Mapping[str, Iterable[bool | None]]) -> None:
        self.said = {k: itertools.cycle(v) for k, v in said.items()}

    async def decide(self, question: Question) -> Verdict:
        value = next(self.said[question.sentence])
        return Verdict(False, False) if value is None else Verdict(value)

    def identity(self) -> Mapping[str, Any]:
        return {"model": "scripted"}

    def facts(self) -> dict[str, Any]:
        return {"name": self.name}

    async def close(self) -> None: ...


def test_figures_by_hand() -> None:
    script = {
        "a": [True, True, True],
        "b": [False, False, False],
        "c": [True, False, True],
        "d": [False, None, False],
    }
    asked = [Question(T.SENTENCE_ATTESTED, s, "doc") for s in script]
    rounds = asyncio.run(repeated(Scripted(script), asked, 3))
    row = consistency(asked, rounds)["types"]["all"]
    assert (row["questions"], row["same"], row["unreadable"]) == (4, 0.5, 1)
    # Rounds 1 and 3 are equal; 1 and 2, 2 and 3 share a and b only.
    assert row["equal"] == pytest.approx((0.5 + 1 + 0.5) / 3)
    # yes no yes no against yes no no ?: 2 of 4 equal, chance (2 * 1 + 2 * 2 + 0) / 16.
    pair = (2 / 4 - 6 / 16) / (1 - 6 / 16)
    assert row["kappa"] == pytest.approx((pair + 1 + pair) / 3)


def test_the_offline_judge_always_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "judge.json"
    words = ["argue", "consistency", "-p", "lexical", "--sample", "4", "-n", "2", "--json"]
    assert main([*words, "--reliability", str(kept)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {row["same"] for row in result["types"].values()} == {1.0}
    assert result["types"]["all"]["questions"] == 16
    assert json.loads(kept.read_text())["figures"] == {"same reply again": 1.0}


def test_a_model_is_really_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    turn = itertools.count()
    with OpenAIServer("exact", text=lambda _: "YES" if next(turn) % 5 else "NO") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        words = [
            "argue",
            "consistency",
            str(REPORT),
            str(NUGGETS),
            "-p",
            "openai",
            "-m",
            "test-model",
            "-C",
            str(LOOKUP),
        ]
        assert main([*words, "-n", "3", "--sample", "3", "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert len(server.requests) == 3 * result["types"]["all"]["questions"]
        # The budget counts repetitions.
        assert main([*words, "-n", "3", "--sample", "3", "--max-calls", "10"]) == 2
        assert "--max-calls allows 10" in capsys.readouterr().err
        before = len(server.requests)
        assert main([*words, "--dry-run"]) == 0
        assert len(server.requests) == before
    assert result["types"]["all"]["same"] < 1.0
    assert result["judge"]["model"] == "test-model"


def test_unreadable_replies_are_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with OpenAIServer("empty") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        words = [
            "argue",
            "consistency",
            "-p",
            "openai",
            "-m",
            "test-model",
            "--sample",
            "2",
            "-n",
            "2",
            "--json",
        ]
        assert main(words) == 0
    row = json.loads(capsys.readouterr().out)["types"]["all"]
    assert row["unreadable"] == 2 * row["questions"]
    assert (row["same"], row["kappa"]) == (1.0, None)


def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TOGETHER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert main(["argue", "consistency", "one", "-p", "lexical"]) == 2
    assert "give INPUT and NUGGETS, or neither" in capsys.readouterr().err
    assert main(["argue", "consistency", "-p", "human"]) == 2
    assert "evaluator argue agreement" in capsys.readouterr().err
    assert main(["argue", "consistency", "-p", "lexical", "-n", "1"]) == 2
    capsys.readouterr()
    assert main(["argue", "consistency"]) == 2
    assert "-p lexical" in capsys.readouterr().err  # no key


def test_a_sample_is_the_same_each_time_and_keeps_the_order() -> None:
    found = probes.labelled()
    chosen = probes.sample(found, 7)
    assert chosen == probes.sample(list(reversed(found)), 7)[::-1]
    assert [found.index(p) for p in chosen] == sorted(found.index(p) for p in chosen)
    assert {sum(p.question.type is t for p in chosen) for t in {p.question.type for p in chosen}} == {7}
    assert probes.sample(found, 0) == found


def test_the_first_error_ends_the_asking() -> None:
    from evaluator.errors import EvaluatorError

    class Failing(Scripted):
        asked = 0

        async def decide(self, question: Question) -> Verdict:
            self.asked += 1
            raise EvaluatorError("no")

    judge = Failing({})
    with pytest.raises(EvaluatorError, match="no"):
        asyncio.run(probes.answers(judge, [Question(T.REQUIRES_CITATION, str(i)) for i in range(50)]))
    assert judge.asked == 1
