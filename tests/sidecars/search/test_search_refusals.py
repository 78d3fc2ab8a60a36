"""Requests that the argument index refuses with status 400. The reasons are those of Elasticsearch, pinned as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.worlds.search_arguments import argument

FIELD = "text_embedding_stella"
BODIES: list[Any] = [
    [],
    {"aggs": {}},
    {"query": {}},
    {"query": {"match": {"text": "a"}, "term": {}}},
    {"query": {"wildcard": {"text": "a*"}}},
    {"query": {"match": {"text": ["a"]}}},
    {"query": {"match": {"text": {}}}},
    {"query": {"match": {"text": {"query": "a", "fuzziness": 1}}}},
    {"query": {"match": {"text": {"query": "a", "operator": "xor"}}}},
    {"query": {"match": {"text": {"query": "a", "boost": -1}}}},
    {"query": {"match": {"text": {"query": "a", "minimum_should_match": "3<90%"}}}},
    {"query": {"match": {"text": {"query": "a", "minimum_should_match": True}}}},
    {"query": {"match": {"text": {"query": "a", "zero_terms_query": []}}}},
    {"query": {"match": {"text": "x" * 16_385}}},
    {"query": {"match": {"text": " ".join(f"w{i}" for i in range(2000))}}},
    {"query": {"match": {"text_embedding_stella": "a"}}},
    {"query": {"multi_match": {"query": "a"}}},
    {"query": {"multi_match": {"query": "a", "fields": ["t*"]}}},
    {"query": {"multi_match": {"query": "a", "fields": ["text^x"]}}},
    {"query": {"multi_match": {"query": "a", "fields": ["text^nan"]}}},
    {"query": {"multi_match": {"query": "a", "fields": ["text"], "type": "phrase"}}},
    {"query": {"bool": {"must": "a"}}},
    {"query": {"bool": {"must": [1]}}},
    {"query": {"terms": {"text": "cars"}}},
    {"query": {"terms": {"text": ["a"], "id": ["b"]}}},
    {"query": {"ids": {"values": ["a"] * 10_001}}},
    {"query": {"dis_max": {"queries": []}}},
    {"query": {"constant_score": {}}},
    {"query": {"term": {"text": {}}}},
    {"query": {"exists": {"field": "text_embedding_stella"}}},
    *({"size": size} for size in (-1, "ten", True, 1.5)),
    {"size": 9_000, "from": 1_001},
    *({"sort": sort} for sort in ([{"id": "asc"}], [{"_score": "asc"}], 7)),
    {"search_after": [1]},
    {"min_score": "1"},
    {"track_total_hits": "many"},
    {"explain": True},
    {"_source": 1},
]  # fmt: skip
# Changes of a search for neighbours.
KNN = {"field": FIELD, "query_vector": [1, 2, 3, 4]}
NEIGHBOURS: list[dict[str, Any]] = [
    {"query_vector": [1, 2, 3]},
    {"query_vector": [0, 0, 0, 0]},
    {"query_vector": [1, 2, 3, "4"]},
    {"query_vector": [1, 2, 3, True]},
    {"query_vector": [1, 2, 3, 10**400]},
    {"query_vector": [1, 2, 3, 1e300]},
    {"query_vector": "AAAA"},
    {"field": "text"},
    {"field": "nothing"},
    {"k": 0},
    {"k": 10_001},
    {"k": 5, "num_candidates": 4},
    {"similarity": 2},
    {"query_vector_builder": {}},
    {"filter": {"knn": {}}},
]
WHOLE: list[Any] = [{"field": FIELD}, [], [KNN] * 9]


def test_refused_requests(ask: Any, asking: Callable[..., Any], golden: Callable[[str, str], None]) -> None:
    bodies = [
        *BODIES,
        *({"knn": {**KNN, **change}} for change in NEIGHBOURS),
        *({"knn": knn} for knn in WHOLE),
    ]
    refused = [(body, ask.refusal(body)) for body in bodies]
    without_vectors = asking([argument("1", "a")], vectors=False)
    refused.append(({"knn": KNN}, without_vectors.refusal({"knn": KNN})))
    golden(
        "search_refusals.txt",
        "".join(f"{json.dumps(body)[:100]}\n    {reason}\n" for body, reason in refused),
    )
