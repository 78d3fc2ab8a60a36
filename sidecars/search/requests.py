"""A search as a client asks for it: the body and the address of ``_search``, checked and made into one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tantivy import Occur, Query

from sidecars.search import fields
from sidecars.search.errors import SearchError, illegal, malformed, quote
from sidecars.search.fields import Source
from sidecars.search.prepared import Collection
from sidecars.search.queries import Queries
from sidecars.search.reading import boost, flag, number, options, text, whole
from sidecars.search.vectors import Floats

WINDOW = 10_000  # from + size, k, num_candidates; and what matches are counted to
MAX_KNN = 8
_BODY = {
    "query", "knn", "size", "from", "sort", "search_after", "_source", "track_total_hits", "min_score",
    "timeout", "track_scores", "explain", "version", "profile",
}  # fmt: skip
_KNN = {"field", "query_vector", "k", "num_candidates", "filter", "similarity", "boost"}
# In the address: what changes the answer, and what is known and makes no difference here.
CHANGING = {"size", "from", "sort", "track_total_hits", "_source", "_source_includes", "_source_excludes",
            "rest_total_hits_as_int"}  # fmt: skip
HARMLESS = {"pretty", "human", "error_trace", "timeout", "typed_keys", "ignore_unavailable", "allow_no_indices",
            "expand_wildcards", "preference", "request_cache", "track_scores", "search_type"}  # fmt: skip


@dataclass(frozen=True)
class Nearest:
    """One ``knn``: the ``k`` documents whose vectors are nearest, of those that match ``filter``."""

    field: str
    vector: Floats
    k: int
    filter: Query | None
    at_least: float  # cosine
    boost: float


@dataclass(frozen=True)
class Search:
    """One search. ``counted``: how far matches are counted; None for all of them, 0 for not at all."""

    kind: str
    query: Query | None
    knn: tuple[Nearest, ...] = ()
    size: int = 10
    start: int = 0
    by_place: bool = False
    after: int = -1
    source: Source = field(default_factory=Source)
    counted: int | None = WINDOW
    plain_total: bool = False
    min_score: float | None = None


def read_search(body: Any, address: Mapping[str, str], collection: Collection) -> Search:
    """The search in a request's JSON body (None without one) and address. Raises SearchError."""
    body = options({} if body is None else body, "request", _BODY)
    unknown = sorted(set(address) - CHANGING - HARMLESS)
    if unknown:
        raise illegal(f"request contains a parameter that is not supported here: [{quote(unknown[0])}]")
    for name in ("explain", "version", "profile"):
        if body.get(name, False) is not False:
            raise illegal(f"[{name}] is not supported here")
    text(body.get("timeout", ""), "timeout", 20)
    queries = Queries(collection.text, collection.matrices)
    size = whole(address.get("size", body.get("size", 10)), "size", 0, WINDOW)
    start = whole(address.get("from", body.get("from", 0)), "from", 0, WINDOW)
    if size + start > WINDOW:
        most = f"from + size must be less than or equal to: [{WINDOW}] but was [{size + start}]"
        raise illegal(f"Result window is too large, {most}")
    knn = _knn(body.get("knn"), size, collection, queries)
    query = queries.read(body["query"]) if "query" in body else None
    by_place = _by_place(address.get("sort"), body.get("sort"))
    after = -1
    if "search_after" in body:
        values = body["search_after"]
        if not by_place or start or not isinstance(values, list) or len(values) != 1:
            raise illegal("[search_after] needs [sort] by [_doc], one value, and no [from]")
        after = whole(values[0], "search_after", -1, 1 << 60)
    if by_place and knn:
        raise illegal("[sort] by [_doc] is not supported together with [knn]")
    lowest = body.get("min_score")
    return Search(
        kind=_kind(body),
        query=query,
        knn=knn,
        size=size,
        start=start,
        by_place=by_place,
        after=after,
        source=fields.from_address(address, fields.from_body(body.get("_source", True))),
        counted=_counted(address.get("track_total_hits", body.get("track_total_hits", WINDOW))),
        plain_total=flag(address.get("rest_total_hits_as_int", False), "rest_total_hits_as_int"),
        min_score=None if lowest is None else number(lowest, "min_score", -1e30, 1e30),
    )


