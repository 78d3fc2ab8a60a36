from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.search.fields import matches
from tests.worlds.search_arguments import ARGUMENTS, VECTOR_FIELDS

ALL = {*ARGUMENTS[0], *VECTOR_FIELDS}
TEXTS = set(ARGUMENTS[0])


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        (True, ALL),
        ("text", {"text"}),
        (["text", "id"], {"text", "id"}),
        ([], ALL),
        ({}, ALL),
        ({"excludes": list(VECTOR_FIELDS)}, TEXTS),
        ({"excludes": "*_stella"}, TEXTS),
        ({"includes": ["t*"]}, {"text", "topic", "tags", "text_embedding_stella"}),
        ({"includes": ["t*"], "excludes": ["*_embedding_*"]}, {"text", "topic", "tags"}),
        ({"include": "id", "exclude": []}, {"id"}),
        ("nothing", set()),
    ],
)
def test_forms_in_the_body(ask: Any, source: Any, fields: set[str]) -> None:
    hit = ask.search({"query": {"match": {"text": "nurses"}}, "_source": source})["hits"]["hits"][0]
    assert set(hit["_source"]) == fields


def test_no_source_at_all(ask: Any) -> None:
    for answer in (ask.search({"_source": False}), ask.search({}, "?_source=false")):
        assert set(answer["hits"]["hits"][0]) == {"_index", "_id", "_score"}


@pytest.mark.parametrize(
    ("address", "fields"),
    [
        ("_source=true", ALL),
        ("_source=text,id", {"text", "id"}),
        ("_source_includes=text,id", {"text", "id"}),
        ("_source_excludes=" + ",".join(VECTOR_FIELDS), TEXTS),
        ("_source_includes=t*&_source_excludes=*_stella", {"text", "topic", "tags"}),
        ("_source=t*&_source_excludes=*_stella", {"text", "topic", "tags"}),
    ],
)
def test_forms_in_the_address_win_over_the_body(ask: Any, address: str, fields: set[str]) -> None:
    hit = ask.search({"_source": ["original"]}, f"?{address}")["hits"]["hits"][0]
    assert set(hit["_source"]) == fields
    status, one = ask(f"/claimrev/_doc/1.1?{address}", method="GET")
    assert status == 200
    assert set(one["_source"]) == fields


def test_documents_come_back_as_they_are(ask: Any) -> None:
    hits = ask.search({"_source": {"excludes": ["*_stella"]}})["hits"]["hits"]
    assert [hit["_source"] for hit in hits] == ARGUMENTS
    assert all(hit["_id"] == hit["_source"]["id"] and hit["_index"] == "claimrev" for hit in hits)


@pytest.mark.parametrize(
    "source", [5, [1], {"includes": 1}, {"only": []}, {"includes": [["a"]]}, ["x"] * 129, "x" * 257]
)
def test_refused(ask: Any, source: Any) -> None:
    assert "_source" in ask.refusal({"_source": source})


def test_vectors_of_too_many_hits_at_once_are_refused(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecars.search.searching.MAX_NUMBERS", 6 * 3 * 4 - 1)
    assert "72" in ask.refusal({})
    assert len(ask.search({"size": 5})["hits"]["hits"]) == 5
    assert len(ask.search({"_source": {"excludes": ["text_*"]}})["hits"]["hits"]) == 6


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_patterns(pattern: str, name: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None
    assert matches(name, pattern) == expected


def test_a_wild_pattern_takes_no_time() -> None:
    assert not matches("a" * 64, "*a" * 127 + "b")
