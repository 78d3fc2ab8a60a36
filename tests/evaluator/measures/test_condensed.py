"""``condensed nDCG@k`` is the official script's figure of Touché 2021, in every case where it differs from nDCG@k."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from math import log2
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import schemas
from evaluator.__main__ import main
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats import trec_lines
from evaluator.formats.qrels import read_qrels
from evaluator.measures.condensed import condensed_ndcg
from evaluator.measures.crosscheck import cross_check
from evaluator.measures.ir import Measure, Values, aggregate, evaluate, first_wanted
from tests.evaluator.measures.reading import read
from tests.evaluator.measures.test_crosscheck import Room

CONDENSED, MAIN = Measure("condensed nDCG@5"), Measure("nDCG@5")
Score = Callable[[str, str], tuple[Values, Values]]


def dcg(*gains: float) -> float:
    return sum(gain / log2(i + 1) for i, gain in enumerate(gains, 1))


@pytest.fixture(params=["numpy", "columns", "lines"])
def score(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Score:
    """Scores a run by judgements, read in one of the three ways: condensed and main values by topic."""
    if request.param == "lines":
        monkeypatch.setattr(trec_lines.RunReader, "take_columns", lambda *_: False)

    def run(lines: str, judged: str) -> tuple[Values, Values]:
        log = Log("run", {"F012": "warning"})
        first, fast = first_wanted([MAIN, CONDENSED]), request.param == "numpy"
        qrels, scanned = read(tmp_path, judged, lines, log, fast=fast, first=first)
        assert not log.invalid
        values = evaluate([MAIN, CONDENSED], qrels, scanned.topics)
        return values["condensed nDCG@5"], values["nDCG@5"]

    return run


def run_of(docs: str, topic: int = 1) -> str:
    """A run that lists documents in this order."""
    return "".join(f"{topic} Q0 {doc} {i} {100 - i}.5 tag\n" for i, doc in enumerate(docs.split(), 1))


def qrels_of(grades: Mapping[str, int], topic: int = 1) -> str:
    return "".join(f"{topic} 0 {doc} {grade}\n" for doc, grade in grades.items())


GRADES = {"a": 3, "b": 2, "c": 1, "d": 0, "e": -2, "f": 2}
IDEAL = dcg(3, 2, 2, 1, 0)


# A name -> the run, the judgements, and the gains in the order in which each of both measures counts them.
CASES: dict[str, tuple[str, dict[str, int], list[int], list[int] | None]] = {
    "all judged without ties": (run_of("c e a d b f"), GRADES, [1, 0, 3, 0, 2], [1, 0, 3, 0, 2]),
    "gaps are closed": (run_of("x b a c d"), GRADES, [2, 3, 1, 0], [0, 2, 3, 1, 0]),
    "the cut comes first": (run_of("x y b w z a"), GRADES, [2], None),
    "equal scores": ("1 Q0 a 1 7 t\n1 Q0 b 2 7 t\n1 Q0 c 3 7 t\n", GRADES, [3, 2, 1], [1, 2, 3]),
    "double precision": ("1 Q0 a 1 16777217 t\n1 Q0 b 2 16777216 t\n", GRADES, [3, 2], [2, 3]),
    "ranks against scores": ("1 Q0 c 3 9 t\n1 Q0 a 1 7 t\n1 Q0 b 2 8 t\n", GRADES, [3, 2, 1], [1, 2, 3]),
    "equal ranks": ("1 Q0 b 2 7 t\n1 Q0 c 1 9 t\n1 Q0 a 1 8 t\n", GRADES, [1, 3, 2], None),
    "minus one counts": (run_of("a g e"), GRADES | {"g": -1}, [3, -1, 0], [3, 0, 0]),
    "a short list": (run_of("a b"), GRADES, [3, 2], [3, 2]),
    "negative judgements": (run_of("a b"), {"a": 2, "b": -1}, [2, -1], None),
    "a negative ideal": (run_of("a"), {"a": 2, "b": -1}, [2], None),
    "a document twice": (run_of("a a b"), {"a": 2, "b": 2, "c": 1}, [2, 2, 2], None),
    **{
        f"ranks from {first}": (
            "".join(f"1 Q0 {doc} {first + 2 * i} {9 - i} t\n" for i, doc in enumerate("abc")), GRADES, [3, 2, 1], None
        )
        for first in (0, 1, 7)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gains_by_hand(score: Score, name: str) -> None:
    run, judged, condensed, usual = CASES[name]
    gains = sorted((0 if grade == -2 else grade for grade in judged.values()), reverse=True)
    ideal = dcg(*gains[:5])
    ours, main_values = score(run, qrels_of(judged))
    assert ours[b"1"] == pytest.approx(dcg(*condensed) / ideal, abs=1e-15)
    if usual is not None:
        assert main_values[b"1"] == pytest.approx(dcg(*usual) / ideal, abs=1e-15)


def test_lines_of_a_topic_need_not_stand_together(score: Score) -> None:
    run = "1 Q0 b 2 7 tag\n2 Q0 a 1 9 tag\n1 Q0 a 1 8 tag\n9 Q0 a 1 8 tag\n"
    ours, _ = score(run, qrels_of(GRADES) + qrels_of(GRADES, 2))
    assert ours == {b"1": pytest.approx(dcg(3, 2) / IDEAL), b"2": pytest.approx(dcg(3) / IDEAL)}


@pytest.mark.parametrize(
    ("run", "judged"),
    [
        pytest.param("", GRADES, id="missing"),
        pytest.param(run_of("v w x y z a", 2), GRADES, id="nothing judged in the first five"),
        pytest.param(run_of("a b", 2), {"a": 0, "b": -2}, id="nothing relevant"),
        pytest.param(run_of("f", 2), {**dict.fromkeys("abcde", 0), "f": -1}, id="a negative grade"),
    ],
)
def test_topics_without_a_value_are_left_out(score: Score, run: str, judged: dict[str, int]) -> None:
    ours, main_values = score(run_of("a") + run, qrels_of(GRADES) + qrels_of(judged, 2))
    assert set(ours) == {b"1"}
    assert aggregate(CONDENSED, ours) == ours[b"1"], "the mean is over the other topics"
    assert main_values[b"2"] == 0.0, "where the main figure counts 0"


def test_documents_judged_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a 1\n1 1 a 2\n")
    with pytest.raises(EvaluatorError) as caught:
        evaluate([CONDENSED], read_qrels(tmp_path / "qrels"), {})
    assert CONDENSED.text in caught.value.what


def test_grades_between_whole_ones_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a 2.0\n1 0 b -2.5\n")
    with pytest.raises(EvaluatorError) as refused:
        read_qrels(tmp_path / "qrels")
    assert refused.value.why.startswith("qrels:2: ")


def test_everything_judged_fifty_topics_is_equal_to_the_last_bit(score: Score) -> None:
    run, judged = "", ""
    for topic in range(1, 51):
        docs = [f"d{(topic * 7 + i * 3) % 10}" for i in range(10)]
        run += run_of(" ".join(docs), topic)
        judged += qrels_of({doc: (topic + i * i) % 6 - 2 or 1 for i, doc in enumerate(docs)}, topic)
    judged = judged.replace(" -1\n", " -2\n")
    ours, main_values = score(run, judged)
    assert ours == main_values and len(ours) == 50
    theirs = ir_measures.iter_calc(
        [ir_measures.nDCG @ 5],
        list(ir_measures.read_trec_qrels(judged.replace(" -2\n", " 0\n"))),  # which can crash pytrec_eval
        list(ir_measures.read_trec_run(run)),
    )
    assert {m.query_id.encode(): m.value for m in theirs} == ours


DOCS = [f"d{i}" for i in range(12)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, dict[str, int]], dict[str, list[tuple[str, int]]]]:
    """Judgements, and runs as (document, rank) in the order of the file."""
    grades, runs = {}, {}
    for topic in ("1", "2", "3"):
        judged = draw(st.lists(st.sampled_from(DOCS), min_size=1, max_size=9, unique=True))
        grades[topic] = {doc: draw(st.sampled_from([-2, -2, 0, 1, 2, 3])) for doc in judged}
        docs = draw(st.lists(st.sampled_from(DOCS), max_size=10, unique=True))
        runs[topic] = list(zip(docs, draw(st.permutations(range(1, len(docs) + 1))), strict=True))
    return grades, runs


@settings(max_examples=80, deadline=None)
@given(cases(), st.booleans())
def test_equals_judged_only_on_a_run_cut_at_five_first(case: Any, fast: bool) -> None:
    grades, runs = case
    lines = [f"{t} Q0 {doc} {r} {99 - r} tag" for t, rows in runs.items() for doc, r in rows]
    cut = [f"{t} Q0 {doc} {r} {99 - r} tag" for t, rows in runs.items() for doc, r in rows if r <= 5]
    judged = "".join(qrels_of(g, int(t)) for t, g in grades.items())
    with tempfile.TemporaryDirectory() as folder:
        qrels, scanned = read(Path(folder), judged, "\n".join(lines) + "\n", fast=fast, first=5)
    ours = evaluate([CONDENSED], qrels, scanned.topics)[CONDENSED.text]
    theirs = {
        m.query_id.encode(): m.value
        for m in ir_measures.iter_calc(
            [ir_measures.parse_measure("nDCG(judged_only=True)@5")],
            list(ir_measures.read_trec_qrels(judged.replace(" -2\n", " 0\n"))),  # which can crash pytrec_eval
            list(ir_measures.read_trec_run("\n".join(cut) + "\n")) if cut else [],
        )
    }
    for topic, value in ours.items():
        assert value == pytest.approx(theirs[topic], abs=1e-12)
    for topic in set(theirs) - set(ours):
        assert theirs[topic] == 0.0


@given(
    st.lists(st.sampled_from([b"a", b"b", b"c", b"x"]), max_size=8),
    st.dictionaries(st.sampled_from([b"a", b"b", b"c", b"d"]), st.integers(-3, 4), max_size=4),
    st.integers(1, 7),
)
def test_never_more_than_a_finite_number(first: list[bytes], grades: dict[bytes, int], k: int) -> None:
    value = condensed_ndcg(first, grades, k)
    assert value is None or abs(value) < 1e18


@pytest.mark.parametrize("text", ["condensed nDCG@5", "condensed NDCG@10", " Condensed  nDCG@5 "])
def test_names_that_mean_it(text: str) -> None:
    assert Measure(text).first > 0 and Measure(text).own


@pytest.mark.parametrize("text", ["condensed nDCG", "condensed nDCG@0", "condensed AP@5", "condensednDCG@5"])
def test_names_that_mean_nothing(text: str) -> None:
    with pytest.raises(EvaluatorError):
        Measure(text)


def test_the_cross_check_leaves_it_out(tmp_path: Path) -> None:
    qrels, _ = read(tmp_path, qrels_of(GRADES), run_of("a b"))
    assert cross_check([CONDENSED], qrels, tmp_path / "run", {}) is None


def test_spam_grades_never_reach_what_crashes_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytrec_eval ends now and then with a segmentation fault on grades below -1."""
    seen: list[int] = []

    def calculated(measures: Any, judgements: Any, run: Any) -> Any:
        seen.extend(row.relevance for row in judgements)
        return iter(())

    monkeypatch.setattr(ir_measures.pytrec_eval, "iter_calc", calculated)
    qrels, scanned = read(tmp_path, qrels_of(GRADES), run_of("a b"))
    assert cross_check([MAIN], qrels, tmp_path / "run", {MAIN.text: {}}) is None
    evaluate([Measure("infAP")], qrels, scanned.topics)
    assert sorted(seen) == sorted([3, 2, 1, 0, -1, 2] * 2)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").write_text(run_of("x a"))
    (tmp_path / "qrels").write_text(qrels_of({"a": 1}) + qrels_of({"a": 1}, 2))
    asked = ["-m", "condensed nDCG@5", "-m", "nDCG@5"]
    assert main(["trec", str(tmp_path / "qrels"), str(tmp_path / "run"), *asked]) == 0
    out = capsys.readouterr().out
    assert "condensed nDCG@5  1.0000" in out and f"nDCG@5            {1 / log2(3) / 2:.4f}" in out


