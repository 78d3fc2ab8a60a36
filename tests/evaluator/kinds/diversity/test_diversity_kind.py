"""The kind: from a request to the three result files; and the organiser's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schemas
from evaluator.commands.runs import run_request
from evaluator.errors import EvaluatorError
from evaluator.formats.perspective import NAMES, PROPERTIES, read_corpus, read_queries
from tests.worlds.releases import KEYS, Literal, argument, lines, other, write

CORPUS = [argument(2019010, "same"), argument(201901, "same"), other(201902), argument(201903, age="65+")]
BASELINE = [{"query_id": 0, "text": "?", "relevant_candidates": [2019010, 201902]}]
PERSPECTIVE = [
    {"query_id": id, "text": "?", "demographic_property": asked, "relevant_candidates": relevant}
    for id, asked, relevant in (
        (201911, {"denomination": "x"}, []),
        (201910, {"age_bin": "18-34"}, [2019010]),
    )
]
MEASURES = {
    "ndcg": "nDCG@4,8",
    "p4": "P@4",
    "a4": "alpha-nDCG@4",
    "r4": "rKL@4",
    "au": "alpha-nDCG-unqueried@4",
}
OPTIONS = {
    "split": {"d": "dev"},
    "scenarios": {
        "baseline": {"queries": "baseline"},
        "explicit": {"queries": "perspective", "twins": False},
        "implicit": {"queries": "perspective", "twins": True},
    },
}


DEV = "perspective-queries/queries_dev.jsonl"


def evaluate(
    tmp_path: Path, rows: list[Any], scenario: str, **changes: Any
) -> tuple[dict[str, Any], list[Any]]:
    truths = tmp_path / "truths"
    if not truths.exists():
        write(truths, CORPUS, BASELINE, PERSPECTIVE)
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "out").mkdir(exist_ok=True)
    lines(tmp_path / "run" / "predictions.jsonl", rows)
    request = {
        "schema_version": 1, "kind": "diversity", "task": "t", "dataset": "d", "scenario": scenario, "visibility": "blinded",
        "paths": {"run": str(tmp_path / "run"), "inputs": str(tmp_path / "none"), "truths": str(truths), "output": str(tmp_path / "out")},
        "run_file": "predictions.jsonl", "topics": None, "corpus": None,
        "measures": [{"id": i, "measure": m, "truths": "corpus.jsonl", "direction": "higher", "options": {}} for i, m in MEASURES.items()],
        "severities": {}, "options": OPTIONS, "score_precision": "double", "limits": {},
        **changes,
    }  # fmt: skip
    lines(tmp_path / "request.json", [request])
    assert run_request(tmp_path / "request.json") == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert schemas.validate(result, "result") == []
    scores = [json.loads(line) for line in (tmp_path / "out" / "scores.jsonl").read_text().splitlines()]
    for score in scores[:40]:
        assert schemas.validate(score, "score") == []
    return result, scores


def test_a_valid_run(tmp_path: Path) -> None:
    rows = [
        {"query_id": 201910, "relevant_candidates": [201901, 201902]},
        {"query_id": 201911, "retrieved_candidates": []},
    ]
    literal = Literal(CORPUS)
    for scenario, twins in (("explicit", False), ("implicit", True)):
        result, scores = evaluate(tmp_path, rows, scenario)
        assert result["status"] == "valid"
        by_property = [literal.alpha_ndcg(p, [2019010], [201901, 201902], 4, twins) for p in KEYS]
        expected = {
            "a4": sum(by_property) / 15 / 2,  # the second query has no relevant argument and counts 0
            "r4": sum(literal.rkl(p, found, 4) for p in KEYS for found in ([201901, 201902], [])) / 15 / 2,
            "au": sum(v for v, p in zip(by_property, KEYS, strict=True) if p != "age") / 14 / 2,
            "p4": 0.25 if twins else 0.0,
        }
        for measure, value in expected.items():
            assert result["measures"][measure]["value"] == pytest.approx(value, abs=1e-12)
        assert result["measures"]["a4"]["topics"] == 2 and result["measures"]["a4"]["covered"] == 1
        parts = [s for s in scores if s["measure"] == "a4" and s["topic"] == "201910" and "facets" in s]
        assert {s["facets"]["property"] for s in parts} == set(NAMES)
        topics = [s["topic"] for s in scores if s["measure"] == "a4" and "facets" not in s]
        assert topics == ["201910", "201911"]
        assert not any("facets" in s for s in scores if s["measure"] in ("ndcg", "p4", "au"))


def test_an_invalid_run_has_no_scores(tmp_path: Path) -> None:
    result, scores = evaluate(tmp_path, [{"query_id": 0, "relevant_candidates": [5]}], "baseline")
    assert (result["status"], result["measures"], scores) == ("invalid", {}, [])
    assert result["findings"]["codes"]["F111"]["count"] == 1


def test_a_query_with_a_defect_counts_as_unanswered(tmp_path: Path) -> None:
    rows = [{"query_id": 0, "relevant_candidates": [2019010, 2019010]}]
    result, scores = evaluate(tmp_path, rows, "baseline", severities={"F112": "defect"})
    assert result["status"] == "valid" and result["measures"]["ndcg"]["value"] == 0.0
    assert result["measures"]["ndcg"]["covered"] == 0
    assert all(row["answered"] is False for row in scores if "facets" not in row)
    result, _ = evaluate(tmp_path, rows, "baseline", options={**OPTIONS, "duplicates": "score"})
    assert result["measures"]["p4"]["value"] == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"scenario": "unheard"},
        {"dataset": "other"},
        {"options": {**OPTIONS, "unheard": 1}},
        {"options": {**OPTIONS, "split": {"d": "../x"}}},
        {"options": {**OPTIONS, "max_candidates": True}},
        {"measures": [{"id": "a", "measure": "AP", "truths": "corpus.jsonl"}]},
    ],
)
def test_a_wrong_definition_is_the_organisers_error(changes: dict[str, Any], tmp_path: Path) -> None:
    result, _ = evaluate(tmp_path, [], changes.pop("scenario", "baseline"), **changes)
    assert result["status"] == "error"


def test_the_options_agree_with_their_schema() -> None:
    assert schemas.validate(OPTIONS, "kinds/diversity") == []
    assert schemas.validate({**OPTIONS, "unheard": 1}, "kinds/diversity")


def profile(**fields: Any) -> dict[str, Any]:
    return {"demographic_profile": {**argument(5)["demographic_profile"], **fields}}


CHANGES: list[dict[str, Any]] = [
    *({"argument_id": "5"}, {"argument_id": 201901}, {"language": "de"}, {"stance": None}),
    *({"demographic_profile": []}, profile(party="x"), profile(age=["18-34"])),
    *(profile(important_political_issues=issues) for issues in (None, "Law & Order")),
]
WITHOUT_A_KEY = [{k: v for k, v in argument(5).items() if k != key} for key in argument(5)]


@pytest.mark.parametrize("row", [*WITHOUT_A_KEY, *({**argument(5), **change} for change in CHANGES), []])
def test_a_wrong_corpus_is_refused_with_its_line(row: Any, tmp_path: Path) -> None:
    lines(tmp_path / "corpus.jsonl", [*CORPUS, row])
    with pytest.raises(EvaluatorError) as error:
        read_corpus(tmp_path)
    assert "corpus.jsonl:5: " in error.value.why


def test_a_property_with_one_value_is_left_out_of_diversity_and_nothing_else(tmp_path: Path) -> None:
    everything = read_corpus(write(tmp_path / "whole", CORPUS, BASELINE, PERSPECTIVE))
    same = [{**row, "stance": "FAVOR"} for row in CORPUS]
    write(tmp_path / "truths", same, BASELINE, PERSPECTIVE)
    population = read_corpus(tmp_path / "truths")
    assert population.left_out == ("stance",) and everything.left_out == ()
    assert population.properties == tuple(n for n in NAMES if n != "stance")
    asked = [q.asked for q in read_queries(tmp_path / "truths", DEV, population, perspective=True)]
    assert asked == [population.properties.index("age"), None]
    rows = [{"query_id": 0, "relevant_candidates": [2019010, 201902, 201901, 201903]}]
    result, scores = evaluate(tmp_path, rows, "baseline")
    assert result["status"] == "valid" and "stance" in result["notes"][0]
    assert result["measures"]["ndcg"]["value"] == 1.0
    parts = {s["facets"]["property"] for s in scores if s["measure"] == "r4" and "facets" in s}
    assert parts == set(population.properties)


def test_a_corpus_without_any_difference_serves_relevance_only(tmp_path: Path) -> None:
    write(tmp_path / "truths", [argument(2019010), argument(201902)], BASELINE, PERSPECTIVE)
    rows = [{"query_id": 0, "relevant_candidates": [2019010, 201902]}]
    result, _ = evaluate(tmp_path, rows, "baseline")
    assert result["status"] == "error" and not result["measures"]
    relevance = [{"id": "p", "measure": "P@2", "truths": "corpus.jsonl"}]
    result, _ = evaluate(tmp_path, rows, "baseline", measures=relevance)
    assert result["status"] == "valid" and result["measures"]["p"]["value"] == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"query_id": "201912"},
        {"query_id": 201910},
        {"relevant_candidates": None},
        {"relevant_candidates": [True]},
        {"relevant_candidates": [424242]},
        {"demographic_property": {}},
        {"demographic_property": {"age_bin": "a", "gender": "b"}},
        {"demographic_property": {"party": "x"}},
    ],
)
def test_wrong_queries_are_refused_with_their_line_and_without_secrets(
    change: dict[str, Any], tmp_path: Path
) -> None:
    write(tmp_path, CORPUS, BASELINE, [*PERSPECTIVE, {**PERSPECTIVE[0], "query_id": 201912, **change}])
    with pytest.raises(EvaluatorError) as error:
        read_queries(tmp_path, DEV, read_corpus(tmp_path), perspective=True)
    assert "queries_dev.jsonl:3: " in error.value.why
    assert "424242" not in "".join(error.value.lines())


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        ({"age_bin": "65+"}, "age"),
        ({"important_political_issue": "Law & Order"}, "Law & Order"),
        ({"important_political_issue": "gender"}, None),
        ({"denomination": "Nicht bekannt"}, None),
        ({"gender": "Weiblich"}, "gender"),
    ],
)
def test_the_property_that_a_query_asks_for(
    wanted: dict[str, str], asked: str | None, tmp_path: Path
) -> None:
    write(tmp_path, CORPUS, BASELINE, [{**PERSPECTIVE[0], "demographic_property": wanted}])
    (query,) = read_queries(tmp_path, DEV, read_corpus(tmp_path), perspective=True)
    assert query.asked == (None if asked is None else PROPERTIES.index(asked))
