"""A run over its topics: sums, micro, macro, missing topics, and the files that it becomes."""

from __future__ import annotations

import json
import random
import statistics
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.argue import Options, RunScores, leaderboard, score_run, score_runs, scores_tsv
from evaluator.argue.scoring.measures import harmonic, mean, median, ratio
from evaluator.argue.scoring.output import FORMATS, write_scores
from evaluator.errors import EvaluatorError
from tests.worlds.argue_making import DATA, bank, cited, judged, uncited

Q = "Which?"
BANKS = {
    "1": bank({Q: ("OR vital", {"a": ["d1"]}), "Who?": ("OR", {"b": ["d2"]})}, "1"),
    "2": bank({Q: ("OR", {"a": ["d1"]})}, "2"),
    "3": bank({Q: ("OR", {"a": []})}, "3"),  # no nugget is left: never scored
    "10": bank({Q: ("OR", {"a": ["d1"]}), "Who?": ("AND okay", {"b": ["d2"], "c": ["d3"]})}, "10"),
}
FIRST = judged(
    cited("12345", ("d1", True, True, {Q: ["a"]})),
    cited("123", ("d2", True, False, {})),
    uncited("1234", True, True),
    topic="1",
)
SECOND = judged(cited("12345678", ("d1", True, True, {Q: ["a"]})), topic="2")
THIRD = judged(cited("x", ("d9", False, True, {})), topic="3")


def run(**options: object) -> RunScores:
    return score_run([SECOND, THIRD, FIRST], BANKS, Options(**options))  # type: ignore[arg-type]


def test_micro_and_macro_by_hand() -> None:
    found = run(missing="ignore").overall
    assert found["sentences"] == 4 and found["nuggets"] == 3 and found["nuggets_weighted"] == 4
    assert found["correct_nuggets"] == 2 and found["correct_nuggets_weighted"] == 3
    assert (found["character_count_median"], found["character_count_max"]) == (10, 12)
    assert found["citation_support_micro"] == 2 / 3
    assert found["citation_support_macro"] == (1 / 2 + 1) / 2
    assert found["sentence_support_micro"] == 2 / 4
    assert found["sentence_support_macro"] == (1 / 3 + 1) / 2
    assert found["nugget_coverage_micro"] == 2 / 3
    assert found["nugget_coverage_macro"] == (1 / 2 + 1) / 2
    assert found["nugget_coverage_weighted_micro"] == 3 / 4
    assert found["nugget_coverage_weighted_macro"] == (2 / 3 + 1) / 2
    assert found["f1_micro"] == harmonic(2 / 4, 2 / 3)
    first = 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)
    assert found["f1_macro"] == pytest.approx((first + 1) / 2)  # the mean of f1s, ...
    of_means = harmonic(found["sentence_support_macro"], found["nugget_coverage_macro"])
    assert found["f1_macro"] != pytest.approx(of_means)


def test_missing_topics_are_zeros_in_macro_and_nuggets_in_micro() -> None:
    found = run()
    assert found.missing == ("10",) and found.skipped == ("3",)
    assert list(found.topics) == ["1", "10", "2"]
    assert found.overall["nugget_coverage_micro"] == 2 / 5
    assert found.overall["nugget_coverage_macro"] == 1.5 / 3
    assert found.overall["sentence_support_micro"] == 2 / 4  # nothing was said, nothing is in the denominator
    assert found.overall["sentence_support_macro"] == pytest.approx((1 / 3 + 1) / 3)
    assert found.overall["character_count_median"] == 10  # of the reports there are
    ignored = run(missing="ignore")
    assert ignored.missing == ("10",) and list(ignored.topics) == ["1", "2"]


def test_a_run_without_any_report_is_zero() -> None:
    found = score_run([], BANKS, run="empty")
    assert found.overall["nuggets"] == 5 and found.overall["f1_macro"] == 0.0
    assert found.overall["character_count_max"] == 0.0
    with pytest.raises(EvaluatorError):
        score_run([], BANKS)


def test_runs_are_not_mixed_and_topics_not_doubled() -> None:
    other = judged(*FIRST.segments, topic="2", run="other")
    assert list(score_runs([FIRST, other], BANKS)) == ["r", "other"]
    for reports in ([FIRST, other], [FIRST, FIRST]):
        with pytest.raises(EvaluatorError):
            score_run(reports, BANKS)


SHARES = ("citation_relevance", "citation_support", "sentence_support", "nugget_coverage")
COUNTS = [
    "sentences_with_citations_or_requiring_citations",
    "correctly_cited_sentences",
    "sentences_missing_citation",
    "first_instance_sentences_missing_citation",
    "nuggets",
    "nuggets_weighted",
    "correct_nuggets",
    "correct_nuggets_weighted",
    "citations",
    "relevant_citations",
    "supporting_citations",
]
MEASURES = [*SHARES, "nugget_coverage_weighted", "f1", "f1_weighted"]


