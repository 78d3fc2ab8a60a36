"""What two executions of a server differ in beside the times that the platform measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.execution.trials.verify import untimed
from runner.records.contents import KeptFile

RUN = "simulations.jsonl"


class _Attempt:
    """An attempt that has these lines in its files."""

    def __init__(self, folder: Path, files: Mapping[str, list[Any]]) -> None:
        self._files = {}
        folder.mkdir()
        for name, rows in files.items():
            text = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
            (folder / name).write_text(text)
            self._files[name] = KeptFile(folder / name)

    def files(self, folder: str) -> Mapping[str, KeptFile]:
        assert folder == "output"
        return self._files


def _run(time: float, answer: Any = "yes", *, swapped: bool = False) -> dict[str, list[Any]]:
    """What driver and index leave of two debates that took that time."""
    said = {"utterance": answer, "response": {"content": answer, "milliseconds": 7}, "milliseconds": time}
    simulation = {"userTurns": [{"utterance": "why?", "systemResponse": said}], "milliseconds": 2 * time}
    judged = {"Quantity": {"score": 0.5, "milliseconds": time}, "milliseconds": time}
    evaluated = {
        "simulation": {"milliseconds": 1},
        "userTurnsEvaluations": [judged],
        "overallEvaluations": judged,
        "millisecondsEvaluation": time,
    }
    served = [{"kind": "search", "hits": [hit]} for hit in ("a", "b")]
    return {
        RUN: [{"simulation": simulation}, evaluated, {}, "no JSON"],
        "turns.jsonl": [{"debate": 1, "turn": 1, "user_ms": time, "system_ms": time, "words": 3}],
        "served.jsonl": [
            {"n": n, "at_ms": n * time, **row}
            for n, row in enumerate(reversed(served) if swapped else served)
        ],
    }


def _differ(folder: Path, one: Mapping[str, list[Any]], other: Mapping[str, list[Any]]) -> list[str]:
    first, second = (untimed(_Attempt(folder / name, run)) for name, run in (("a", one), ("b", other)))  # type: ignore[arg-type]
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def test_measured_times_and_who_asked_the_index_first_are_no_difference(tmp_path: Path) -> None:
    assert _differ(tmp_path, _run(1.5), _run(90.25, swapped=True)) == []


@pytest.mark.parametrize(
    ("name", "line", "path", "value"),
    [
        (RUN, 0, ("simulation", "userTurns", 0, "systemResponse", "response", "milliseconds"), 8),
        (RUN, 0, ("simulation", "userTurns", 0, "systemResponse", "utterance"), "no"),
        (RUN, 1, ("overallEvaluations", "Quantity", "score"), 0.75),
        ("turns.jsonl", 0, ("words",), 4),
        ("served.jsonl", 1, ("hits",), ["c"]),
    ],
)
def test_whatever_else_differs_is_one(
    tmp_path: Path, name: str, line: int, path: tuple[Any, ...], value: Any
) -> None:
    """Also what a software calls a time in what it says."""
    changed = _run(2.0)
    place = changed[name][line]
    *outer, last = path
    for key in outer:
        place = place[key]
    place[last] = value
    assert _differ(tmp_path, _run(1.0), changed) == [name]


def test_lines_that_are_no_json_and_lines_that_are_missing_are_compared(tmp_path: Path) -> None:
    shorter = _run(1.0)
    shorter[RUN] = shorter[RUN][:3]
    assert _differ(tmp_path, _run(1.0), shorter) == [RUN]
    del shorter["served.jsonl"]
    (tmp_path / "more").mkdir()
    assert _differ(tmp_path / "more", _run(1.0), shorter) == ["served.jsonl", RUN]
