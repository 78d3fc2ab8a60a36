"""What is found counts as the documentation says, for every code of TREC runs and JSON Lines lists and every severity."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evaluator.codes import CODES
from evaluator.commands.runs import run_request
from evaluator.findings import SEVERITIES, Log
from evaluator.formats import blocks
from evaluator.formats.predictions import Rules as Lists
from evaluator.formats.predictions import read_predictions
from evaluator.formats.ranked import Rules, Scan
from evaluator.formats.trec import scan
from tests.worlds.run_files import Ids

Ranks = dict[str, list[str]]  # topic -> the judged documents that count, best first


class Case(NamedTuple):
    """A file with one finding; what counts where it is no error; whether it is about a topic (its defect)."""

    content: bytes
    counts: Mapping[str, list[Any]]
    topic: str = ""


LINES = b"3 Q0 d1 1 9 tag\n3 Q0 d2 2 8 tag\n4 Q0 d1 1 7 tag\n"
ALL: Ranks = {"3": ["d1", "d2"], "4": ["d1"]}


def more(line: bytes, documents: list[str], topic: str = "") -> Case:
    """The good lines and one more, of topic 4, after which that topic has these documents."""
    return Case(LINES + line, {"3": ["d1", "d2"], "4": documents}, topic)


TREC: dict[str, Case] = {
    "F001": Case(b"\n", {}),
    "F003": Case(gzip.compress(LINES, mtime=0)[:-4], ALL),
    "F005": more(b"4 Q0 \xff 2 6 tag\n", ["d1", "\xff"]),
    "F006": Case(b"\xef\xbb\xbf" + LINES, ALL),
    "F007": more(b"4 Q0 d\x01 2 6 tag\n", ["d1", "d\x01"]),
    "F008": Case(LINES.replace(b"\n", b"\r\n"), ALL),
    "F009": more(b"4 Q0 d2 2 6 " + b"t" * 70_000 + b"\n", ["d1"]),
    "F010": more(b"4 Q0 d2 2 6 tag too\n4 Q0 d9 3 5\n", ["d1", "d2"]),
    "F011": more(b"4 0 d2 2 6 tag\n", ["d1", "d2"], "4"),
    "F012": more(b"4 Q0 d2 2 6 tag\n4 Q0 d2 3 5 tag\n", ["d1", "d2"], "4"),
    "F013": more(b"4 Q0 d2 0.5 6 tag\n4 Q0 d9 x 5 tag\n", ["d1", "d2", "d9"], "4"),
    "F014": more(b"4 Q0 d2 0 inf tag\n4 Q0 d9 3 nan tag\n", ["d2", "d1"], "4"),
    "F015": more(b"4 Q0 d2 2 6 other\n", ["d1", "d2"]),
    "F016": Case(LINES.replace(b"tag", b"t/g"), ALL),
    "F017": Case(LINES + b"5 Q0 d1 1 7 tag\n", ALL, "5"),
    "F019": more(b"4 Q0 x 0 8 tag\n4 Q0 d2 2 6 tag\n", ["-", "d1", "d2"], "4"),
    "F030": Case(LINES.decode().encode("utf-16"), {}),
    "F020": more(b"4 Q0 d2 2 6 tag\n4 Q0 d9 3 8 tag\n4 Q0 d8 4 5 tag\n", ["d9", "d1", "d2"], "4"),
    "F021": more(b"4 Q0 d2 2 8 tag\n", ["d2", "d1"], "4"),
    "F022": more(b"4 Q0 d2 1 6 tag\n", ["d1", "d2"], "4"),
    "F025": Case(LINES + b"\n", ALL),
    "F026": Case(b"5 Q0 d1 1 1 tag\n" * 200 + LINES, ALL, "5"),
    "F027": Case(LINES + b"\n" * 900, ALL),
}
JUDGED = {t: [b"d1", b"d2", b"d8", b"d9", b"\xff", b"d\x01"] for t in (b"3", b"4", b"5")}


def severities(code: str, severity: str) -> dict[str, str]:
    """The code has this severity; what comes along with it does not matter here."""
    along = {"F012": "ignore", "F013": "ignore", "F021": "ignore", "F025": "ignore"}
    return {**along, code: severity}


def ranked(found: Scan) -> Ranks:
    """What counts, with - for documents that nobody judged."""
    made = {}
    for topic, one in found.topics.items():
        at = {rank: doc.decode("latin-1") for doc, rank in one.ranks.items()}
        made[topic.decode()] = [at.get(n, "-") for n in range(1, one.retrieved + 1)]
    return made


def expect(log: Log, code: str, severity: str, topic: str) -> bool:
    """Check what the log says; returns whether the run is valid."""
    heavy = severity == "error" or (severity == "defect" and not topic)
    assert log.invalid == heavy, [str(f) for f in log.sorted()]
    assert (code in log.counts) == (severity != "ignore")
    shown = {f.severity for f in log.kept if f.code == code}
    assert shown == (set() if severity == "ignore" else {"error"} if heavy else {severity})
    if severity != "ignore":
        assert log.count("error" if heavy else severity) >= 1
    assert log.defects == ({topic.encode()} if severity == "defect" and topic else set())
    return not heavy


def trec_rules(code: str) -> Rules:
    return Rules(
        topics=frozenset((b"3", b"4", b"5") if code == "F026" else (b"3", b"4")),
        documents=Ids(b"d1", b"d2", b"d8", b"d9") if code == "F019" else None,
        max_documents=3,
        judged=JUDGED,
    )


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("code", TREC)
def test_lines_of_a_trec_run_count_as_documented(
    code: str, severity: str, fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_TOPIC", 1000)  # not 64 MiB
    monkeypatch.setattr("evaluator.formats.trec_lines.MAX_BROKEN", 500)
    case = TREC[code]
    path = tmp_path / "run.txt"
    path.write_bytes(case.content)
    for chunk in (50, None) if code != "F026" else (400,):
        log = Log("run.txt", severities(code, severity))
        found = scan(path, trec_rules(code), log, fast=fast, chunk=chunk)
        if expect(log, code, severity, case.topic):
            assert ranked(found) == case.counts


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("severity", ["warning", "ignore"])
def test_a_file_that_is_too_large_counts_up_to_there(severity: str, fast: bool, tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(LINES + b"4 Q0 d2 2 6 tag\n")
    log = Log("run.txt", {"F004": severity})
    found = scan(path, trec_rules("F004"), log, fast=fast, max_bytes=60, chunk=16)
    assert not log.invalid and ranked(found) == ALL
    log = Log("run.txt")
    scan(path, trec_rules("F004"), log, fast=fast, max_bytes=60)
    assert log.invalid


def test_every_code_of_a_format_has_its_case() -> None:
    elsewhere = {"F002", "F004", "F018", "F023", "F024", "F028", "F029"}  # see other tests of this folder
    assert {c for c in CODES if c < "F100"} == set(TREC) | elsewhere
    assert {c for c in CODES if "F100" < c < "F200"} == set(LISTS)


def test_what_does_not_count_as_it_is_is_documented() -> None:
    assert all(c.otherwise for c in CODES.values() if c.severity in ("error", "defect")), (
        "what happens under warning"
    )


# --- from request to score ---------------------------------------------------------------------------------


def evaluated(
    tmp_path: Path, run: bytes, qrels: bytes = b"1 0 a 1\n1 0 b 0\n", **more: Any
) -> dict[str, Any]:
    """The result of a run of the kind adhoc, evaluated by AP."""
    folders = {name: tmp_path / name for name in ("run", "inputs", "truths", "output")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    (folders["run"] / "run.txt").write_bytes(run)
    (folders["truths"] / "qrels.txt").write_bytes(qrels)
    request = {
        "schema_version": 1, "kind": "adhoc", "visibility": "public", "paths": {k: str(v) for k, v in folders.items()},
        "run_file": "run.txt", "measures": [{"id": "ap", "measure": "AP", "truths": "qrels.txt"}], **more,
    }  # fmt: skip
    (tmp_path / "request.json").write_text(json.dumps(request))
    assert run_request(tmp_path / "request.json") == 0
    found: dict[str, Any] = json.loads((folders["output"] / "result.json").read_text())
    return found


@pytest.mark.parametrize("severity", ["warning", "ignore"])
def test_a_rank_with_a_dot_does_not_cost_its_line(severity: str, tmp_path: Path) -> None:
    run = b"1 Q0 a 1.0 9 t\n1 Q0 b 2.0 8 t\n"
    result = evaluated(tmp_path, run, severities={"F013": severity})
    assert result["status"] == "valid" and result["measures"]["ap"]["value"] == 1.0
    assert result["findings"]["warning"] == (2 if severity == "warning" else 0)


def test_a_defect_without_a_topic_is_counted_as_the_error_that_it_is(tmp_path: Path) -> None:
    result = evaluated(tmp_path, b"1 Q0 a 1 9\n", severities={"F010": "defect"})
    assert result["status"] == "invalid" and result["findings"]["error"] >= 1
    assert result["findings"]["defect"] == 0


def test_the_topics_without_an_answer_are_named(tmp_path: Path) -> None:
    result = evaluated(tmp_path, b"1 Q0 a 1 9 t\n", b"1 0 a 1\n2 0 b 1\n3 0 c 1\n")
    lines = (tmp_path / "output" / "scores.jsonl").read_text().splitlines()
    assert [row["topic"] for row in map(json.loads, lines) if row.get("answered") is False] == ["2", "3"]
    assert result["measures"]["ap"]["covered"] == 1


# --- JSON Lines --------------------------------------------------------------------------------------------

ZERO = b'{"query_id": 0, "relevant_candidates": [10, 11]}\n'


def one(text: str) -> bytes:
    return ZERO + text.encode() + b"\n"


def list_of(candidates: str, counts: list[int], topic: str = "1") -> Case:
    return Case(
        one(f'{{"query_id": 1, "relevant_candidates": {candidates}}}'), {"0": [10, 11], "1": counts}, topic
    )


FIRST: dict[str, list[Any]] = {"0": [10, 11]}
LISTS: dict[str, Case] = {
    "F101": Case(one('{"query_id": 1, "relevant_candidates": [12]'), FIRST),
    "F102": Case(one("[12]"), FIRST),
    "F103": Case(one('{"query_id": "x", "relevant_candidates": [12]}'), FIRST),
    "F104": Case(one('{"query_id": 1, "relevant_candidates": 12}'), FIRST, "1"),
    "F105": list_of('[12], "retrieved_candidates": [10]', [12]),
    "F106": list_of("[12, null, 10]", [12, 10]),
    "F107": list_of('["12", 10]', [12, 10]),
    "F108": Case(ZERO + ZERO.replace(b"10, 11", b"12"), FIRST, "0"),
    "F109": Case(ZERO + ZERO.replace(b'"query_id": 0', b'"query_id": 7'), FIRST, "7"),
    "F110": Case(ZERO, FIRST, "1"),
    "F111": list_of("[99, 12]", [99, 12]),
    "F112": list_of("[12, 12, 10]", [12, 10]),
    "F113": list_of("[12, 12, 10]", [12, 12, 10]),
    "F114": list_of("[12]", [12]),
    "F115": list_of("[]", []),
    "F116": list_of("[12, 10, 11, 13]", [12, 10, 11]),
    "F117": list_of(" " * (4 << 20) + "[12]", [])._replace(counts=FIRST, topic=""),
    "F118": Case(b"\xef\xbb\xbf" + ZERO, FIRST),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("code", LISTS)
def test_lists_of_candidates_count_as_documented(
    code: str, severity: str, packed: bool, tmp_path: Path
) -> None:
    case = LISTS[code]
    path = tmp_path / "predictions.jsonl"
    path.write_bytes(gzip.compress(case.content) if packed else case.content)
    log = Log(path.name, {"F110": "ignore", code: severity})
    rules = Lists(frozenset((0, 1)), frozenset((10, 11, 12, 13)), 9, 2, 3, repeats=code == "F113")
    found = read_predictions(path, rules, log)
    if expect(log, code, severity, case.topic):
        assert {str(query): found[query] for query in found} == case.counts
