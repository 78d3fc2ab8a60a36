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
    ("text", "named"),
    [
        *(
            ("Acuracy(x)", "Accuracy"),
            ("F1", "field"),
            ("F1(a, b)", "field"),
            ("F1(a, avg=macro)", "average"),
        ),
        *(
            (text, text)
            for text in ("F1(a, average=[x)", "F1(a,, average=x)", "F1(a, average=)", "F1(a b=c d)e")
        ),
        *((text, text) for text in ("F1(a 'b')", "F1(()", "MAE(a, range=[5, 1])", "")),
        *(("F1(" + "[" * 190, "F1(["), ("F1(" + "[" * 190 + ")", "F1([")),
    ],
)
def test_wrong_measures_are_named(text: str, named: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        measure(text)
    assert named in " ".join(caught.value.lines())


def test_names_stand_in_their_order() -> None:
    assert list(known()) == sorted(known()) and {"Accuracy", "F1", "MAE"} <= set(known())
