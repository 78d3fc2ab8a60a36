"""Carrying out a search: matches and neighbours, merged, ordered, and written as Elasticsearch writes them."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from tantivy import Query

from sidecars.search.errors import illegal
from sidecars.search.fields import Source
from sidecars.search.prepared import Collection
from sidecars.search.requests import WINDOW, Nearest, Search
from sidecars.search.text import both

MAX_NUMBERS = 2_000_000  # of vectors, in one answer: 650 arguments with three vectors of 1,024 dimensions
MAX_RESPONSE = 64 << 20  # bytes of documents in one answer
TOGETHER = 16  # vectors of one request whose neighbours are looked for at once: 4 bytes a row and vector

Scored = list[tuple[int, float]]
Known = Mapping[int, Scored]  # the neighbours of a part of a search, by its id()


def parts_of(searches: Iterable[Search]) -> list[Nearest]:
    """Return the parts of the first of some searches whose neighbours can be looked for at once, :data:`TOGETHER` of them.

    Those of whole searches, and of the first always. Not those with a filter, which reads other rows.
    """
    found: list[Nearest] = []
    for one in searches:
        some = [part for part in one.knn if part.filter is None]
        if found and len(found) + len(some) > TOGETHER:
            break
        found += some
    return found


def nearest_to_each(collection: Collection, parts: Iterable[Nearest]) -> Known:
    """The neighbours that each of some parts wants: each matrix is read once. The estimates are gone with the call."""
    fields: dict[str, list[Nearest]] = {}
    for part in parts:
        fields.setdefault(part.field, []).append(part)
    found: dict[int, Scored] = {}
    for field, some in fields.items():
        matrix = collection.matrices[field]
        lines = matrix.estimates([part.vector for part in some])
        for part, line in zip(some, lines, strict=True):
            found[id(part)] = _as_scores(part, matrix.nearest(part.vector, part.k, None, part.at_least, line))
    return found


def search(collection: Collection, index: str, wanted: Search, known: Known | None = None) -> dict[str, Any]:
    """``hits`` of the answer: total, max_score, and the hits with the parts of ``_source`` that are wanted.

    ``known``: what :func:`nearest_to_each` says of its parts. Raises SearchError when the answer would be too large.
    """
    if wanted.by_place:
        found, total, best = _in_order(collection, wanted)
    else:
        found, total = _scored(collection, wanted, known or {})
        best = found[0][1] if found and wanted.size else None
        found = found[wanted.start : wanted.start + wanted.size]
    hits: dict[str, Any] = {}
    if wanted.counted != 0:
        hits["total"] = total_of(total, wanted)
    hits["max_score"] = None if best is None else _single(best)
    documents = fetch(collection, [place for place, _ in found], wanted.source)
    hits["hits"] = []
    for (place, score), (name, source) in zip(found, documents, strict=True):
        shown = None if wanted.by_place else _single(score)
        hit: dict[str, Any] = {"_index": index, "_id": name, "_score": shown}
        if source is not None:
            hit["_source"] = source
        if wanted.by_place:
            hit["sort"] = [place]
        hits["hits"].append(hit)
    return hits


def count(collection: Collection, query: Query) -> int:
    """How many documents match."""
    return collection.text.search(query, 1)[1]


def fetch(
    collection: Collection, places: list[int], wanted: Source
) -> list[tuple[str, dict[str, Any] | None]]:
    """The id and the wanted parts of each document, vectors too. Raises SearchError if that is too much at once."""
    vectors = {name: matrix for name, matrix in collection.matrices.items() if wanted.has(name)}
    numbers = len(places) * sum(matrix.dimensions for matrix in vectors.values())
    if numbers > MAX_NUMBERS:
        raise illegal(
            f"these hits have {numbers} numbers in vectors, more than {MAX_NUMBERS};"
            " leave the vectors out with _source_excludes, or ask for fewer"
        )
    found: list[tuple[str, dict[str, Any] | None]] = []
    size = 0
    for place in places:
        size += collection.documents.length(place)
        if size > MAX_RESPONSE:
            raise illegal(f"these hits are larger than {MAX_RESPONSE} bytes; ask for fewer")
        document = collection.documents[place]
        name = document["id"]
        if not wanted.wanted:
            found.append((name, None))
            continue
        source = {key: value for key, value in document.items() if wanted.has(key)}
        for field, matrix in vectors.items():
            values = matrix.values(place)
            if values is not None:
                source[field] = values
        found.append((name, source))
    return found


def _in_order(collection: Collection, wanted: Search) -> tuple[Scored, int, None]:
    """The matches in the order of the index, after the place where the last request ended."""
    everything: Sequence[int] = range(collection.text.count)
    if wanted.query is not None:
        everything = collection.text.matching(wanted.query)
    first = bisect.bisect_right(everything, wanted.after) + wanted.start
    return [(place, 0.0) for place in everything[first : first + wanted.size]], len(everything), None


def _scored(collection: Collection, wanted: Search, known: Known) -> tuple[Scored, int]:
    """At least the hits up to the end of the wanted window, best first, ties in the order of the index; the total."""
    window = wanted.start + wanted.size
    limit = WINDOW if wanted.min_score is not None else window
    if not wanted.knn:
        query = wanted.query if wanted.query is not None else Query.const_score_query(Query.all_query(), 1.0)
        found, total = collection.text.search(query, limit)
    else:
        near: dict[int, float] = {}
        for part in wanted.knn:
            for place, score in _nearest(collection, part, known):
                near[place] = near.get(place, 0.0) + score
        found, total = list(near.items()), len(near)
        if wanted.query is not None:
            found, total = _with_query(collection, wanted.query, near, limit)
        found.sort(key=lambda item: (-item[1], item[0]))
    if wanted.min_score is not None:
        passing = [item for item in found if item[1] >= wanted.min_score]
        # If even the last one that was looked at passes, nobody knows how many more do.
        total = len(passing) if len(passing) < len(found) or len(found) == total else total
        found = passing
    return found, total


def _nearest(collection: Collection, part: Nearest, known: Known) -> Scored:
    """The neighbours with Elasticsearch's score for the cosine, (1 + cosine) / 2."""
    if id(part) in known:
        return known[id(part)]
    among = None
    if part.filter is not None:
        among = np.array(collection.text.matching(part.filter), dtype=np.int64)
    found = collection.matrices[part.field].nearest(part.vector, part.k, among, part.at_least)
    return _as_scores(part, found)


