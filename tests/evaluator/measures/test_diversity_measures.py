"""The measures against a second implementation, and every peculiarity against numbers made by hand."""

from __future__ import annotations

import tempfile
from math import log, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.formats.perspective import PROPERTIES, Population, read_corpus
from evaluator.measures.diversity import Measure
from evaluator.measures.diversity_scorer import Scorer
from tests.worlds.rank_by_rank import RankByRank, Values
from tests.worlds.releases import ISSUES, KEYS, Literal, argument, lines, other

D = [1 / log2(r + 1) for r in range(1, 30)]  # discounts of ranks 1, 2, ...


def population(corpus: list[dict[str, Any]]) -> Population:
    with tempfile.TemporaryDirectory() as folder:
        lines(Path(folder, "corpus.jsonl"), corpus)
        return read_corpus(Path(folder))


class Single:
    """Scores one list, as one of a batch."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def score(self, relevant: list[int], found: list[int]) -> Values:
        scores = self._scorer.score([relevant], [found])
        return Values(*({k: column[0].tolist() for k, column in columns.items()} for columns in scores))


def scorer(corpus: list[dict[str, Any]], *cutoffs: int, twins: bool = False) -> Single:
    return Single(Scorer(population(corpus), cutoffs or (4, 8, 16, 20), twins=twins))


def of(values: list[float], p: str) -> float:
    return values[PROPERTIES.index(p)]


CORPUS = [argument(n) for n in range(1, 7)] + [other(7), other(8)]


@st.composite
def releases(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[int], list[int], bool]:
    n = draw(st.integers(3, 40))
    ids = draw(st.lists(st.integers(0, 5000), min_size=n, max_size=n, unique=True))
    small = st.sampled_from(["a", "b", "c", None])
    corpus = []
    for i, number in enumerate(ids):
        if i < 2:
            corpus.append(argument(number) if i else other(number))
            continue
        profile = {k: draw(small) for k in KEYS[1:7]}
        one = argument(number, draw(st.sampled_from(["x", "y", "z ", "w"])), draw(st.sampled_from(["FAVOR", "AGAINST"])),
                       draw(st.lists(st.sampled_from(list(ISSUES)), max_size=5)), **profile)  # fmt: skip
        if draw(st.booleans()):
            del one["demographic_profile"]["education"]
        corpus.append(one)
    relevant = draw(st.lists(st.sampled_from(ids), max_size=30))
    found = draw(st.lists(st.sampled_from(ids), max_size=25))
    return corpus, relevant, found, draw(st.booleans())


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(releases())
def test_both_implementations_agree(release: tuple[list[dict[str, Any]], list[int], list[int], bool]) -> None:
    corpus, relevant, found, twins = release
    cutoffs = (1, 3, 4, 8, 16, 20, 25)
    scores = scorer(corpus, *cutoffs, twins=twins).score(relevant, found)
    literal = Literal(corpus)
    for k in cutoffs:
        ndcg, precision = literal.relevance(relevant, found, k, twins)
        assert scores.ndcg[k] == pytest.approx(ndcg, abs=1e-12)
        assert scores.precision[k] == pytest.approx(precision, abs=1e-12)
        for p, name in enumerate(PROPERTIES):
            alpha = literal.alpha_ndcg(name, relevant, found, k, twins)
            assert scores.alpha_ndcg[k][p] == pytest.approx(alpha, abs=1e-12)
            if k >= 2:
                assert scores.rkl[k][p] == pytest.approx(literal.rkl(name, found, k), abs=1e-12)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[tuple[list[int], list[int]]], bool, int]:
    """A corpus, queries with their relevant arguments and a list (also of unknown ones and copies), and how many are scored at a time."""
    corpus, relevant, found, twins = draw(releases())
    ids = st.sampled_from([one["argument_id"] for one in corpus])
    lists = st.tuples(st.lists(ids, max_size=20), st.lists(ids | st.integers(9000, 9002), max_size=30))
    others = draw(st.lists(lists, max_size=5))
    return corpus, [(relevant, found), *others], twins, draw(st.integers(1, 7))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(batches(), st.sampled_from([(4, 8, 16, 20), (1, 2, 5, 25), (3,)]))
def test_many_lists_at_once_have_the_same_bits_as_each_by_itself(
    batch: tuple[list[dict[str, Any]], list[tuple[list[int], list[int]]], bool, int], cutoffs: tuple[int, ...]
) -> None:
    corpus, queries, twins, at_once = batch
    arguments = population(corpus)
    scorer = Scorer(arguments, cutoffs, twins=twins, at_once=at_once)
    scores = scorer.score([relevant for relevant, _ in queries], [found for _, found in queries])
    single = RankByRank(arguments, cutoffs, twins=twins)
    expected = [single.score(relevant, found) for relevant, found in queries]
    for k in cutoffs:
        assert scores.ndcg[k].tolist() == [one.ndcg[k] for one in expected]
        assert scores.precision[k].tolist() == [one.precision[k] for one in expected]
        assert scores.alpha_ndcg[k].tolist() == [one.alpha_ndcg[k] for one in expected]
        assert scores.rkl[k].tolist() == [one.rkl[k] for one in expected]


def test_twins_count_but_not_in_the_ideal_so_ndcg_exceeds_one() -> None:
    corpus = [argument(1, "same"), argument(2, "same"), argument(3, "same"), argument(4, "same "), other(5)]
    scores = scorer(corpus, 4, twins=True).score([1], [2, 3, 1, 4])
    assert scores.ndcg[4] == pytest.approx(
        D[0] + D[1] + D[2], abs=1e-15
    )  # ideal: one argument; "same " is no twin
    assert scores.precision[4] == 0.75
    # all three have the same value: the second and third count half
    assert of(scores.alpha_ndcg[4], "gender") == pytest.approx(D[0] + (D[1] + D[2]) / 2, abs=1e-15)
    explicit = scorer(corpus, 4).score([1], [2, 3, 1, 4])
    assert explicit.ndcg[4] == pytest.approx(D[2], abs=1e-15)


def test_the_penalty_is_flat() -> None:
    scores = scorer(CORPUS, 4).score([1, 2, 3, 4], [1, 2, 3, 4])
    # one value among the relevant: the ideal has the same penalties
    assert of(scores.alpha_ndcg[4], "age") == pytest.approx(1.0, abs=1e-15)
    scores = scorer(CORPUS, 4).score([1, 2, 3, 7], [1, 2, 3, 7])
    ideal = D[0] + D[1] + (D[2] + D[3]) / 2
    assert of(scores.alpha_ndcg[4], "age") == pytest.approx(
        (D[0] + D[1] / 2 + D[2] / 2 + D[3]) / ideal, abs=1e-15
    )


def test_a_value_is_seen_also_on_an_argument_that_is_not_relevant() -> None:
    scores = scorer(CORPUS, 4).score([2], [1, 2])
    assert of(scores.alpha_ndcg[4], "stance") == pytest.approx(D[1] / 2, abs=1e-15)
    scores = scorer(CORPUS, 4).score([2], [7, 2])
    assert of(scores.alpha_ndcg[4], "stance") == pytest.approx(D[1], abs=1e-15)


@pytest.mark.parametrize(
    ("count", "place", "kinds"), [(1000, 998, 2), (1000, 999, 1), (1200, 999, 1), (999, 998, 2)]
)
def test_of_a_thousand_relevant_the_values_of_999_count(count: int, place: int, kinds: int) -> None:
    corpus = [argument(n) for n in range(count)] + [other(n) for n in range(5000, 5003)]
    relevant = list(range(count))
    relevant[place] = 5000
    scores = scorer(corpus, 4).score(relevant, [0, 1, 2, 3])
    ideal = sum(D[:kinds]) + sum(D[kinds:4]) / 2
    assert of(scores.alpha_ndcg[4], "age") == pytest.approx((D[0] + sum(D[1:4]) / 2) / ideal, abs=1e-14)
    assert scores.ndcg[4] == pytest.approx(1.0)


def test_repeated_relevant_arguments_shorten_the_list_that_is_looked_at() -> None:
    # |R| is 2, so only the first two entries are looked at: both are argument 1
    scores = scorer(CORPUS, 4).score([1, 1, 7], [1, 7])
    assert scores.ndcg[4] == pytest.approx(1.0)
    assert of(scores.alpha_ndcg[4], "age") == pytest.approx((D[0] + D[1]) / (D[0] + D[1] / 2), abs=1e-15)


def test_a_thousand_listed_make_a_thousand_in_the_ideal_however_often_they_repeat() -> None:
    scores = scorer(CORPUS, 4).score([1] * 1000, [1, 7, 8, 2])
    assert scores.ndcg[4] == pytest.approx(D[0] / sum(D[:4]), abs=1e-15)
    scores = scorer(CORPUS, 4).score([1] * 999, [1, 7, 8, 2])
    assert scores.ndcg[4] == pytest.approx(1.0)


def test_short_and_empty_lists() -> None:
    scores = scorer(CORPUS).score([1, 2, 3, 4, 5, 6], [1, 2, 3])
    assert scores.precision == {4: 1.0, 8: 1.0, 16: 1.0, 20: 1.0}
    assert scores.ndcg[20] == pytest.approx(sum(D[:3]) / sum(D[:6]), abs=1e-15)
    empty = scorer(CORPUS).score([1], [])
    assert empty.precision[20] == empty.ndcg[20] == of(empty.alpha_ndcg[20], "age") == 0.0
    assert of(empty.rkl[20], "age") == pytest.approx(2 / 8, abs=1e-15)  # d(0, Q) = Q at every step


def test_without_relevant_arguments_everything_is_zero_and_counts() -> None:
    scores = scorer(CORPUS).score([], [1, 2, 3, 4])
    assert scores.ndcg[4] == scores.precision[4] == of(scores.alpha_ndcg[4], "age") == 0.0


def test_rkl_by_hand_leaves_out_six() -> None:
    found = [7, 1, 2, 3, 8, 4, 5, 6]
    q = 2 / 8

    def d(share: float) -> float:
        return share * log(share / q) - share + q

    shares = {2: 1 / 2, 4: 1 / 4, 8: 2 / 8}
    weights = {c: 1 / log2(c) for c in shares}
    expected = sum(d(shares[c]) * weights[c] for c in shares) / sum(weights.values())
    scores = scorer(CORPUS, 4, 6, 8, 20).score([1], found)
    assert of(scores.rkl[8], "gender") == pytest.approx(expected, abs=1e-15)
    four = (d(1 / 2) * weights[2] + d(1 / 4) * weights[4]) / (weights[2] + weights[4])
    assert of(scores.rkl[4], "gender") == of(scores.rkl[6], "gender") == pytest.approx(four, abs=1e-15)


def test_rkl_divides_by_the_step_also_for_shorter_lists() -> None:
    q = 2 / 8
    scores = scorer(CORPUS, 4).score([1], [7])
    w2, w4 = 1 / log2(2), 1 / log2(4)
    expected = ((0.5 * log(0.5 / q) - 0.5 + q) * w2 + (0.25 * log(0.25 / q) - 0.25 + q) * w4) / (w2 + w4)
    assert of(scores.rkl[4], "gender") == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("order", [(3, 1, 2, 4), (4, 2, 1, 3)])
def test_of_equally_frequent_values_the_one_of_the_smallest_id_is_the_majority(
    order: tuple[int, ...],
) -> None:
    made = {1: other(1), 2: argument(2), 3: argument(3), 4: other(4)}
    scores = scorer([made[n] for n in order], 2).score([1], [2, 3])
    # the minority is argument's value, with share 1/2 in the corpus and 2/2 in the list
    assert of(scores.rkl[2], "age") == pytest.approx(log(2) - 1 + 0.5, abs=1e-15)


def test_missing_and_null_are_different_groups_and_repeated_issues_change_nothing() -> None:
    missing = argument(3)
    del missing["demographic_profile"]["age"]
    corpus = [argument(1), argument(2), missing, argument(4, age=None), other(5)]
    found = population(corpus)
    assert len(found.shares[PROPERTIES.index("age")]) == 4
    corpus[0]["demographic_profile"]["important_political_issues"] = [
        "Law & Order",
        "Law & Order",
        "unheard of",
    ]
    assert sorted(population(corpus).shares[PROPERTIES.index("Law & Order")]) == [0.4, 0.6]
    assert len(found.properties) == 15


def test_copies_of_a_candidate_are_scored_each() -> None:
    scores = scorer(CORPUS, 4).score([1], [1, 1, 1, 1])
    assert scores.ndcg[4] == pytest.approx(sum(D[:4]))
    assert scores.precision[4] == 1.0


def test_measures_of_queries() -> None:
    scores = Scorer(population(CORPUS), (4, 8), twins=False).score([[1, 7]] * 2, [[1, 2, 7]] * 2)
    mean = Measure("nDCG@4,8").values(scores, [None, None])
    assert mean == pytest.approx([(scores.ndcg[4][0] + scores.ndcg[8][0]) / 2] * 2, abs=1e-15)
    age = PROPERTIES.index("age")
    row = scores.rkl[8][0].tolist()
    rest = [v for p, v in enumerate(row) if p != age]
    unqueried, every = sum(rest) / 14, sum(row) / 15
    assert Measure("rKL-unqueried@8").values(scores, [age, None]) == pytest.approx(
        [unqueried, every], abs=1e-15
    )
    assert Measure("rKL@8").values(scores, [age, None]) == pytest.approx([every, every], abs=1e-15)


@pytest.mark.parametrize(
    "text",
    ["nDCG", "nDCG@", "nDCG@0", "rKL@1", "AP", "nDCG@4,4", "alpha-nDCG@1001", "nDCG@4\n", "P-unqueried@4"],
)
def test_measures_that_do_not_exist(text: str) -> None:
    with pytest.raises(EvaluatorError):
        Measure(text)
