"""Equal scores are worth a sentence only where they change a score, and then it says by how much."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evaluator.__main__ import main
from evaluator.formats.ranked import Rules
from tests.worlds.run_files import read

TIED = "1 Q0 a 1 {0} t\n1 Q0 b 2 {0} t\n1 Q0 c 3 {1} t\n"
EXACT, SINGLE = TIED.format("7", "5"), TIED.format("7", "5").replace("2 7", "2 6.99999999")
GOOD_FIRST, SAME = "1 0 a 1\n1 0 b 0\n", "1 0 a 1\n1 0 b 1\n"


def findings(tmp_path: Path, run: str, qrels: str, **more: Any) -> list[dict[str, Any]]:
    """What the evaluator finds in a run that is scored by RR and P@1."""
    folders = {name: tmp_path / name for name in ("run", "inputs", "truths", "output")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    (folders["run"] / "run.txt").write_text(run)
    (folders["truths"] / "qrels.txt").write_text(qrels)
    measures = [
        {"id": name.lower().replace("@", "_"), "measure": name, "truths": "qrels.txt"}
        for name in ("RR", "P@1", "P@2")
    ]
    request = {
        "schema_version": 1, "kind": "adhoc", "visibility": "public", "run_file": "run.txt", "measures": measures,
        "paths": {k: str(v) for k, v in folders.items()}, **more,
    }  # fmt: skip
    (tmp_path / "request.json").write_text(json.dumps(request))
    assert main(["run", "--request", str(tmp_path / "request.json")]) == 0
    return [json.loads(line) for line in (folders["output"] / "findings.jsonl").read_text().splitlines()]


BOTH = EXACT + "2 Q0 a 1 7 t\n2 Q0 b 2 6.99999999 t\n"


@pytest.mark.parametrize(("run", "code"), [(EXACT, "F023"), (SINGLE, "F024"), (BOTH, "F023")])
def test_a_tie_that_changes_a_score_names_both_values(tmp_path: Path, run: str, code: str) -> None:
    (found,) = findings(tmp_path, run, GOOD_FIRST)
    assert (found["code"], found["severity"], found["line"]) == (code, "warning", 2)
    assert re.findall(r"[01]\.\d{4}", found["message"]) == ["1.0000", "0.5000"] and "RR" in found["message"]
    (found,) = findings(tmp_path, run, GOOD_FIRST, visibility="blinded")
    assert not re.findall(r"[01]\.\d{4}|RR", found["message"]), "values of blinded data are hidden"


@pytest.mark.parametrize("qrels", [SAME, "1 0 c 1\n", "1 0 b 0\n", "2 0 a 1\n1 0 c 1\n"])
@pytest.mark.parametrize("run", [EXACT, SINGLE])
def test_ties_that_change_no_score_are_not_mentioned(tmp_path: Path, run: str, qrels: str) -> None:
    assert [one["code"] for one in findings(tmp_path, run, qrels) if one["code"] in ("F023", "F024")] == []


def test_without_judgments_nobody_can_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.txt").write_text(EXACT)
    assert main(["check", str(tmp_path / "run.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"]["codes"] == {}


def test_the_command_for_people_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.txt").write_text(EXACT)
    (tmp_path / "qrels.txt").write_text(GOOD_FIRST)
    assert main(["trec", str(tmp_path / "qrels.txt"), str(tmp_path / "run.txt"), "-m", "RR"]) == 0
    out, err = capsys.readouterr()
    assert out == "RR  0.5000\n" and "F023" in err and "1.0000" in err


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("run", "code"), [(EXACT, "F023"), (SINGLE, "F024")])
@pytest.mark.parametrize("severity", ["error", "defect", "warning", "ignore"])
def test_a_task_may_refuse_them(tmp_path: Path, run: str, code: str, severity: str, fast: bool) -> None:
    _, log = read(tmp_path / "run.txt", run.encode(), Rules(), severities={code: severity}, fast=fast)
    assert log.invalid == (severity in ("error", "defect"))
    assert log.counts == ({code: 1} if log.invalid else {})
