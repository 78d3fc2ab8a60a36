"""A run that has nothing to do with the truths is never 0.0000 and fine: no topic is an error, no document is said loudly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.findings import Log
from evaluator.formats.dialogue import place, read_claims, read_debates
from evaluator.formats.predictions import Rules, read_predictions
from tests.evaluator.kinds.adhoc.test_severities import evaluated

QRELS = b"1 0 a 1\n1 0 b 0\n"
OTHER_TOPIC, OTHER_DOCUMENTS = b"7 Q0 a 1 9 t\n", b"1 Q0 x 1 9 t\n1 Q0 y 2 8 t\n"


def test_no_topic_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluated(tmp_path, OTHER_TOPIC)
    assert result["status"] == "invalid" and list(result["findings"]["codes"]) == ["F028"]
    lenient = evaluated(tmp_path, OTHER_TOPIC, severities={"F028": "warning"})
    figures = {"value": 0.0, "topics": 1, "covered": 0, "interval": None}
    assert lenient["status"] == "valid" and lenient["measures"]["ap"] == figures
    assert "F028" not in evaluated(tmp_path, b"", severities={"F001": "warning"})["findings"]["codes"]


def test_no_topic_is_an_error_where_unknown_topics_are_tolerated(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "topics.txt").write_text("1\n2\n")
    for severity in ("warning", "ignore"):
        tolerant = {"topics": "topics.txt", "severities": {"F017": severity}}
        assert evaluated(tmp_path, OTHER_TOPIC, **tolerant)["status"] == "invalid"
    unjudged = evaluated(tmp_path, b"2 Q0 a 1 9 t\n", topics="topics.txt")
    assert unjudged["status"] == "invalid"


def test_a_run_without_a_judged_document_has_a_note(tmp_path: Path) -> None:
    result = evaluated(tmp_path, OTHER_DOCUMENTS)
    assert result["status"] == "valid" and len(result["notes"]) == 1
    assert result["findings"]["warning"] == 1 and "F029" in result["findings"]["codes"]
    good = evaluated(tmp_path, OTHER_DOCUMENTS + b"1 Q0 b 3 7 t\n")
    assert "notes" not in good and not good["findings"]["codes"]


def test_one_of_several_truths_without_a_match_is_named(tmp_path: Path) -> None:
    (tmp_path / "truths").mkdir()
    (tmp_path / "truths" / "other.txt").write_bytes(b"9 0 z 1\n")
    measures = [
        {"id": "ap", "measure": "AP", "truths": "qrels.txt"},
        {"id": "quality", "measure": "AP", "truths": "other.txt"},
    ]
    result = evaluated(tmp_path, b"1 Q0 a 1 9 t\n", measures=measures)
    (note,) = result["notes"]
    assert result["status"] == "valid" and '"other.txt"' in note


@pytest.mark.parametrize("form", ["table", "json", "trec_eval"])
def test_the_command_trec(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_bytes(QRELS)
    run.write_bytes(OTHER_TOPIC)
    assert main(["trec", str(qrels), str(run), "-m", "AP", "--format", form]) == 1
    out, err = capsys.readouterr()
    assert "F028" in err and "0.0" not in out
    run.write_bytes(OTHER_DOCUMENTS)
    assert main(["trec", str(qrels), str(run), "-m", "AP", "--format", form]) == 0
    assert "F029 warning: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("qrels", "named"),  # the numbers: a line, the line that it repeats, and how many more there are
    [
        ("1 0 a 1\n1 0 b 0\n2 0 a 1\n1 0 a 1\n", ["4", "1"]),
        ("1 0 a 1\n# seen twice\n\n1 0 a 1\n1 0 a 1\n", ["4", "1", "1"]),
        ("1 1 a 1\n1 2 a 1\n1 2 a 1\n", []),  # the measure cannot use subtopics
    ],
)
@pytest.mark.parametrize("measure", ["AP", "Judged@10"])
def test_lines_of_judgments_that_are_there_twice_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], qrels: str, named: list[str], measure: str
) -> None:
    (tmp_path / "qrels").write_text(qrels)
    (tmp_path / "run").write_bytes(b"1 Q0 a 1 9 t\n")
    assert main(["trec", str(tmp_path / "qrels"), str(tmp_path / "run"), "-m", measure]) != 0
    (why,) = (line for line in capsys.readouterr().err.splitlines() if "qrels" in line)
    assert re.findall(r"(?<=[: ])\d+", why) == named


def test_lists_of_candidates(tmp_path: Path) -> None:
    rules = Rules(frozenset((0, 1)), frozenset((10, 11)), 9, 1, 9)
    tolerant = dict.fromkeys(("F109", "F110", "F111"), "ignore")
    for row, code, invalid in (
        ({"query_id": 7, "relevant_candidates": [10]}, "F028", True),
        ({"query_id": 0, "relevant_candidates": [99]}, "F029", False),
        ({"query_id": 0, "relevant_candidates": [99, 10]}, None, False),
        ({"query_id": 0, "relevant_candidates": []}, "F115", False),
    ):
        (tmp_path / "p.jsonl").write_text(json.dumps(row))
        log = Log("p.jsonl", tolerant)
        read_predictions(tmp_path / "p.jsonl", rules, log)
        assert (list(log.counts), log.invalid) == ([code] if code else [], invalid)


def test_debates(tmp_path: Path) -> None:
    (tmp_path / "claims.jsonl").write_text('{"id": "c1", "claim": "Zoos are cruel."}\n')
    row: dict[str, Any] = {"id": "c9", "simulation": {"userTurns": []}}
    (tmp_path / "run.jsonl").write_text(json.dumps(row))
    log = Log("run.jsonl", {"F204": "warning"})
    place(read_debates(tmp_path / "run.jsonl", log), read_claims(tmp_path / "claims.jsonl"), log)
    assert log.invalid and "F028" in log.counts


def test_leaderboards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, judge = tmp_path / "truth", tmp_path / "judge"
    truth.write_text("".join(f"run{n} all M {n}\n" for n in range(4)))
    judge.write_text("".join(f"other{n} all M {n}\n" for n in range(4)))
    for missing in ("error", "warn", "skip", "default"):
        call = ["leaderboards", "--truth", str(truth), "--judge", str(judge), "--measures", "kendall"]
        assert main([*call, "--on-missing", missing]) == 4
        out, err = capsys.readouterr()
        assert not out and "M and M" in err