def test_the_scores_file_to_the_byte() -> None:
    means = [f"{measure}_{mean}" for measure in MEASURES for mean in ("micro", "macro")]
    over_all = ["sentences", *COUNTS, "character_count_median", "character_count_max", *means]
    rows = [("all", name) for name in over_all]
    rows += [("2", name) for name in ("sentences", "character_count", *COUNTS, *MEASURES)]
    expected = "run_id\trequest_id\tmetric\tvalue\n"
    for topic, name in rows:
        value = 8.0 if name.startswith("character_count") else float("missing_citation" not in name)
        expected += f"r\t{topic}\t{name}\t{value}\n"
    assert scores_tsv([score_run([SECOND], BANKS, Options(missing="ignore"))]) == expected


def test_additions_come_after_the_comparable_rows() -> None:
    plain = score_run([SECOND], BANKS, Options(missing="ignore"))
    more = score_run([SECOND], BANKS, Options(missing="ignore", strict=True, negation=True))
    for topic in ("all", "2"):
        names = [r.measure for r in more.rows() if r.topic == topic]
        same = [r.measure for r in plain.rows() if r.topic == topic]
        assert names[: len(same)] == same
        assert all("strict" in n or "negati" in n or "unanswerable" in n for n in names[len(same) :])
    found = {(r.topic, r.measure): r.value for r in more.rows()}
    assert all(found[r.topic, r.measure] == r.value for r in plain.rows())


def test_floats_lose_nothing() -> None:
    text = scores_tsv([run()])
    assert "\tf1_macro\t" in text
    for line in text.splitlines()[1:]:
        value = line.split("\t")[3]
        assert repr(float(value)) == value
    assert "r\t1\tsentence_support\t0.3333333333333333\n" in text


def test_leaderboards() -> None:
    scores = run()
    lines = {form: leaderboard([scores], form).splitlines() for form in FORMATS}
    assert "r all f1 " + repr(scores.overall["f1_macro"]) in lines["ir_measures"]
    assert "r f1 all " + repr(scores.overall["f1_macro"]) in lines["tot"]
    assert "f1 10 0.0" in lines["trec_eval"]
    assert "10 r nuggets 2.0" in lines["rag4reports"]
    assert "10 Q0 r 1 2.0 nuggets" in lines["ranking"]
    first = {"run_id": "r", "topic_id": "all", "measure": "sentences", "value": 4.0}
    assert json.loads(lines["jsonl"][0]) == first
    assert not any("_micro" in line or "_macro" in line for form in lines.values() for line in form)
    assert len({len(found) for found in lines.values()}) == 1
    for runs, form in (([scores], "csv"), ([scores, scores], "trec_eval")):
        with pytest.raises(EvaluatorError):
            leaderboard(runs, form)


def test_ranks_of_several_runs() -> None:
    low = judged(uncited("12345678", True), topic="2", run="a")
    runs = [score_run([r], {"2": BANKS["2"]}) for r in (low, SECOND)]
    found = leaderboard(runs, "ranking").splitlines()
    assert "2 Q0 r 1 1.0 f1" in found and "2 Q0 a 2 0.0 f1" in found


def test_no_name_can_break_a_line_or_a_column() -> None:
    evil = judged(*SECOND.segments, topic="2", run="a\tb c\n")
    scores = score_run([evil], {"2": BANKS["2"]})
    assert all(line.count("\t") == 3 for line in scores_tsv([scores]).splitlines())
    assert {len(line.split()) for line in leaderboard([scores], "ir_measures").splitlines()} == {4}


def test_what_scores_cannot_say_stands_beside_them(tmp_path: Path) -> None:
    paths = write_scores([run(credit="none")], tmp_path / "x.scores.tsv", judge={"model": "m"})
    assert [p.name for p in paths] == ["x.scores.tsv", "x.scores.tsv.about.json"]
    about = json.loads(paths[1].read_text())
    assert about["compat"] == "argue-compat 1" and about["judge"] == {"model": "m"}
    assert about["runs"]["r"]["policy"]["nugget_credit"] == "none"
    assert about["runs"]["r"]["missing"] == ["10"] and about["runs"]["r"]["skipped"] == ["3"]


# --- arithmetic ----------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), max_size=700))
def test_the_mean_is_numpys_to_the_last_digit(values: list[float]) -> None:
    assert mean(values) == (float(numpy.mean(values)) if values else 0.0)


def test_the_mean_of_long_lists_is_numpys() -> None:
    rng = random.Random(1)
    for length in (127, 128, 129, 136, 137, 1000, 4099):
        values = [rng.random() for _ in range(length)]
        assert mean(values) == float(numpy.mean(values))


def test_the_rows_over_all_topics_of_a_real_leaderboard_are_our_means() -> None:
    by_run: dict[str, dict[str, float]] = {}
    for row in (DATA / "kiddy-rag/kiddie_fake.eval.ir_measures.txt").read_text().splitlines()[1:]:
        run_id, topic, _, value = row.split("\t")
        by_run.setdefault(run_id, {})[topic] = float(value)
    assert len(by_run) == 4
    for values in by_run.values():
        assert values.pop("all") == pytest.approx(mean(list(values.values())), abs=1e-12)


def test_harmonic_mean_and_ratio() -> None:
    assert harmonic(0, 0) == ratio(0, 0) == ratio(3, 0) == 0.0
    assert repr(harmonic(1.0, 0.6)) == "0.7499999999999999"  # as published files have it


@given(st.lists(st.integers(0, 5000), min_size=1))
def test_the_median(values: list[int]) -> None:
    assert median(values) == statistics.median(values)