def _as_scores(part: Nearest, found: Scored) -> Scored:
    return [(place, part.boost * (1.0 + cosine) / 2.0) for place, cosine in found]


def _with_query(
    collection: Collection, query: Query, near: dict[int, float], limit: int
) -> tuple[Scored, int]:
    """Matches and neighbours together: who is both has the sum of the two scores."""
    # With as many more as there are neighbours, enough of the others are among these.
    matched, total = collection.text.search(query, limit + len(near))
    scores = dict(matched)
    also, common = collection.text.search(both(query, collection.text.places(near)), len(near))
    scores.update(also)
    for place, score in near.items():
        scores[place] = scores.get(place, 0.0) + score
    return list(scores.items()), total + len(near) - common


def total_of(total: int, wanted: Search) -> Any:
    """``hits.total`` of an answer: how many match, counted as far as the request wants; a number, or with its relation."""
    value, relation = total, "eq"
    if wanted.counted is not None and total > wanted.counted:
        value, relation = wanted.counted, "gte"
    return value if wanted.plain_total else {"value": value, "relation": relation}


def _single(score: float) -> float:
    """The score as the number of single precision that it is, in its shortest form."""
    if not math.isfinite(score) or abs(score) > 3e38:
        raise illegal("scores are too large; use smaller boosts")
    return float(str(np.float32(score)))
