"""Accuracy, F1 and MAE against values worked out by hand, and against one another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.measures.records.base import LABEL, MISSING, Columns
from evaluator.measures.records.named import measure
from evaluator.measures.records.resampling import spread

LABELS = Columns(list("abcd"), {"l": ["x", "y", MISSING, "x"]}, {"l": ["x", "x", "y", "x"]})
NUMBERS = Columns(list("abcd"), {"n": [1, 2.5, MISSING, 4]}, {"n": [1, 2, 3, 4]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Accuracy(l)", 2 / 4),  # the missing one is wrong
        ("F1(l, average=x)", 2 * 2 / (2 + 3)),
        ("F1(l, average=y)", 0),
        ("F1(l)", (4 / 5 + 0) / 2),
        ("F1(l, average=weighted)", (3 * 4 / 5 + 0) / 4),
        ("F1(l, average=micro)", 2 * 2 / (3 + 4)),
        ("F1(l, labels=[x])", 4 / 5),
    ],
)
def test_labels(text: str, expected: float) -> None:
    assert measure(text).value(LABELS) == pytest.approx(expected, abs=1e-12)


def test_f1_says_what_each_class_has() -> None:
    assert measure("F1(l)").parts(LABELS) == {"x": 0.8, "y": 0.0}


@pytest.mark.parametrize(
    ("text", "expected"), [("MAE(n)", (0.5 + 2) / 4), ("MAE(n, range=[0, 10])", (0.5 + 7) / 4)]
)
def test_a_missing_number_has_the_largest_error(text: str, expected: float) -> None:
    assert measure(text).value(NUMBERS) == expected


def test_leaving_a_number_out_is_never_better_than_the_run_s_worst_error() -> None:
    columns = Columns(["a", "b"], {"n": [100, MISSING]}, {"n": [1, 2]})
    assert list(measure("MAE(n)").values(columns) or ()) == [99, 99]


def test_truths_outside_of_the_range_are_refused_without_naming_them() -> None:
    with pytest.raises(EvaluatorError) as caught:
        measure("MAE(n, range=[0, 3.5])").value(NUMBERS)
    assert "range" in caught.value.why and "4" not in caught.value.why


@pytest.mark.parametrize(
    "text",
    ["MAE(n)", "MAE(n, rule=median)", "RMSE(n)", "MAE(n, macro=g)"]
    + [f"Number(n, range=[-9e299, 9e299], better={better})" for better in ("lower", "higher")],
)
@pytest.mark.parametrize("said", [[9e299, 9e299, 1], [-9e299, MISSING, 1e160], [MISSING, MISSING, MISSING]])
def test_absurd_numbers_have_values_that_an_evaluator_may_give(text: str, said: list[object]) -> None:
    """No value may be beyond 1e150, and no mean of values."""
    columns = Columns(["a", "b", "c"], {"n": said}, {"n": [1, 2, 3], "g": ["x", "x", "y"]})
    one = measure(text)
    values, value = one.scores(columns)
    assert values is not None and all(abs(each) < 1e150 for each in (value, *values))
    interval = spread(one, columns, values).interval
    assert interval is None or all(abs(end) < 1e150 for end in interval)


def test_a_missing_number_is_as_bad_as_an_absurd_one() -> None:
    columns = Columns(["a", "b"], {"n": [9e299, MISSING]}, {"n": [1, 2]})
    first, second = measure("MAE(n)").values(columns) or ()
    assert first == second


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("xyz")), min_size=1))
def test_micro_f1_of_complete_outputs_is_accuracy(rows: list[tuple[str, str]]) -> None:
    said, right = zip(*rows, strict=True)
    columns = Columns([str(i) for i in range(len(rows))], {"l": said}, {"l": right})
    micro, accuracy = (measure(text).value(columns) for text in ("F1(l, average=micro)", "Accuracy(l)"))
    assert micro == pytest.approx(accuracy, abs=1e-12)


def test_labels_are_told_by_what_json_says() -> None:
    assert [LABEL.read(v) for v in ("1", 1, 1.0, True, "true")] == ["1", "1", "1", "true", "true"]
    assert [LABEL.read(v) for v in (None, 1.5, [], {})] == [MISSING] * 4
