"""The numpy way, the pure-Python way and the line loop say the same about every file, at every chunk size."""

from __future__ import annotations

import gzip
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.findings import Log
from evaluator.formats import trec, trec_lines
from evaluator.formats.fast import decimals, grouping
from evaluator.formats.ranked import Rules
from tests.worlds.run_files import Ids, outcome, read

DOCS = [*(b"d%d" % i for i in range(12)), "dé".encode(), b"a-much-longer-id-of-a-document-0001", b"d1.5"]
JUDGED = {
    b"1": dict.fromkeys(DOCS[:6], 1),
    b"22": dict.fromkeys(DOCS[3:], 1),
    b"q-333-long-topic": {b"d0": 1},
    b"7": {b"no": 1},
}
SCORES = [
    "1",
    "2",
    "-3.5",
    "0.25",
    "17.000001",
    "17.0000011",
    "1e3",
    "12345678.12345678",
    "0.1",
    "+4",
    ".5",
    "5.",
    "16777217",
    "16777216",
    "-0.0",
    "99999999999",
    "0.12345678901234567",
]
ODDITIES = [
    b"1 Q0 d1 1\n",
    b"\n",
    b"   \t\n",
    b"1 Q0 d1 x 3 tag\n",
    b"1 Q0 d1 1 nan tag\n",
    b"1 Q0 d1 1 1_0 tag\n",
    b"1 Q0 d1 1 1e999 tag\n",
    b"1 Q0 d1 1 3 other\n",
    b"1 q0 d1 1 3 tag\n",
    b"99 Q0 d1 1 3 tag\n",
    b"1 Q0 unknown 1 3 tag\n",
    b"1 Q0 d\xff 1 3 tag\n",
    b"1 Q0 d\x00 1 3 tag\n",
    b"1\tQ0\td5\t3\t2\ttag\r\n",
    b"1  Q0 d6   4 1.5 tag \n",
    b" 1 Q0\td6 4 1.5  tag\r\n",
    b"1 Q0 d6 4\x0b1.5 tag\n",
    b"tag Q0 d1 1 1 tag tag\n",
    b"1 Q0 d7 1 1\rtag\n",
    b"1 Q0 d1 1 3 tag more\n",
    b"1 Q0 d1 -1 3 tag\n",
    b"1 Q0 d1 1.0 3 tag\n",
    b"1 Q0 d1 99999999999999999999 3 tag\n",
    b"1 Q0 d1 123456789 3 tag\n",
    b"1 Q0 d1 1 -inf tag\n",
    b"1 Q0 d1 1 high tag\n",
    b"1 Q0 d1 1 1.2.3 tag\n",
    b"1 Q0 d1 1 0x1p3 tag\n",
    b"1 Q0 d1 1 3 t\xe9g\n",
    b"# a comment\n",
    b"\xef\xbb\xbf1 Q0 d1 1 3 tag\n",
    b"1 Q0 d\xc2\xa01 1 3 tag\n",
    b"1 Q0 " + b"x" * 129 + b" 1 3 tag\n",
    b"t" * 65 + b" Q0 d1 1 3 tag\n",
    b"1 Q0 " + b"x" * 1001 + b" 1 3 tag\n",
    b"1 Q0 d1 1 3 " + b"t" * 200 + b"\n",
    b"1\x01 Q0 d1 1 3 tag\n",
]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A run with ties, gaps and any number of oddities."""
    lines = []
    for topic in draw(st.lists(st.sampled_from(list(JUDGED)), max_size=4, unique=draw(st.booleans()))):
        unique = draw(st.integers(0, 9)) > 0
        docs = draw(st.lists(st.sampled_from(DOCS), min_size=1, max_size=8, unique=unique))
        scores = [draw(st.sampled_from(SCORES)) for _ in docs]
        if draw(st.integers(0, 4)):
            scores.sort(key=float, reverse=True)
        offset = draw(st.sampled_from([0, 1, 1, 1, 5]))
        lines += [
            b"%s Q0 %s %d %s tag\n" % (topic, d, i + offset, s.encode())
            for i, (d, s) in enumerate(zip(docs, scores, strict=True))
        ]
    for oddity in draw(st.lists(st.sampled_from(ODDITIES), max_size=2)):
        place = st.one_of(st.sampled_from([0, len(lines)]), st.integers(0, len(lines)))
        lines.insert(draw(place), oddity)
    data = b"".join(lines)
    spacing = draw(st.integers(0, 6))
    if spacing == 1:
        data = data.replace(b" ", b" \t ")
    elif spacing == 2:
        data = data.replace(b"\n", b" \r\n")
    return data[:-1] if draw(st.integers(0, 5)) == 0 else data


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(files(), st.booleans(), st.booleans(), st.sampled_from([1, 30, 200]), st.sampled_from([0, 3]))
def test_all_ways_agree(data: bytes, checked: bool, double: bool, chunk: int, first: int) -> None:
    rules = Rules(
        topics=frozenset(JUDGED) if checked else None,
        documents=Ids(*DOCS) if checked else None,
        max_documents=6 if checked else None,
        judged=JUDGED,
        first=first,
        double=double,
        suggest=True,
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "run.txt")
        patch.setattr(grouping, "PIECE", 2 * max(chunk, 60))
        python = outcome(path, data, rules, fast=False)
        assert outcome(path, data, rules, fast=False, chunk=chunk) == python
        assert outcome(path, data, rules, fast=True) == python
        assert outcome(path, data, rules, fast=True, chunk=chunk) == python
        with patch.context() as parted:  # a topic is read in several parts
            parted.setattr(trec_lines, "SMALL_CHUNK", 40)
            assert outcome(path, data, rules, fast=False) == python
            assert outcome(path, data, rules, fast=True, chunk=chunk) == python
            parted.setattr(trec_lines.RunReader, "take_columns", lambda *_: False)
            assert outcome(path, data, rules, fast=False) == python
        patch.setattr(trec_lines.RunReader, "take_columns", lambda *_: False)
        assert outcome(path, data, rules, fast=False) == python
        assert outcome(path, data, rules, fast=False, chunk=chunk) == python


@pytest.mark.parametrize(
    "score",
    [
        "0.3",
        "-12.75",
        "123.4567890123456",
        "9007199254740993.0",
        "0.000000000000000001",
        "1e-5",
        "7",
        "-7",
        "00001.50",
    ],
)
def test_numpy_scores_are_those_of_float(score: str) -> None:
    padded = bytes(16) + score.encode() + b" " + bytes(136)
    value = decimals.decimals(padded, np.array([16]), np.array([16 + len(score)]))
    assert value[0] == float(score)


def test_numpy_way_is_taken_for_clean_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the comparisons above would compare nothing."""
    monkeypatch.setattr(trec_lines.RunReader, "slow", lambda *_: pytest.fail("fell back"))
    for chunk in (100, 5000, None):
        outcome(tmp_path / "run.txt", CLEAN, Rules(judged=JUDGED), fast=True, chunk=chunk)


