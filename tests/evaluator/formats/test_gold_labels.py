"""People's labels in both forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evaluator.errors import EvaluatorError
from evaluator.formats.evaluations import Shape, read_shape
from evaluator.formats.gold import read_gold
from tests.worlds.judged import debate, write

ROWS = [debate(1, 2), debate(2, 1)]


@pytest.fixture
def shape(tmp_path: Path) -> Shape:
    """The shape of two debates, of two turns and of one."""
    return read_shape(write(tmp_path / "d.jsonl", ROWS), "d.jsonl")


OFFICIAL: list[list[dict[str, Any]]] = [
    [{"quantity": 1, "quality": 0, "relation": 1, "manner": None}, {"quantity": 1.0}],
    [{"quantity": 0, "quality": 1, "relation": 1, "manner": 1, "note": "x"}],
]


def test_the_official_form(tmp_path: Path, shape: Shape) -> None:
    path = write(tmp_path / "run-labels.jsonl", OFFICIAL)
    for known in (None, shape):
        assert read_gold(path, known) == [[(1, 0, 1, None), (1, None, None, None)], [(0, 1, 1, 1)]]
    path.write_bytes(b"\r\n" + path.read_bytes().replace(b"\n", b"\r\n\r\n").rstrip())
    assert len(read_gold(path, shape)) == 2


@pytest.mark.parametrize("value", ["yes", 2, -1, 0.5, [], {}, True, "1"])
def test_labels_are_0_1_or_null(tmp_path: Path, value: Any) -> None:
    path = write(tmp_path / "l.jsonl", [[{"quantity": 1}, {"quality": value}]])
    with pytest.raises(EvaluatorError) as error:
        read_gold(path)
    assert all(part in str(error.value) for part in ("l.jsonl:1", "quality", "2"))
    if value is True or value == "1":
        assert read_gold(path, reading="official")[0][1] == (None, 1, None, None)


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        (OFFICIAL[:1], ["1", "2"]),
        ([OFFICIAL[0], OFFICIAL[0]], ["2", "1", "2"]),
        ([OFFICIAL[0], {"quantity": 1}], []),
        ([[1]], ["1"]),
        ([], []),
    ],
)
def test_what_does_not_fit(tmp_path: Path, shape: Shape, rows: list[Any], numbers: list[str]) -> None:
    with pytest.raises(EvaluatorError) as error:
        read_gold(write(tmp_path / "l.jsonl", rows), shape)
    text = "".join(error.value.lines())
    assert "l.jsonl" in text and (not numbers or ",".join(numbers) in ",".join(re.findall(r"\d+", text)))


def ours(run: str, place: int, turn: int, annotator: str, **labels: Any) -> dict[str, Any]:
    return {"run": run, "debate": place, "turn": turn, "annotator": annotator, **labels}


def test_our_form_and_the_majority(tmp_path: Path, shape: Shape) -> None:
    run = shape.digest
    rows = [
        ours(run, 1, 1, "a", quantity=1, quality=0, relation=None),
        ours(run, 1, 1, "b", quantity=1, quality=1, relation=1),
        ours(run, 1, 1, "c", quantity=0, quality=None, relation=None),
        ours("0" * 64, 7, 9, "a", quantity=0),
    ]
    path = write(tmp_path / "l.jsonl", rows)
    assert read_gold(path, shape) == [[(1, None, 1, None), (None,) * 4], [(None,) * 4]]
    with pytest.raises(EvaluatorError):
        read_gold(path)


def test_labels_of_single_debates_find_them_in_another_file(tmp_path: Path, shape: Shape) -> None:
    stage = read_shape(write(tmp_path / "s.jsonl", [debate(5, 1), ROWS[1], ROWS[0], ROWS[1]]), "s.jsonl")
    row = ours(shape.digest, 2, 1, "a", manner=1) | {"transcript": shape.singles[1]}
    path = write(tmp_path / "l.jsonl", [row])
    none, yes = (None,) * 4, (None, None, None, 1)
    assert read_gold(path, stage) == [[none], [yes], [none, none], [yes]]
    assert read_gold(path, shape) == [[none, none], [yes]]


def test_labels_of_other_debates_only(tmp_path: Path, shape: Shape) -> None:
    for run, turn, numbers in (("0" * 64, 1, []), (shape.digest, 3, ["3", "1"])):
        with pytest.raises(EvaluatorError) as error:
            read_gold(write(tmp_path / "l.jsonl", [ours(run, 1, turn, "a", manner=1)]), shape)
        assert all(number in "".join(error.value.lines()) for number in numbers)
