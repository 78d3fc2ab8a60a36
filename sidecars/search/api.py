"""The interface over HTTP, without HTTP: from a method, a path and a body to a status and JSON."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

from sidecars.search import fields
from sidecars.search.errors import SearchError, illegal, no_index, quote
from sidecars.search.fields import Source
from sidecars.search.prepared import Collection
from sidecars.search.queries import Queries
from sidecars.search.reading import flag, options, read_json
from sidecars.search.requests import HARMLESS, Search, read_search
from sidecars.search.searching import MAX_NUMBERS, Known, count, fetch, nearest_to_each, parts_of, search
from sidecars.search.served import ServedLog

VERSION = "8.18.0"  # of the interface that this is a part of
MAX_SEARCHES = 32  # in one _msearch
MAX_ADDRESS = 64
_SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
_JSON = re.compile(r"application/(vnd\.elasticsearch\+)?(x-nd)?json", re.IGNORECASE)
_COMPATIBLE = re.compile(r";\s*compatible-with\s*=\s*\"?(\w+)", re.IGNORECASE)

_READ, _SEARCH = {"GET", "HEAD"}, {"GET", "POST"}
_SEARCHES = ("_search", "_msearch", "_count")
_ABOUT = {
    "name": "proctor",
    "cluster_name": "proctor",
    "version": {"number": VERSION, "build_flavor": "default"},
    "tagline": "An argument index that understands a part of Elasticsearch's search interface",
}
_HEALTH = {"cluster_name": "proctor", "status": "green", "timed_out": False, "number_of_nodes": 1}


@dataclass(frozen=True)
class Call:
    """One request. ``address`` holds the parameters of the address in their order, with repetitions."""

    method: str
    path: str
    address: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    content_encoding: str = "identity"


@dataclass(frozen=True)
class Answer:
    """What is sent back; ``content`` is JSON data."""

    status: int
    content: Any
    content_type: str = "application/json"
    pretty: bool = False


Handler = Callable[[Call, dict[str, str]], tuple[int, Any]]


class Api:
    """Answers requests about one index. ``threads`` requests (default: one a processor) are answered at a time."""

    def __init__(
        self,
        collection: Collection,
        index: str,
        prefix: str = "",
        log: ServedLog | None = None,
        threads: int | None = None,
    ) -> None:
        self._collection, self._index = collection, index
        self._prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
        self._log = log or ServedLog(None)
        self.threads = threads or max(2, os.cpu_count() or 1)

    def answer(self, call: Call) -> Answer:
        """The answer to a request; refusals, too, are answers."""
        pretty, media = False, "application/json"
        try:
            media = _media(call)
            address = _address(call.address)
            pretty = flag(address.get("pretty", False), "pretty")
            status, content = self._route(call, address)
        except SearchError as error:
            status, content = error.status, error.body()
            self._log.add("refused", status, [])
        return Answer(status, content, media, pretty)

    def _route(self, call: Call, address: dict[str, str]) -> tuple[int, Any]:
        path = call.path
        if self._prefix and (path + "/").startswith(self._prefix + "/"):
            path = path[len(self._prefix) :]
        where = f"uri [{quote(call.path)}] and method [{quote(call.method)}]"
        parts = [unquote(part) for part in path.split("/") if part]
        handler = self._handler(parts)
        if handler is None:
            raise illegal(f"no handler found for {where}")
        methods = _SEARCH if parts and parts[-1] in _SEARCHES else _READ
        if call.method not in methods:
            allowed = ", ".join(sorted(methods))
            reason = f"Incorrect HTTP method for {where}, allowed: [{allowed}]"
            raise SearchError(405, "illegal_argument_exception", reason)
        return handler(call, address)

    def _handler(self, parts: list[str]) -> Handler | None:
        """What answers at a path; None for a path that nobody knows. Raises SearchError for another index."""
        searches: dict[str, Handler] = {"_search": self._search, "_msearch": self._msearch}
        match parts:
            case []:
                return _plain(_ABOUT)
            case ["healthz"]:
                return _plain({"status": "ready", "arguments": self._collection.text.count})
            case ["_cluster", "health"]:
                return _plain(_HEALTH)
            case ["_all", "_search"]:
                return self._search
            case ["_search" | "_msearch" as what]:
                return searches[what]
            case [name, *_] if not name.startswith("_") and name != self._index:
                raise no_index(name)
            case [self._index]:
                return _plain({self._index: self._describe(settings=True)})
            case [self._index, "_mapping" | "_mappings"]:
                return _plain({self._index: self._describe(settings=False)})
            case [self._index, "_search" | "_msearch" | "_count" as what]:
                return {**searches, "_count": self._count}[what]
            case [self._index, "_doc" | "_source" as what, name]:
                return partial(self._document, name, whole=what == "_doc")
        return None

    def _search(self, call: Call, address: dict[str, str]) -> tuple[int, Any]:
        wanted = read_search(_body(call), address, self._collection)
        return 200, self._found(wanted, {})

    def _found(self, wanted: Search, known: Known) -> dict[str, Any]:
        began = time.monotonic()
        hits = search(self._collection, self._index, wanted, known)
        self._log.add(wanted.kind, 200, [hit["_id"] for hit in hits["hits"]])
        took = int((time.monotonic() - began) * 1000)
        return {"took": took, "timed_out": False, "_shards": _SHARDS, "hits": hits}

    def _msearch(self, call: Call, address: dict[str, str]) -> tuple[int, Any]:
        """Several searches, each a line with the index and a line with the body; a refused one refuses itself."""
        began = time.monotonic()
        _check(address, {"rest_total_hits_as_int", "max_concurrent_searches", "ccs_minimize_roundtrips"})
        address = {name: value for name, value in address.items() if name == "rest_total_hits_as_int"}
        lines = [line for line in call.body.split(b"\n") if line.strip()]
        if not lines or len(lines) % 2:
            raise illegal("[_msearch] needs pairs of lines: a header and a search")
        if len(lines) > 2 * MAX_SEARCHES:
            raise illegal(f"[_msearch] may have {MAX_SEARCHES} searches")
        wanted = [
            self._read(header, body, address) for header, body in zip(lines[::2], lines[1::2], strict=True)
        ]
        responses, numbers = [], 0
        known: Known = {}
        for place, one in enumerate(wanted):
            try:
                if isinstance(one, SearchError):
                    raise one
                if any(part.filter is None and id(part) not in known for part in one.knn):
                    known = {}
                    rest = (search for search in wanted[place:] if isinstance(search, Search))
                    known = nearest_to_each(self._collection, parts_of(rest))
                found = self._found(one, known)
                responses.append({**found, "status": 200})
                numbers += _numbers(found, self._collection)
            except SearchError as error:
                self._log.add("refused", error.status, [])
                responses.append(error.body())
            if numbers > MAX_NUMBERS:
                raise illegal("[_msearch]: the answers are too large together; leave the vectors out")
        return 200, {"took": int((time.monotonic() - began) * 1000), "responses": responses}

    def _read(self, header: bytes, body: bytes, address: dict[str, str]) -> Search | SearchError:
        """A search of an ``_msearch``, or why it is none."""
        try:
            self._named(read_json(header))
            return read_search(read_json(body), address, self._collection)
        except SearchError as error:
            return error

    def _named(self, header: Any) -> None:
        known = {"index", "preference", "search_type", "ignore_unavailable"}
        name = options(header, "header", known).get("index")
        for each in name if isinstance(name, list) else [name]:
            if each not in (None, "", self._index):
                raise no_index(str(each))

    def _count(self, call: Call, address: dict[str, str]) -> tuple[int, Any]:
        _check(address)
        body = options(_body(call) or {}, "request", {"query"})
        queries = Queries(self._collection.text, self._collection.matrices)
        found = count(self._collection, queries.read(body.get("query", {"match_all": {}})))
        self._log.add("count", 200, [])
        return 200, {"count": found, "_shards": _SHARDS}

    def _document(self, name: str, call: Call, address: dict[str, str], *, whole: bool) -> tuple[int, Any]:
        _check(address, {"_source", "_source_includes", "_source_excludes", "realtime", "refresh"})
        wanted = fields.from_address(address, Source())
        places = self._collection.text.matching(self._collection.text.values("id", [name]))
        self._log.add("doc", 200 if places else 404, [name] if places else [])
        about: dict[str, Any] = {"_index": self._index, "_id": quote(name)}
        if not places:
            if whole:
                return 404, {**about, "found": False}
            reason = f"Document not found [{self._index}]/[{quote(name)}]"
            raise SearchError(404, "resource_not_found_exception", reason)
        [(_, source)] = fetch(self._collection, places, wanted)
        if not whole:
            return 200, source or {}
        about |= {"_version": 1, "_seq_no": places[0], "_primary_term": 1, "found": True}
        return 200, about if source is None else {**about, "_source": source}

    def _describe(self, settings: bool) -> dict[str, Any]:
        words = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
        properties: dict[str, Any] = dict.fromkeys(sorted(self._collection.text.fields), words)
        for name, matrix in self._collection.matrices.items():
            shape = {"dims": matrix.dimensions, "index": True, "similarity": "cosine"}
            properties[name] = {"type": "dense_vector", **shape}
        described: dict[str, Any] = {"mappings": {"properties": properties}}
        if settings:
            index = {"number_of_shards": "1", "number_of_replicas": "0"}
            described = {"aliases": {}, **described, "settings": {"index": index}}
        return described


def _plain(content: Any) -> Handler:
    """Answers with the same content always."""

    def handler(call: Call, address: dict[str, str]) -> tuple[int, Any]:
        _check(address)
        return 200, content

    return handler


def _check(address: Mapping[str, str], known: set[str] | None = None) -> None:
    for name in address:
        if name not in HARMLESS and name not in (known or set()):
            raise illegal(f"request contains a parameter that is not supported here: [{quote(name)}]")


def _address(pairs: list[tuple[str, str]]) -> dict[str, str]:
    found = dict(pairs)
    if len(found) != len(pairs) or len(pairs) > MAX_ADDRESS:
        raise illegal("a parameter of the address is there twice, or there are too many")
    return found


def _body(call: Call) -> Any:
    return read_json(call.body) if call.body.strip() else None


def _media(call: Call) -> str:
    """The type of the answer: plain JSON, or Elasticsearch's own for clients of version 8 or 9 that ask for it.

    Raises SearchError for a body of another type, or a packed one.
    """
    if call.content_encoding.lower() != "identity":
        reason = "packed bodies are not supported here; send plain JSON"
        raise SearchError(415, "illegal_argument_exception", reason)
    for value, name in ((call.accept, "Accept"), (call.content_type if call.body else "", "Content-Type")):
        version = _COMPATIBLE.search(value)
        if version and version[1] not in ("8", "9"):
            reason = f"Invalid media-type value on header [{name}]"
            reason += ": only compatible-with=8 and 9 are understood"
            raise SearchError(400, "media_type_header_exception", reason)
    if call.body and not _JSON.match(call.content_type):
        reason = f"Content-Type header [{quote(call.content_type)}] is not supported; send application/json"
        raise SearchError(406, "media_type_header_exception", reason)
    version = _COMPATIBLE.search(call.accept)
    if version and "vnd.elasticsearch+json" in call.accept.lower():
        return f"application/vnd.elasticsearch+json;compatible-with={version[1]}"
    return "application/json"


def _numbers(found: dict[str, Any], collection: Collection) -> int:
    """How many numbers of vectors an answer holds, roughly."""
    return sum(
        matrix.dimensions
        for hit in found["hits"]["hits"]
        for name, matrix in collection.matrices.items()
        if name in hit.get("_source", {})
    )
