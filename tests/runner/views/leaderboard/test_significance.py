"""The statistics against independent implementations."""

from __future__ import annotations

import itertools
import random
import time
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_rel

from benchmarks.significance import t_tests, tukey
from runner.model.comparing import holm
from runner.views.leaderboard.significance import EXACT_UP_TO, between, flips, randomisation, remembered


def sample(n: int, mean: float, seed: int = 1) -> list[float]:
    dice = random.Random(seed)
    return [dice.gauss(mean, 0.1) for _ in range(n)]


@pytest.mark.parametrize("n", [1, 4, 9])
def test_few_topics_are_tested_exactly(n: int) -> None:
    row = sample(n, 0.05)
    seen = abs(sum(row)) - 1e-12
    patterns = [
        sum(s * x for s, x in zip(signs, row, strict=True)) for signs in itertools.product((1, -1), repeat=n)
    ]
    wanted = sum(abs(p) >= seen for p in patterns) / len(patterns)
    assert randomisation([row]) == [wanted]


def test_many_topics_are_close_to_scipys_permutation_test() -> None:
    row = sample(40, 0.03)
    wanted = permutation_test(
        (np.array(row),),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    ).pvalue
    assert randomisation([row])[0] == pytest.approx(wanted, abs=0.01)


def test_a_p_value_does_not_depend_on_the_other_rows_or_their_order() -> None:
    rows = [sample(30, 0.01 * k, seed=k) for k in range(6)]
    together = randomisation(rows)
    assert randomisation(rows[::-1]) == together[::-1]
    assert [randomisation([row])[0] for row in rows] == together


def test_edge_cases_of_the_randomisation_test() -> None:
    assert randomisation([]) == []
    assert randomisation([[], [0.0] * 5, [0.0] * 50]) == [1.0, 1.0, 1.0]
    p = randomisation([[0.1] * 60])[0]
    assert 0 < p < 0.0001
    assert flips(EXACT_UP_TO) == 0 < flips(10_000) < flips(EXACT_UP_TO + 1)


def test_ties_with_what_was_seen_count_as_extreme() -> None:
    row = [0.1, 0.2, 0.3]  # 0.1 + 0.2 + 0.3 in another order is another double
    assert randomisation([row])[0] == randomisation([row[::-1]])[0] == 0.25


def test_many_topics_stay_within_memory_and_time() -> None:
    assert randomisation([sample(6980, 0.0), sample(6980, 0.1)])[1] < 0.001


@pytest.mark.parametrize(
    ("p_values", "wanted"),
    [
        ([], []),
        ([0.03], [0.03]),
        # The worked example: sorted 0.005 0.01 0.03 0.04 times 4 3 2 1, then the running maximum.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_holm(p_values: list[float], wanted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(wanted)


def test_holm_is_monotone_and_never_below_the_raw_value() -> None:
    dice = random.Random(5)
    raw = [dice.random() ** 3 for _ in range(50)]
    adjusted = holm(raw)
    pairs = sorted(zip(raw, adjusted, strict=True))
    assert [a for _, a in pairs] == sorted(adjusted)
    assert all(r <= a <= 1 for r, a in pairs)


def test_all_pairs_of_many_runs_take_no_longer_than_four_times_as_many_may() -> None:
    """benchmarks/significance.py allows 100 runs 3 seconds of the processor."""
    rows = [[round(x, 4) for x in sample(50, 0.001 * n, 1000 + n)] for n in range(50)]
    begun = time.process_time()
    assert len(between(rows)) == 1225
    assert time.process_time() - begun < 3


@pytest.mark.parametrize("topics", [1, EXACT_UP_TO, 50, 501])
def test_all_pairs_at_once_are_as_one_after_the_other(topics: int) -> None:
    rows = [[round(x, 1) for x in sample(topics, 0.1 * n, n)] for n in range(5)] + [sample(topics, 0.2, 9)]
    rows.append(rows[0])  # no difference at all
    pairs = list(itertools.combinations(range(len(rows)), 2))
    apart = [[b - a for a, b in zip(rows[i], rows[j], strict=True)] for i, j in pairs]
    wanted = dict(zip(pairs, randomisation(apart), strict=True))
    assert between(rows) == wanted and wanted[0, 6] == 1.0
    more = [
        sample(topics, 0.15, 77),
        *rows,
    ]  # what was known is the same in another order, and beside what is new
    found = between(more)
    assert {(i, j): found[i + 1, j + 1] for i, j in pairs} == wanted
    assert found[0, 1] == randomisation([[b - a for a, b in zip(more[0], more[1], strict=True)]])[0]


def test_what_the_benchmark_measures_is_the_randomised_tukey_hsd_and_the_paired_t_test() -> None:
    rows = [[0.1, 0.5, 0.4], [0.3, 0.9, 0.6], [0.2, 0.4, 0.8]]
    largest = []
    for topics in itertools.product(*(itertools.permutations(topic) for topic in zip(*rows, strict=True))):
        sums = [sum(values) for values in zip(*topics, strict=True)]
        largest.append(max(sums) - min(sums))
    apart = [abs(sum(a) - sum(b)) for a, b in itertools.combinations(rows, 2)]
    wanted = [sum(one >= d - 1e-9 for one in largest) / len(largest) for d in apart]
    assert tukey(np.array(rows)) == pytest.approx(wanted, abs=0.02)
    raw = [ttest_rel(a, b).pvalue for a, b in itertools.combinations(rows, 2)]
    assert t_tests(np.array(rows)) == pytest.approx(holm(raw))


def test_thousands_of_rows_stay_within_memory() -> None:
    """Sums of all rows by 20,000 sign patterns at once took 1.6 GB for 10,000 rows."""
    rows = np.random.default_rng(7).normal(size=(800, 20))
    tracemalloc.start()
    found = randomisation([*map(list, rows)])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200 * 2**20
    assert found[:2] == [randomisation([list(row)])[0] for row in rows[:2]]


def test_what_was_tested_before_is_not_tested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [sample(20, 0.05, seed) for seed in range(70, 76)]
    alone = randomisation(rows)
    assert remembered([*rows[:3], rows[0], []]) == [*alone[:3], alone[0], 1.0]
    asked: list[int] = []

    def counting(missing: Sequence[Sequence[float]]) -> list[float]:
        asked.append(len(missing))
        return randomisation(missing)

    monkeypatch.setattr("runner.views.leaderboard.significance.randomisation", counting)
    assert remembered(rows[::-1]) == alone[::-1] and asked == [3]
