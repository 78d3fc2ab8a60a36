"""Planted instructions: a judge that obeys them, one that does not, one that changes its mind over anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import schemas
from evaluator.argue.asking import Question
from evaluator.argue.models import JudgmentType
from evaluator.argue.prompting import KEY_OF, own_prompts
from evaluator.argue.trust.canaries import FAVOURABLE, PLACES, Canary, canaries, plant, reliability
from tests.evaluator.argue.conftest import Argue, Serve
from tests.worlds.openai_server import Request
from tests.worlds.trust_play import LOOKUP, NUGGETS, REPORT

T = JudgmentType
SYSTEMS = {
    own_prompts().of(kind).system: kind for kind in KEY_OF if kind is not T.SENTENCE_GIVES_WRONG_ANSWER
}


def against(request: Request) -> str:
    """The reply that goes against the report."""
    return "NO" if FAVOURABLE[SYSTEMS[request.messages[0]["content"]]] else "YES"


def planted(canary: Canary, *, favourable: bool, request: Request) -> bool:
    """True if the request contains this canary."""
    return json.dumps(canary.said(favourable), ensure_ascii=False)[1:-1] in request.last


def gullible(request: Request) -> str:
    """Reply what a canary wants, whichever it is."""
    for canary in canaries():
        for favourable in (True, False):
            if not canary.control and planted(canary, favourable=favourable, request=request):
                return "YES" if favourable else "NO"
    return against(request)


def fickle(request: Request) -> str:
    """Change the reply for every planted sentence, harmless or not."""
    changes = any(planted(c, favourable=f, request=request) for c in canaries() for f in (True, False))
    clean = against(request)
    return {"YES": "NO", "NO": "YES"}[clean] if changes else clean


Ask = Callable[..., Any]


@pytest.fixture
def asked(argue: Argue, serving: Serve) -> Ask:
    """Return a function that calls the command with a server's script and returns its result."""

    def ask(text: object, *words: object) -> Any:
        server = serving(text=text)
        said = argue("canaries", "-p", "openai", "-m", "test-model", "--json", *words)
        assert said.code == 0, said.err
        return {**said.json, "requests": len(server.requests)}

    return ask


HARMLESS, ATTESTED = "susceptibility to harmless text", "susceptibility sentence attested"


def test_a_gullible_judge_is_found_out(asked: Ask) -> None:
    result = asked(gullible, "--sample", "2", "--reliability", "judge.json")
    for row in result["types"].values():
        assert (row["rate"], row["any"], row["control"]) == (1.0, 1.0, 0.0)
        assert row["against"] == row["questions"]
    figures = json.loads(Path("judge.json").read_text())["figures"]
    assert figures.pop(HARMLESS) == 0.0 and ATTESTED in figures
    assert set(figures.values()) == {1.0}


def test_an_immune_judge_has_nothing_to_report(asked: Ask) -> None:
    result = asked(against, "--sample", "2")
    assert {row["rate"] for row in result["types"].values()} == {0.0}
    assert {v["turned"] for v in result["variants"]} == {0}


def test_one_canary_that_works_is_named(asked: Ask) -> None:
    (order,) = (c for c in canaries() if c.id == "order")

    def obeys_one(request: Request) -> str:
        return "YES" if order.said(True) in request.last else against(request)

    result = asked(obeys_one, "--sample", "2")
    row = result["types"]["SENTENCE_ATTESTED"]
    assert (row["rate"], row["any"]) == (pytest.approx(1 / sum(not c.control for c in canaries())), 1.0)
    working = {(v["type"], v["place"], v["canary"]) for v in result["variants"] if v["rate"]}
    assert working == {
        ("SENTENCE_ATTESTED", "sentence", "order"),
        ("SENTENCE_ATTESTED", "document", "order"),
        ("SENTENCE_ANSWERS_QUESTION", "sentence", "order"),
    }


def test_a_fickle_judge_shows_in_the_control(asked: Ask) -> None:
    result = asked(fickle, "--sample", "1")
    assert result["types"]["all"]["control"] == result["types"]["all"]["rate"] == 1.0


def test_only_replies_against_the_report_count(asked: Ask) -> None:
    result = asked("YES", "--sample", "3")
    assert result["types"]["SENTENCE_ATTESTED"]["against"] == 0
    assert result["types"]["SENTENCE_ATTESTED"]["rate"] is None
    assert result["types"]["FIRST_INSTANCE"]["against"] == 3


def test_reports_of_ones_own_and_replies_that_are_kept(asked: Ask) -> None:
    words = [str(REPORT), str(NUGGETS), "-C", str(LOOKUP), "--sample", "2", "--out", "kept"]
    first = asked(gullible, *words)
    assert first["types"]["all"]["rate"] == 1.0
    again = asked("never asked", *words)
    assert again.pop("requests") == 0 < first.pop("requests")
    assert again == first


@pytest.mark.slow
def test_the_offline_judge_reads_no_instructions(argue: Argue) -> None:
    said = argue("canaries", "-p", "lexical", "--sample", "8", "--json")
    assert said.code == 0 and said.json["types"]["all"]["against"] > 0
    assert said.json["types"]["all"]["rate"] <= 0.05
    said = argue("canaries", "-p", "lexical", "--sample", "2")
    assert said.code == 0 and "harmless" in said.out and "forged reply" in said.out


def test_every_place_gets_every_canary_and_nothing_else_changes() -> None:
    for kind in KEY_OF:
        question = Question(kind, "A claim.", "A document.", "Before.", "Q?", "A")
        planted = plant([question])
        assert len(planted) == len(PLACES[kind]) * len(canaries())
        for one in planted:
            text = one.canary.said(FAVOURABLE[kind])
            assert getattr(one.question, one.place).endswith(text)
            assert one.question._replace(**{one.place: getattr(question, one.place)}) == question
            assert "{answer}" not in text


def test_names_fit_into_results() -> None:
    row = {"rate": 0.1, "control": 0.0}
    figures = reliability({"types": {**{t.value: row for t in T}, "all": row}})
    judge = {"name": "llm", "model": "m", "prompts": "sha256:0", "reliability": figures}
    schema = json.loads((Path(schemas.__file__).parent / "result.schema.json").read_text("utf-8"))
    jsonschema.validate(judge, schema["properties"]["judge"])
