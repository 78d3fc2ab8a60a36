"""Coefficients against scipy, against published figures, and against what must hold."""

from __future__ import annotations

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluator.errors import EvaluatorError
from evaluator.measures.boards import Comparison, align
from evaluator.measures.correlation import METHODS, Method, kendall, pearson, spearman, tau_gap, tauap_b

# Vectors of the tests of ircor (Urbano), the reference implementation of tau_AP,b; y_ties and x_ties are rounded.
X1 = [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992]
Y1 = [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988]
X1_TIES = [0.9, 0.4, 0.9, 0.9, 0.7, 0.1, 0.2, 0.4, 0.5, 1]
Y1_TIES = [0.8, 0.4, 0.8, 1, 0.7, 0.1, 0.4, 0.5, 0.6, 1]
X2 = [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38]
Y2 = [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644]
X2_TIES = [0.3, 0.6, 0.2, 0.9, 0.6, 0.2, 0.7, 0.8, 0.7, 0.4]
Y2_TIES = [0.3, 0.8, 0.7, 0.9, 0.1, 0.1, 0.5, 0.6, 1, 0.6]
X3 = [0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445]
Y3 = [0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25]
X3_TIES = [0.2, 0.6, 0.9, 0.1, 0.5, 0.6, 0.8, 0.4, 1, 0.4]
Y3_TIES = [0.8, 0.3, 0.3, 0.9, 0.6, 0.3, 0.2, 0.9, 0, 0.2]

tied = st.integers(0, 5).map(lambda n: n / 7)
spread = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 3))
pairs = st.one_of(
    st.lists(st.tuples(tied, tied), min_size=3, max_size=14),
    st.lists(st.tuples(spread, spread), min_size=3, max_size=14),
)


def sides(rows: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in rows], [b for _, b in rows]


def test_four_runs_and_one_swap() -> None:
    truth, judge = [1, 2, 3, 4], [1, 3, 2, 4]
    expected = {"kendall": 2 / 3, "tauap_b": 2 / 3, "tau_gap": 2 / 3, "spearman": 0.8, "pearson": 0.8}
    assert {name: of(truth, judge) for name, of in METHODS.items()} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("x", "y", "tau", "tauap"),
    [
        (X1, Y1, 0.9111, 0.8333),
        (X2, Y2, 0.2889, 0.2880),
        (X3, Y3, -0.6889, -0.6680),
        (X1_TIES, Y1_TIES, 0.9398, 0.7321),
        (X2_TIES, Y2_TIES, 0.3765, 0.2970),
        (X3_TIES, Y3_TIES, -0.6510, -0.7047),
        (
            [0, 0.2, 0.2, 0.4, 0.6, 0.6, 0.6, 0.8, 1, 1],
            [0.4, 0, 0.2, 0.2, 0.6, 0.6, 0.6, 1, 0.8, 1],
            0.75,
            0.6269841,
        ),
    ],
)
def test_published_figures(x: list[float], y: list[float], tau: float, tauap: float) -> None:
    for a, b in ((x, y), (y, x)):
        assert kendall(a, b) == pytest.approx(tau, abs=5e-5)
        assert tauap_b(a, b) == pytest.approx(tauap, abs=5e-5)


def test_ap_correlation_by_hand() -> None:
    # Judge: a c b d; truth: a b c d. Down the judge's: c 1/1, b 1/2, d 3/3. Down the truth's: b 1/1, c 1/2, d 3/3.
    assert tauap_b([4, 3, 2, 1], [4, 2, 3, 1]) == pytest.approx(2 / 3 * 2.5 - 1)
    # A swap at the head costs more than one at the tail: 2/3 (0 + 1 + 1) - 1 and 2/3 (1 + 1 + 2/3) - 1.
    assert tauap_b([4, 3, 2, 1], [3, 4, 2, 1]) == pytest.approx(1 / 3)
    assert tauap_b([4, 3, 2, 1], [4, 3, 1, 2]) == pytest.approx(7 / 9)


