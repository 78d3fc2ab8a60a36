"""Our measures against ir_measures (and so pytrec_eval) on random runs with ties of every sort."""

from __future__ import annotations

import pkgutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.qrels import read_qrels
from evaluator.formats.ranked import Rules
from evaluator.formats.trec import scan
from evaluator.measures.interval import intervals
from evaluator.measures.ir import Measure, aggregate, evaluate, require

TEXTS = [
    "nDCG",
    "nDCG@1",
    "nDCG@5",
    "AP",
    "AP@3",
    "AP(rel=2)",
    "AP(rel=2)@4",
    "P@3",
    "P(rel=2)@5",
    "R@4",
    "R(rel=3)@4",
    "RR",
    "RR(rel=2)",
    "Success@2",
    "Rprec",
    "Rprec(rel=2)",
    "Bpref",
    "Bpref(rel=2)",
    "NumRet",
    "NumRelRet",
    "NumRet(rel=2)",
    "NumRel",
    "NumQ",
]
TIE_FREE = ["RR@3", "RR(rel=2)@4", "Judged@3", "Judged"]
FOREIGN = [
    "infAP",
    "IPrec@0.5",
    "SetP",
    "SetF",
    "nDCG(judged_only=True)@5",
    "AP(judged_only=True)",
    "P(judged_only=True)@3",
]
# In single precision, the last three are one number.
SCORES = ["3", "2", "1.5", "1.50000001", "1.500000001", "-4", "16777216", "16777217", "16777218"]
DOCS = [f"d{i}" for i in range(14)]


@st.composite
def cases(draw: st.DrawFn, *, ties: bool = True) -> tuple[str, str]:
    topics = ["1", "2", "x3"]
    qrels = []
    for topic in topics[: draw(st.integers(1, 3))]:
        judged = draw(st.lists(st.sampled_from(DOCS), min_size=1, max_size=10, unique=True))
        qrels += [f"{topic} 0 {doc} {draw(st.integers(0, 3))}" for doc in judged]
    run = []
    for topic in draw(st.lists(st.sampled_from([*topics, "unjudged"]), min_size=1, unique=True)):
        docs = draw(st.lists(st.sampled_from(DOCS), min_size=1, max_size=12, unique=True))
        scores = [draw(st.sampled_from(SCORES)) if ties else str(100 - i) for i in range(len(docs))]
        run += [
            f"{topic} Q0 {doc} {i} {score} tag"
            for i, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
        ]
    return "\n".join(qrels) + "\n", "\n".join(run) + "\n"


