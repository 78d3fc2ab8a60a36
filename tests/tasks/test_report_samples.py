"""The samples of `evaluator argue`: everything is there, and the scores are those that were worked out by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evaluator.argue import (
    load_judgments,
    load_nuggets,
    load_reports,
    open_lookup,
    score_runs,
    scores_tsv,
    validate_judgments,
)
from evaluator.findings import Log

SAMPLES = Path(__file__).parents[2] / "evaluator" / "argue" / "samples" / "assets"
NUGGETS = SAMPLES / "sample-inputs" / "sample_nuggets_388.v3.json"
RUNS = {"careful": "", "careless": "_careless"}  # run -> what its files' names end with
COLLECTIONS = ["neuclir/1/ru", "neuclir/1/fa", "neuclir/1/zh"]


def judgments(run: str) -> Path:
    return SAMPLES / "sample-outputs" / f"sample{RUNS[run]}.judgments.jsonl"


def scores(run: str) -> str:
    return (SAMPLES / "sample-outputs" / f"sample{RUNS[run]}.scores.tsv").read_text("utf-8")


@pytest.mark.parametrize("run", RUNS)
def test_the_scores_follow_from_the_judgments_byte_for_byte(run: str) -> None:
    found = score_runs(load_judgments(judgments(run)), load_nuggets(NUGGETS))
    assert scores_tsv(found.values()) == scores(run)


def test_the_scores_are_those_worked_out_by_hand() -> None:
    by_hand = {  # (careful, careless) as in the README: counted in the reports, not by the program
        "sentence_support": (4 / 5, 2 / 5),
        "nugget_coverage": (7 / 10, 2 / 10),
        "nugget_coverage_weighted": (11 / 14, 3 / 14),
        "citation_support": (5 / 6, 3 / 5),
        "citation_relevance": (6 / 6, 3 / 5),
    }
    for number, run in enumerate(("careful", "careless")):
        rows = [line.split("\t") for line in scores(run).splitlines()]
        values = {row[2]: float(row[3]) for row in rows if row[:2] == [run, "388"]}
        for name, expected in by_hand.items():
            assert values[name] == pytest.approx(expected[number]), (run, name)


@pytest.mark.parametrize("run", RUNS)
def test_judgments_match_report_and_documents(run: str, tmp_path: Path) -> None:
    bank = load_nuggets(NUGGETS)["388"]
    assert len(bank.nuggets) == 10
    assert len(bank.unanswerable) == 1
    log = Log("reports")
    (report,) = load_reports(SAMPLES / "sample-inputs" / f"sample_report{RUNS[run]}.jsonl", log)
    assert not log.kept
    (judged,) = load_judgments(judgments(run))
    assert validate_judgments(judged, bank) == []
    assert [s.text for s in judged.segments] == [s.text for s in report.sentences]
    assert [s.doc_ids for s in judged.segments] == [s.citations for s in report.sentences]
    folder = shutil.copytree(SAMPLES / "sample-inputs" / "sample-docs-lookup", tmp_path / "lookup")
    with open_lookup(folder, COLLECTIONS) as lookup:
        assert not lookup.missing
        for segment in judged.segments:
            assert all(cited.text == (lookup.text(cited.doc_id) or "") for cited in segment.citations)
        assert lookup.unknown(report) == (() if run == "careful" else ("zh-999",))


def test_the_prompt_configuration_has_the_variables_of_its_type() -> None:
    config = json.loads((SAMPLES / "sample-inputs" / "sample_prompt_config.json").read_text("utf-8"))
    assert [*config] == ["sentence_attested"]
    user, system = (config["sentence_attested"][key] for key in ("user_prompt", "system_prompt"))
    assert "{sentence}" in user and "{document}" in user and "{" not in system