def test_gaps_by_hand() -> None:
    # Truth 10, 9, 5, 1; the judge swaps the first two (gap 1): 9 first; 10 has gap 1 above it, none of it right; 5 has
    # 4 + 5, all right; 1 has 8 + 9 + 4, all right.
    assert tau_gap([10, 9, 5, 1], [9, 10, 5, 1]) == pytest.approx(2 / 3 * (0 + 1 + 1) - 1)
    # Swaps 9 and 5: 5 has gap 5, right; 9 has 1 right of 1 + 4; 1 all right.
    assert tau_gap([10, 9, 5, 1], [10, 5, 9, 1]) == pytest.approx(2 / 3 * (1 + 1 / 5 + 1) - 1)
    # Runs that are truly tied are passed over.
    assert tau_gap([2, 2, 1], [3, 2, 1]) == 1
    assert tau_gap([1, 2, 2], [3, 2, 1]) == -1


@given(pairs)
def test_scipy_says_the_same(rows: list[tuple[float, float]]) -> None:
    a, b = sides(rows)
    if len(set(a)) < 2 or len(set(b)) < 2:
        assert all(of(a, b) is None for of in METHODS.values())
        return
    assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-9)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)
    expected = stats.pearsonr(a, b).statistic
    if not isnan(expected):
        assert pearson(a, b) == pytest.approx(expected, abs=1e-6)


@given(pairs)
def test_what_holds_for_all(rows: list[tuple[float, float]]) -> None:
    a, b = sides(rows)
    for name, of in METHODS.items():
        value = of(a, b)
        if value is None:
            continue
        assert -1 - 1e-9 <= value <= 1 + 1e-9
        if name != "tau_gap":
            assert value == pytest.approx(of(b, a), abs=1e-9)
        if name not in ("pearson", "tau_gap"):
            assert value == pytest.approx(of([3 * x + 1 for x in a], b), abs=1e-9), "only the order counts"
        if len(set(a)) == len(a):
            assert of(a, a) == pytest.approx(1)
            assert of(a, [-x for x in a]) == pytest.approx(-1)


def test_undefined_and_unequal() -> None:
    for of in METHODS.values():
        assert of([1, 1, 1], [1, 2, 3]) is None
        assert of([1, 2, 3], [1, 1, 1]) is None
        assert of([1], [1]) is None
        with pytest.raises(ValueError):
            of([1, 2], [1, 2, 3])


def test_only_the_best_runs_of_the_truth() -> None:
    truth = {"a": 5.0, "b": 4, "c": 3, "d": 2, "e": 1}
    judge = {"a": 5.0, "b": 4, "c": 3, "d": 1, "e": 2, "x": 9}
    assert Method("kendall").value(truth, judge) == pytest.approx(0.8)
    assert Method("kendall@3").value(truth, judge) == 1
    assert Method("kendall@10").value(truth, judge) == Method("kendall").value(truth, judge)
    assert Method("kendall@2").value(truth, judge) is None, "three runs are the least"
    for text in ("kendal", "kendall@", "kendall@0", "kendall@-1", "kendall@1.5", "kendall@²", ""):
        with pytest.raises(EvaluatorError):
            Method(text)


def test_aligning() -> None:
    truth, judge = {"a": 1.0, "b": 2.0}, {"b": 3.0, "c": 4.0}
    pair = align(truth, judge, "skip")
    assert (pair.truth, pair.judge, pair.missing, pair.unknown) == ({"b": 2}, {"b": 3}, ["a"], ["c"])
    assert align(truth, judge, "default").judge == {"a": 0, "b": 3}


def test_measures_of_leaderboards_by_their_strings() -> None:
    c = Comparison("kendall@nDCG@10/LENGTH")
    assert (c.method.text, c.truth, c.judge) == ("kendall", "nDCG@10", "LENGTH")
    c = Comparison("kendall@5@nDCG@10/LENGTH")
    assert (c.method.text, c.truth, c.judge) == ("kendall@5", "nDCG@10", "LENGTH")
    c = Comparison("tau_gap@RELEVANCE")
    assert (c.truth, c.judge) == ("RELEVANCE", "RELEVANCE")
    for text in ("kendall", "kendall@", "@x/y", "kendall@/y", "kendall@x/", "nope@x/y"):
        with pytest.raises(EvaluatorError):
            Comparison(text)
