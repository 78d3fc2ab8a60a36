"""Our measures against ir_measures (and so pytrec_eval) on random runs with ties of every sort."""

from __future__ import annotations

import pkgutil
import random
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.measures.interval import intervals
from evaluator.measures.ir import Measure, aggregate, evaluate, require
from tests.evaluator.measures.reading import read, score

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
# In single precision, the last three are one number.
SCORES = ["3", "2", "1.5", "1.50000001", "1.500000001", "-4", "16777216", "16777217", "16777218"]
DOCS = [f"d{i}" for i in range(14)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str]:
    """Judgements and a run, as files."""
    topics = ["1", "2", "x3"]
    qrels = []
    for topic in topics[: draw(st.integers(1, 3))]:
        judged = draw(st.lists(st.sampled_from(DOCS), min_size=1, max_size=10, unique=True))
        qrels += [f"{topic} 0 {doc} {draw(st.integers(0, 3))}" for doc in judged]
    run = []
    for topic in draw(st.lists(st.sampled_from([*topics, "unjudged"]), min_size=1, unique=True)):
        docs = draw(st.lists(st.sampled_from(DOCS), min_size=1, max_size=12, unique=True))
        run += [f"{topic} Q0 {doc} {i} {draw(st.sampled_from(SCORES))} tag" for i, doc in enumerate(docs, 1)]
    return "\n".join(qrels) + "\n", "\n".join(run) + "\n"


def parsed(text: str) -> Any:
    return ir_measures.parse_measure(text)


def theirs(function: Any, texts: Sequence[str], qrels: str, run: str) -> Any:
    """Call a function of ir_measures with measures and the contents of files."""
    files = list(ir_measures.read_trec_qrels(qrels)), list(ir_measures.read_trec_run(run))
    return function([parsed(text) for text in texts], *files)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(cases(), st.booleans())
def test_same_values_as_ir_measures(case: tuple[str, str], fast: bool) -> None:
    measures = [Measure(text) for text in TEXTS]
    assert all(measure.own for measure in measures)
    log = Log("run")
    with tempfile.TemporaryDirectory() as folder:
        values = score(Path(folder), TEXTS, *case, log, fast=fast)
    assert not log.invalid
    found = theirs(ir_measures.calc, TEXTS, *case)
    names = {parsed(text): text for text in TEXTS}
    for metric in found.per_query:
        ours = values[names[metric.measure]][metric.query_id.encode()]
        assert ours == pytest.approx(metric.value, abs=1e-9), (metric, case)
    judged = {line.split()[0] for line in case[0].splitlines()}
    for measure in measures:
        expected = found.aggregated[parsed(measure.text)]
        assert aggregate(measure, values[measure.text]) == pytest.approx(expected, abs=1e-9)
        # The same topics: also those without a relevant document and those without an answer.
        assert len(values[measure.text]) == len(judged)


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


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(NUMBERED, st.booleans())
def test_exponential_gains_are_ordered_in_double_precision_as_by_gdeval(
    case: tuple[str, str], fast: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        run = "".join(line for line in case[1].splitlines(True) if not line.startswith("unjudged"))
        relevant = {line.split()[0] for line in case[0].splitlines() if not line.endswith(" 0")}
        judged = "".join(line for line in case[0].splitlines(True) if line.split()[0] in relevant)
        # gdeval divides by 0 for a topic without a relevant document.
        theirs = gdeval(Path(name), judged, run)
        values = score(Path(name), EXPONENTIAL, judged, run, fast=fast)
    for topic, row in theirs.items():
        assert {text: values[text][topic.encode()] for text in EXPONENTIAL} == row, case


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("text", ["ERR@1", "nDCG(dcg='exp-log2')@1", "alpha_nDCG@1", "ERR_IA@1", "Compat"])
def test_each_measure_orders_scores_as_its_own_tool_does(text: str, fast: bool, tmp_path: Path) -> None:
    """Scores that differ in double precision only: trec_eval puts d2 first, gdeval and ndeval put d1 first."""
    qrels = "1 1 d1 1\n1 1 d3 1\n"
    run = "1 Q0 d1 1 1.500000001 t\n1 Q0 d2 2 1.5 t\n1 Q0 d3 3 1 t\n"
    (expected,) = theirs(ir_measures.calc_aggregate, [text], qrels, run).values()
    for double in (False, True):
        judged, read_run = read(tmp_path, qrels, run, fast=fast, double=double)
        measures = [Measure(text), Measure("P@1"), Measure("RR"), Measure("SetP")]
        values = evaluate(measures, judged, read_run.topics)
        assert values[text][b"1"] == pytest.approx(expected, abs=1e-9)
        assert (values["P@1"][b"1"], values["RR"][b"1"]) == ((1.0, 1.0) if double else (0.0, 0.5))
        assert values["SetP"][b"1"] == pytest.approx(2 / 3)
        assert read_run.topics[b"1"].double == (None if double else {b"d1": 1, b"d3": 3})


def test_a_list_that_is_cut_has_the_documents_of_each_precision(tmp_path: Path) -> None:
    run, log = "1 Q0 d1 1 1.500000001 t\n1 Q0 d2 2 1.5 t\n", Log("run", {"F020": "warning"})
    _, read_run = read(tmp_path, "1 1 d1 1\n1 1 d2 2\n", run, log, max_documents=1)
    (topic,) = read_run.topics.values()
    assert (topic.retrieved, topic.ranks, topic.double) == (1, {b"d2": 1}, {b"d1": 1})


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(cases())
def test_values_are_bit_equal_to_pytrec_eval(case: tuple[str, str]) -> None:
    names = {
        "ndcg_cut_5": "nDCG@5", "ndcg": "nDCG", "map": "AP", "recip_rank": "RR",
        "P_5": "P@5", "recall_5": "R@5", "Rprec": "Rprec", "bpref": "Bpref",
    }  # fmt: skip
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for line in case[0].splitlines():
        topic, _, doc, grade = line.split()
        qrels.setdefault(topic, {})[doc] = int(grade)
    for line in case[1].splitlines():
        topic, _, doc, _, value, _ = line.split()
        run.setdefault(topic, {})[doc] = float(value)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    with tempfile.TemporaryDirectory() as folder:
        ours = score(Path(folder), names.values(), *case)
    for topic, by_name in theirs.items():
        assert {n: ours[m][topic.encode()] for n, m in names.items()} == by_name


@pytest.mark.parametrize(
    "text",
    [
        *("nonsense", "P", "P@0", "AP(rel=0)@x", "__import__('os')", "nDCG@-1", "P@5;P@6"),
        *("(" * 5000, "AP@" + "9" * 5000),
    ],
)
def test_bad_measures_are_refused(text: str) -> None:
    with pytest.raises(EvaluatorError):
        Measure(text)


def test_intervals() -> None:
    dice = random.Random(3)
    values = [dice.random() for _ in range(40)]
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
