"""Every finding code: a file that has it, where it is reported, and what is said."""

from __future__ import annotations

import gzip
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.codes import CODES
from evaluator.findings import Log, nearest, plain, show
from evaluator.formats import blocks
from evaluator.formats.ranked import Rules
from evaluator.formats.trec import scan
from tests.worlds.run_files import Ids, outcome, read

GOOD = b"3 Q0 d1 1 9 tag\n3 Q0 d2 2 8 tag\n4 Q0 d1 1 7 tag\n"
KNOWN = frozenset({b"3", b"4"})
STRICT = Rules(topics=KNOWN, documents=Ids(b"d1", b"d2", b"d9"), max_documents=3, suggest=True)

# code -> (content, line, value that the message names)
CASES: dict[str, tuple[bytes, int | None, str]] = {
    "F001": (b"", None, ""),
    "F003": (gzip.compress(GOOD * 100, mtime=0)[:40], None, ""),
    "F005": (GOOD + b"4 Q0 d\xff 2 6 tag\n", 4, r"d\xff"),
    "F006": (b"\xef\xbb\xbf" + GOOD, 1, ""),
    "F007": (GOOD + b"4 Q0 d\x00 2 6 tag\n", 4, "U+0000"),
    "F008": (GOOD.replace(b"\n", b"\r\n"), 1, ""),
    "F009": (GOOD + b"4 Q0 " + b"d" * 70_000 + b" 2 6 tag\n", 4, "65,536"),
    "F010": (GOOD + b"4 Q0 d2 2 6\n", 4, "5"),
    "F011": (GOOD + b"4 0 d2 2 6 tag\n", 4, '"0"'),
    "F012": (GOOD + b"4 Q0 d1 2 6 tag\n", 4, '"d1"'),
    "F013": (GOOD + b"4 Q0 d2 2.0 6 tag\n", 4, '"2.0"'),
    "F014": (GOOD + b"4 Q0 d2 2 NaN tag\n", 4, '"NaN"'),
    "F015": (GOOD + b"4 Q0 d2 2 6 other\n", 4, '"other"'),
    "F016": (GOOD.replace(b"tag", b"t/g"), 1, '"t/g"'),
    "F017": (GOOD + b"04 Q0 d2 2 6 tag\n", 4, '"04"'),
    "F019": (GOOD + b"4 Q0 D2 2 6 tag\n", 4, '"D2"'),
    "F020": (GOOD + b"4 Q0 d2 2 5 tag\n4 Q0 d9 3 5 tag\n4 Q0 d3 4 5 tag\n", 6, "4"),
    "F021": (GOOD + b"4 Q0 d2 2 8 tag\n", 4, "8"),
    "F022": (GOOD + b"4 Q0 d2 1 6 tag\n", 4, "1"),
    "F030": (GOOD.decode().encode("utf-16"), None, "UTF-16"),
    "F025": (GOOD + b"\n4 Q0 d2 2 6 tag\n", 4, ""),
}


@pytest.mark.parametrize("code", CASES)
@pytest.mark.parametrize("fast", [False, True])
def test_code_is_found_at_its_line(code: str, fast: bool, tmp_path: Path) -> None:
    content, line, value = CASES[code]
    _, log = read(tmp_path / "run.txt", content, STRICT, fast=fast)
    [found] = [f for f in log.sorted() if f.code == code]
    assert found.line == line and value in found.message
    assert log.invalid == (CODES[code].severity == "error")
    place = "run.txt" if line is None else f"run.txt:{line}"
    assert str(found).startswith(f"{place}: {code} {CODES[code].severity}: ") and found.fix in str(found)


