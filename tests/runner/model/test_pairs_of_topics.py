"""Figures of two runs on one measure; those of whole comparisons are checked with their views."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from runner.model.comparing import by_number, on_topics, sign_test, sorted_pairs


@given(st.integers(0, 1500), st.integers(0, 1500))
def test_the_sign_test_is_scipys(wins: int, losses: int) -> None:
    wanted = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == pytest.approx(wanted, rel=1e-9, abs=1e-280)  # scipy's is 0 below


def test_topics_go_from_the_best_of_the_first_to_that_of_the_second() -> None:
    ours, theirs = {"a": 0.5, "b": 0.9, "c": 0.1, "d": 1.0}, {"a": 0.5, "b": 0.1, "c": 0.2, "x": 0.0}
    for direction, order in (("higher", "bac"), ("lower", "cab")):
        one = on_topics("m", "M", direction, ours, theirs, (0.1, 0.2))
        assert [pair.topic for pair in sorted_pairs(one)] == list(order)
        assert (one.wins, one.losses, one.ties) == ((1, 1, 1))
        assert (one.only_first, one.only_second) == (("d",), ("x",))


def test_without_topics_there_are_the_figures_of_both() -> None:
    one = on_topics("m", "M", "higher", {}, {"a": 1.0}, (0.25, 0.5))
    assert (one.first, one.second, one.difference, one.pairs, one.p) == (0.25, 0.5, -0.25, (), None)


def test_a_figure_that_is_no_mean_of_its_values_stays_the_figure() -> None:
    ours, theirs = {"a": 1.0, "b": 0.0, "c": 9.0}, {"a": 4.0, "b": 4.0, "c": 4.0}
    one = on_topics("m", "RMSE(x)", "lower", ours, theirs, ((10 / 3) ** 0.5, 2.0))
    assert (one.first, one.second) == ((10 / 3) ** 0.5, 2.0) and one.effect is None and not one.means
    assert (one.wins, one.losses, one.ties) == (2, 1, 0)
    assert on_topics("m", "MAE(x)", "lower", ours, theirs, (10 / 3, 4.0)).means
    known = on_topics("m", "MAE(x, rule=median)", "lower", theirs, theirs, (4.0, 4.0), means=False)
    assert not known.means, "a median that is the mean by chance"


def test_topics_that_are_numbers_stand_in_their_order() -> None:
    names = ["9", "10", "010", "q2", "q10", "", "9" * 5000, "٣", "1.10", "1.9"]
    assert sorted(names, key=by_number) == ["", "1.9", "1.10", "9", "010", "10", "9" * 5000, "q2", "q10", "٣"]
    ours, theirs = dict.fromkeys(["10", "9", "2", "x"], 1.0), dict.fromkeys(["100", "20", "x"], 1.0)
    one = on_topics("m", "M", "higher", ours, theirs, (1, 1))
    assert (one.only_first, one.only_second) == (("2", "9", "10"), ("20", "100"))
    ours, theirs = dict.fromkeys(["10", "9", "2"], 0.75), dict.fromkeys(["10", "9", "2"], 0.5)
    both = on_topics("m", "M", "higher", ours, theirs, (0.75, 0.5))
    assert [pair.topic for pair in both.pairs] == [p.topic for p in sorted_pairs(both)] == ["2", "9", "10"]


FINITE = st.floats(-1e150, 1e150)  # as results may have them


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=5))
def test_any_numbers_can_be_compared(values: list[tuple[float, float]]) -> None:
    ours, theirs = ({str(n): pair[side] for n, pair in enumerate(values)} for side in (0, 1))
    one = on_topics("m", "M", "higher", ours, theirs, (fmean(ours.values()), fmean(theirs.values())))
    assert one.means and all(map(math.isfinite, (one.first, one.second, one.difference, one.effect or 0.0)))
    assert one.wins + one.losses + one.ties == len(values) == len(sorted_pairs(one))
