"""JSON or CSV where lines of a TREC run are expected is one finding that says so."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from evaluator.findings import Log
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


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", [*JSON, *CSV])
def test_one_finding_says_what_it_is(tmp_path: Path, name: str, packed: bool) -> None:
    data = {**JSON, **CSV}[name].encode()
    path = tmp_path / "run.txt"
    path.write_bytes(gzip.compress(data) if packed else data)
    log = Log("run.txt")
    assert scan(path, Rules(), log).topics == {}
    assert log.counts == {"F010": 1} and log.invalid
    assert f"the file is {'JSON' if name in JSON else 'CSV'}" in log.sorted()[0].message


@pytest.mark.parametrize("text", RUNS)
def test_what_may_be_a_run_is_read_line_by_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.txt"
    path.write_text(text)
    log = Log("run.txt")
    scan(path, Rules(), log)
    assert not any("the file is" in found.message for found in log.sorted())


def test_it_is_never_taken_for_a_valid_run(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(JSON["lines"])
    log = Log("run.txt", {"F010": "warning"})
    scan(path, Rules(), log)
    assert log.invalid and log.counts == {"F010": 1, "F001": 1}
