"""The reader of JSON Lines: any bytes give values and faults, never an exception; bounds, numbers and offsets hold."""

import gzip
import io
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import load_json
from schemas.jsonl import LENIENT, STRICT, Fault, Line, Rules, Twice, parse, read, split

RULES = st.builds(
    Rules,
    duplicates=st.sampled_from(["refuse", "mark", "last"]),
    constants=st.booleans(),
    bom=st.booleans(),
    bounded=st.booleans(),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"a"', b":", b",", b"1", b"1e999", b"NaN", b'"\\ud800"', b"\n", b"\r\n", b"\xef\xbb\xbf",
     b"\xff", b"-", b" ", b"\x00", b"\x1f\x8b", b"[" * 70, b"9" * 50, b"9" * 40, b"e", b"E+", b".", b"0", b"400", b'"\\u003a:"', b"Infinity", b"inf",
     b"nan", b"\x0c", b"\x7f", b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\\/\\b"', b"true", b"null"]
)  # fmt: skip
MESS = st.binary(max_size=200) | st.lists(PIECES, max_size=30).map(b"".join)


def dribble(data: bytes, size: int) -> Any:
    """A ``read`` that gives a few bytes at a time, whatever it is asked for."""
    stream = io.BytesIO(data)
    return lambda _: stream.read(size)


def file_of(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(data)
    return path


@given(MESS, st.integers(1, 20), st.integers(0, 50))
def test_lines_are_those_of_the_bytes(data: bytes, size: int, most: int) -> None:
    wanted = data.split(b"\n")
    if not wanted[-1]:
        wanted.pop()
    found = list(split(dribble(data, size), most))
    assert [line.number for line in found] == list(range(1, len(wanted) + 1))
    for line, raw in zip(found, wanted, strict=True):
        assert line.raw == (raw if len(raw) <= most else None)
        assert data[line.offset : line.offset + len(raw)] == raw


def test_a_line_without_end_is_not_held() -> None:
    asked = 0

    def endless(size: int) -> bytes:
        nonlocal asked
        asked += 1
        return b"a" * size if asked < 200 else b""

    assert list(split(endless, 1 << 21)) == [Line(1, 0, None)]


@given(MESS, RULES)
def test_any_bytes_give_a_value_or_a_fault(data: bytes, rules: Rules) -> None:
    found = parse(data, rules)
    if not isinstance(found, Fault) and rules == STRICT:
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


@given(VALUES, RULES)
def test_what_json_writes_is_read_back(value: Any, rules: Rules) -> None:
    text = json.dumps(value)
    found = parse(text.encode(), rules)
    if isinstance(found, Fault):
        assert found.kind in {"constant", "number", "surrogate", "deep"}
    else:
        assert repr(found) == repr(value)


@given(MESS)
def test_strict_reading_refuses_what_load_json_refuses(data: bytes) -> None:
    doc = load_json(data)
    found = parse(data, Rules(bom=False))
    assert isinstance(found, Fault) == bool(doc.problems)
    if not doc.problems:
        assert repr(found) == repr(doc.data)


@given(MESS, RULES, st.booleans(), st.sampled_from([None, True, False]), st.integers(1, 100))
def test_any_file_gives_rows(
    tmp_path_factory: pytest.TempPathFactory,
    data: bytes,
    rules: Rules,
    zipped: bool,
    packed: bool | None,
    most: int,
) -> None:
    path = file_of(tmp_path_factory.mktemp("rows"), gzip.compress(data) if zipped else data)
    rows = list(read(path, max_line=50, max_bytes=most, rules=rules, packed=packed, blanks=True))
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_damage_to_gzip_gives_rows(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int
) -> None:
    whole = gzip.compress(b'{"a": 1}\n' * 50)
    rows = list(read(file_of(tmp_path_factory.mktemp("rows"), whole[:at] + noise), max_line=100))
    assert all(row.fault is not None or row.value == {"a": 1} for row in rows) or noise


def test_what_rules_allow() -> None:
    assert parse(b'{"a": 1, "a": 2}', LENIENT) == {"a": 2}
    marked = parse(b'{"a": 1, "b": 0, "a": 2}', Rules(duplicates="mark"))
    assert isinstance(marked, Twice)
    assert (marked, marked.doubled) == ({"a": 2, "b": 0}, {"a"})
    assert math.isnan(parse(b"NaN", LENIENT))
    assert parse(b"1e999", LENIENT) == math.inf
    assert parse(b"9" * 5000, LENIENT) == Fault("number")  # more than Python reads
    assert parse(b'"\\ud800"', LENIENT) == "\ud800"
    assert parse(b"\xef\xbb\xbf1") == 1
    marked = parse(b"\xef\xbb\xbf1", Rules(bom=False))
    assert isinstance(marked, Fault) and marked.kind == "syntax"


DATA = b'{"a": 1}\n\n[2]\nno\n"' + b"x" * 30 + b'"\n3'


@pytest.mark.parametrize("zipped", [False, True])
def test_rows_of_a_file(tmp_path: Path, zipped: bool) -> None:
    path = file_of(tmp_path, gzip.compress(DATA) if zipped else DATA)
    assert list(read(path, max_line=20)) == [
        (1, {"a": 1}, None),
        (3, [2], None),
        (4, None, Fault("syntax", "Expecting value")),
        (5, None, Fault("too-long")),
        (6, 3, None),
    ]
    assert [row for row in read(path, max_line=20, blanks=True) if row.number == 2] == [
        (2, None, Fault("blank"))
    ]


def test_a_name_may_decide_what_is_packed(tmp_path: Path) -> None:
    plain = file_of(tmp_path, b"1\n")
    assert list(read(plain, max_line=9, packed=True)) == [(1, None, Fault("damaged"))]
    zipped = file_of(tmp_path, gzip.compress(b"1\n", mtime=0))  # a time may hold the byte of a line's end
    assert [row.fault for row in read(zipped, max_line=99, packed=False)] == [Fault("encoding")]


def test_damage_comes_after_what_could_be_read(tmp_path: Path) -> None:
    data = gzip.compress(b"1\n" * 20_000)
    rows = list(read(file_of(tmp_path, data[:-8]), max_line=9))
    assert rows[-1] == (20_001, None, Fault("damaged"))
    assert all(row.value == 1 for row in rows[:-1])


def test_a_bomb_is_cut(tmp_path: Path) -> None:
    path = file_of(tmp_path, gzip.compress(b"1\n" * 5_000_000))
    rows = list(read(path, max_line=9, max_bytes=100_000))
    assert rows[-1].fault == Fault("too-large")
    assert len(rows) <= 50_001


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("none", "pipe", ".", "loop", "a\0b"):
        ((number, value, fault),) = read(tmp_path / name, max_line=9)
        assert (number, value) == (1, None) and fault is not None and fault.kind == "unreadable"


def holds_twice(value: Any) -> bool:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, Twice) or any(map(holds_twice, below))


