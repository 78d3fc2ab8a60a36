"""Figures of three runs and more on one measure: means over shared topics, pairs with Holm's correction, spread, shared documents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from runner.model.comparing.overlap import mean, overlaps
from runner.model.comparing.several import Scored, by_sign, on_measure, shared_documents, with_tests
from runner.model.comparing.topics import holm, on_topics

VALUES = [
    {"a": 0.9, "b": 0.5, "c": 0.2, "x": 1.0},
    {"a": 0.1, "b": 0.5, "c": 0.4, "x": 0.5},
    {"a": 0.3, "b": 0.6, "c": 0.1},
]


def scored(values: dict[str, float]) -> Scored:
    return Scored(sum(values.values()) / len(values), (0.1, 0.9), values)


def test_all_are_compared_on_the_topics_that_all_have() -> None:
    made = on_measure("m", "M", "higher", [scored(one) for one in VALUES])
    assert made.values == pytest.approx((1.6 / 3, 1 / 3, 1 / 3)) and made.means and made.left_out == 1
    assert made.intervals == (None, None, (0.1, 0.9)), "those of the others are over a further topic"
    assert [(row.topic, row.spread) for row in made.topics] == [
        ("a", pytest.approx(0.8)),
        ("c", pytest.approx(0.3)),
        ("b", pytest.approx(0.1)),
    ]
    assert made.counts() == [
        [None, (1, 1, 1), (2, 1, 0)],
        [(1, 1, 1), None, (1, 2, 0)],
        [(1, 2, 0), (2, 1, 0), None],
    ]
    lower = on_measure("m", "M", "lower", [scored(one) for one in VALUES])
    assert lower.counts()[0][2] == (1, 2, 0) and lower.best == pytest.approx(1 / 3)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=7, max_size=7), min_size=2, max_size=8)
)
def test_each_pair_is_as_if_compared_alone_and_corrected_together(rows: list[list[float]]) -> None:
    runs = [scored(dict(zip("abcdefg", row, strict=True))) for row in rows]
    made = with_tests(on_measure("m", "M", "higher", runs), by_sign)
    assert len(made.pairs) == len(rows) * (len(rows) - 1) // 2
    for pair in made.pairs:
        first, second = runs[pair.first], runs[pair.second]
        alone = on_topics("m", "M", "higher", first.by_topic, second.by_topic, (first.value, second.value))
        assert (pair.wins, pair.losses, pair.ties) == (alone.wins, alone.losses, alone.ties)
        assert pair.difference == pytest.approx(alone.difference) and pair.effect == alone.effect
        n = pair.wins + pair.losses
        assert pair.p == pytest.approx(binomtest(pair.wins, n).pvalue if n else 1.0)
    corrected = holm([pair.p for pair in made.pairs if pair.p is not None])
    assert [pair.p_corrected for pair in made.pairs] == corrected


def test_what_is_no_mean_keeps_the_figures_of_the_runs() -> None:
    runs = [replace(scored(one), value=value) for one, value in zip(VALUES, (3.0, 2.0, 1.0), strict=True)]
    made = on_measure("m", "RMSE", "lower", runs)
    assert made.values == (3.0, 2.0, 1.0) and not made.means and made.intervals == ((0.1, 0.9),) * 3
    assert made.pairs[0].difference == 1.0 and made.pairs[0].effect is None
    none = on_measure("m", "M", "higher", [Scored(value, None, {}) for value in (0.25, 0.5)])
    assert none.values == (0.25, 0.5) and none.topics == ()
    assert with_tests(none, by_sign).pairs[0].p is None and none.counts() == [[None, None], [None, None]]


def test_documents_overlap_as_those_of_two_do() -> None:
    rankings = [{"1": "abcd", "2": "xy"}, {"1": "bcde", "2": "zx"}, {"1": "qrs", "2": ""}]
    found = shared_documents(rankings)
    assert [(one.first, one.second, one.topics) for one in found] == [(0, 1, 2), (0, 2, 1), (1, 2, 1)]
    assert found[0].jaccard == pytest.approx(mean(overlaps(rankings[0], rankings[1])).jaccard)
    assert found[1].jaccard == (0.0, 0.0)
    assert shared_documents([{}, {"1": "a"}]) == []
