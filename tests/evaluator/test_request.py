"""From request.json to the three result files, as the public contract says."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import schemas
from evaluator.__main__ import main

RUN = "".join(f"{t} Q0 d{d} {d} {10 - d}.5 my-run\n" for t in ("1", "2") for d in range(1, 6))
FOLDERS = ("in/run", "inputs", "truths", "out")
QRELS = "1 0 d1 1\n1 0 d9 2\n2 0 d3 1\n3 0 d1 1\n"


def valid(data: Any, name: str) -> None:
    """Check data against one of our schemas."""
    Draft202012Validator(schemas.schema(name)).validate(data)


class Room:
    """The folders of an evaluator container."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            (folder / name).mkdir(parents=True)
        (folder / "in/run/run.txt").write_text(RUN)
        (folder / "truths/qrels.txt").write_text(QRELS)
        queries = (json.dumps({"qid": t, "query": "q"}) + "\n" for t in "123")
        (folder / "inputs/queries.jsonl").write_text("".join(queries))
        with gzip.open(folder / "inputs/documents.jsonl.gz", "wt") as file:
            file.writelines(json.dumps({"docno": f"d{d}", "text": "t"}) + "\n" for d in range(1, 10))
        self.request: dict[str, Any] = {
            "schema_version": 1,
            "kind": "adhoc",
            "task": "toy",
            "dataset": "toy-1",
            "scenario": "default",
            "visibility": "public",
            "paths": {
                name: f"{folder}/{path}"
                for name, path in zip(("run", "inputs", "truths", "output"), FOLDERS, strict=True)
            },
            "run_file": "run.txt",
            "topics": "queries.jsonl",
            "corpus": "documents.jsonl.gz",
            "measures": [
                {"id": name, "measure": measure, "truths": "qrels.txt", "direction": "higher", "options": {}}
                for name, measure in (("ndcg-5", "nDCG@5"), ("rr", "RR"), ("rel", "NumRelRet"))
            ],
            "severities": {},
            "options": {},
            "score_precision": "float32",
            "limits": {"max_findings": 1000, "max_bytes": 10_000_000},
        }

    def evaluate(self, code: int = 0) -> dict[str, Any]:
        """Run the evaluator; check its three files against the schemas and return the result."""
        valid(self.request, "request")
        (self.folder / "in/request.json").write_text(json.dumps(self.request))
        assert main(["run", "--request", str(self.folder / "in/request.json")]) == code
        result: dict[str, Any] = json.loads((self.folder / "out/result.json").read_text())
        valid(result, "result")
        for row in self.lines("scores"):
            valid(row, "score")
            assert math.isfinite(row["value"])
        for row in self.lines("findings"):
            valid(row, "finding")
        if result["status"] != "valid":
            assert result["measures"] == {} and self.lines("scores") == []
        return result

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of scores.jsonl or findings.jsonl."""
        return [json.loads(line) for line in (self.folder / f"out/{name}.jsonl").read_text().splitlines()]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_valid_run(room: Room) -> None:
    result = room.evaluate()
    assert result["status"] == "valid" and result["run_tag"] == "my-run"
    assert result["findings"]["warning"] == 1  # topic 3 has no answer
    rr = result["measures"]["rr"]
    assert rr["value"] == pytest.approx((1 + 1 / 3 + 0) / 3) and (rr["topics"], rr["covered"]) == (3, 2)
    assert rr["interval"][0] < rr["value"] < rr["interval"][1]
    assert result["measures"]["rel"] == {"value": 2.0, "topics": 3, "covered": 2, "interval": None}
    scores = {(row["measure"], row["topic"]): row["value"] for row in room.lines("scores")}
    assert len(scores) == 9 and scores["rr", "3"] == 0.0 and scores["rr", "2"] == pytest.approx(1 / 3)
    assert [(f["code"], f["topic"]) for f in room.lines("findings")] == [("F018", "3")]


def test_gzip_run_gives_the_same(room: Room) -> None:
    plain = room.evaluate()
    (room.folder / "in/run/run.txt.gz").write_bytes(gzip.compress(RUN.encode()))
    room.request["run_file"] = "run.txt.gz"
    assert room.evaluate()["measures"] == plain["measures"]


def test_invalid_run_has_findings_and_no_scores(room: Room) -> None:
    (room.folder / "in/run/run.txt").write_text(RUN + "2 Q0 d1 6 1 my-run\n2 Q0 nowhere 7 1 my-run\n")
    result = room.evaluate()
    assert result["status"] == "invalid"
    counts = {code: row["count"] for code, row in result["findings"]["codes"].items()}
    assert counts == {"F012": 1, "F018": 1, "F019": 1}


def test_missing_run_is_invalid(room: Room) -> None:
    (room.folder / "in/run/run.txt").unlink()
    assert room.evaluate()["findings"]["codes"].keys() == {"F002"}


def test_defect_sets_the_topic_to_zero(room: Room) -> None:
    (room.folder / "in/run/run.txt").write_text(RUN + "2 Q0 d1 6 1 my-run\n")
    room.request["severities"] = {"F012": "defect"}
    result = room.evaluate()
    assert result["status"] == "valid" and result["findings"]["defect"] == 1
    rr = result["measures"]["rr"]
    assert rr["value"] == pytest.approx(1 / 3) and rr["covered"] == 1


def test_measures_may_have_truths_of_their_own(room: Room) -> None:
    (room.folder / "truths/other.txt").write_text("2 0 d5 1\n")
    room.request["measures"][1]["truths"] = "other.txt"
    measures = room.evaluate()["measures"]
    assert measures["rr"]["value"] == pytest.approx(1 / 5) and measures["rr"]["topics"] == 1
    assert measures["ndcg-5"]["topics"] == 3


def test_options(room: Room) -> None:
    room.request["options"] = {"max_documents": 4, "interval": False, "cross_check": True}
    valid(room.request["options"], "kinds/adhoc")
    assert room.evaluate()["findings"]["codes"]["F020"]["count"] == 2
    room.request["options"]["max_documents"] = 5
    assert room.evaluate()["measures"]["rr"]["interval"] is None


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"kind": "nothing"}, "nothing"),
        ({"kind": "base"}, "base"),
        ({"options": {"colour": 1}}, '"colour"'),
        ({"options": {"max_documents": 0}}, '"max_documents"'),
        ({"topics": "no-such-file"}, "no-such-file"),
        ({"corpus": "no-such-file"}, "no-such-file"),
        ({"measures": [{"id": "x", "measure": "Nonsense@3", "truths": "qrels.txt"}]}, "Nonsense@3"),
    ],
)
def test_organisers_mistakes_are_errors(room: Room, change: dict[str, Any], value: str) -> None:
    room.request |= change
    result = room.evaluate()
    assert result["status"] == "error" and value in result["message"]


@pytest.mark.parametrize("line", ["SECRET 0 SECRET", "SECRET 0 SECRET SECRET", "1 0 SECRET 1.5"])
def test_broken_truths_are_named_but_not_shown(
    room: Room, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    room.request["visibility"] = "blinded"
    (room.folder / "truths/qrels.txt").write_text(QRELS + line + "\n")
    result = room.evaluate()
    assert result["status"] == "error" and "qrels.txt:5" in result["message"]
    everything = "".join(p.read_text() for p in (room.folder / "out").iterdir()) + "".join(capfd.readouterr())
    assert "SECRET" not in everything


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"run_file": "../truths/qrels.txt"},
        {"run_file": "/etc/passwd"},
        {"severities": {"F999": "error"}},
        {"severities": {"F012": "fatal"}},
        {"measures": "AP"},
        {"paths": {}},
        {"score_precision": "half"},
        {"limits": {"max_bytes": True}},
    ],
)
def test_unreadable_requests_give_no_result(room: Room, change: dict[str, Any]) -> None:
    path = room.folder / "in/request.json"
    path.write_text(json.dumps(room.request | change))
    assert main(["run", "--request", str(path)]) == 4
    assert not (room.folder / "out/result.json").exists()


def test_findings_are_capped(room: Room) -> None:
    room.request["limits"]["max_findings"] = 5
    (room.folder / "in/run/run.txt").write_text("broken\n" * 1000)
    result = room.evaluate()
    assert len(room.lines("findings")) == 5 and result["findings"]["error"] == 1000


def test_check_takes_the_rules_of_a_request(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    room.request["severities"] = {"F018": "error"}
    (room.folder / "in/request.json").write_text(json.dumps(room.request))
    run = str(room.folder / "in/run/run.txt")
    assert main(["check", run, "--request", str(room.folder / "in/request.json"), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "invalid" and [f["code"] for f in report["findings"]["kept"]] == ["F018"]
