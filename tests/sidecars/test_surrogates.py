"""Halves of surrogate pairs in JSON: with_whole_pairs exactly where they are, and nothing else is touched."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.surrogates import with_whole_pairs

PIECES = ["\\", "u", "d83d", "\\ud83d", "\ud83d", "\ude00", "\U0001f600", '"', "\n", "é"]
TEXT = st.lists(st.sampled_from(PIECES)).map("".join)
JSON = st.recursive(
    st.one_of(TEXT, st.integers(), st.none()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXT, inner)),
)


def replaced(text: str) -> str:
    """What a reader should find, worked out on the text instead of on its escapes."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def pairs(text: str | bytes) -> Any:
    """JSON with its objects as lists of pairs, so that keys which become the same stay two; as text and back."""
    return json.dumps(json.loads(text, object_pairs_hook=list), ensure_ascii=False)


@given(JSON)
def test_only_halves_are_replaced(data: Any) -> None:
    written = json.dumps(data)
    assert pairs(with_whole_pairs(written.encode())) == replaced(pairs(written))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'"\\',
        b'"\\u',
        b'"\\ud8',
        b"\\u\xff\xff",
        b'{"a": "\\\\ud83d"}',
        '{"a": "ü\\u00fc"}'.encode(),
    ],
)
def test_everything_else_stays(body: bytes) -> None:
    assert with_whole_pairs(body) == body
