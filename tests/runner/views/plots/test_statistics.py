"""The statistics of plots against the paper's table, against scipy and against values worked out by hand."""

from __future__ import annotations

import pytest

from runner.model.errors import RunnerError
from runner.views.plots.critical import Ranks, critical_difference, ranked

# Demšar 2006, table 5 (a): q at alpha 0.05 for 2 to 10 classifiers.
DEMSAR = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)


@pytest.mark.parametrize(("rows", "q"), [*enumerate(DEMSAR, 2)])
def test_the_critical_difference_is_that_of_the_paper(rows: int, q: float) -> None:
    wanted = q * (rows * (rows + 1) / (6 * 14)) ** 0.5
    assert critical_difference(rows, 14) == pytest.approx(wanted, abs=2e-3)


def test_the_example_of_the_paper() -> None:
    """Demšar 2006, section 3.2.2: four classifiers on 14 data sets have a critical difference of 1.25."""
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_mean_ranks_share_ties_and_leave_out_topics_that_some_row_lacks() -> None:
    scores = {
        "a": {"1": 0.9, "2": 0.5, "3": 0.5, "only": 1.0},
        "b": {"1": 0.1, "2": 0.5, "3": 0.4},
        "c": {"1": 0.2, "2": 0.1, "3": 0.3},
    }
    found = ranked(scores, higher=True)
    assert found.topics == 3
    assert found.means == pytest.approx(
        {"a": (1 + 1.5 + 1) / 3, "b": (3 + 1.5 + 2) / 3, "c": (2 + 3 + 3) / 3}
    )
    assert ranked(scores, higher=False).means["a"] == pytest.approx((3 + 2.5 + 3) / 3)


def test_groups_are_the_largest_in_which_no_two_differ() -> None:
    topics = [str(n) for n in range(60)]
    scores = {
        name: {t: value + int(t) % 3 / 100 for t in topics}
        for name, value in {"a": 0.9, "b": 0.5, "c": 0.1}.items()
    }
    found = ranked(scores, higher=True)
    assert found.p < 0.001 and found.groups() == [["a"], ["b"], ["c"]]
    same = ranked({name: dict.fromkeys(topics, 0.5) for name in "abc"}, higher=True)
    assert same.p == 1.0 and same.groups() == [["a", "b", "c"]]


def test_without_a_difference_by_friedmans_test_there_is_one_group() -> None:
    """Demšar 2006, section 3.2.2: pairs are compared only where the null hypothesis is rejected."""
    means = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert Ranks(means, 9, 0.06, 0.5).groups() == [["a", "b", "c"]]
    assert Ranks(means, 9, 0.05, 0.5).groups() == [["a"], ["b"], ["c"]]


def test_too_few_rows_or_topics_are_told() -> None:
    for scores in ({}, {"a": {"1": 1.0}, "b": {"1": 0.0}}, {name: {"1": 1.0} for name in "abc"}):
        with pytest.raises(RunnerError) as caught:
            ranked(scores, higher=True)
        assert caught.value.code == "E102"
