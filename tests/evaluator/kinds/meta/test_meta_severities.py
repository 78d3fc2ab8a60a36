"""Judgments and leaderboards count as the documentation says, for every code and every severity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from evaluator.codes import CODES
from evaluator.findings import SEVERITIES
from tests.evaluator.kinds.meta.test_meta_kind import Room
from tests.worlds.judged import debate, everything, judgments, write

YES = judgments([everything(1)])


def said(**judgment: Any) -> dict[str, Any]:
    return {"userTurnsEvaluations": [{**YES["userTurnsEvaluations"][0], **judgment}]}


class Case(NamedTuple):
    """A run with one finding; the measure's value where it is no error (None: there is none); whether it has a topic."""

    rows: Sequence[Any]
    value: float | None
    topic: bool = False
    options: Mapping[str, Any] = MappingProxyType({})


ONLY = judgments([{"quality": 1}])
# Both debates have one turn, and people say yes to everything.
JUDGMENTS: dict[str, Case] = {
    "F231": Case([YES, []], 0.5),
    "F232": Case([YES, {"userTurnsEvaluations": 1}], 0.5, topic=True),
    "F233": Case([YES], 0.5),
    "F234": Case([YES, said(Quantity=1)], 0.5, topic=True),
    "F235": Case([YES, said(Quantity={"score": 7})], 0.5, topic=True),
    "F236": Case([YES, said(quantity={"score": 1})], 0.5, topic=True),
    "F237": Case([YES, {**YES, **debate(1, 1)}], 0.5),
    "F238": Case([YES, judgments([{"quality": 1}])], 0.5, topic=True),
    "F239": Case([{"userTurnsEvaluations": [{}]}] * 2, None),
    "F240": Case([ONLY, ONLY], None),
    "F241": Case(["x" * (17 << 20), YES], 0.5),
    "F101": Case(["{broken", YES], 0.5),
}


def put(path: Path, rows: Sequence[Any]) -> None:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines))


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("code", JUDGMENTS)
def test_judgments_count_as_documented(code: str, severity: str, tmp_path: Path) -> None:
    case = JUDGMENTS[code]
    room = Room(tmp_path)
    write(tmp_path / "inputs" / "debates.jsonl", [debate(1, 1), debate(2, 1)])
    write(tmp_path / "truths" / "truth", [[everything(1)], [everything(1)]])
    put(tmp_path / "run" / "run.txt", case.rows)
    options = {"form": "judgments", "interval": False}
    result = room.evaluate(["accuracy@quantity"], options, severities={code: severity})
    check(result, code, severity, case)


def check(result: dict[str, Any], code: str, severity: str, case: Case) -> None:
    heavy = severity == "error" or (severity == "defect" and not case.topic)
    assert result["status"] == ("invalid" if heavy else "valid"), result
    assert (code in result["findings"]["codes"]) == (severity != "ignore")
    if heavy:
        assert result["findings"]["error"] and not result["measures"]
    elif case.value is None:
        assert "m0" in result["pending"] and not result["measures"]
    else:
        assert result["measures"]["m0"]["value"] == pytest.approx(case.value)


TRUTH = "".join(f"run{n} all nDCG {n}\n" for n in (1, 2, 3, 4))
BOARD = [f"run{n} all M {n}" for n in (1, 2, 3, 4)]
BOARDS: dict[str, Case] = {
    "F242": Case([*BOARD, "run5 all"], 1.0),
    "F243": Case([*BOARD, "run5 all M x"], 1.0),
    "F244": Case([*BOARD, "run1 all M 9"], 1.0),
    "F245": Case(BOARD[:3], 1.0),
    "F246": Case(BOARD[:3], 1.0, options={"on_missing": "warn"}),
    "F247": Case([*BOARD, "run5 all M 0"], 1.0),
    "F248": Case([line.replace("M", "X") for line in BOARD], 0.0),
    "F249": Case([line.replace("all", "t1") for line in BOARD], 1.0),
    "F250": Case([f"run{n} all M 1" for n in (1, 2, 3, 4)], 0.0),
    "F005": Case([*BOARD, "\udcff"], 1.0),
    "F009": Case([*BOARD, "x" * 70_000], 1.0),
    "F028": Case(["a all M 1", "b all M 2"], 0.0, options={"on_missing": "default"}),
}


def test_every_code_has_its_case() -> None:
    assert {c for c in CODES if "F230" < c < "F300"} <= set(JUDGMENTS) | set(BOARDS)


@pytest.mark.parametrize("measure", ["kendall@nDCG/M", "kendall@nDCG/*"])
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("code", BOARDS)
def test_leaderboards_count_as_documented(code: str, severity: str, measure: str, tmp_path: Path) -> None:
    case = BOARDS[code]
    if code == "F248" and measure.endswith("*"):
        case = case._replace(rows=["{}"])  # no measure at all
    room = Room(tmp_path)
    (tmp_path / "truths" / "truth").write_text(TRUTH)
    text = "".join(f"{row}\n" for row in case.rows)
    (tmp_path / "run" / "run.txt").write_text(text, errors="surrogateescape")
    along = dict.fromkeys(("F245", "F001", "F242", "F250"), "ignore")
    result = room.evaluate(
        [measure], {"form": "leaderboard", **case.options}, severities={**along, code: severity}
    )
    check(result, code, severity, case)
