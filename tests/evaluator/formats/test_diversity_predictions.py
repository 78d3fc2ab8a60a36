"""What is said about predictions, line by line; and that the checks by hand agree with the schema."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from evaluator.findings import Log
from evaluator.formats import predictions
from evaluator.formats.predictions import Rules, read_predictions

IDS = frozenset({20191, 20192, 20193, 20194})
RULES = Rules(frozenset({0, 1}), IDS, kept=20, least=1, most=3, suggest=True)


def read(path: Path, content: bytes | str, rules: Rules = RULES, **options: Any) -> tuple[Any, Log]:
    path = path / "predictions.jsonl" if path.is_dir() else path
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    log = Log(path.name)
    return read_predictions(path, rules, log, **options), log


def said(log: Log) -> list[tuple[str, int | None]]:
    return [(f.code, f.line) for f in log.sorted()]


ONE = '{"query_id": 1, "relevant_candidates": [20191]}\n'
ZERO = '{"query_id": 0, "relevant_candidates": [20192, 20191]}\n'
FINE = {0: [20192, 20191], 1: [20191]}


@pytest.mark.parametrize(
    "text",
    [
        ZERO + ONE,
        ONE + "\n  \n" + ZERO.rstrip(),
        "\r\n".join((ZERO + ONE).split("\n")),
        ZERO + ONE.replace("relevant_", "retrieved_"),
        ZERO.replace("20191", "20191.0") + ONE,
        ZERO.replace("20191", "2.0191e4") + ONE,
        ZERO.replace(": 0,", ': "0", "extra": {"a": [1]},') + ONE,
        f"[{ZERO},{ONE}]",
        f"  \n [\n{ZERO}\n,{ONE}]\n\n",
    ],
)
def test_accepted_without_a_word(text: str, tmp_path: Path) -> None:
    found, log = read(tmp_path, text)
    assert (found, said(log)) == (FINE, [])


def test_gzip_and_byte_order_mark(tmp_path: Path) -> None:
    data = (ZERO + ONE).encode()
    for content, findings in ((gzip.compress(data), []), (b"\xef\xbb\xbf" + data, [("F118", 1)])):
        found, log = read(tmp_path, content)
        assert (found, said(log), log.invalid) == (FINE, findings, False)


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("", [("F001", None)]),
        ("\n\n", [("F001", None)]),
        ("[]", [("F001", None)]),
        (ZERO + "{oops\n" + ONE, [("F101", 2)]),
        (ZERO + '{"query_id": NaN}\n' + ONE, [("F101", 2)]),
        (ZERO + "[" * 50_000 + "\n" + ONE, [("F101", 2)]),
        (ZERO + '{"a": ' + "9" * 5000 + "}\n" + ONE, [("F101", 2)]),
        (ZERO + "[1]\n" + ONE, [("F102", 2)]),
        (ZERO + "3\n" + ONE, [("F102", 2)]),
        (ZERO + ONE + '{"relevant_candidates": []}', [("F103", 3)]),
        (ZERO + ONE.replace("1,", "true,"), [("F110", None), ("F103", 2)]),
        (ZERO + ONE.replace("1,", '"one",'), [("F110", None), ("F103", 2)]),
        (ZERO + ONE.replace("1,", "1.5,"), [("F110", None), ("F103", 2)]),
        (ZERO + '{"query_id": 1}', [("F104", 2)]),
        (ZERO + '{"query_id": 1, "relevant_candidates": "20191"}', [("F104", 2)]),
        (ZERO + '{"query_id": 1, "relevant_candidates": {}}', [("F104", 2)]),
        (ZERO + ONE + '{"query_id": 1, "relevant_candidates": [], "retrieved_candidates": []}', [("F105", 3), ("F108", 3), ("F115", 3)]),
        (ZERO + ONE + '{"query_id": 1, "query_id": 1, "relevant_candidates": []}', [("F105", 3), ("F108", 3), ("F115", 3)]),
        (ZERO + ONE.replace("[20191]", '[20191, "x"]'), [("F106", 2)]),
        (ZERO + ONE.replace("[20191]", "[20191, null]"), [("F106", 2)]),
        (ZERO + ONE.replace("[20191]", "[true]"), [("F106", 2)]),
        (ZERO + ONE.replace("[20191]", "[20191.5]"), [("F106", 2)]),
        (ZERO + ONE.replace("[20191]", "[1e999]"), [("F106", 2)]),
        (ZERO + ONE + ONE, [("F108", 3)]),
        (ZERO + ONE + ONE.replace("1,", "7,"), [("F109", None), ("F109", 3)]),
        (ZERO, [("F110", None)]),
        (ZERO + ONE.replace("20191", "20199"), [("F111", None), ("F111", 2)]),
        (ZERO + ONE.replace("20191", "20191, 20191"), [("F112", 2)]),
        (b'{"query_id": 0, "relevant_candidates": [20191]}\n{"\xff": 1}\n' + ONE.encode(), [("F005", 2)]),
        ("[" + ZERO + ONE + "]", [("F101", 2)]),
        ("[" + ZERO + "," + ONE, [("F101", 3)]),
        ("[" + ZERO + "," + ONE + "] x", [("F101", 3)]),
        ("[" + ZERO + "," + ONE + ", oops]", [("F101", 3)]),
        (b"[" + ZERO.encode() + b",\xff]", [("F005", 1)]),
    ],
)  # fmt: skip
def test_refused_with_its_line(text: str | bytes, findings: list[Any], tmp_path: Path) -> None:
    _, log = read(tmp_path, text)
    assert sorted(said(log), key=str) == sorted(findings, key=str)
    assert log.invalid


@pytest.mark.parametrize(
    ("listed", "code", "kept"),
    [
        ('["20191", 20192]', "F107", [20191, 20192]),
        ("[]", "F115", []),
        ("[20191, 20192, 20193, 20194]", "F116", [20191, 20192, 20193]),
    ],
)
def test_warned_about(listed: str, code: str, kept: list[int], tmp_path: Path) -> None:
    found, log = read(tmp_path, ZERO + ONE.replace("[20191]", listed))
    assert (said(log), log.invalid, found[1]) == ([(code, 2)], False, kept)


def test_short_lists_and_copies_as_the_official_script_takes_them(tmp_path: Path) -> None:
    rules = RULES._replace(least=2, repeats=True)
    found, log = read(tmp_path, ZERO + ONE.replace("[20191]", "[20191, 20191]"), rules)
    assert (said(log), log.invalid, found[1]) == ([("F113", 2)], False, [20191, 20191])
    found, log = read(tmp_path, ZERO + ONE, rules)
    assert (said(log), log.invalid) == ([("F114", 2)], False)


def test_names_what_was_probably_meant_on_public_data_only(tmp_path: Path) -> None:
    text = ZERO + ONE.replace("20191", "201911")
    for suggest in (True, False):
        _, log = read(tmp_path, text, RULES._replace(suggest=suggest))
        assert ('"20191"' in log.kept[0].message) == suggest


def test_every_problem_of_a_file_is_reported_and_hostile_text_is_escaped(tmp_path: Path) -> None:
    text = '{"query_id": "\\u001b[31m"}\n{"\x1b[2J\nnull\n' + ONE.replace("20191", "9, 8, 7")
    _, log = read(tmp_path, text)
    assert {c for c, _ in said(log)} == {"F101", "F102", "F103", "F104", "F110", "F111"}
    assert log.counts["F111"] == 3
    assert not any("\x1b" in str(f) for f in log.kept)


def test_a_line_that_never_ends_and_a_file_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "MAX_LINE", 5000)
    monkeypatch.setattr(predictions, "CHUNK", 1000)
    _, log = read(tmp_path, ZERO + " " * 100_000 + "\n" + ONE)
    assert said(log) == [("F117", 2)]
    _, log = read(tmp_path, "[" + ZERO + ",{" + " " * 100_000)
    assert said(log) == [("F101", 2)]
    _, log = read(tmp_path, "[" + ZERO + ', {"query_id": NaN},' + ONE + "]")
    assert said(log) == [("F101", 2)] and log.invalid  # what follows is read
    _, log = read(tmp_path, ZERO + ONE, max_bytes=20)
    assert said(log) == [("F004", None)]
    _, log = read(tmp_path, gzip.compress(b"x" * 100)[:-6])
    assert "F003" in log.counts


@pytest.mark.slow
def test_many_small_values_in_an_array_take_no_time(tmp_path: Path) -> None:
    _, log = read(tmp_path, "[" + ",".join(["1"] * 300_000) + "]")
    assert log.counts["F102"] == 300_000


_ID = st.one_of(
    st.integers(-3, 10**12), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(), st.just([]),
    st.sampled_from(["1", "-7", "+3", "01", "1.0", "", " 1", "١", "1\n", "9" * 18, "9" * 19]),
)  # fmt: skip
_KEYS = {
    "query_id": _ID,
    "relevant_candidates": st.one_of(_ID, st.lists(_ID, max_size=4)),
    "retrieved_candidates": st.lists(_ID, max_size=4),
    "more": st.none(),
}
_OTHER = st.one_of(st.lists(st.integers(), max_size=2), st.integers(), st.text(max_size=3), st.none())
_LINE = st.one_of(st.fixed_dictionaries({}, optional=_KEYS), _OTHER)
_SHAPE = {"F102", "F103", "F104", "F105", "F106"}  # what a schema can see; it knows no data


@settings(max_examples=400, deadline=None)
@given(_LINE)
def test_checks_by_hand_agree_with_the_schema(tmp_path_factory: pytest.TempPathFactory, line: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "schema.jsonl"
    _, log = read(path, ONE + json.dumps(line) + "\n", RULES._replace(most=1000))
    by_schema = not schemas.validate(line, "diversity-prediction")
    # an unknown or repeated query ends the checks, so its candidates are looked at with a known one
    if not {"F108", "F109"}.isdisjoint(log.counts):
        _, log = read(path, ONE + json.dumps({**line, "query_id": 0}) + "\n", RULES._replace(most=1000))
    assert by_schema == _SHAPE.isdisjoint(log.counts)