@given(
    MESS
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.lists(PIECES).map(lambda p: b"{" + b"".join(p) + b"}")
)
def test_the_short_way_of_strict_reading_refuses_what_the_long_way_does(raw: bytes) -> None:
    marked = parse(raw, Rules(duplicates="mark"))  # not strict, so that it goes the long way
    found = parse(raw)
    if isinstance(marked, Fault):
        assert isinstance(found, Fault)
    elif holds_twice(marked):
        assert isinstance(found, Fault) and found.kind == "duplicate"
    else:
        assert found == marked and type(found) is type(marked)


NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,50})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)


@given(NUMBERS | st.floats(allow_nan=False, allow_infinity=False).map(repr))
def test_numbers_are_read_as_json_reads_them(text: str) -> None:
    for raw in (text.encode(), f'{{"a":[1,{text}]}}'.encode()):
        long_way = parse(raw, Rules(duplicates="mark"))
        found = parse(raw)
        assert repr(found) == repr(long_way)
        assert repr(parse(raw, LENIENT)) == repr(json.loads(raw))


@given(MESS | st.lists(PIECES).map(lambda p: b"[" + b"".join(p) + b"]"))
def test_lenient_reading_is_that_of_json(raw: bytes) -> None:
    try:
        wanted = repr(json.loads(raw.decode("utf-8-sig")))
    except (ValueError, RecursionError):
        wanted = ""
    found = parse(raw, LENIENT)
    assert isinstance(found, Fault) if not wanted else repr(found) == wanted


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        *((b'{"a": 1, "a": 2}', "duplicate"), (b'{"a": NaN}', "constant"), (b"[-Infinity]", "constant")),
        *((b"1e999", "number"), (b"1" * 41, "number"), (b'"\\ud800"', "surrogate"), (b"\xff", "encoding")),
        *((b"[" * 66 + b"]" * 66, "deep"), (b"[" * 100_000, "deep"), (b"{", "syntax"), (b"1 2", "syntax")),
        (b'{"a":1,"a" :2}', "duplicate"),
        (b'{"a":1,"\\u0061":"\\u003a"}', "duplicate"),
        (b"-1E+0999", "number"),
        (b"[" + b"8" * 400 + b".5]", "number"),
        (b'{"b":":","a":{"c":1,"c":2}}', "duplicate"),
        (b'{"a":[{"b":1},{"b":1,"b":1}]}', "duplicate"),
        (b'{"a":[1e999]}', "number"),
        (b'{"a":' + b"9" * 41 + b"}", "number"),
        (b'{"a":-' + b"9" * 40 + b"}", "number"),
        (b'{"a":NaN}', "constant"),
        (b'{"a":"\\uD800"}', "surrogate"),
        (b'{"a":' + b"[" * 66 + b"]" * 66 + b"}", "deep"),
    ],
)
def test_what_strict_reading_refuses(raw: bytes, kind: str) -> None:
    found = parse(raw)
    assert isinstance(found, Fault) and found.kind == kind


@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04", "{}\n".encode("utf-16"), gzip.compress(b"<!doctype html>")],
    ids=["zip", "utf-16", "gzip"],
)
def test_a_file_of_another_sort_is_one_fault(tmp_path: Path, data: bytes) -> None:
    (row,) = read(file_of(tmp_path, data), max_line=99)
    assert row.fault is not None and row.fault.kind == "unreadable"
