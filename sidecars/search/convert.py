"""Copying an index out of a running Elasticsearch (or anything that speaks like it) into a data folder."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote as percent

import httpx2
import numpy as np

from sidecars.search import documents
from sidecars.search.errors import DataError, quote

KEEP = "5m"  # how long the server holds its place for us between two pages
MAX_ARGUMENTS = 10_000_000
_SECONDS = 120.0
_SHORTEST_VECTOR = 4  # a list of numbers shorter than this stays in the document


class _Server:
    """The few calls that are needed. Everything that goes wrong is a DataError with the server's own words."""

    def __init__(self, url: str, index: str, page: int, key: str | None, transport: Any = None) -> None:
        self._index, self._page = percent(index, safe=""), page
        headers = {"Accept": "application/json"} | ({"Authorization": f"ApiKey {key}"} if key else {})
        self._client = httpx2.Client(
            base_url=url.rstrip("/") + "/", headers=headers, timeout=_SECONDS, transport=transport
        )

    def pages(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Pages of hits in the order of the index, each with the total. Scrolls; without that, searches on."""
        with self._client:
            first = {"size": self._page, "sort": ["_doc"], "track_total_hits": True}
            answer = self._call("POST", f"{self._index}/_search?scroll={KEEP}", first, refusable=True)
            yield from self._searched_on(first) if answer is None else self._scrolled(answer)

    def _scrolled(self, answer: dict[str, Any]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        place = answer.get("_scroll_id")
        try:
            while True:
                total, hits = _hits(answer)
                yield total, hits
                if not hits:
                    return
                place = answer.get("_scroll_id", place)
                answer = self._call("POST", "_search/scroll", {"scroll": KEEP, "scroll_id": place}) or {}
        finally:
            # It would be forgotten in five minutes anyway.
            self._call("DELETE", "_search/scroll", {"scroll_id": place}, refusable=True)

    def _searched_on(self, first: dict[str, Any]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        body, hits = first, [dict[str, Any]()]
        while hits:
            answer = self._call("POST", f"{self._index}/_search", body) or {}
            if answer.get("_shards", {}).get("total", 1) != 1:
                raise DataError(["the index has several shards, and the server does not scroll"])
            total, hits = _hits(answer)
            yield total, hits
            body = {**first, "search_after": hits[-1].get("sort")} if hits else body

    def _call(self, method: str, path: str, body: Any, refusable: bool = False) -> dict[str, Any] | None:
        try:
            answer = self._client.request(method, path, json=body)
            content = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            why = quote(str(error)) or type(error).__name__
            raise DataError([f"{self._client.base_url}{path}: {why}"]) from error
        if answer.status_code == 200 and isinstance(content, dict):
            return content
        if refusable and 400 <= answer.status_code < 500 and answer.status_code != 404:
            return None
        reason = content.get("error", content) if isinstance(content, dict) else content
        reason = reason.get("reason", reason) if isinstance(reason, dict) else reason
        raise DataError([f"{self._client.base_url}{path}: status {answer.status_code}: {quote(str(reason))}"])


def _hits(answer: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    try:
        hits = answer["hits"]
        total = hits["total"]
        return int(total["value"] if isinstance(total, dict) else total), list(hits["hits"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(["the server's answer has no hits.total and hits.hits"]) from error


def convert(
    url: str, index: str, out: Path, *, key_name: str | None = None, page: int = 250, transport: Any = None
) -> dict[str, Any]:
    """Write all documents of the index to ``out``/arguments.jsonl, and every field of vectors to a matrix.

    ``url`` is the address up to, not including, the index; ``key_name`` names an environment variable with an API key.
    Returns counts. Raises DataError when the server fails or does not give all; then nothing is left behind.
    """
    key = os.environ.get(key_name, "") if key_name else None
    if key == "":
        raise DataError([f"the environment variable {key_name} is not set"])
    out.mkdir(parents=True, exist_ok=True)
    if (out / documents.PACKED).exists():
        raise DataError([f"{out / documents.PACKED} is there already"], "give an empty folder with --out")
    with tempfile.TemporaryDirectory(prefix=".converting-", dir=out) as name:
        work = _Writer(Path(name))
        for total, hits in _Server(url, index, page, key, transport).pages():
            work.add(total, hits)
        return work.finish(out)


class _Writer:
    """Writes documents and matrices as they come."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count, self._total = folder, 0, 0
        self._file = (folder / documents.PLAIN).open("w", encoding="utf-8")
        self._matrices: dict[str, Any] = {}

    def add(self, total: int, hits: list[dict[str, Any]]) -> None:
        self._total = total
        if not 0 < total <= MAX_ARGUMENTS:
            raise DataError([f"the server has {total} documents; 1 to {MAX_ARGUMENTS} can be copied"])
        for hit in hits:
            source = hit.get("_source") if isinstance(hit, dict) else None
            if not isinstance(source, dict) or not isinstance(hit.get("_id"), str):
                raise DataError([f"document {self._count + 1} came without _id or _source"])
            if self._count >= total:
                raise DataError([f"the server gives more than the {total} documents it has"])
            rest = {"id": hit["_id"]}
            for field, value in source.items():
                if not self._vector(field, value):
                    rest[field] = value
            if rest["id"] != hit["_id"]:
                inside = quote(str(rest["id"]))
                raise DataError([f"document {quote(hit['_id'])} has another id in it: {inside}"])
            self._file.write(json.dumps(rest, ensure_ascii=True) + "\n")
            self._count += 1

    def _vector(self, field: str, value: Any) -> bool:
        if field not in self._matrices:
            if not _is_vector(value):
                return False
            path, shape = self._folder / f"{len(self._matrices)}.npy", (self._total, len(value))
            memmap: Any = np.lib.format.open_memmap
            self._matrices[field] = memmap(path, mode="w+", dtype=np.float32, shape=shape)
        matrix = self._matrices[field]
        if value is None:
            return True  # a row of zeros: no vector
        if not _is_vector(value) or len(value) != matrix.shape[1]:
            what = f"{quote(field)} is not a vector of {matrix.shape[1]} numbers"
            raise DataError([f"document {self._count + 1}: {what}"])
        matrix[self._count] = value
        return True

    def finish(self, out: Path) -> dict[str, Any]:
        self._file.close()
        if self._count != self._total:
            raise DataError([f"the server has {self._total} documents, and gave {self._count}"])
        for _ in documents.Reader(self._folder / documents.PLAIN):
            pass
        for number, (field, matrix) in enumerate(self._matrices.items()):
            if not field.replace("_", "").replace("-", "").isalnum():
                raise DataError([f"{quote(field)} cannot be the name of a field of vectors"])
            matrix.flush()
            (self._folder / f"{number}.npy").replace(out / f"{field}.npy")
        (self._folder / documents.PLAIN).replace(out / documents.PLAIN)
        return {"arguments": self._count, "vectors": {f: int(m.shape[1]) for f, m in self._matrices.items()}}


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) >= _SHORTEST_VECTOR
        and all(type(number) in (int, float) for number in value)
    )
