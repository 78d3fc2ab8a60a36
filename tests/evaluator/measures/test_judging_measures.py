"""Precision, recall, F1 and Score as the shared task has them; what stands beside; the published tables add up."""

from __future__ import annotations

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.measures.judging import (
    NAMES,
    Counts,
    Measure,
    accuracy,
    balanced_accuracy,
    count,
    f1,
    kappa,
    precision,
    recall,
    spans,
    total,
    yes_rate,
)
from schemas.debates import CRITERIA

# Results of 2025 (touche.webis.de): share of answers with yes, by system, for quantity, quality, relation, manner.
SYSTEMS = [
    (0.70, (0.95, 0.17, 0.82, 0.84)),
    (0.65, (0.94, 0.26, 0.74, 0.67)),
    (0.62, (0.35, 1.00, 0.32, 0.80)),
    (0.54, (0.70, 0.02, 0.86, 0.59)),
    (0.50, (0.70, 0.07, 0.80, 0.41)),
    (0.42, (0.41, 0.31, 0.87, 0.09)),
    (0.42, (0.20, 0.02, 0.86, 0.58)),
    (0.38, (0.35, 0.05, 0.94, 0.17)),
]
# Judges: Score, then precision, recall and F1 of the four criteria. The first always says yes.
JUDGES = [
    (0.67, ((0.57, 1.00, 0.73), (0.24, 1.00, 0.38), (0.78, 1.00, 0.87), (0.52, 1.00, 0.68))),
    (0.64, ((0.59, 0.86, 0.70), (0.18, 0.66, 0.29), (0.81, 0.99, 0.89), (0.52, 0.99, 0.68))),
    (0.64, ((0.59, 0.88, 0.71), (0.17, 0.63, 0.27), (0.82, 0.99, 0.89), (0.52, 0.97, 0.67))),
    (0.62, ((0.58, 0.75, 0.65), (0.15, 0.52, 0.24), (0.82, 0.98, 0.90), (0.52, 0.99, 0.68))),
    (0.62, ((0.59, 0.67, 0.63), (0.17, 0.52, 0.25), (0.84, 0.97, 0.90), (0.52, 0.98, 0.68))),
    (0.56, ((0.60, 0.60, 0.60), (0.19, 0.40, 0.25), (0.84, 0.86, 0.85), (0.50, 0.57, 0.53))),
    (0.56, ((0.56, 0.43, 0.49), (0.15, 0.36, 0.21), (0.83, 0.92, 0.88), (0.51, 0.93, 0.66))),
    (0.55, ((0.59, 0.64, 0.61), (0.16, 0.32, 0.21), (0.84, 0.80, 0.82), (0.52, 0.64, 0.57))),
    (0.54, ((0.58, 0.53, 0.55), (0.20, 0.35, 0.25), (0.87, 0.75, 0.81), (0.53, 0.56, 0.54))),
    (0.52, ((0.57, 0.46, 0.51), (0.15, 0.37, 0.21), (0.84, 0.79, 0.81), (0.50, 0.63, 0.56))),
    (0.51, ((0.49, 0.21, 0.29), (0.16, 0.31, 0.21), (0.85, 0.90, 0.88), (0.51, 0.92, 0.66))),
    (0.49, ((0.59, 0.63, 0.61), (0.20, 0.58, 0.30), (0.84, 0.39, 0.53), (0.50, 0.54, 0.52))),
    (0.39, ((0.57, 0.32, 0.41), (0.17, 0.21, 0.19), (0.84, 0.67, 0.74), (0.45, 0.16, 0.24))),
    (0.35, ((0.63, 0.40, 0.49), (0.16, 0.17, 0.16), (0.84, 0.44, 0.58), (0.41, 0.10, 0.16))),
]
cells = st.builds(Counts, *[st.integers(0, 400)] * 4)


def test_a_case_worked_out_by_hand() -> None:
    # yes and right 3, yes and wrong 1, missed 2, no and right 4
    c = Counts(3, 1, 2, 4)
    assert precision(c) == 3 / 4
    assert recall(c) == 3 / 5
    assert f1(c) == pytest.approx(2 / 3)
    assert accuracy(c) == 0.7
    assert balanced_accuracy(c) == pytest.approx((3 / 5 + 4 / 5) / 2)
    assert kappa(c) == pytest.approx((0.7 - 0.5) / (1 - 0.5))  # pe = .4 * .5 + .6 * .5
    assert yes_rate(c) == 0.4


def test_counting() -> None:
    labels = [1, 1, 1, 1, 0, 0, 0, None, None]
    scores = [0.5, 1.0, 0.4999, None, 0.5, nan, 0.0, 1.0, None]
    assert count(labels, scores) == Counts(2, 1, 2, 2), (
        "0.5 is yes; none and NaN are no; unlabelled turns are left out"
    )


def test_without_true_positives_everything_is_zero() -> None:
    for c in (Counts(), Counts(0, 5, 0, 0), Counts(0, 0, 5, 0), Counts(0, 3, 3, 3)):
        assert precision(c) == recall(c) == f1(c) == 0
    assert all(of(Counts()) == 0 for of in NAMES.values())


@given(st.integers(0, 300), st.integers(0, 300))
def test_always_yes(yes: int, no: int) -> None:
    c = Counts(yes, no, 0, 0)
    assert kappa(c) == 0
    if yes and no:
        assert balanced_accuracy(c) == 0.5
        assert precision(c) == yes / (yes + no), "the share of answers that people said yes to"
        assert recall(c) == 1


