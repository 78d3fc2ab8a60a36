"""Reading evaluations.jsonl: one malformed judgment is one finding with its place, and counts as no."""

from __future__ import annotations

import gzip
import json
import re
from copy import deepcopy
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.formats.evaluations import Judgments, Reading, Shape, read_failures, read_judgments, read_shape
from tests.worlds.judged import CRITERIA, debate, everything, judgments, write

TWO = Shape([2, 3])
GOOD = [judgments([everything(0.6)] * 2), judgments([everything(0.1)] * 3)]


def read(path: Path, shape: Shape = TWO, reading: Reading = "strict", **more: Any) -> tuple[Judgments, Log]:
    log = Log(path.name)
    return read_judgments(path, shape, log, reading=reading, **more), log


def found(log: Log) -> list[tuple[str, int | None]]:
    return [(f.code, f.line) for f in log.sorted()]


def test_what_was_said(tmp_path: Path) -> None:
    judged, log = read(write(tmp_path / "e.jsonl", GOOD))
    assert found(log) == [] and log.answered == 2
    assert judged.part == set(CRITERIA)
    assert judged.of(0, "quality") == [0.6, 0.6]
    assert judged.of(1, "manner") == [0.1, 0.1, 0.1]


def test_what_genirsim_adds_is_passed_over(tmp_path: Path) -> None:
    rows = [debate(1, 2), debate(2, 3)]
    more = {"overallEvaluations": {"milliseconds": 1}, "millisecondsEvaluation": 2.5}
    pairs = zip(rows, deepcopy(GOOD), strict=True)
    lines = [{"configuration": {"evaluators": {}}, **row, **line, **more} for row, line in pairs]
    lines[0]["userTurnsEvaluations"][0]["milliseconds"] = 12
    lines[0]["userTurnsEvaluations"][0]["Quality"]["explanation"] = "score: 0"
    shape = read_shape(write(tmp_path / "d.jsonl", rows), "d.jsonl")
    judged, log = read(write(tmp_path / "e.jsonl", lines), shape)
    assert found(log) == [] and judged.of(0, "quality") == [0.6, 0.6]


@pytest.mark.parametrize("change", ["blank", "crlf", "no end", "gzip", "lower case"])
def test_forms_that_are_fine(tmp_path: Path, change: str) -> None:
    data = "".join(json.dumps(row) + "\n" for row in GOOD)
    if change == "blank":
        data = "\n" + data.replace("\n", "\n  \n") + "\n"
    elif change == "crlf":
        data = data.replace("\n", "\r\n")
    elif change == "no end":
        data = data.rstrip()
    elif change == "lower case":
        for criterion in CRITERIA:
            data = data.replace(criterion.capitalize(), criterion)
    path = tmp_path / "e.jsonl"
    path.write_bytes(gzip.compress(data.encode()) if change == "gzip" else data.encode())
    judged, log = read(path)
    assert found(log) == []
    assert judged.of(1, "relation") == [0.1] * 3


@pytest.fixture
def rows() -> list[Any]:
    """A copy of the good rows, to be changed."""
    return deepcopy(GOOD)


BAD: list[tuple[str, Any, str]] = [
    ("a number in quotes", {"score": "0.7"}, "F235"),
    ("true", {"score": True}, "F235"),
    ("seven", {"score": 7}, "F235"),
    ("below 0", {"score": -0.1}, "F235"),
    ("a list", {"score": [1]}, "F235"),
    ("an object", {"score": {"score": 1}}, "F235"),
    ("a huge integer", {"score": 10**400}, "F235"),
    ("not a number", {"score": float("nan")}, "F235"),
    ("infinite", {"score": float("inf")}, "F235"),
    ("a bare number", 0.9, "F234"),
    ("null instead of a judgment", None, "F234"),
    ("text", "yes", "F234"),
    ("no score", {"explanation": "good"}, "F234"),
]


@pytest.mark.parametrize(("what", "judgment", "code"), BAD, ids=[what for what, _, _ in BAD])
def test_one_malformed_judgment_is_one_finding(
    tmp_path: Path, rows: list[Any], what: str, judgment: Any, code: str
) -> None:
    rows[1]["userTurnsEvaluations"][2]["Quality"] = judgment
    judged, log = read(write(tmp_path / "e.jsonl", rows))
    assert found(log) == [(code, 2)] and not log.invalid
    assert "Quality" in log.kept[0].message and log.kept[0].topic == "2.3"
    score = judged.of(1, "quality")[2]
    assert score is not None and isnan(score), "it took part, and counts as no"
    assert judged.of(1, "quality")[:2] == [0.1, 0.1], "the others count"


