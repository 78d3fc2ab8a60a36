"""Reports count as the documentation says, for every code and every severity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from evaluator.codes import CODES
from evaluator.findings import SEVERITIES
from evaluator.kinds.report.codes import CODES as OF_REPORTS
from tests.worlds.report_world import GOOD, World, lines, report, reports

ONE, TWO, THREE = reports()
NOTHING = {"1": [], "2": GOOD["2"], "3": GOOD["3"]}


def first(**more: Any) -> list[Any]:
    """The good reports, but something about the first one is otherwise."""
    return [{**ONE, **more}, TWO, THREE]


def metadata(**more: Any) -> list[Any]:
    return first(metadata={k: v for k, v in {**ONE["metadata"], **more}.items() if v is not None})


def rows(*more: Any) -> list[Any]:
    return first(responses=[*ONE["responses"], *more])


class Case(NamedTuple):
    """Rows with one finding, rows without it that count the same, and whether the finding is about a topic."""

    rows: Sequence[Any]
    same: Sequence[Any]
    topic: bool = True
    options: Mapping[str, Any] = MappingProxyType({})


ALL = reports()
WITHOUT = [TWO, THREE]
LONG = "x" * (33 << 20)
CITED = {"text": "The bridge cost two million crowns.", "citations": ["cost"]}
MORE = rows(CITED)
RAGTIME = {"track": "ragtime26"}
CASES: dict[str, Case] = {
    "F301": Case([*ALL, "{broken"], ALL, topic=False),
    "F302": Case([*ALL, [1]], ALL, topic=False),
    "F303": Case(metadata(team_id=None), ALL),
    "F304": Case(metadata(narrative_id=7), WITHOUT, topic=False),
    "F305": Case(first(responses=1), WITHOUT),
    "F306": Case(rows({"citations": ["cost"]}), ALL),
    "F307": Case(rows({**CITED, "citations": ["cost", None]}), MORE),
    "F308": Case(rows({**CITED, "citations": ["cost", 99]}), MORE),
    "F309": Case(rows({**CITED, "citations": {"cost": "x"}}), MORE),
    "F310": Case([*ALL, report("1", [("Bees.", ["bees"])])], ALL),
    "F311": Case([*ALL, report("9", GOOD["2"])], ALL),
    "F312": Case(WITHOUT, WITHOUT),
    "F313": Case(rows({**CITED, "citations": ["cost", "no"]}), rows({**CITED, "citations": ["cost", "other"]})),
    "F314": Case(first(responses=[]), first(responses=[])),
    "F315": Case(rows({"text": " ", "citations": []}), rows({"text": " ", "citations": []})),
    "F316": Case(rows({**CITED, "citations": ["cost", "bridge", "crew", "bees"]}), rows({**CITED, "citations": ["cost", "bridge", "crew", "bees"]}), options=RAGTIME),
    "F317": Case(rows(CITED), ALL, options={"limit": 11, "length": "words"}),
    "F318": Case(ALL, ALL, options=RAGTIME),
    "F319": Case(first(references=None), ALL, options={"track": "ragtime25"}),
    "F320": Case(first(references=["bees", "bees", "bridge"]), ALL, options={"track": "rag25"}),
    "F321": Case(first(references=["bees"]), ALL, options={"track": "ragtime25"}),
    "F322": Case(first(references=[*ONE["references"], "crew"]), ALL, options={"track": "ragtime25"}),
    "F323": Case(first(references=[*ONE["references"], *(f"r{n}" for n in range(200))]), ALL, options={"track": "rag25"}),
    "F324": Case(ALL, ALL, options={"track": "ragtime25"}),
    "F325": Case(metadata(run_id="r" * 30), ALL, options={"track": "rag26"}),
    "F326": Case(metadata(narrative="else"), ALL, options={"track": "rag25"}),
    "F327": Case(rows({**CITED, "citations": ["cost", "cost"]}), MORE),
    "F328": Case(rows({**CITED, "citations": {"cost": 1}}), MORE),
    "F330": Case([*ALL, LONG], ALL, topic=False),
    "F331": Case(["\ufeff" + json.dumps(ONE), TWO, THREE], ALL, topic=False),
    "F332": Case([ONE, report("2", GOOD["2"], run="other"), THREE], ALL),
    "F333": Case(rows({**CITED, "citations": ["cost", "c\x01"]}), MORE),
    "F335": Case(["1"] * 1000, [], topic=False),
    "F336": Case(first(documents=1), ALL),
    "F337": Case([{**{k: v for k, v in ONE.items() if k != "responses"}, "answer": ONE["responses"]}, TWO, THREE], ALL, options=RAGTIME),
    "F338": Case(first(references=1), ALL),
    "F340": Case(ALL, WITHOUT, options={"max_questions": 2}),
    "F342": Case(rows({"text": "and " + "word," * 50, "citations": []}), rows({"text": "and " + "word," * 50, "citations": []})),
    "F028": Case([report("9", GOOD["2"])], [], topic=False),
    "F029": Case([report("1", [("Opened in 1901.", ["no"])])], [report("1", [("Opened in 1901.", ["none"])])], topic=False),
}  # fmt: skip
# What comes along with some of these, and every rule of tracks: it must not decide here.
ALONG = dict.fromkeys(
    ["F302", "F303", "F307", "F311", "F313", "F316", "F318", "F319", "F320", "F321", "F322", "F323", "F324", "F325", "F326", "F337"],
    "ignore",
)  # fmt: skip


def test_every_code_has_its_case() -> None:
    judges = {"F341", "F343", "F344"}  # see test_report_judges.py
    assert {one.code for one in OF_REPORTS} <= set(CASES) | judges


def values(world: World, rows_: Sequence[Any], severities: dict[str, str], options: dict[str, Any]) -> Any:
    lines(world.run / "reports.jsonl", rows_)
    path = world.request(options, severities=severities)
    from evaluator.commands.runs import run_request

    assert run_request(path) == 0
    result = json.loads((path.parent / "result.json").read_text())
    assert result["status"] != "error", result["message"]
    scores = (path.parent / "scores.jsonl").read_text()
    return result, sorted(scores.splitlines())


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("code", CASES)
def test_reports_count_as_documented(code: str, severity: str, tmp_path: Path) -> None:
    case = CASES[code]
    world = World.make(tmp_path)
    result, scores = values(world, case.rows, {**ALONG, code: severity}, case.options)
    heavy = severity == "error" or (severity == "defect" and not case.topic)
    assert result["status"] == ("invalid" if heavy else "valid"), result["findings"]
    assert (code in result["findings"]["codes"]) == (severity != "ignore"), result["findings"]
    if heavy:
        assert result["findings"]["error"] and not result["measures"]
    elif severity != "defect":
        everything = dict.fromkeys(CODES, "ignore")
        plain = {
            k: v for k, v in case.options.items() if k not in ("track", "limit", "length", "max_questions")
        }
        assert scores == values(world, case.same, everything, plain)[1]


def test_reports_on_topics_without_nuggets_are_not_zero_and_fine(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.requests({"1": {}, "2": {}, "3": {}, "4": {}})
    said = world.evaluate([report("4", GOOD["2"])])
    assert said.result["status"] == "invalid" and "F028" in said.codes
    assert world.evaluate([report("4", GOOD["2"]), TWO]).result["status"] == "valid"