def compare(case: tuple[str, str], texts: list[str], fast: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        qrels_path, run_path = Path(folder, "qrels"), Path(folder, "run")
        qrels_path.write_text(case[0])
        run_path.write_text(case[1])
        qrels = read_qrels(qrels_path)
        log = Log("run")
        read = scan(run_path, Rules(judged=qrels.grades), log, fast=fast)
        assert not log.invalid
        measures = [Measure(text) for text in texts]
        values = evaluate(measures, qrels, read.topics)
        parsed = {ir_measures.parse_measure(text): text for text in texts}
        theirs: Any = ir_measures.calc(
            list(parsed), list(ir_measures.read_trec_qrels(case[0])), list(ir_measures.read_trec_run(case[1]))
        )
        for metric in theirs.per_query:
            ours = values[parsed[metric.measure]][metric.query_id.encode()]
            assert ours == pytest.approx(metric.value, abs=1e-9), (metric, case)
        for measure in measures:
            expected = theirs.aggregated[ir_measures.parse_measure(measure.text)]
            assert aggregate(measure, values[measure.text]) == pytest.approx(expected, abs=1e-9)
            # The same topics: also those without a relevant document and those without an answer.
            assert len(values[measure.text]) == len(qrels.grades)


@settings(max_examples=150, deadline=None)
@given(cases(), st.booleans())
def test_same_values_as_ir_measures(case: tuple[str, str], fast: bool) -> None:
    assert all(Measure(text).own for text in TEXTS)
    compare(case, TEXTS, fast)


@settings(max_examples=50, deadline=None)
@given(cases(ties=False), st.booleans())
def test_same_values_without_ties(case: tuple[str, str], fast: bool) -> None:
    """Where ir_measures breaks ties another way than trec_eval does."""
    compare(case, TIE_FREE, fast)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_measures_of_ir_measures_are_fed_rightly(case: tuple[str, str]) -> None:
    assert not any(Measure(text).own for text in FOREIGN)
    compare(case, FOREIGN, False)


def gdeval(folder: Path, qrels: str, run: str) -> dict[str, dict[str, float]]:
    """The values of TREC's own script for the files as they are: topic, then measure."""
    program = pkgutil.get_data("ir_measures", "bin/gdeval.pl")
    assert program is not None
    for name, content in (("gdeval.pl", program), ("qrels", qrels.encode()), ("run", run.encode())):
        (folder / name).write_bytes(content)
    command = ["perl", "gdeval.pl", "qrels", "run", "5"]
    said = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout
    rows = [line.split(",") for line in said.splitlines()[1:]]
    return {topic: {EXPONENTIAL[0]: float(ndcg), EXPONENTIAL[1]: float(err)} for _, topic, ndcg, err in rows}


EXPONENTIAL = ["nDCG(dcg='exp-log2')@5", "ERR@5"]
NUMBERED = cases().filter(
    lambda case: "x3" not in case[0] + case[1] and any(f" {g}\n" in case[0] for g in "123")
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(NUMBERED, st.booleans())
def test_exponential_gains_are_ordered_in_double_precision_as_by_gdeval(
    case: tuple[str, str], fast: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        run = "".join(line for line in case[1].splitlines(True) if not line.startswith("unjudged"))
        relevant = {line.split()[0] for line in case[0].splitlines() if not line.endswith(" 0")}
        judged = "".join(line for line in case[0].splitlines(True) if line.split()[0] in relevant)
        theirs = gdeval(Path(name), judged, run)  # it divides by 0 for a topic without a relevant document
        qrels = read_qrels(Path(name, "qrels"))
        read = scan(Path(name, "run"), Rules(judged=qrels.grades), Log("run"), fast=fast)
        values = evaluate([Measure(text) for text in EXPONENTIAL], qrels, read.topics)
        for topic, row in theirs.items():
            assert {text: values[text][topic.encode()] for text in EXPONENTIAL} == row, case


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("text", ["ERR@1", "nDCG(dcg='exp-log2')@1", "alpha_nDCG@1", "ERR_IA@1", "Compat"])
def test_each_measure_orders_scores_as_its_own_tool_does(text: str, fast: bool, tmp_path: Path) -> None:
    """Scores that differ in double precision only: trec_eval puts d2 first, gdeval and ndeval put d1 first."""
    (tmp_path / "qrels").write_text("1 1 d1 1\n1 1 d3 1\n")
    (tmp_path / "run").write_text("1 Q0 d1 1 1.500000001 t\n1 Q0 d2 2 1.5 t\n1 Q0 d3 3 1 t\n")
    qrels = read_qrels(tmp_path / "qrels")
    theirs = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(text)],
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run"))),
    )
    for double in (False, True):
        rules = Rules(judged=qrels.grades, double=double)
        read = scan(tmp_path / "run", rules, Log("run"), fast=fast)
        values = evaluate([Measure(text), Measure("P@1"), Measure("SetP")], qrels, read.topics)
        assert values[text][b"1"] == pytest.approx(next(iter(theirs.values())), abs=1e-9) and theirs
        assert values["P@1"][b"1"] == (1.0 if double else 0.0) and values["SetP"][b"1"] == pytest.approx(
            2 / 3
        )
        assert read.topics[b"1"].double == (None if double else {b"d1": 1, b"d3": 3})


def test_a_list_that_is_cut_has_the_documents_of_each_precision(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 1 d1 1\n1 1 d2 2\n")
    (tmp_path / "run").write_text("1 Q0 d1 1 1.500000001 t\n1 Q0 d2 2 1.5 t\n")
    qrels = read_qrels(tmp_path / "qrels")
    rules, log = Rules(judged=qrels.grades, max_documents=1), Log("run", {"F020": "warning"})
    (topic,) = scan(tmp_path / "run", rules, log).topics.values()
    assert (topic.retrieved, topic.ranks, topic.double) == (1, {b"d2": 1}, {b"d1": 1})


@settings(max_examples=40, deadline=None)
@given(cases())
def test_values_are_bit_equal_to_pytrec_eval(case: tuple[str, str]) -> None:
    import pytrec_eval

    names = {
        "ndcg_cut_5": "nDCG@5",
        "ndcg": "nDCG",
        "map": "AP",
        "recip_rank": "RR",
        "P_5": "P@5",
        "recall_5": "R@5",
        "Rprec": "Rprec",
        "bpref": "Bpref",
    }
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for line in case[0].splitlines():
        topic, _, doc, grade = line.split()
        qrels.setdefault(topic, {})[doc] = int(grade)
    for line in case[1].splitlines():
        topic, _, doc, _, score, _ = line.split()
        run.setdefault(topic, {})[doc] = float(score)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "qrels").write_text(case[0])
        Path(folder, "run").write_text(case[1])
        truths = read_qrels(Path(folder, "qrels"))
        read = scan(Path(folder, "run"), Rules(judged=truths.grades), Log("run"))
    ours = evaluate([Measure(m) for m in names.values()], truths, read.topics)
    for topic, by_name in theirs.items():
        assert {n: ours[m][topic.encode()] for n, m in names.items()} == by_name


def test_double_precision_orders_by_score_where_single_orders_by_id(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 1.500000001 t\n1 Q0 b 2 1.5 t\n")
    qrels = read_qrels(tmp_path / "qrels")
    for double, rr in ((False, 0.5), (True, 1.0)):
        for fast in (False, True):
            read = scan(tmp_path / "run", Rules(judged=qrels.grades, double=double), Log("run"), fast=fast)
            assert evaluate([Measure("RR")], qrels, read.topics) == {"RR": {b"1": rr}}


def test_subtopics_go_to_ir_measures_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 s1 a 1\n1 s2 a 1\n1 s2 b 1\n")
    (tmp_path / "run").write_text("1 Q0 b 1 3 t\n1 Q0 x 2 2 t\n1 Q0 a 3 1 t\n")
    qrels = read_qrels(tmp_path / "qrels")
    read = scan(tmp_path / "run", Rules(judged=qrels.grades), Log("run"))
    ours = evaluate([Measure("alpha_nDCG@10")], qrels, read.topics)
    theirs: Any = ir_measures.calc_aggregate(
        [ir_measures.parse_measure("alpha_nDCG@10")],
        list(ir_measures.read_trec_qrels(str(tmp_path / "qrels"))),
        list(ir_measures.read_trec_run(str(tmp_path / "run"))),
    )
    assert ours["alpha_nDCG@10"][b"1"] == pytest.approx(next(iter(theirs.values())), abs=1e-9)
    with pytest.raises(EvaluatorError, match="by subtopic"):
        evaluate([Measure("AP")], qrels, read.topics)


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "P",
        "P@0",
        "AP(rel=0)@x",
        "__import__('os')",
        "nDCG@-1",
        "(" * 5000,
        "P@5;P@6",
        "AP@" + "9" * 5000,
    ],
)
def test_bad_measures_are_refused(text: str) -> None:
    with pytest.raises(EvaluatorError):
        Measure(text)