@pytest.mark.parametrize(
    ("score", "value"),
    [("0.7", 0.7), ("1e0", 1.0), (True, 1.0), (False, 0.0), (7, 7.0), (-3, -3.0), (0.5, 0.5)],
)
def test_the_official_reading_takes_more(tmp_path: Path, rows: list[Any], score: Any, value: float) -> None:
    rows[0]["userTurnsEvaluations"][0]["Manner"]["score"] = score
    judged, log = read(write(tmp_path / "e.jsonl", rows), reading="official")
    assert found(log) == [] and judged.of(0, "manner")[0] == value


def test_the_official_reading_takes_nan_for_no_and_refuses_words(tmp_path: Path, rows: list[Any]) -> None:
    rows[0]["userTurnsEvaluations"][0]["Manner"]["score"] = float("nan")
    rows[0]["userTurnsEvaluations"][1]["Manner"]["score"] = "yes"
    judged, log = read(write(tmp_path / "e.jsonl", rows), reading="official")
    assert found(log) == [("F235", 1)]
    assert all(s is not None and isnan(s) for s in judged.of(0, "manner"))


def test_a_criterion_that_is_judged_nowhere_is_no_part(tmp_path: Path) -> None:
    rows = [judgments([{"relation": 1, "manner": None}] * n) for n in TWO.turns]
    judged, log = read(write(tmp_path / "e.jsonl", rows))
    assert judged.part == {"relation"}
    assert [f.code for f in log.kept] == ["F240"] * 3 and not log.invalid


def test_a_judgment_that_is_missing_elsewhere_is_a_finding(tmp_path: Path, rows: list[Any]) -> None:
    del rows[0]["userTurnsEvaluations"][1]["Manner"]
    rows[1]["userTurnsEvaluations"][0]["Manner"]["score"] = None
    judged, log = read(write(tmp_path / "e.jsonl", rows))
    assert found(log) == [("F238", 1), ("F238", 2)] and not log.invalid
    assert judged.of(0, "manner") == [0.6, None]


def test_failures_of_a_server_make_it_take_part(tmp_path: Path) -> None:
    records = [
        {"debate": 1, "turn": 1, "criterion": "quality", "outcome": "failed", "failure": {"class": "timeout", "detail": "x"}},
        {"debate": 1, "turn": 2, "criterion": "Quality", "outcome": "failed", "failure": {"class": "\x1b[31m", "detail": "x"}},
        {"debate": 1, "turn": None, "criterion": "manner", "outcome": "failed", "failure": {"class": "timeout"}},
        {"debate": 9, "turn": 1, "criterion": "manner", "outcome": "failed", "failure": None},
        {"debate": 1, "turn": 1, "criterion": "beauty", "outcome": "failed", "failure": None},
        {"debate": 1, "turn": 1, "criterion": "manner", "outcome": "answered", "failure": None},
        [], "x", None, {"outcome": "failed", "debate": "1", "turn": 1, "criterion": "manner"},
    ]  # fmt: skip
    failures = read_failures(write(tmp_path / "turns.jsonl", records), TWO)
    assert failures == {(1, 1, "quality"): "timeout", (1, 2, "quality"): "failed"}
    rows = [judgments([{"relation": 1}] * n) for n in TWO.turns]
    judged, log = read(write(tmp_path / "e.jsonl", rows), failures=failures)
    assert judged.part == {"relation", "quality"}
    quality = [f.message for f in log.kept if f.code == "F238"]
    assert len(quality) == 5 and "timeout" in quality[0]
    assert read_failures(tmp_path / "not there", TWO) == {}


@pytest.mark.parametrize(
    ("lines", "code", "numbers"),
    [
        (GOOD[:1], "F233", "21"),
        ([*GOOD, {}, {}], "F233", "24"),
        ([GOOD[1], GOOD[0]], "F233", "123"),
        ([[], GOOD[1]], "F231", ""),
        ([{"userTurnsEvaluations": [{}, {}]}, {"userTurnsEvaluations": [{}, {}, {}]}], "F239", ""),
    ],
)
def test_what_makes_a_run_invalid(tmp_path: Path, lines: list[Any], code: str, numbers: str) -> None:
    _, log = read(write(tmp_path / "e.jsonl", lines))
    assert log.invalid
    finding = next(f for f in log.sorted() if f.code == code)
    assert numbers in "".join(re.findall(r"\d", finding.message))


def test_a_debate_without_judgments_is_one_finding(tmp_path: Path) -> None:
    judged, log = read(write(tmp_path / "e.jsonl", [{}, GOOD[1]]))
    assert found(log) == [("F232", 1)] and not log.invalid
    assert judged.of(0, "quantity") == [None, None]


