"""A missing record counts as the worst value that there is, whatever the measure: leaving out never gains."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from evaluator.errors import EvaluatorError
from evaluator.measures.records.base import MISSING, Columns
from evaluator.measures.records.named import measure

L = ("aabb", "aabb")
P = ([1, 1, 0, 0], "aabb")
D = ([{"a": 1}, {"a": 1}, {"b": 1}, {"b": 1}], "aabb")
N = ([1, 2, 3, 4], [1, 2, 3, 4])
S = ([[[0, 4, "x"]]] * 4, [[[0, 4, "x"]]] * 4)
T = (["one two three four five"] * 4, ["one two three four five"] * 4)
CASES = [  # output and truths, the best value, that without the last record, that without any
    ("Accuracy(x)", L, 1, 3 / 4, 0),
    ("BalancedAccuracy(x)", L, 1, 3 / 4, 0),
    ("F1(x)", L, 1, (1 + 2 / 3) / 2, 0),
    ("Precision(x)", L, 1, 3 / 4, 0),
    ("Recall(x)", L, 1, 3 / 4, 0),
    ("MCC(x)", L, 1, 3 / 4 - 1 / 4, -1),
    ("Kappa(x)", L, 1, 3 / 4 - 1 / 4, -1),
    ("LabelsF1(x)", ([["a"]] * 4, [["a"]] * 4), 1, 6 / 7, 0),
    ("LabelsPrecision(x)", ([["a"]] * 4, [["a"]] * 4), 1, 3 / 4, 0),
    ("LabelsRecall(x)", ([["a"]] * 4, [["a"]] * 4), 1, 3 / 4, 0),
    ("SubsetAccuracy(x)", ([[]] * 4, [[]] * 4), 1, 3 / 4, 0),
    ("Jaccard(x)", ([[]] * 4, [[]] * 4), 1, 3 / 4, 0),
    ("HammingLoss(x, labels=[a])", ([[]] * 4, [[]] * 4), 0, 1 / 4, 1),
    ("AUC(x, positive=a)", P, 1, 1 / 2, 0),
    ("AUC(x)", D, 1, 1 / 2, 0),
    ("AveragePrecision(x, positive=a)", P, 1, 2 / 3, (1 / 3 + 2 / 4) / 2),
    ("LogLoss(x, positive=a)", P, 0, -log(2**-52) / 4, -log(2**-52)),
    ("LogLoss(x)", D, 0, -log(2**-52) / 4, -log(2**-52)),
    ("Brier(x, positive=a)", P, 0, 1 / 4, 1),
    ("Brier(x)", D, 0, 2 / 4, 2),
    ("CalibrationError(x)", D, 0, 1 / 4, 1),
    ("MAE(x, range=[0, 10])", N, 0, 6 / 4, (9 + 8 + 7 + 6) / 4),
    ("RMSE(x, range=[0, 10])", N, 0, 3, ((81 + 64 + 49 + 36) / 4) ** 0.5),
    ("Pearson(x)", N, 1, 3 / 4 - 1 / 4, -1),
    ("Spearman(x)", N, 1, 3 / 4 - 1 / 4, -1),
    ("Kendall(x)", N, 1, 3 / 4 - 1 / 4, -1),
    ("Number(x, range=[0, 10], better=lower)", N, 2.5, 16 / 4, 10),
    ("Number(x, range=[0, 10], better=higher)", N, 2.5, 6 / 4, 0),
    ("SpanF1(x)", S, 1, 6 / 7, 0),
    ("SpanF1(x, match=overlap)", S, 1, 6 / 7, 0),
    ("SpanPrecision(x)", S, 1, 3 / 4, 0),
    ("SpanRecall(x)", S, 1, 3 / 4, 0),
    ("ExactMatch(x)", T, 1, 3 / 4, 0),
    ("TokenF1(x)", T, 1, 3 / 4, 0),
    ("ROUGE(x)", T, 1, 3 / 4, 0),
    ("BLEU(x)", T, 100, 100 * 2.718281828459045 ** (1 - 20 / 15), 0),
    ("IR(x, measure='RR')", ([["d"]] * 4, [["d"]] * 4), 1, 3 / 4, 0),
]


def columns(text: str, rows: Any, missing: int) -> Columns:
    """The rows, the last ``missing`` of which the output has not."""
    one = measure(text)
    forms = {column.side: column.form for column in one.columns()}
    said = [forms["output"].read(v) for v in rows[0]]
    said[len(said) - missing :] = [MISSING] * missing
    right = [forms["truth"].read(v) for v in rows[1]] if one.compares else []
    return Columns(list("1234")[: len(said)], {"x": said}, {"x": right})


@pytest.mark.parametrize(("text", "rows", "best", "without_one", "without_all"), CASES)
def test_a_missing_record_has_the_worst_value(
    text: str, rows: Any, best: float, without_one: float, without_all: float
) -> None:
    one = measure(text)
    found = [one.value(columns(text, rows, missing)) for missing in (0, 1, 4)]
    assert found == pytest.approx([best, without_one, without_all], abs=1e-9)
    sign = 1 if one.direction == "higher" else -1
    assert sign * found[0] >= sign * found[1] >= sign * found[2]


def test_chrf_of_missing_records() -> None:
    found = [measure("chrF(x)").value(columns("chrF(x)", T, n)) for n in (0, 1, 4)]
    assert found[0] == pytest.approx(100) and 0 == found[2] < found[1] < 100


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("MCC(x)", ("ab", "aa")),
        ("Pearson(x)", ([1, 2], [3, 3])),
        ("AUC(x, positive=a)", ([1, 0], "bb")),
        ("SpanF1(x)", ([[]], [[]])),
        ("BLEU(x)", (["a"], [[]])),
        ("HammingLoss(x, labels=[a])", ([["a"]], [["z"]])),
        ("Kappa(x, weights=linear, labels=[a])", ("ab", "ab")),
    ],
)
def test_truths_without_a_value_are_refused_and_not_shown(text: str, rows: Any) -> None:
    with pytest.raises(EvaluatorError) as caught:
        measure(text).value(columns(text, rows, 0))
    assert caught.value.why and "z" not in caught.value.why


@pytest.mark.parametrize(
    "text",
    [
        "Kappa(x, weights=linear)", "HammingLoss(x)", "Number(x)", "Number(x, range=[0, 1])", "IR(x)",
        "IR(x, measure=nonsense)", "IR(x, measure='condensed nDCG@5')", "ROUGE(x, type=rouge0)", "BLEU(x, tokenize=spm)",
        "TokenF1(x, macro=x)", "SpanF1(x, match=fuzzy)", "CalibrationError(x, bins=0)", "Accuracy(x, rule=median)",
        "Number(x, range=[0, 1], better=lower, truth=y)",
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(text: str) -> None:
    with pytest.raises(EvaluatorError):
        measure(text)


def hostile(text: str, value: Any) -> Any:
    return measure(text).columns()[0].form.read(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("LabelsF1(x)", "a"), ("LabelsF1(x)", ["a"] * 1001), ("LabelsF1(x)", [["a"]]), ("LabelsF1(x)", [None]),
        ("AUC(x)", {}), ("AUC(x)", {"a": "1"}), ("AUC(x)", {"a": True}), ("LogLoss(x)", {"a": 0.6}),
        ("LogLoss(x)", {"a": 2, "b": -1}), ("LogLoss(x, positive=a)", 1.1), ("LogLoss(x, positive=a)", True),
        ("SpanF1(x)", [[0]]), ("SpanF1(x)", [[3, 3]]), ("SpanF1(x)", [[5, 3]]), ("SpanF1(x)", [[-1, 3]]),
        ("SpanF1(x)", [[0, 1.5]]), ("SpanF1(x)", [[0, 1 << 60]]), ("SpanF1(x)", [[0, 1, []]]), ("SpanF1(x)", {"start": 0}),
        ("TokenF1(x)", ["a"]), ("TokenF1(x)", "a" * 100_001), ("BLEU(x)", 3),
        ("IR(x, measure=AP)", ["a", "a"]), ("IR(x, measure=AP)", {"a": 1}), ("IR(x, measure=AP)", [{}]),
        ("IR(x, measure=AP)", [1, "1"]),
    ],
)  # fmt: skip
def test_what_cannot_be_used_counts_as_missing(text: str, value: Any) -> None:
    assert hostile(text, value) is MISSING


def test_large_hostile_values_take_no_time_and_no_memory() -> None:
    wide = Columns(["1"], {"x": [frozenset({(0, 1 << 52, "x")})]}, {"x": [frozenset({(5, 9, "x")})]})
    assert 0 < measure("SpanF1(x, match=overlap)").value(wide) < 1e-10
    words = " ".join("ab"[n % 3 == 0] for n in range(50_000))
    long = Columns(["1"], {"x": [words]}, {"x": [(words[::-1],)]})
    assert measure("ROUGE(x)").value(long) > 0.9  # a table would have 2.5 thousand million cells


def test_labels_that_nobody_knows_make_no_rows() -> None:
    """What is shown by class are classes of the truths: an output may name as many others as it likes."""
    said, right = [f"label {n}" for n in range(5_000)], ["x"] * 5_000
    assert measure("F1(x)").parts(Columns(said, {"x": said}, {"x": right})) == {"x": 0}
    spans = [frozenset({(0, 1, one)}) for one in said]
    there = [frozenset({(0, 1, "x")})] * 5_000
    assert measure("SpanF1(x)").parts(Columns(said, {"x": spans}, {"x": there})) == {"x": 0}