def test_intervals() -> None:
    import random

    random.seed(3)
    values = [random.random() for _ in range(40)]
    low, high = intervals({"m": values})["m"]
    mean = sum(values) / 40
    spread = 1.96 * (sum((v - mean) ** 2 for v in values) / 39 / 40) ** 0.5
    assert low == pytest.approx(mean - spread, abs=0.02) and high == pytest.approx(mean + spread, abs=0.02)
    assert intervals({"m": values}) == intervals({"m": values})
    many = values * 20
    assert intervals({"m": many})["m"][0] < mean < intervals({"m": many})["m"][1]
    assert intervals({"one": [0.5]}) == {}


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("RBP(p=0.5)", "RBP(p=0.5,rel=1)"),
        ("RBP(rel=1)@10", "RBP(rel=1)"),
        ("ERR", "ERR@10"),
        ("alpha_nDCG", "alpha_nDCG@10"),
        ("RR(judged_only=True)@5", "RR@5"),
    ],
)
def test_the_fix_of_a_measure_names_one_that_some_provider_computes(text: str, other: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        require([Measure(text)])
    measure = ir_measures.parse_measure(other)
    assert f" {measure}, or" in caught.value.fix
    assert any(provider.supports(measure) for provider in ir_measures.DefaultPipeline.providers)
