"""The details of a judged report, as text and as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.kinds.report import presenter as reporting
from runner.model.errors import RunnerError
from runner.views import redact
from runner.views.audience import ORGANISER
from runner.views.show.contents import Inside
from tests.worlds import records
from tests.worlds.records import World
from tests.worlds.shown import judged_line, reported


def shown_run(tmp_path: Path, details: list[Any]) -> Inside:
    found = reported(World.make(tmp_path), details, dataset="dev")
    read = reporting.read(found, None, ORGANISER, records.task().datasets["dev"])
    return Inside(found.run.id, ORGANISER, read)


def test_report_lines_and_the_choice_of_a_topic(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    line = judged_line()
    effects = [one for sentence in line["sentences"] for one in sentence["effects"]]
    first_of_kind = [next(one for one in effects if one["kind"] == kind) for kind in ("reward", "penalty")]
    short = {**line, "topic": "t2", "sentences": [{**line["sentences"][0], "effects": first_of_kind}]}
    run = shown_run(tmp_path, [line, short])
    text = "\n".join(run.lines())
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert text.count("Bees fly.") == 1  # t2 is a line of the overview only
    assert "\n".join(run.choose("all").lines()).count("Bees fly.") == 2
    golden("reports.txt", "\n".join([text, "", *run.choose("t2").lines()]) + "\n")
    with pytest.raises(RunnerError) as caught:
        run.choose("t3")
    assert caught.value.code == "E102" and "t1, t2" in caught.value.fix


def test_json_has_the_same(tmp_path: Path) -> None:
    data = json.loads(json.dumps(shown_run(tmp_path, [judged_line()]).data(), allow_nan=False))
    one = data["reports"]["reports"][0]
    assert one["sentences"][0]["judgments"][0] == {
        "type": "CITED_DOCUMENT_RELEVANCE",
        "doc_id": "d1",
        "said": "yes",
        "evaluator": "null",
    }
    assert {e["kind"] for s in one["sentences"] for e in s["effects"]} >= {"reward", "penalty"}
    assert one["nuggets"][0]["answers"] == [["Bees", True], ["Wasps", False]]


def test_details_of_another_form_are_survived(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    line = judged_line()
    line["measures"] = {"f1": 1e400, "b": 10**400, "ok": 0.5, "t": True}
    line["nuggets"] = [5, {"question": 7, "answers": [3, {"answer": None}], "sentences": ["x", 1]}]
    odd = {"number": "x", "text": 5, "citations": "d", "effects": [{"kind": "party"}]}
    line["sentences"] += [None, {}, odd]
    line["sentences"].append({"judgments": [{"type": 5, "value": deep}, {"matches": [1, {"answers": 2}]}, 3]})
    text_line = json.dumps(line).replace("Infinity", "1e999")
    run_lines = [{"topic": "big", "truncated": True}, {"topic": 5}, {"x": 1}, {"sentences": []}]
    found = reported(World.make(tmp_path), run_lines)
    path = found.evaluation.path / "details.jsonl"  # type: ignore[union-attr]
    path.write_text(path.read_text() + text_line + "\n")
    read = reporting.read(found, None, ORGANISER, records.task().datasets["dev"])
    run = Inside(found.run.id, ORGANISER, read).choose("all")
    text = "\n".join(run.lines())
    data = json.loads(json.dumps(run.data(), allow_nan=False))["reports"]
    assert [report["measures"] for report in data["reports"] if report["measures"]] == [{"ok": 0.5}]
    assert len(data["notes"]) == 1 and data["notes"][0].startswith("3 ") and "big" in text


def test_long_details_are_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = records.task().datasets["dev"]
    lines = [{"topic": f"t{n}", "sentences": [], "more": "x" * 50} for n in range(9)]
    found = reported(World.make(tmp_path), lines)

    def shown() -> tuple[int, bool]:
        read = reporting.read(found, None, ORGANISER, dev)
        assert read is not None and read.pieces is not None
        return len(read.pieces), bool(read.notes)

    assert shown() == (9, False)
    monkeypatch.setattr(reporting, "MAX_TOPICS", 5)
    assert shown() == (5, True)
    monkeypatch.setattr(redact, "MAX_DETAILS", 200)  # within the third line, which is read whole
    assert shown() == (3, True)