@pytest.mark.parametrize(
    "data",
    [
        b"1 Q0 d1 1 3 " + b"t" * 200 + b"\n1 Q0 d2 2 2 t\n",
        b"1 Q0 d1 1 3 " + b"t" * 60_000 + b"\n1 Q0 d2 2 2 t\n",
        b"1 Q0 d1 1 3 tag\n22 Q0 d1 1 3 tag\n1\x01 Q0 d2 2 2 tag\n1 Q0 d3 3 1 tag\n",
        b"1 Q0 d1 1 3 tag\n22 Q0 d1 1 3 tag\n1\x0b Q0 d2 2 2 tag\n1 Q0 d3 3 1 tag\n",
    ],
    ids=["long-tag", "very-long-tag", "control-in-topic", "blank-in-topic"],
)
def test_hostile_lines_say_the_same_in_all_ways(data: bytes, tmp_path: Path) -> None:
    rules = Rules(judged=JUDGED, first=3)
    python = outcome(tmp_path / "run.txt", data, rules, fast=False)
    assert outcome(tmp_path / "run.txt", data, rules, fast=True) == python


@pytest.mark.parametrize("rows", ["shuffled", "turned", "interleaved"])
def test_the_numpy_way_is_taken_for_lines_in_any_order(
    rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b"%d Q0 d%d %d %.5f tag\n" % (t, d, d, 9 - d / 7) for t in range(1, 40) for d in range(50)]
    order = {
        "shuffled": random.Random(1).sample(lines, len(lines)),
        "turned": lines[::-1],
        "interleaved": [lines[50 * t + d] for d in range(50) for t in range(39)],
    }[rows]
    monkeypatch.setattr(grouping, "PIECE", 5000)
    rules = Rules(judged=JUDGED, topics=frozenset(b"%d" % t for t in range(50)), first=3)
    python = outcome(tmp_path / "run.txt", b"".join(order), rules, fast=False)
    monkeypatch.setattr(trec_lines.RunReader, "take", lambda *_: pytest.fail("fell back"))
    monkeypatch.setattr(trec, "regroup", lambda *_: pytest.fail("fell back"))
    chunk = None if rows != "turned" else 100  # topics stay together there
    assert outcome(tmp_path / "run.txt", b"".join(order), rules, fast=True, chunk=chunk) == python


