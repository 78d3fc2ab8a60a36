"""Measures by their strings: what they mean, how they are written, and what is said of wrong ones."""

from __future__ import annotations

import pytest

from evaluator.errors import EvaluatorError
from evaluator.measures.records.named import known, measure


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Accuracy(label)", "Accuracy(label)"),
        (" Accuracy( field = label ) ", "Accuracy(label)"),
        ("F1(label, labels=[a, 'b c', 1], average=macro)", "F1(label, average=macro, labels=[a, 'b c', 1])"),
        ("F1(label, average='x, y')", "F1(label, average='x, y')"),
        ("MAE(/a/b, truth=gold, range=[0, 5.5])", "MAE(/a/b, range=[0, 5.5], truth=gold)"),
        ("Accuracy(some field)", "Accuracy('some field')"),
        ("Accuracy(3)", "Accuracy('3')"),
    ],
)
def test_strings(text: str, canonical: str) -> None:
    assert measure(text).text == measure(canonical).text == canonical


def test_fields_of_output_and_truths() -> None:
    output, truth = measure("MAE(/a/b, truth=gold)").columns()
    assert (output.side, output.field, truth.side, truth.field) == ("output", "/a/b", "truth", "gold")
    assert [column.field for column in measure("MAE(n)").columns()] == ["n", "n"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Acuracy(x)", "did you mean Accuracy?"),
        ("F1", "it needs field"),
        ("F1(a, b)", "field is there twice"),
        ("F1(a, avg=macro)", "did you mean average?"),
        ("F1(a, average=[x)", "a list does not end"),
        ("F1(a,, average=x)", "a value is missing"),
        ("F1(a, average=)", "a value is missing"),
        ("F1(a b=c d)e", "not a name with parameters"),
        ("F1(a 'b')", "parted by commas"),
        ("F1(()", "cannot be read"),
        ("MAE(a, range=[5, 1])", "lowest and highest"),
        ("", "not a name"),
        ("F1(" + "[" * 190, "not a name"),
        ("F1(" + "[" * 190 + ")", "does not end"),
    ],
)
def test_wrong_ones(text: str, said: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        measure(text)
    assert said in " ".join(caught.value.lines())


def test_names_stand_in_their_order() -> None:
    assert list(known()) == sorted(known()) and {"Accuracy", "F1", "MAE"} <= set(known())
