"""Copying an index out of a running server: out of our own, and out of a stand-in that scrolls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from sidecars.search.convert import convert
from sidecars.search.errors import DataError
from tests.worlds.search_arguments import ARGUMENTS, VECTOR_FIELDS, write
from tests.worlds.search_parts import words


def test_out_of_our_own_server(serving: Callable[..., Any], tmp_path: Path) -> None:
    source = write(tmp_path / "data")
    server = serving("--port", "0", "--prefix", "/arguments")
    told = convert(f"{server.where}/arguments", "claimrev", tmp_path / "copy", page=4)
    assert told == {"arguments": 6, "vectors": dict.fromkeys(sorted(VECTOR_FIELDS), 4)}
    rows = [json.loads(line) for line in (tmp_path / "copy" / "arguments.jsonl").read_text().splitlines()]
    assert rows == ARGUMENTS
    for field in VECTOR_FIELDS:
        assert np.array_equal(np.load(tmp_path / "copy" / f"{field}.npy"), np.load(source / f"{field}.npy"))
    again = serving("--port", "0", folder=tmp_path / "copy")
    assert re.findall(r"(\d) (\w+)", again.said)[:2] == [("6", "arguments"), ("3", "fields")]
    with pytest.raises(DataError) as caught:
        convert(server.where, "other", tmp_path / "none")
    assert words(caught.value) >= {"404", "other"}, caught.value
    assert list((tmp_path / "none").iterdir()) == []


class Elastic:
    """A stand-in that answers the calls of a copy, two documents a page, as Elasticsearch documents it."""

    def __init__(self, **change: Any) -> None:
        self.documents = [
            {"_id": a["id"], "_source": {**a, "vector": [float(i + 1)] * 8}} for i, a in enumerate(ARGUMENTS)
        ]
        self.total: Any = {"value": 6, "relation": "eq"}
        self.calls: list[tuple[str, str, Any]] = []
        self.change = change
        self.place = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.calls.append((request.method, request.url.raw_path.decode(), body))
        if "status" in self.change:
            return httpx2.Response(self.change["status"], json=self.change.get("body", {"error": "no"}))
        if request.method == "DELETE":
            return httpx2.Response(200, json={"succeeded": True})
        page = self.documents[self.place : self.place + 2]
        self.place += 2
        hits = {"total": self.total, "hits": page}
        return httpx2.Response(
            200, json={"_scroll_id": f"at{self.place}", "hits": hits, **self.change.get("more", {})}
        )


def copied(tmp_path: Path, elastic: Elastic, **options: Any) -> Any:
    return convert(
        "http://search.test/base/",
        "claimrev",
        tmp_path / "out",
        transport=httpx2.MockTransport(elastic),
        **options,
    )


def test_scrolling(tmp_path: Path) -> None:
    elastic = Elastic()
    elastic.documents[3]["_source"]["vector"] = None
    assert copied(tmp_path, elastic) == {"arguments": 6, "vectors": {"vector": 8}}
    assert [(method, path) for method, path, _ in elastic.calls] == [
        ("POST", "/base/claimrev/_search?scroll=5m"),
        *[("POST", "/base/_search/scroll")] * 3,
        ("DELETE", "/base/_search/scroll"),
    ]
    assert elastic.calls[2][2] == {"scroll": "5m", "scroll_id": "at4"}
    matrix = np.load(tmp_path / "out" / "vector.npy")
    assert matrix[:, 0].tolist() == [1, 2, 3, 0, 5, 6]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["arguments.jsonl", "vector.npy"]


def test_a_key_and_a_total_that_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers["authorization"])
        return elastic(request)

    elastic = Elastic()
    elastic.total = 6
    monkeypatch.setenv("SEARCH_KEY", "abc")
    transport = httpx2.MockTransport(answer)
    convert("http://search.test", "claimrev", tmp_path / "out", key_name="SEARCH_KEY", transport=transport)
    assert set(seen) == {"ApiKey abc"}
    with pytest.raises(DataError) as caught:
        convert("http://search.test", "claimrev", tmp_path / "two", key_name="OTHER_KEY", transport=transport)
    assert "OTHER_KEY" in words(caught.value)


def rename_field(elastic: Elastic) -> None:
    for document in elastic.documents:
        document["_source"]["../vector"] = document["_source"].pop("vector")


# What is wrong with the documents, and the values that the error names.
INCOMPLETE: dict[str, tuple[Callable[[Elastic], Any], set[str]]] = {
    "few": (lambda e: e.documents.pop(), {"6", "5"}),
    "many": (lambda e: e.documents.append(e.documents[0]), {"6"}),
    "twice": (lambda e: e.documents.__setitem__(5, e.documents[0]), {"1.1"}),
    "id": (lambda e: e.documents[2]["_source"].update(id="other"), {"1.3", "other"}),
    "short": (lambda e: e.documents[2]["_source"].update(vector=[1.0] * 9), {"3", "vector", "8"}),
    "source": (lambda e: e.documents[2].pop("_source"), {"3", "_source"}),
    "name": (rename_field, {"../vector"}),
    "none": (lambda e: setattr(e, "total", 0), {"0"}),
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_an_incomplete_answer_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    elastic = Elastic()
    spoil, values = INCOMPLETE[name]
    spoil(elastic)
    with pytest.raises(DataError) as caught:
        copied(tmp_path, elastic)
    assert words(caught.value) >= values, caught.value
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"status": 500}, {"500", "no"}),
        ({"status": 200, "body": {"hits": {}}}, {"hits.total"}),
        ({"status": 200, "body": []}, {"200"}),
        ({"status": 403, "body": {"error": {"reason": "forbidden"}}}, {"403", "forbidden"}),
    ],
)
def test_a_server_that_fails(tmp_path: Path, change: dict[str, Any], values: set[str]) -> None:
    with pytest.raises(DataError) as caught:
        copied(tmp_path, Elastic(**change))
    assert words(caught.value) >= values, caught.value


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        convert("http://127.0.0.1:9", "claimrev", tmp_path / "out")
    assert "_search" in str(caught.value)