def test_messages_of_findings_in_runs(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    logs = [read(tmp_path / "run.txt", content, STRICT)[1] for content, _, _ in CASES.values()]
    golden("check-findings.txt", "\n".join(log.printed(10) for log in logs))


@pytest.mark.parametrize(
    ("first", "second", "code", "numbers"),
    [
        ("1 0.3", "2 0.30000000000000004", "F021", ["0.30000000000000004", "0.3"]),
        ("1 12.3456789012", "2 12.3456789019", "F021", ["12.3456789019", "12.3456789012"]),
        ("12345678 2", "12345678 1", "F022", ["12345678"]),
        ("1 1e999", "2 0", "F014", ['"1e999"', "1.8e308"]),
        ("1 -1e999", "2 -2e999", "F014", ['"-1e999"', "1.8e308"]),
        ("1 inf", "2 0", "F014", ['"inf"']),
    ],
)
@pytest.mark.parametrize("fast", [False, True])
def test_messages_show_numbers_in_full(
    first: str, second: str, code: str, numbers: list[str], fast: bool, tmp_path: Path
) -> None:
    content = f"4 Q0 d1 {first} tag\n4 Q0 d2 {second} tag\n".encode()
    _, log = read(tmp_path / "run.txt", content, STRICT, fast=fast)
    found = next(f for f in log.sorted() if f.code == code)
    assert all(re.search(rf"(^|[ ,]){re.escape(number)}($|[ ,])", found.message) for number in numbers)


def test_every_code_is_tested() -> None:
    elsewhere = {"F002", "F004", "F018", "F023", "F024", "F026", "F027", "F028", "F029"}
    runs = {code for code in CODES if code < "F100"}  # F1xx are of other formats
    assert runs == set(CASES) | elsewhere


@pytest.mark.parametrize("fast", [True, False])
def test_a_file_of_broken_lines_is_given_up_early(
    tmp_path: Path, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator.formats.trec_lines.MAX_BROKEN", 500)
    path = tmp_path / "run.txt.gz"
    path.write_bytes(gzip.compress(b"\n" * 400_000 + GOOD, mtime=0))
    log = Log("run.txt.gz")
    scan(path, Rules(), log, chunk=4096, fast=fast)
    assert log.invalid and log.counts["F027"] == 1
    assert log.counts["F025"] < 100_000, "the rest is not read"


def test_clean_file_has_no_finding(tmp_path: Path) -> None:
    result, log = read(tmp_path / "run.txt", GOOD, STRICT)
    assert log.counts == {} and result.tag == b"tag" and log.lines == 3 and log.printed(10) == ""


@pytest.mark.parametrize(
    "content",
    [
        GOOD.replace(b" ", b"\t"),
        GOOD.replace(b" ", b"  \t "),
        b"  " + GOOD,
        GOOD[:-1],
        b"4 Q0 d1 1 7 tag\n3 Q0 d2 2 8 tag\n3 Q0 d1 1 9 tag\n",  # unsorted
        b"3 Q0 d1 1 9 tag\n4 Q0 d1 1 7 tag\n3 Q0 d2 2 8 tag\n",  # ungrouped
        GOOD.replace(b" 1 ", b" 0 ").replace(b" 2 ", b" 1 "),
        GOOD.replace(b" 9 ", b" 9.0e0 ").replace(b" 8 ", b" +8.000000000000000000000001 "),
        gzip.compress(GOOD, mtime=0),
    ],
)
@pytest.mark.parametrize("fast", [False, True])
def test_irregular_but_legal_files_mean_the_same(content: bytes, fast: bool, tmp_path: Path) -> None:
    rules = Rules(topics=KNOWN, judged={b"3": {b"d2": 1}, b"4": {b"d1": 1, b"d5": 0}})
    expected = {b"3": (2, {b"d2": 2}, None), b"4": (1, {b"d1": 1}, None)}
    for chunk in (1, 20, None):
        topics, tag, findings, *_ = outcome(tmp_path / "run.txt", content, rules, fast=fast, chunk=chunk)
        assert (topics, tag, findings) == (expected, b"tag", [])


def test_all_problems_at_once_capped_but_counted(tmp_path: Path) -> None:
    content = b"".join(b"3 Q0 d%d x y tag\n" % i for i in range(5000))
    _, log = read(tmp_path / "run.txt", content)
    assert log.counts == {"F013": 5000, "F014": 5000}
    assert len(log.kept) == 200
    assert (log.count("error"), log.lines) == (10_000, 5000)


def test_severities_can_be_changed(tmp_path: Path) -> None:
    twice = GOOD + b"4 Q0 d1 2 6 tag\n"
    result, log = read(tmp_path / "run.txt", twice, severities={"F012": "defect"})
    assert not log.invalid and log.defects == {b"4"} and log.count("defect") == 1
    rules = Rules(judged={b"4": {b"d1": 1}})
    result, log = read(tmp_path / "run.txt", twice, rules, severities={"F012": "ignore"})
    assert log.counts == {} and result.topics[b"4"][:2] == (1, {b"d1": 1})
    _, log = read(tmp_path / "run.txt", GOOD + b"4\n", severities={"F010": "defect"})
    assert log.invalid  # there is no topic to set to 0


def test_too_many_documents_as_a_warning_cuts_the_list(tmp_path: Path) -> None:
    rules = Rules(max_documents=1, judged={b"3": {b"d1": 1, b"d2": 1}})
    result, log = read(tmp_path / "run.txt", GOOD, rules, severities={"F020": "warning"})
    assert not log.invalid and result.topics[b"3"][:2] == (1, {b"d1": 1})


def test_no_suggestion_on_blinded_data(tmp_path: Path) -> None:
    rules = Rules(topics=KNOWN, documents=Ids(b"d1", b"d2"), suggest=False)
    _, log = read(tmp_path / "run.txt", GOOD + b"4 Q0 D2 2 6 tag\n04 Q0 d1 1 6 tag\n", rules)
    assert log.counts == {"F017": 1, "F019": 1}
    assert not any(name in f.message for name in ('"4"', '"d2"') for f in log.kept)


def test_values_are_escaped_and_shortened(tmp_path: Path) -> None:
    tag = "\x1b[31m\u202eevil\u200b\u2028" + "é" * 500
    _, log = read(tmp_path / "run.txt", b"3 Q0 d1 1 x " + tag.encode() + b"\n" + b'3 Q0 <b>&"d 2 y x\n')
    text = "\n".join(map(str, log.sorted()))
    assert text.replace("\n", "").isprintable() and len(text) < 2000
    assert show(b'a"b\x1b') == '"a\\"b\\x1b"' and len(show("x" * 999)) < 70 and plain("\u202e") == "\\u202e"


def test_one_topic_too_long_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_TOPIC", 1000)
    long = b"".join(b"5 Q0 d%d %d 1 tag\n" % (i, i) for i in range(200))
    for content in (long + GOOD, GOOD + long + GOOD):
        _, log = read(tmp_path / "run.txt", content, chunk=400)
        assert log.invalid and log.counts["F026"] >= 1
        assert log.lines == content.count(b"\n")


@pytest.mark.parametrize("kind", ["missing", "link", "dangling", "pipe", "folder", "socket"])
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    if kind == "link":
        (tmp_path / "real").write_bytes(GOOD)
        path.symlink_to(tmp_path / "real")
    elif kind == "dangling":
        path.symlink_to(tmp_path / "nothing")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        place = Path(os.path.relpath(path))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(place) if len(str(place)) < 100 else str(path))
    log = Log("run.txt")
    assert scan(path, Rules(), log).topics == {}
    assert log.counts == {"F002": 1} and log.invalid


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_are_capped_after_unpacking(packed: bool, tmp_path: Path) -> None:
    content: Any = b"3 Q0 d1 1 9 tag\n" * 4_000_000
    content = gzip.compress(content, 1, mtime=0) if packed else content
    _, log = read(tmp_path / "run.txt", content, max_bytes=100_000)
    assert "F004" in log.counts and log.invalid


def test_endless_line_and_zeros(tmp_path: Path) -> None:
    for content in (b"x" * 5_000_000, b"\0" * 5_000_000, GOOD + b"y" * 3_000_000 + b"\n" + GOOD):
        for fast in (False, True):
            _, log = read(tmp_path / "run.txt", content, fast=fast)
            assert log.counts["F009"] == 1 and log.lines == max(1, content.count(b"\n"))


def test_invented_topics_are_not_kept(tmp_path: Path) -> None:
    """A file of a million invented topics must not cost a million entries."""
    known = frozenset({b"3"})
    content = b"".join(b"t%d Q0 d 1 1 tag\n" % i for i in range(5000)) + b"3 Q0 d 1 1 tag\nt1 Q0 e 1 1 tag\n"
    for data in (content, content + b"3 Q0 e 2 0.5 tag\n"):  # grouped, and not
        result, log = read(tmp_path / "run.txt", data, Rules(topics=known))
        assert log.counts == {"F017": 5001} and result.topics.keys() == known
    assert len(list(blocks.regroup(content, Log("run.txt"), known))) == 2


def test_nearest() -> None:
    assert nearest("D-01", ["d-01", "d-02"]) == "d-01"
    assert nearest("clueweb-000l", ["clueweb-0001", "x"]) == "clueweb-0001"
    assert nearest("zzz", ["abc"]) is None


def test_errors_are_kept_where_warnings_have_filled_the_log() -> None:
    log = Log("run.txt", kept=5)
    for line in range(1, 10):
        log.add("F025", line, "empty")
    for line in range(10, 14):
        log.add("F014", line, "no number")
    assert [f.code for f in log.sorted()] == ["F014"] * 4 + ["F025"]
    assert [line.split(" ")[1] for line in log.lines_of(50)] == ["F014"] * 4 + ["F025"]