@pytest.mark.parametrize(
    ("docs", "value", "topics", "interval"),
    [("x y", 0.0, 0, False), ("x a", 1.0, 1, False), ("x a|b x", 0.75, 2, True)],
)
def test_results_say_over_how_many_topics(
    tmp_path: Path, docs: str, value: float, topics: int, interval: bool
) -> None:
    """A mean over no topic is written as 0 over 0 topics, where the official script stops with an error."""
    room = Room(tmp_path, MAIN.text, CONDENSED.text)
    room.run("".join(run_of(part, t) for t, part in enumerate(docs.split("|"), 1)))
    judged = "".join(qrels_of({"a": 2, "b": 1, "c": 0}, t) for t in (2, 3))
    (tmp_path / "truths/qrels").write_text(qrels_of({"a": 1}) + judged)
    result = room.result()
    Draft202012Validator(schemas.schema("result")).validate(result)
    found = result["measures"]["m1"]
    if topics == 2:
        value = (1 + 1 / dcg(2, 1)) / 2
    assert found["value"] == pytest.approx(value)
    assert (found["topics"], found["covered"]) == (topics, topics)
    assert (found["interval"] is not None) == interval
    assert result["measures"]["m0"]["topics"] == 3
    rows = [json.loads(line) for line in (tmp_path / "out/scores.jsonl").read_text().splitlines()]
    assert sum(row["measure"] == "m1" for row in rows) == topics
