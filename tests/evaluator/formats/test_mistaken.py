"""A file of quite another format is one finding that says what it is, whatever was expected."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from evaluator.argue import load_reports
from evaluator.findings import Log
from evaluator.formats.dialogue import read_debates
from evaluator.formats.evaluations import Shape, read_judgments
from evaluator.formats.leaderboards import ORDER, read_board
from evaluator.formats.predictions import Rules as Lists
from evaluator.formats.predictions import read_predictions
from evaluator.formats.ranked import Rules
from evaluator.formats.trec import scan

ROWS = [{"qid": str(n), "docno": f"d{n}", "rank": 1, "score": 1.5} for n in range(300)]
JSON = {
    "lines": "".join(json.dumps(row) + "\n" for row in ROWS),
    "array": json.dumps(ROWS * 20),
    "indented": json.dumps(ROWS, indent=2),
    "object": json.dumps({"301": {"d1": 1.5}}),
    "marked": "\ufeff" + json.dumps(ROWS),
}
CSV = {
    "header": "query,docno,rank,score\n" + "".join(f"{n},d{n},1,1.5\n" for n in range(300)),
    "plain": "".join(f"{n},Q0,d{n},1,1.5,tag\r\n" for n in range(300)),
    "semicolons": "".join(f"{n};d{n};1;1,5\n" for n in range(300)),
}
RUNS = (
    "301 Q0 d1 1 1.5 tag\n",
    "{301} Q0 d1 1 1.5 tag\n",
    "301 Q0 a,b,c,d 1 1.5 a,b,c\n",
    "[x]\n301 Q0 d1 1 1.5 tag\n",
)


def form_named(log: Log) -> str | None:
    """Return the form that the first finding names, if the file is of another one."""
    match = (
        re.match(r"the file is (JSON|CSV|a TREC run|XML)", log.sorted()[0].message) if log.counts else None
    )
    return match[1] if match else None


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", [*JSON, *CSV])
def test_one_finding_says_what_it_is(tmp_path: Path, name: str, packed: bool) -> None:
    data = {**JSON, **CSV}[name].encode()
    path = tmp_path / "run.txt"
    path.write_bytes(gzip.compress(data) if packed else data)
    log = Log("run.txt")
    assert scan(path, Rules(), log).topics == {}
    assert log.counts == {"F010": 1} and log.invalid
    assert form_named(log) == ("JSON" if name in JSON else "CSV")


@pytest.mark.parametrize("text", RUNS)
def test_what_may_be_a_run_is_read_line_by_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.txt"
    path.write_text(text)
    log = Log("run.txt")
    scan(path, Rules(), log)
    assert form_named(log) is None


def test_it_is_never_taken_for_a_valid_run(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(JSON["lines"])
    log = Log("run.txt", {"F010": "warning"})
    scan(path, Rules(), log)
    assert log.invalid and log.counts == {"F010": 1, "F001": 1}


# --- where JSON Lines are expected -------------------------------------------------------------------------

LINES = "".join(json.dumps({"query_id": n, "relevant_candidates": [n]}) + "\n" for n in range(300))
OTHERS = {
    "CSV of commas": CSV["header"],
    "CSV of semicolons": CSV["semicolons"],
    "CSV of tabs": CSV["header"].replace(",", "\t"),
    "a TREC run": "".join(f"301 Q0 d{n} {n} 1.5 tag\n" for n in range(300)),
    "JSON with line ends": "".join(json.dumps(row, indent=1) + "\n" for row in ROWS * 9),
    "XML": "<run>\n" + "<result/>\n" * 300 + "</run>\n",
}
READERS = {
    "predictions": lambda path, log: read_predictions(
        path, Lists(frozenset((0,)), frozenset((1,)), 9, 1, 9), log
    ),
    "debates": read_debates,
    "judgments": lambda path, log: read_judgments(path, Shape([1] * 300), log),
    "reports": load_reports,
    "leaderboard": lambda path, log: read_board(path, "jsonl", log),
}
NOT_JSON = {"reports": "F301", "leaderboard": "F242"}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("reader", READERS)
def test_no_json_lines_are_one_finding(tmp_path: Path, reader: str, what: str, packed: bool) -> None:
    path, log = tmp_path / "run.jsonl", Log("run.jsonl")
    path.write_bytes(gzip.compress(OTHERS[what].encode()) if packed else OTHERS[what].encode())
    READERS[reader](path, log)
    assert log.counts == {NOT_JSON.get(reader, "F101"): 1} and log.invalid
    form, _, separator = what.partition(" of ")
    assert form_named(log) == form.removesuffix(" with line ends") and separator in log.sorted()[0].message


ARRAY = "[" + LINES.replace("\n", ",\n") + "{}]"
TEXTS = [LINES, "{oops\n" + LINES, "", "{", "\xff{,\n", '{"query_id":\n{}x\n']


@pytest.mark.parametrize(
    ("reader", "text"), [(r, t) for r in READERS for t in TEXTS] + [("predictions", ARRAY)]
)
def test_what_may_be_json_lines_is_read(tmp_path: Path, reader: str, text: str) -> None:
    path, log = tmp_path / "run.jsonl", Log("run.jsonl")
    path.write_text(text)
    READERS[reader](path, log)
    assert form_named(log) is None


@pytest.mark.parametrize("form", ORDER)
@pytest.mark.parametrize("name", [*JSON, "header", "semicolons"])
def test_leaderboards_of_columns_are_no_json_and_no_csv(tmp_path: Path, form: str, name: str) -> None:
    path, log = tmp_path / "board", Log("board")
    path.write_text({**JSON, **CSV}[name], encoding="utf-8")
    read_board(path, form, log)
    assert log.counts == {"F242": 1} | ({"F118": 1} if "F118" in log.counts else {})
    assert form_named(log) is not None and ORDER[form] in log.sorted()[0].message
