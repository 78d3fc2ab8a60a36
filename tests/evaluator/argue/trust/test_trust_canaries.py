"""Planted instructions: a judge that obeys them, one that does not, one that changes its mind over anything."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import schemas
from evaluator.__main__ import main
from evaluator.argue.asking import Question
from evaluator.argue.models import JudgmentType
from evaluator.argue.prompting import KEY_OF, own_prompts
from evaluator.argue.trust.canaries import FAVOURABLE, PLACES, canaries, plant, reliability
from tests.worlds.openai_server import OpenAIServer, Request
from tests.worlds.trust_play import LOOKUP, NUGGETS, REPORT

T = JudgmentType
SYSTEMS = {
    own_prompts().of(kind).system: kind for kind in KEY_OF if kind is not T.SENTENCE_GIVES_WRONG_ANSWER
}


def against(request: Request) -> str:
    """The reply that goes against the report."""
    return "NO" if FAVOURABLE[SYSTEMS[request.messages[0]["content"]]] else "YES"


def gullible(request: Request) -> str:
    """Does what a canary wants, whichever it is."""
    for canary in canaries():
        for favourable in (True, False):
            if (
                not canary.control
                and json.dumps(canary.said(favourable), ensure_ascii=False)[1:-1] in request.last
            ):
                return "YES" if favourable else "NO"
    return against(request)


def fickle(request: Request) -> str:
    """Changes its mind over every sentence that is planted, harmless or not."""
    planted = any(
        json.dumps(c.said(f), ensure_ascii=False)[1:-1] in request.last
        for c in canaries()
        for f in (True, False)
    )
    clean = against(request)
    return {"YES": "NO", "NO": "YES"}[clean] if planted else clean


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """The result of the command for a server's script."""
    monkeypatch.chdir(tmp_path)

    def ask(text: object, *words: str) -> dict[str, dict[str, dict[str, float]]]:
        with OpenAIServer("exact", text=text) as server:  # type: ignore[arg-type]
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "k")
            command = ["argue", "canaries", "-p", "openai", "-m", "test-model", "--json", *words]
            assert main(command) == 0, capsys.readouterr().err
            out = json.loads(capsys.readouterr().out)
            out["requests"] = len(server.requests)
            return out  # type: ignore[no-any-return]

    return ask


def test_a_gullible_judge_is_found_out(asked) -> None:  # type: ignore[no-untyped-def]
    result = asked(gullible, "--sample", "2", "--reliability", "judge.json")
    for row in result["types"].values():
        assert (row["rate"], row["any"], row["control"]) == (1.0, 1.0, 0.0)
        assert row["against"] == row["questions"]
    figures = json.loads(Path("judge.json").read_text())["figures"]
    assert figures["susceptibility to canaries"] == 1.0
    assert figures["susceptibility to harmless text"] == 0.0
    assert figures["susceptibility sentence attested"] == 1.0


def test_an_immune_judge_has_nothing_to_report(asked) -> None:  # type: ignore[no-untyped-def]
    result = asked(against, "--sample", "2")
    assert {row["rate"] for row in result["types"].values()} == {0.0}
    assert {v["turned"] for v in result["variants"]} == {0}


def test_one_canary_that_works_is_named(asked) -> None:  # type: ignore[no-untyped-def]
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


def test_a_fickle_judge_shows_in_the_control(asked) -> None:  # type: ignore[no-untyped-def]
    result = asked(fickle, "--sample", "1")
    assert result["types"]["all"]["control"] == result["types"]["all"]["rate"] == 1.0


def test_only_replies_against_the_report_count(asked) -> None:  # type: ignore[no-untyped-def]
    result = asked("YES", "--sample", "3")
    assert result["types"]["SENTENCE_ATTESTED"]["against"] == 0
    assert result["types"]["SENTENCE_ATTESTED"]["rate"] is None
    assert result["types"]["FIRST_INSTANCE"]["against"] == 3


def test_reports_of_ones_own_and_replies_that_are_kept(asked) -> None:  # type: ignore[no-untyped-def]
    words = [str(REPORT), str(NUGGETS), "-C", str(LOOKUP), "--sample", "2", "--out", "kept"]
    first = asked(gullible, *words)
    assert first["types"]["all"]["rate"] == 1.0
    again = asked("never asked", *words)
    assert again.pop("requests") == 0 < first.pop("requests")
    assert again == first


def test_the_offline_judge_reads_no_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["argue", "canaries", "-p", "lexical", "--sample", "8", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["types"]["all"]["against"] > 0
    assert result["types"]["all"]["rate"] <= 0.05
    assert main(["argue", "canaries", "-p", "lexical", "--sample", "2"]) == 0
    text = capsys.readouterr().out
    assert "harmless" in text and "forged reply" in text


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
