"""Judges that are asked the same again, over the real client and a scripted server."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluator.argue.asking import Question, Verdict
from evaluator.argue.models import JudgmentType
from evaluator.argue.trust import probes
from evaluator.argue.trust.consistency import consistency, repeated
from evaluator.errors import EvaluatorError
from tests.evaluator.argue.conftest import Argue, Serve
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
    script = {"a": [True] * 3, "b": [False] * 3, "c": [True, False, True], "d": [False, None, False]}
    asked = [Question(T.SENTENCE_ATTESTED, s, "doc") for s in script]
    rounds = asyncio.run(repeated(Scripted(script), asked, 3))
    row = consistency(asked, rounds)["types"]["all"]
    assert (row["questions"], row["same"], row["unreadable"]) == (4, 0.5, 1)
    # Rounds 1 and 3 are equal; 1 and 2, 2 and 3 share a and b only.
    assert row["equal"] == pytest.approx((0.5 + 1 + 0.5) / 3)
    # yes no yes no against yes no no ?: 2 of 4 equal, chance (2 * 1 + 2 * 2 + 0) / 16.
    pair = (2 / 4 - 6 / 16) / (1 - 6 / 16)
    assert row["kappa"] == pytest.approx((pair + 1 + pair) / 3)


def test_the_offline_judge_always_says_the_same(argue: Argue, tmp_path: Path) -> None:
    kept = tmp_path / "judge.json"
    words = ("consistency", "-p", "lexical", "--sample", "4", "-n", "2", "--json", "--reliability", kept)
    result = argue(*words).json
    assert {row["same"] for row in result["types"].values()} == {1.0}
    assert result["types"]["all"]["questions"] == 16
    assert list(json.loads(kept.read_text())["figures"].values()) == [1.0]


def test_a_model_is_really_asked_again(argue: Argue, serving: Serve) -> None:
    turn = itertools.count()
    server = serving(text=lambda _: "YES" if next(turn) % 5 else "NO")
    words = ("consistency", REPORT, NUGGETS, "-p", "openai", "-m", "test-model", "-C", LOOKUP)
    result = argue(*words, "-n", "3", "--sample", "3", "--json").json
    requests = len(server.requests)
    assert requests == 3 * result["types"]["all"]["questions"]
    # The budget counts repetitions.
    said = argue(*words, "-n", "3", "--sample", "3", "--max-calls", "10")
    assert said.code == 2 and "--max-calls allows 10" in said.err
    assert argue(*words, "--dry-run").code == 0
    assert len(server.requests) == requests
    assert result["types"]["all"]["same"] < 1.0
    assert result["judge"]["model"] == "test-model"


def test_unreadable_replies_are_their_own(argue: Argue, serving: Serve) -> None:
    serving("empty")
    said = argue("consistency", "-p", "openai", "-m", "test-model", "--sample", "2", "-n", "2", "--json")
    row = said.json["types"]["all"]
    assert said.code == 0 and row["unreadable"] == 2 * row["questions"]
    assert (row["same"], row["kappa"]) == (1.0, None)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("one", "-p", "lexical"), "NUGGETS"),
        (("-p", "human"), "evaluator argue agreement"),
        (("-p", "lexical", "-n", "1"), "--repetitions"),
        ((), "-p lexical"),  # no key
    ],
)
def test_mistakes(argue: Argue, words: tuple[str, ...], value: str) -> None:
    said = argue("consistency", *words)
    assert said.code == 2 and value in said.err


def test_a_sample_is_the_same_each_time_and_keeps_the_order() -> None:
    found = probes.labelled()
    chosen = probes.sample(found, 7)
    assert chosen == probes.sample(list(reversed(found)), 7)[::-1]
    assert [found.index(p) for p in chosen] == sorted(found.index(p) for p in chosen)
    assert {sum(p.question.type is t for p in chosen) for t in {p.question.type for p in chosen}} == {7}
    assert probes.sample(found, 0) == found


def test_the_first_error_ends_the_asking() -> None:
    class Failing(Scripted):
        asked = 0

        async def decide(self, question: Question) -> Verdict:
            self.asked += 1
            raise EvaluatorError("no")

    judge = Failing({})
    with pytest.raises(EvaluatorError):
        asyncio.run(probes.answers(judge, [Question(T.REQUIRES_CITATION, str(i)) for i in range(50)]))
    assert judge.asked == 1
