"""No problem of a file hides another, in any kind but adhoc (which has its own test); what is unknown is summed up first."""

from __future__ import annotations

from pathlib import Path

from evaluator.argue import Rules as ReportRules
from evaluator.argue import load_reports
from evaluator.findings import Log
from evaluator.formats.evaluations import Shape, read_judgments
from evaluator.formats.predictions import Rules, read_predictions
from evaluator.kinds.meta.leaderboards import check
from evaluator.request import MeasureRequest, Request
from tests.worlds.argue_making import lines, report
from tests.worlds.debate_runs import World, debate, turn
from tests.worlds.judged import everything, judgments, write


def first(log: Log) -> str:
    return log.sorted()[0].message


def test_unknown_queries_hide_no_candidates(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text(
        "".join(f'{{"query_id": {n}, "relevant_candidates": [7, 7, "x"]}}\n' for n in range(51, 101))
    )
    rules = Rules(frozenset(range(1, 51)), frozenset(range(1000, 2000)), 20, 1, 100, suggest=True)
    log = Log(path.name)
    assert read_predictions(path, rules, log) == {}
    assert log.counts == {"F106": 50, "F109": 50, "F110": 50, "F111": 100, "F112": 50}
    assert [one.message for one in log.sorted()[:2]] == [
        "none of the run's 50 queries are in the dataset: unknown are 51 to 100, right are 1 to 50; the run may be of another version",
        "none of the run's 100 candidates are in the corpus: unknown are 7, right are 1000 to 1999; the run may be of another version",
    ]
    log = Log(path.name)
    read_predictions(path, rules._replace(suggest=False), log)
    assert len(log.summaries) == 2 and not any(
        "1999" in str(one) or "to 50" in str(one) for one in log.sorted()
    )
    log = Log(path.name, {"F109": "warning", "F110": "warning"})
    read_predictions(path, rules, log)
    assert log.counts == {"F109": 50, "F110": 50, "F028": 1}, "what does not count is not looked at"


def test_debates_of_no_claim_are_examined(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(
        [
            debate(turn("word " * 61), id="other-1"),
            debate(turn("Yes."), id="c1"),
            debate(turn("word " * 61), id="c1"),
        ]
    )
    log = world.evaluate(["answered"]).findings
    assert {code: log.counts[code] for code in ("F204", "F205", "F207")} == {"F204": 1, "F205": 1, "F207": 2}
    assert (
        first(log)
        == '2 of the run\'s 3 debates are in the dataset: unknown are such as "other-1", right are such as "c1"'
    )


def test_reports_on_unknown_topics_are_examined(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "r.jsonl", report("x1", []), report("x1", [("a", ["no"])]), report("x2", [("", ["no"])])
    )
    log = Log(path.name)
    assert load_reports(path, log, ReportRules({"t1": None, "t2": None}, {"d1"}, suggest=True)) == []
    assert log.counts == {"F310": 1, "F311": 2, "F312": 2, "F313": 1, "F314": 1}
    assert first(log).startswith(
        'none of the run\'s 2 reports are in the dataset: unknown are such as "x1", right are such as "t1"'
    )
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
