"""Entries of JSON arrays: the same however the bytes come, each fault with its line, and in bounded time."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.jsonarray import array_rows
from schemas.jsonl import Row

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(alphabet='aü\n]}",', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def rows(data: bytes, size: int = 1 << 20, piece: int = 1 << 20, most: int = 1 << 20) -> list[Row]:
    """What is read where ``size`` bytes come at a time."""
    file = io.BytesIO(data)
    return list(array_rows(lambda n: file.read(min(n, size)), most, piece=piece))


@given(
    st.lists(VALUES, max_size=5),
    st.integers(1, 9),
    st.sampled_from([1, 7, 1 << 20]),
    st.sampled_from([None, 1]),
)
def test_what_json_writes_is_read_back(entries: list[Any], size: int, piece: int, indent: int | None) -> None:
    data = json.dumps(entries, indent=indent, ensure_ascii=False).encode()
    found = rows(data, size, piece)
    assert [row.value for row in found] == entries and not any(row.fault for row in found)
    assert [row.number for row in found] == sorted(row.number for row in found)


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b"[", b"]", b"{}", b",", b"1", b'"', b" ", b"\xff", b"\n"])).map(b"".join)
)
def test_a_file_without_faults_is_an_array_to_json_too(data: bytes) -> None:
    found, whole = rows(data, 3, 1), rows(data)
    if any(row.fault for row in found):
        assert any(row.fault for row in whole)
    else:
        assert found == whole and json.loads(data) == [row.value for row in found]


@pytest.mark.parametrize(
    ("data", "line", "kind"),
    [
        (b"{}", 1, "syntax"),
        (b"[1,\n]", 2, "syntax"),
        (b"[1\n2]", 2, "syntax"),
        (b"[1,,2]", 1, "syntax"),
        (b"[\n1]\n\nx", 4, "syntax"),
        (b"[\n[1}", 2, "syntax"),
        (b'[1, "\xff"]', 1, "encoding"),
        (b'[1,\n{"a":1,"a":2}]', 2, "duplicate"),
        (b"[1,\nNaN]", 2, "constant"),
        (b"[1,\n1e999]", 2, "number"),
        (b"[1,\n" + b"[" * 70 + b"]" * 70 + b"]", 2, "deep"),
    ],
)
def test_faults_have_their_lines(data: bytes, line: int, kind: str) -> None:
    last = rows(data)[-1]
    assert last.fault is not None and (last.number, last.fault.kind) == (line, kind)


def test_an_entry_that_comes_in_single_bytes_or_has_no_end_takes_no_time() -> None:
    start = time.process_time()
    long = b'["' + b"x" * 300_000
    assert rows(long + b'"]', 1) == [Row(1, "x" * 300_000)]
    assert rows(long, 1)[-1].fault is not None
    assert rows(b"[" + b" " * 3_000_000 + b"1]", 1_000) == [Row(1, 1)]
    assert rows(b"[" + b"[" * 3_000_000, most=1_000)[-1].fault is not None
    assert time.process_time() - start < 10