HEADER = (
    b"# ir_metadata.start\n# platform:\n#   hardware:\n#     ram: 64 GB\n# tag: mine\n# ir_metadata.end\n"
)
CLEAN = b"".join(b"%d Q0 d%d %d %.5f tag\n" % (t, d, d, 9 - d / 7) for t in range(5) for d in range(50))
UNGROUPED = b"".join(b"%d Q0 d%d %d %.5f tag\n" % (t, d, d, 9 - d / 7) for d in range(9) for t in range(5))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("chunk", [1, 30, 5000, None])
@pytest.mark.parametrize("data", [CLEAN, UNGROUPED])
def test_a_header_of_metadata_is_no_part_of_the_run(
    tmp_path: Path, fast: bool, chunk: int | None, data: bytes
) -> None:
    path = tmp_path / "run.txt"
    rules = Rules(judged=JUDGED)
    plain = outcome(path, data, rules, fast=fast, chunk=chunk)
    assert outcome(path, HEADER + data, rules, fast=fast, chunk=chunk) == plain
    assert outcome(path, gzip.compress(HEADER + data), rules, fast=fast, chunk=chunk) == plain
    crlf = HEADER.replace(b"\n", b"\r\n")
    assert outcome(path, crlf + data, rules, fast=fast, chunk=chunk) == plain


def test_lines_behind_a_header_have_the_numbers_that_they_have_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    for data in (CLEAN, UNGROUPED):
        _, log = read(path, HEADER + b"1 Q0 d1 1\n" + data, Rules())
        assert [str(one).partition(" ")[0] for one in log.sorted()][:1] == ["run.txt:7:"]
    for data in (HEADER, HEADER[:-16] + CLEAN, b"# a comment\n" + CLEAN):
        _, log = read(path, data, Rules())
        assert log.counts, "a header without its end, or another comment, is none"


def test_a_large_run_is_read_where_numpy_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a participant checks it with a kit that has no numpy."""
    for name in [name for name in sys.modules if name.startswith("evaluator.formats.fast.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setattr(trec, "LARGE_FILE", 10)
    (tmp_path / "run.txt").write_bytes(b"1 Q0 d1 1 0.5 tag\n1 Q0 d2 2 0.25 tag\n")
    log = Log("run.txt")
    found = trec.scan(tmp_path / "run.txt", Rules(), log)
    assert [*found.topics] == [b"1"] and not log.sorted()
