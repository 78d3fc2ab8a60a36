"""No problem of a file hides another, in any kind but adhoc (which has its own test); what is unknown is summed up first."""

from __future__ import annotations

import re
from pathlib import Path

from evaluator.argue import Rules as ReportRules
from evaluator.argue import load_reports
from evaluator.findings import Finding, Log
from evaluator.formats.evaluations import Shape, read_judgments
from evaluator.formats.predictions import Rules, read_predictions
from evaluator.kinds.meta.leaderboards import check
from evaluator.request import MeasureRequest, Request
from tests.worlds.argue_making import lines, report
from tests.worlds.debate_runs import World, debate, turn
from tests.worlds.judged import everything, judgments, write


def marks(finding: Finding) -> list[str]:
    """Return the numbers and the quoted ids of a finding's message."""
    return re.findall(r'"[^"]*"|\d+', finding.message)


def test_unknown_queries_hide_no_candidates(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text(
        "".join(f'{{"query_id": {n}, "relevant_candidates": [7, 7, "x"]}}\n' for n in range(51, 101))
    )
    rules = Rules(frozenset(range(1, 51)), frozenset(range(1000, 2000)), 20, 1, 100, suggest=True)
    log = Log(path.name)
    assert read_predictions(path, rules, log) == {}
    assert log.counts == {"F106": 50, "F109": 50, "F110": 50, "F111": 100, "F112": 50}
    assert [marks(one) for one in log.sorted()[:2]] == [
        ["50", "51", "100", "1", "50"],  # how many, which are unknown, which are known
        ["100", "7", "1000", "1999"],
    ]
    log = Log(path.name)
    read_predictions(path, rules._replace(suggest=False), log)
    assert [marks(one) for one in log.summaries] == [["50", "51", "100"], ["100", "7"]]
    log = Log(path.name, {"F109": "warning", "F110": "warning"})
    read_predictions(path, rules, log)
    assert log.counts == {"F109": 50, "F110": 50, "F028": 1}, "what does not count is not looked at"


def test_debates_of_no_claim_are_examined(tmp_path: Path) -> None:
    world = World(tmp_path)
    long = turn("word " * 61)
    world.run([debate(long, id="other-1"), debate(turn("Yes."), id="c1"), debate(long, id="c1")])
    log = world.evaluate(["answered"]).findings
    assert {code: log.counts[code] for code in ("F204", "F205", "F207")} == {"F204": 1, "F205": 1, "F207": 2}
    assert marks(log.sorted()[0]) == ["2", "3", '"other-1"', '"c1"']


def test_reports_on_unknown_topics_are_examined(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "r.jsonl", report("x1", []), report("x1", [("a", ["no"])]), report("x2", [("", ["no"])])
    )
    log = Log(path.name)
    assert load_reports(path, log, ReportRules({"t1": None, "t2": None}, {"d1"}, suggest=True)) == []
    assert log.counts == {"F310": 1, "F311": 2, "F312": 2, "F313": 1, "F314": 1}
    assert marks(log.sorted()[0]) == ["2", '"x1"', '"t1"']
    log = Log(path.name, {"F311": "warning"})
    load_reports(path, log, ReportRules({"t1": None}, {"d1"}))
    assert "F314" not in log.counts


def test_judgments_of_a_wrong_number_of_turns_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", [judgments([everything("high")] * 3), judgments([everything(0.5)])])
    log = Log(path.name)
    read_judgments(path, Shape([2, 1]), log)
    assert log.counts == {"F233": 1, "F235": 8}


def test_broken_lines_of_a_leaderboard_hide_no_missing_measure(tmp_path: Path) -> None:
    path = tmp_path / "board.txt"
    path.write_text("a all P 0.5\nb all P x\nc all P\n")
    log = Log(path.name)
    none = Path()
    request = Request(
        "meta", none, none, none, none, path.name, measures=(MeasureRequest("k", "kendall@AP", "t"),)
    )
    check(path, request, {"format": "ir_measures"}, log)
    assert log.counts == {"F242": 1, "F243": 1, "F248": 1}
