"""What the details of an evaluation say of the records that were wrong: by class, by size of error, field by field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest

from evaluator.kinds.records.options import Output, Wanted
from evaluator.kinds.records.wrong import Wrong
from evaluator.measures.records.base import MISSING, TEXT, Columns, PerRecord
from evaluator.request import MeasureRequest
from tests.evaluator.kinds.records.records_runs import (
    evaluate_records,
    lines,
    measure_request,
    records_request,
)

SCHEMA = {"type": "object", "required": ["id"]}
BOTH = {"f1": "F1(label)", "accuracy": "Accuracy(label)", "mae": "MAE(score)"}


def details(
    folder: Path, truths: list[Any], run: list[Any], measures: dict[str, str], second: list[Any] | None = None
) -> list[dict[str, Any]]:
    """The details of a run; measures whose id ends with 2 read the second output."""
    data = {"truths.jsonl": truths, "run.jsonl": run, "second.jsonl": second or []}
    for name, rows in data.items():
        (folder / name).write_bytes(lines(rows))
    outputs = [{"path": name, "schema": SCHEMA} for name in ("run.jsonl", "second.jsonl")]
    request = records_request(folder, outputs[: 1 if second is None else 2])
    asked = [
        measure_request(name, text, **({"output": "second.jsonl"} if name.endswith("2") else {}))
        for name, text in measures.items()
    ]
    evaluate_records(request._replace(measures=tuple(asked))).write(folder)
    path = folder / "details.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_classes_that_are_mixed_up(tmp_path: Path) -> None:
    truths = [{"id": f"{n}", "label": "cat" if n < 5 else "dog"} for n in range(8)]
    run = [{"id": f"{n}", "label": "dog" if n in (1, 2, 6) else "cow" if n == 3 else "cat"} for n in range(7)]
    (one,) = details(tmp_path, truths, run, {"f1": "F1(label)", "accuracy": "Accuracy(label)"})
    assert (one["topic"], one["output"], one["field"]) == ("label", "run.jsonl", "label")
    assert one["measures"] == ["f1", "accuracy"]
    assert (one["total"], one["wrong"], one["missing"]) == (8, 5, 1)
    # Rows: right; columns: said, then others, then missing.
    assert one["classes"]["labels"] == ["cat", "cow", "dog"]
    assert one["classes"]["matrix"] == [[2, 1, 2, 0, 0], [0] * 5, [1, 0, 1, 0, 1], [0] * 5]
    assert one["classes"]["pairs"] == [
        {"right": "cat", "said": "dog", "count": 2, "ids": ["1", "2"]},
        {"right": "cat", "said": "cow", "count": 1, "ids": ["3"]},
        {"right": "dog", "said": "cat", "count": 1, "ids": ["5"]},
        {"right": "dog", "said": None, "count": 1, "ids": ["7"]},
    ]


def test_sizes_of_errors(tmp_path: Path) -> None:
    truths = [{"id": f"{n}", "score": 10} for n in range(22)]
    run = [{"id": f"{n}", "score": 10 + (n if n % 2 else -n)} for n in range(20)]
    (one,) = details(tmp_path, truths, run, {"mae": "MAE(score)"})
    assert (one["total"], one["wrong"], one["missing"]) == (22, 21, 2)
    assert one["missing_ids"] == ["20", "21"]
    # Half of the 20 answered records are off by at most 9 (0 to 9), 95 % by at most 18.
    shares = [[50, 9], [75, 14], [90, 17], [95, 18]]
    assert one["differences"] == {"shares": shares, "largest": 19, "above": 10, "below": 9}
    assert one["records"][:2] == [
        {"id": "19", "said": 29, "right": 10, "value": 19},
        {"id": "18", "said": -8, "right": 10, "value": -18},
    ]
    assert len(one["records"]) == 19, "who is right is not listed"


def test_every_field_of_every_output_has_its_own_line(tmp_path: Path) -> None:
    truths = [{"id": "a", "label": "x", "score": 1}]
    measures = {**BOTH, "accuracy2": "Accuracy(label)"}
    rows = details(tmp_path, truths, truths, measures, second=[{"id": "a", "label": "y"}])
    assert [(one["topic"], one["measures"], one["wrong"]) for one in rows] == [
        ("run.jsonl:label", ["f1", "accuracy"], 0),
        ("score", ["mae"], 0),
        ("second.jsonl:label", ["accuracy2"], 1),
    ]


@pytest.mark.slow
def test_many_classes_and_long_words_are_bounded(tmp_path: Path) -> None:
    long = "\x1b[2J<b>" * 140
    truths = [{"id": f"{n}{long}", "label": f"{n % 500}{long}"} for n in range(5_000)]
    run = [{"id": one["id"], "label": f"{long}{n}"} for n, one in enumerate(truths)]
    (one,) = details(tmp_path, truths, run, {"f1": "F1(label)"})
    assert len(one["classes"]["labels"]) == 20 and one["classes"]["others"] == 5_480
    assert {len(row) for row in one["classes"]["matrix"]} == {22} and len(one["classes"]["matrix"]) == 21
    assert sum(map(sum, one["classes"]["matrix"])) == one["total"] == one["wrong"] == 5_000
    assert len(one["classes"]["pairs"]) == 50
    assert (tmp_path / "details.jsonl").stat().st_size < 900_000


def test_an_invalid_run_says_nothing_of_truths(tmp_path: Path) -> None:
    truths = [{"id": "a", "label": "x"}]
    assert details(tmp_path, truths, [{"label": "x"}], {"accuracy": "Accuracy(label)"}) == []


class Length(PerRecord):
    """A measure of texts for these tests: how many characters are said."""

    name = "Length"
    output_form = truth_form = TEXT
    bounds = (0.0, 3.0)

    def values(self, of: Columns) -> Sequence[float]:
        return [float(len(said or "")) for said in of.output[self.field]]


class Long(Length):
    """The same without an end."""

    bounds = (0.0, inf)


def by_value(measure: type[PerRecord]) -> dict[str, Any]:
    asked = MeasureRequest("length", "Accuracy(text)", "truths.jsonl")
    wanted = Wanted(asked, {"run.jsonl": Output({"path": "run.jsonl", "schema": {}}, "run.jsonl")})
    wanted.measure = measure("Length(text)", {"field": "text"})
    said = ["abc", MISSING, "a" * 2, "", "abc"]
    columns = Columns(list("vwxyz"), {"text": said}, {"text": ["b" * 400] * 5})
    wrong = Wrong()
    wrong.add(wanted, columns, wanted.measure.values(columns))
    (one,) = wrong.rows()
    return dict(one)


def test_other_fields_have_the_records_with_the_worst_values() -> None:
    one = by_value(Length)
    assert (one["total"], one["wrong"], one["missing"], one["missing_ids"]) == (5, 3, 1, ["w"])
    assert [(r["id"], r["said"], r["value"]) for r in one["records"]] == [("y", "", 0), ("x", "aa", 2)]
    assert one["records"][0]["right"] == "b" * 299 + "…" and one["values"] == {"measure": "length"}


def test_where_no_value_is_the_best_nobody_says_how_many_are_wrong() -> None:
    one = by_value(Long)
    assert one["wrong"] is None and [r["id"] for r in one["records"]] == ["y", "x", "v", "z"]


def test_fields_of_every_sort_have_their_part(tmp_path: Path) -> None:
    truths = [
        {"id": "a", "answer": ["Paris", "paris, France"], "tags": ["x", "y"], "p": "yes", "spans": [{"start": 0, "end": 4}]},
        {"id": "b", "answer": ["Rome"], "tags": ["x"], "p": "no", "spans": []},
    ]  # fmt: skip
    run = [
        {"id": "a", "answer": "the Paris", "tags": ["x"], "p": 0.25, "spans": [{"start": 0, "end": 9}]},
        {"id": "b", "answer": "Milan", "tags": ["x"], "p": 0.5, "spans": []},
    ]
    texts = [
        "ExactMatch(answer)",
        "TokenF1(answer)",
        "Jaccard(tags)",
        "AUC(p, positive=yes)",
        "SpanF1(spans)",
    ]
    rows = details(tmp_path, truths, run, dict(zip(["em", "token_f1", "jaccard", "auc", "spans"], texts)))
    found = {one["field"]: one for one in rows}
    assert found["answer"]["measures"] == ["em", "token_f1"] and found["answer"]["wrong"] == 1
    (wrong,) = found["answer"]["records"]
    assert (wrong["id"], wrong["said"], wrong["right"]) == ("b", "Milan", '["Rome"]')
    assert [(r["id"], r["said"]) for r in found["tags"]["records"]] == [("a", '["x"]')]
    assert "p" not in found, "a measure without values of records says nothing of single ones"


def test_spans_that_were_missed_and_spans_that_are_not_in_the_truths(tmp_path: Path) -> None:
    truths = [
        {"id": "whole", "x": [[0, 3, "a"]]},
        {"id": "moved", "x": [[9, 12, "a"], [4, 8, "b"], [0, 2, "a"]]},
        {"id": "extra", "x": []},
        {"id": "gone", "x": [[1, 2, "a"]]},
    ]
    run = [
        {"id": "whole", "x": [[0, 3, "a"]]},
        {"id": "moved", "x": [[0, 2, "a"], [5, 8, "b"]]},
        {"id": "extra", "x": [[7, 9]]},
    ]
    (one,) = details(tmp_path, truths, run, {"f1": "SpanF1(x)", "chars": "SpanF1(x, match=overlap)"})
    assert (one["measures"], one["total"], one["wrong"], one["missing"]) == (["f1", "chars"], 4, 3, 1)
    assert one["spans"] == {"missed": 3, "extra": 2} and one["missing_ids"] == ["gone"]
    first, second = one["records"]
    assert (first["id"], first["value"]) == ("moved", 3) and (second["id"], second["value"]) == ("extra", 1)
    assert json.loads(first["said"]) == [[5, 8, "b"]]
    assert json.loads(first["right"]) == [[4, 8, "b"], [9, 12, "a"]]
    assert json.loads(second["said"]) == [[7, 9, ""]] and json.loads(second["right"]) == []