@given(cells)
def test_what_holds_for_all_counts(c: Counts) -> None:
    for name, of in NAMES.items():
        assert (-1 if name == "kappa" else 0) <= of(c) <= 1
    assert f1(c) <= max(precision(c), recall(c)) + 1e-12
    if c.tp + c.fp + c.fn:
        assert f1(c) == pytest.approx(2 * c.tp / (2 * c.tp + c.fp + c.fn))
    swapped = Counts(c.tn, c.fn, c.fp, c.tp)  # yes and no exchanged
    assert kappa(swapped) == pytest.approx(kappa(c))
    assert balanced_accuracy(swapped) == pytest.approx(balanced_accuracy(c))
    if c.tp + c.fn and c.fp + c.tn and not (c.fp or c.fn):
        assert kappa(c) == balanced_accuracy(c) == 1


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0.0, 1.0])), min_size=2, max_size=60))
def test_kappa_by_its_definition(pairs: list[tuple[int, float]]) -> None:
    n = len(pairs)
    po = sum(a == b for a, b in pairs) / n
    pe = sum((sum(a == k for a, _ in pairs) / n) * (sum(b == k for _, b in pairs) / n) for k in (0, 1))
    found = kappa(count([a for a, _ in pairs], [b for _, b in pairs]))
    assert found == pytest.approx((po - pe) / (1 - pe) if pe < 1 - 1e-12 else 0)


@given(st.lists(cells, max_size=6))
def test_totals(counts: list[Counts]) -> None:
    assert sum(total(counts)) == sum(map(sum, counts))


# --- the published tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("score", "shares"), SYSTEMS)
def test_the_score_of_a_system_is_the_mean_of_four_shares(score: float, shares: tuple[float, ...]) -> None:
    assert sum(shares) / 4 == pytest.approx(score, abs=0.0051)


@pytest.mark.parametrize(("score", "values"), JUDGES)
def test_f1_and_score_of_a_judge_follow_from_precision_and_recall(
    score: float, values: tuple[tuple[float, float, float], ...]
) -> None:
    for p, r, published in values:
        # Anything that rounds to the published precision and recall may stand behind them.
        bounds = [
            2 * a * b / (a + b) for a in (p - 0.005, p + 0.005) for b in (r - 0.005, min(1.0, r + 0.005))
        ]
        assert min(bounds) - 0.005 <= published <= max(bounds) + 0.005
    assert sum(f for _, _, f in values) / 4 == pytest.approx(score, abs=0.0101)


def test_precision_of_always_yes_is_how_often_people_said_yes() -> None:
    for column in range(4):
        shares = [values[column] for _, values in SYSTEMS]
        judged = [1] * round(sum(100 * s for s in shares)) + [0] * round(sum(100 * (1 - s) for s in shares))
        assert len(judged) == 800
        c = count(judged, [1.0] * 800)
        p, r, f = JUDGES[0][1][column]
        assert (precision(c), recall(c), f1(c)) == (
            pytest.approx(p, abs=0.0101), pytest.approx(r), pytest.approx(f, abs=0.0101)
        )  # fmt: skip


# --- measures by their strings -----------------------------------------------------------------------------


def test_score_is_the_mean_of_the_four_f1() -> None:
    counts = {c: Counts(n + 1, n, 2, 3) for n, c in enumerate(CRITERIA)}
    assert Measure("score").value(counts) == Measure("f1").value(counts)
    assert Measure("score").value(counts) == pytest.approx(sum(map(f1, counts.values())) / 4)
    assert Measure("balanced-accuracy@manner").value(counts) == balanced_accuracy(counts["manner"])
    assert Measure("kappa@quality").criteria == ("quality",)


@pytest.mark.parametrize(
    "text", ["", "f2", "f1@", "f1@Quality", "f1@quality@quality", "score@quality", "F1", "nDCG@10"]
)
def test_what_is_no_measure(text: str) -> None:
    with pytest.raises(EvaluatorError) as error:
        Measure(text)
    assert "balanced-accuracy" in "".join(error.value.lines())


def test_intervals_hold_the_value_and_repeat() -> None:
    debates = [{c: Counts(1 + n % 3, n % 2, n % 2, 1) for c in CRITERIA} for n in range(30)]
    measures = {"f": Measure("f1@quality"), "k": Measure("kappa"), "s": Measure("score")}
    found = spans(measures, debates)
    counts = {c: total([d[c] for d in debates]) for c in CRITERIA}
    for name, one in found.items():
        assert one.interval is not None and one.resamples is not None
        (low, high), values = one.interval, one.resamples.values
        assert len(values) == 1000 and low > min(values) and high < max(values)
        assert low <= measures[name].value(counts) <= high and low < high
    assert spans(measures, debates) == found
    assert spans({"s": measures["s"]}, debates) == {"s": found["s"]}
    assert spans(measures, debates[:1]) == {}


def test_two_judges_are_drawn_alike_on_the_same_labels_alone() -> None:
    labels = [[n % 2, 1, n % 3 == 0] for n in range(12)]

    def drawn(labels: list[list[int]], says: float) -> str:
        debates = [dict.fromkeys(CRITERIA, count(turns, [says] * len(turns))) for turns in labels]
        one = spans({"f": Measure("f1")}, debates)["f"].resamples
        assert one is not None
        return one.drawn

    assert drawn(labels, 0.9) == drawn(labels, 0.1), "what the judge says changes nothing"
    assert drawn(labels, 0.9) != drawn([*labels[:-1], [1, 1]], 0.9) != drawn(labels[:-1], 0.9)