def test_a_turn_that_is_no_object_is_one_finding(tmp_path: Path, rows: list[Any]) -> None:
    rows[0]["userTurnsEvaluations"][1] = "fine"
    _, log = read(write(tmp_path / "e.jsonl", rows))
    assert found(log) == [("F234", 1)]


def test_a_failed_debate_needs_no_judgments(tmp_path: Path) -> None:
    shape = read_shape(write(tmp_path / "d.jsonl", [debate(1, 2), {}]), "d.jsonl")
    assert list(shape.turns) == [2, 0]
    for nothing in ({}, {"userTurnsEvaluations": []}):
        _, log = read(write(tmp_path / "e.jsonl", [GOOD[0], nothing]), shape)
        assert found(log) == []


def test_judgments_in_another_order(tmp_path: Path) -> None:
    rows = [debate(1, 2), debate(2, 2)]
    shape = read_shape(write(tmp_path / "d.jsonl", rows), "d.jsonl")
    lines = [{**rows[1], **GOOD[0]}, {**debate(7, 2), **GOOD[0]}]
    _, log = read(write(tmp_path / "e.jsonl", lines), shape)
    first, second = (re.findall(r"\d", f.message) for f in log.sorted()[:2])
    assert (first, second) == (["1", "2"], ["2"]) and log.invalid


def test_keys_that_are_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    one, zero = '"Manner": {"score": 1}', '"Manner": {"score": 0}'
    first = f'{{{one}, {zero}}}, {{"Manner": {{"score": 1, "score": 0}}}}'
    second = f"{{{one}, {zero.lower()}}}, {{{one}}}, {{{one}}}"
    lines = (f'{{"userTurnsEvaluations": [{turns}]}}\n' for turns in (first, second))
    path.write_text("".join(lines), encoding="utf-8")
    judged, log = read(path)
    assert [f.line for f in log.sorted() if f.code == "F236"] == [1, 1, 2]
    assert judged.of(1, "manner")[1:] == [1, 1]


def test_broken_lines(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"userTurnsEvaluations": [\n\xff\xfe{}\n')
    _, log = read(path)
    assert found(log) == [("F101", 1), ("F005", 2)]
    path.write_bytes(b'{"a": ' + b"[" * 100_000 + b"\n" + b'{"a": ' * 100_000)
    assert [f.code for f in read(path)[1].sorted()] == ["F101", "F101"]
    path.write_bytes(b"")
    assert found(read(path)[1]) == [("F001", None)]
    assert found(read(tmp_path / "none")[1]) == [("F002", None)]
    (tmp_path / "link").symlink_to(path)
    assert found(read(tmp_path / "link")[1]) == [("F002", None)]


def test_a_line_that_is_too_long_and_a_file_that_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.formats.evaluations.MAX_LINE", 2000)
    path = write(tmp_path / "e.jsonl", [{**GOOD[0], "simulation": {"x": "y" * 5000}}, GOOD[1]])
    _, log = read(path)
    assert ("F241", 1) in found(log) and log.invalid
    _, log = read(path, max_bytes=1000)
    assert found(log) == [("F004", None)]


def test_messages_hold_no_control_characters(tmp_path: Path, rows: list[Any]) -> None:
    rows[0]["userTurnsEvaluations"][0]["Quality"]["score"] = "\x1b[2J\u202e<script>" + "x" * 10_000
    _, log = read(write(tmp_path / "e.jsonl", rows))
    message = str(log.kept[0])
    assert message.isprintable() and len(message) < 400


def test_organisers_debates_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    for line, place in (("{", "d.jsonl:1"), ("[]", "d.jsonl:1"), ("", "d.jsonl"), (None, "d.jsonl")):
        if line is None:
            path.unlink()
        else:
            path.write_text(line, encoding="utf-8")
        with pytest.raises(EvaluatorError) as error:
            read_shape(path, "d.jsonl")
        assert place in " ".join(error.value.lines())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["userTurnsEvaluations", "simulation", "userTurns", "Quality", "Manner", "manner", "score", "utterance"]),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(st.binary(max_size=60) | JSON.map(lambda v: json.dumps(v).encode()), max_size=5))
def test_nothing_that_can_be_written_raises(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "e.jsonl"
    path.write_bytes(b"\n".join(lines))
    shape = Shape([1, 2], [(("u", "s"),), (("u", "s"), ("v", "t"))])
    for reading in ("strict", "official"):
        judged, log = read(path, shape, reading)
        assert [len(turns) for turns in judged.scores] == [1, 2]
        assert log.invalid or judged.part
        assert all(f.message.isprintable() for f in log.kept)
