"""Intervals: as everywhere for means over records, by resampling for everything else, over clusters where the task says so."""

from __future__ import annotations

import random
import time

import pytest

from evaluator.errors import EvaluatorError
from evaluator.measures.interval import intervals
from evaluator.measures.records.base import MISSING, Columns
from evaluator.measures.records.named import measure
from evaluator.measures.records.resampling import Spread, spread

N = 60


def sample(n: int = N) -> Columns:
    dice = random.Random(7)
    right = [dice.choice("ab") for _ in range(n)]
    said = [one if dice.random() < 0.8 else dice.choice("ab") for one in right]
    return Columns([*map(str, range(n))], {"x": said}, {"x": right, "g": [str(i % 3) for i in range(n)]})


def span(text: str, of: Columns, clusters: list[str] | None = None) -> tuple[float, float] | None:
    return spread_of(text, of, clusters).interval


def spread_of(text: str, of: Columns, clusters: list[str] | None = None) -> Spread:
    one = measure(text)
    return spread(one, of, one.values(of), clusters)


def test_a_mean_has_the_interval_that_means_have_everywhere() -> None:
    of = sample()
    values = measure("Accuracy(x)").values(of)
    assert values is not None and span("Accuracy(x)", of) == intervals({"": values})[""]


@pytest.mark.parametrize("text", ["F1(x)", "MCC(x)", "Accuracy(x, macro=g)", "F1(x, average=micro)"])
def test_other_values_are_resampled(text: str) -> None:
    of = sample()
    found = span(text, of)
    assert found is not None and found == span(text, of), "it repeats"
    assert found[0] < measure(text).value(of) < found[1]


def test_it_is_about_that_of_the_mean_where_both_are_known() -> None:
    of = sample(400)
    micro, mean = span("F1(x, average=micro)", of), span("Accuracy(x)", of)
    assert micro == pytest.approx(mean, abs=0.01)


def test_clusters_are_drawn_whole() -> None:
    """Of records that are ten times the same there is as much to know as of one each."""
    of = sample(40)
    ten = of.take([row for row in range(len(of)) for _ in range(10)])
    clusters = [str(row // 10) for row in range(len(ten))]
    for text in ("Accuracy(x)", "F1(x)"):
        once, copied, clustered = span(text, of), span(text, ten), span(text, ten, clusters)
        assert once and copied and clustered
        assert clustered[1] - clustered[0] == pytest.approx(once[1] - once[0], rel=0.15)
        assert copied[1] - copied[0] < 0.5 * (once[1] - once[0])


def test_there_is_none_of_one_cluster_and_of_very_many_records() -> None:
    of = sample()
    assert span("Accuracy(x)", of, ["a"] * N) is None
    assert span("F1(x)", of.take([0] * 10_001)) is None


def test_there_is_none_where_resamples_have_no_value() -> None:
    of = Columns(list("abcd"), {"x": [0.1, 0.2, 0.3, 0.9]}, {"x": ["n", "n", "n", "y"]})
    assert measure("AUC(x, positive=y)").value(of) == 1 and span("AUC(x, positive=y)", of) is None


def test_every_run_of_a_dataset_is_drawn_alike_and_datasets_are_not() -> None:
    of = sample()
    other = Columns(of.keys, {"x": ["a"] * N}, of.truth)
    mine, theirs = (spread_of("F1(x)", one).resamples for one in (of, other))
    assert mine and theirs and mine.drawn == theirs.drawn and mine.values != theirs.values
    elsewhere = spread_of("F1(x)", Columns([f"e{n}" for n in range(N)], of.output, of.truth)).resamples
    clustered = spread_of("F1(x)", of, [str(n // 2) for n in range(N)]).resamples
    assert elsewhere and clustered and len({mine.drawn, elsewhere.drawn, clustered.drawn}) == 3
    assert elsewhere.values != mine.values, "the same records, and others drawn"


def test_values_in_resamples_are_kept_in_order_with_ten_digits() -> None:
    of = Columns(
        [*map(str, range(30))],
        {"x": [n / 7 for n in range(30)]},
        {"x": ["y" if n > 24 else "n" for n in range(30)]},
    )
    found = spread_of("AUC(x, positive=y)", of).resamples
    assert found is not None and None in found.values, "a resample of one class has no value, and its place"
    said = found.as_dict()["values"]
    assert len(said) == len(found.values) == 1_000
    for one, whole in zip(said, found.values, strict=True):
        assert (one is None) == (whole is None) and (whole is None or one == pytest.approx(whole, rel=1e-9))


def sample_of_spans(n: int) -> Columns:
    dice = random.Random(3)

    def spans() -> frozenset[tuple[int, int, str]]:
        starts = [dice.randrange(60) for _ in range(dice.randint(0, 6))]
        return frozenset((start, start + dice.randint(1, 20), dice.choice("abc")) for start in starts)

    right = [spans() for _ in range(n)]
    said = [dice.choice((truth, truth | spans(), spans(), MISSING)) for truth in right]
    return Columns([*map(str, range(n))], {"x": said}, {"x": right})


@pytest.mark.parametrize("name", ["SpanF1", "SpanPrecision", "SpanRecall"])
@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("match", ["exact", "overlap"])
def test_spans_in_a_resample_have_the_value_of_these_records(name: str, average: str, match: str) -> None:
    of, one, dice = (
        sample_of_spans(40),
        measure(f"{name}(x, average={average}, match={match})"),
        random.Random(5),
    )
    resampled = one.resampled(of)
    for size in (3, 40, 40, 90):
        rows = [dice.randrange(40) for _ in range(size)]
        assert resampled(rows) == pytest.approx(one.value(of.take(rows)), abs=1e-12)


def test_a_resample_without_a_span_in_the_truths_has_no_value() -> None:
    of = Columns(["1", "2"], {"x": [frozenset(), MISSING]}, {"x": [frozenset(), frozenset({(0, 1, "a")})]})
    resampled = measure("SpanF1(x)").resampled(of)
    assert resampled([0, 1]) == 0.0
    with pytest.raises(EvaluatorError):
        resampled([0, 0])


@pytest.mark.parametrize("text", ["SpanF1(x)", "SpanF1(x, average=macro)", "SpanF1(x, match=overlap)"])
def test_an_interval_of_spans_costs_little_beside_their_value(text: str) -> None:
    """Processor time: 3 to 20 times the value of 2,000 records; with a Counter for each record it was 150 to 440 times."""
    of, one = sample_of_spans(2_000), measure(text)
    started = time.process_time()
    one.value(of)
    scored = time.process_time()
    assert spread(one, of, None).interval is not None
    assert time.process_time() - scored < 80 * (scored - started)