def _kind(body: Mapping[str, Any]) -> str:
    """What a search is called in the log: the kind of its query, ``knn``, or both."""
    names = ["knn"] if "knn" in body else []
    if isinstance(body.get("query"), dict):
        names += list(body["query"])[:1]
    return "+".join(names) or "match_all"


def _counted(value: Any) -> int | None:
    if value in ("true", "") or value is True:
        return None
    if value == "false" or value is False:
        return 0
    return whole(value, "track_total_hits", 1, 1 << 31)


def _by_place(address: str | None, body: Any) -> bool:
    """Whether hits are wanted in the order of the index, not of their scores. No other order is known."""
    value = address.split(",") if address is not None else body
    item = next((one for one in (value if isinstance(value, list) else [value]) if one is not None), "_score")
    name, order = item, None
    if isinstance(item, dict) and len(item) == 1:
        name, order = next(iter(item.items()))
        order = order.get("order") if isinstance(order, dict) and set(order) <= {"order"} else order
    elif isinstance(item, str):
        name, _, order = item.partition(":")
    if name == "_doc" and order in (None, "", "asc"):
        return True
    if name != "_score" or order not in (None, "", "desc"):
        raise illegal("[sort] is only supported by [_score] (falling) and by [_doc]")
    return False


def _knn(value: Any, size: int, collection: Collection, queries: Queries) -> tuple[Nearest, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    if not 1 <= len(items) <= MAX_KNN:
        raise illegal(f"[knn] may be a list of 1 to {MAX_KNN}")
    return tuple(_one_knn(item, size, collection, queries) for item in items)


def _one_knn(value: Any, size: int, collection: Collection, queries: Queries) -> Nearest:
    body = options(value, "knn", _KNN)
    for key in ("field", "query_vector"):
        if key not in body:
            raise malformed(f"Required [{key}] in [knn]")
    field = text(body["field"], "knn.field", 256)
    matrix = collection.matrices.get(field)
    if matrix is None:
        is_text = field in collection.text.fields
        what = "is not a field of vectors" if is_text else "does not exist in the mapping"
        known = ", ".join(sorted(collection.matrices)) or "none"
        raise _not_created(f"field [{quote(field)}] {what}; fields of vectors: {known}")
    k = whole(body.get("k", max(1, size)), "knn.k", 1, WINDOW)
    usual = max(k, min(WINDOW, k * 3 // 2))
    candidates = whole(body.get("num_candidates", usual), "knn.num_candidates", 1, WINDOW)
    if candidates < k:
        raise illegal(f"[num_candidates] cannot be less than [k]; they were [{candidates}] and [{k}]")
    wanted = body.get("filter", [])
    filters = [queries.read(f, "knn.filter") for f in (wanted if isinstance(wanted, list) else [wanted])]
    both = Query.boolean_query([(Occur.Must, f) for f in filters]) if filters else None
    return Nearest(
        field=field,
        vector=_vector(body["query_vector"], matrix.dimensions),
        k=k,
        filter=both,
        at_least=number(body.get("similarity", -1.0), "knn.similarity", -1.0, 1.0),
        boost=boost(body, "knn"),
    )


def _vector(value: Any, dimensions: int) -> Floats:
    if not isinstance(value, list) or any(type(v) is not float and type(v) is not int for v in value):
        raise malformed("[knn.query_vector] has to be a list of numbers")
    if len(value) != dimensions:
        what = f"dimensions [{len(value)}] than the index vectors [{dimensions}]"
        raise _not_created(f"the query vector has a different number of {what}")
    try:
        vector = np.array(value, dtype=np.float64)
    except OverflowError:
        raise illegal("[knn.query_vector] has a number that is too large") from None
    largest = float(np.abs(vector).max())
    if not 0 < largest < 1e30:
        what = "a vector without length, or with numbers over 1e30,"
        raise _not_created(f"the [cosine] of {what} is not defined")
    return (vector / largest).astype(np.float32)


def _not_created(reason: str) -> SearchError:
    return SearchError(400, "query_shard_exception", f"failed to create query: {reason}")
