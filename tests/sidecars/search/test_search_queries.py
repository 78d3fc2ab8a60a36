from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.search.analysis import tokens
from sidecars.search.queries import Queries
from sidecars.search.requests import Search
from sidecars.search.searching import total_of
from sidecars.search.text import TextIndex
from tests.worlds.search_arguments import ARGUMENTS, write
from tests.worlds.search_parts import asked

CARS = {"match": {"text": "cars"}}  # 2.2 (three times), 1.1, 1.2
NIGHT = {"match": {"text": "night"}}  # 1.2, 1.3


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"match": {"text": "cars"}}, {"1.1", "1.2", "2.2"}),
        ({"match": {"text": {"query": "cars night"}}}, {"1.1", "1.2", "1.3", "2.2"}),
        ({"match": {"text": {"query": "CARS night", "operator": "AND"}}}, {"1.2"}),
        ({"match": {"text": {"query": "buses run trees", "minimum_should_match": 2}}}, {"1.3"}),
        ({"match": {"text": {"query": "buses run trees", "minimum_should_match": "70%"}}}, {"1.3"}),
        ({"match": {"text": {"query": "buses run trees", "minimum_should_match": "-1"}}}, {"1.3"}),
        ({"match": {"text": {"query": "buses run trees", "minimum_should_match": "-50%"}}}, {"1.3"}),
        ({"match": {"text": {"query": "buses run", "minimum_should_match": 3}}}, set()),
        ({"match": {"text": {"query": "buses", "minimum_should_match": "-400%"}}}, {"1.3"}),
        ({"match": {"text": "don't"}}, {"2.1"}),
        ({"match": {"text": "1,000"}}, {"10104.4"}),
        ({"match": {"text": 1000}}, set()),
        ({"match": {"text": "zu\u0308rich"}}, {"10104.4"}),
        ({"match": {"text": "?!"}}, set()),
        ({"match": {"text": {"query": "?!", "zero_terms_query": "all"}}}, {a["id"] for a in ARGUMENTS}),
        ({"match": {"tags": "health"}}, {"1.1"}),
        ({"match": {"id": "10104.4"}}, {"10104.4"}),
        ({"match": {"nothing": "cars"}}, set()),
        ({"match": {"topic.keyword": "Trams"}}, {"10104.4"}),
        ({"match": {"topic.keyword": "trams"}}, set()),
        ({"multi_match": {"query": "trams", "fields": ["text", "attacks"]}}, {"10104.4"}),
        ({"multi_match": {"query": "buses", "fields": ["text", "attacks^3"]}}, {"1.2", "1.3"}),
        ({"multi_match": {"query": "buses cars", "fields": "text", "type": "most_fields"}}, {"1.1", "1.2", "1.3", "2.2"}),
        ({"multi_match": {"query": "buses cars", "fields": ["attacks", "text"], "operator": "and"}}, {"1.2"}),
        ({"bool": {"must": CARS, "must_not": NIGHT}}, {"1.1", "2.2"}),
        ({"bool": {"must": [CARS, NIGHT]}}, {"1.2"}),
        ({"bool": {"should": [CARS, NIGHT], "minimum_should_match": 2}}, {"1.2"}),
        ({"bool": {"should": [CARS, NIGHT], "minimum_should_match": 3}}, set()),
        ({"bool": {"should": [CARS, NIGHT], "minimum_should_match": 0}}, {"1.1", "1.2", "1.3", "2.2"}),
        ({"bool": {"filter": CARS, "should": NIGHT}}, {"1.1", "1.2", "2.2"}),
        ({"bool": {"filter": CARS, "should": NIGHT, "minimum_should_match": 1}}, {"1.2"}),
        ({"bool": {"should": NIGHT, "must_not": CARS}}, {"1.3"}),
        ({"bool": {"must_not": CARS}}, {"1.3", "2.1", "10104.4"}),
        ({"bool": {}}, {a["id"] for a in ARGUMENTS}),
        ({"dis_max": {"queries": [CARS, NIGHT]}}, {"1.1", "1.2", "1.3", "2.2"}),
        ({"constant_score": {"filter": NIGHT}}, {"1.2", "1.3"}),
        ({"term": {"text": "cars"}}, {"1.1", "1.2", "2.2"}),
        ({"term": {"text": "Cars"}}, set()),
        ({"term": {"original.keyword": {"value": "supports", "boost": 2}}}, {"1.3"}),
        ({"term": {"_id": "2.1"}}, {"2.1"}),
        ({"terms": {"topic.keyword": ["Trams", "Nothing"], "boost": 2}}, {"10104.4"}),
        ({"terms": {"text": ["trees", "trams"]}}, {"2.1", "10104.4"}),
        ({"terms": {"text": []}}, set()),
        ({"ids": {"values": ["1.1", "2.2", "9.9"]}}, {"1.1", "2.2"}),
        ({"exists": {"field": "references"}}, {"1.2"}),
        ({"exists": {"field": "tags"}}, {"1.1", "1.2", "1.3", "2.1", "10104.4"}),
        ({"exists": {"field": "nothing"}}, set()),
        ({"match_all": {}}, {a["id"] for a in ARGUMENTS}),
        ({"match_none": {}}, set()),
        ({"term": {"text": "\ud800"}}, set()),
        ({"term": {"text.keyword": "\ud800"}}, set()),
        ({"match": {"text": "\ud800 trams"}}, {"10104.4"}),
    ],
)  # fmt: skip
def test_what_queries_find(ask: Any, query: Any, ids: set[str]) -> None:
    answer = ask.search({"query": query, "_source": False})["hits"]
    assert {hit["_id"] for hit in answer["hits"]} == ids
    assert answer["total"] == {"value": len(ids), "relation": "eq"}
    assert ask("/claimrev/_count", {"query": query})[1]["count"] == len(ids)


def scores(ask: Any, query: Any) -> dict[str, float]:
    return {hit["_id"]: hit["_score"] for hit in ask.search({"query": query})["hits"]["hits"]}


def test_scores_of_combinations(ask: Any) -> None:
    cars, night = scores(ask, CARS), scores(ask, NIGHT)
    assert scores(ask, {"bool": {"must": [CARS], "should": [NIGHT]}})["1.2"] == pytest.approx(
        cars["1.2"] + night["1.2"]
    )
    assert scores(ask, {"bool": {"must": [CARS], "filter": [NIGHT]}}) == {"1.2": cars["1.2"]}
    assert set(scores(ask, {"bool": {"filter": [CARS]}}).values()) == {0.0}
    assert set(scores(ask, {"bool": {"must_not": [CARS]}}).values()) == {0.0}
    assert set(scores(ask, {"match_all": {}}).values()) == {1.0}
    assert set(scores(ask, {"match_all": {"boost": 2.5}}).values()) == {2.5}
    assert set(scores(ask, {"constant_score": {"filter": CARS, "boost": 3}}).values()) == {3.0}
    assert set(scores(ask, {"ids": {"values": ["1.1"]}}).values()) == {1.0}
    assert scores(ask, {"match": {"text": {"query": "cars", "boost": 2}}})["1.1"] == pytest.approx(
        2 * cars["1.1"]
    )
    both = scores(ask, {"dis_max": {"queries": [CARS, NIGHT]}})
    assert both["1.2"] == pytest.approx(max(cars["1.2"], night["1.2"]))
    both = scores(ask, {"dis_max": {"queries": [CARS, NIGHT], "tie_breaker": 0.5}})
    low, high = sorted([cars["1.2"], night["1.2"]])
    assert both["1.2"] == pytest.approx(high + 0.5 * low)
    nested = {"bool": {"must": {"bool": {"should": CARS, "boost": 2}}, "boost": 3}}
    assert scores(ask, nested)["1.1"] == pytest.approx(6 * cars["1.1"])


def test_scores_of_several_fields(ask: Any) -> None:
    text, attacks = scores(ask, {"match": {"text": "cars"}}), scores(ask, {"match": {"attacks": "cars"}})
    fields = ["text", "attacks^2"]
    best = scores(ask, {"multi_match": {"query": "cars", "fields": fields}})
    most = scores(ask, {"multi_match": {"query": "cars", "fields": fields, "type": "most_fields"}})
    names = text.keys() | attacks.keys()
    assert best == pytest.approx({n: max(text.get(n, 0), 2 * attacks.get(n, 0)) for n in names})
    assert most == pytest.approx({n: text.get(n, 0) + 2 * attacks.get(n, 0) for n in names})


def test_window_total_and_lowest_score(ask: Any) -> None:
    everything = ask.ids({"match_all": {}})
    assert everything == [a["id"] for a in ARGUMENTS]
    assert ask.ids({"match_all": {}}, size=2, **{"from": 3}) == everything[3:5]
    assert ask.ids({"match_all": {}}, **{"from": 100}) == []
    answer = ask.search({"query": CARS, "size": 0})["hits"]
    assert answer == {"total": {"value": 3, "relation": "eq"}, "max_score": None, "hits": []}
    for counted, relation in ((2, "gte"), (3, "eq")):
        answer = ask.search({"query": CARS, "track_total_hits": counted})["hits"]
        assert answer["total"] == {"value": counted, "relation": relation}
    assert "total" not in ask.search({"query": CARS, "track_total_hits": False})["hits"]
    assert ask.search({"query": CARS}, "?rest_total_hits_as_int=true")["hits"]["total"] == 3
    found = ask.search({"query": CARS})["hits"]["hits"]
    answer = ask.search({"query": CARS, "min_score": found[1]["_score"]})["hits"]
    assert answer["hits"] == found[:2]
    assert answer["total"]["value"] == 2
    assert ask.search({})["hits"]["total"]["value"] == 6
    assert ask.search(None)["hits"]["total"]["value"] == 6


def test_the_total_is_counted_to_ten_thousand() -> None:
    assert total_of(10_000, Search("match", None)) == {"value": 10_000, "relation": "eq"}
    assert total_of(10_001, Search("match", None)) == {"value": 10_000, "relation": "gte"}
    assert total_of(10_001, Search("match", None, counted=None)) == {"value": 10_001, "relation": "eq"}


def test_the_order_of_the_index(ask: Any) -> None:
    for sort in ("_doc", ["_doc"], [{"_doc": "asc"}], [{"_doc": {"order": "asc"}}]):
        answer = ask.search({"query": CARS, "sort": sort, "size": 2})["hits"]
        hits = [(h["_id"], h["_score"], h["sort"]) for h in answer["hits"]]
        assert hits == [("1.1", None, [0]), ("1.2", None, [1])]
        assert answer["max_score"] is None
        assert answer["total"]["value"] == 3
    rest = ask.search({"query": CARS, "sort": "_doc", "search_after": [1]})["hits"]["hits"]
    assert [hit["_id"] for hit in rest] == ["2.2"]
    assert ask.search({"sort": ["_doc"], "search_after": [5]})["hits"]["hits"] == []
    by_score = [{"_score": {"order": "desc"}}, "_doc"]
    for sort in ("_score", ["_score"], [{"_score": "desc"}], by_score, [], None):
        assert ask.search({"query": CARS, "sort": sort})["hits"]["hits"][0]["_id"] == "2.2"
    assert ask.search({"query": CARS}, "?sort=_doc:asc")["hits"]["hits"][0]["_id"] == "1.1"


def test_nesting_is_bounded(ask: Any) -> None:
    query: Any = {"match_all": {}}
    for _ in range(20):
        query = {"bool": {"must": [query]}}
    assert len(ask.ids(query)) == 6
    assert "20" in ask.refusal({"query": {"bool": {"must": query}}})
    for deep in (b'{"query":' + b"[" * 200_000, b"[" * 200_000, b'{"bool":' * 100_000):
        assert "nested" in ask.refusal(deep)


def test_endless_scores_are_refused(ask: Any) -> None:
    query: Any = {"match_all": {"boost": 1e6}}
    for _ in range(8):
        query = {"bool": {"must": [query], "boost": 1e6}}
    assert "large" in ask.refusal({"query": query})


NOT_JSON = [b"{", b"nope", b'{"size":NaN}', b'{"size":1e999}', b'{"size":1,"size":2}', b"\xff"]


@pytest.mark.parametrize("body", NOT_JSON)
def test_bodies_that_are_not_json(ask: Any, body: bytes) -> None:
    assert "JSON" in ask.refusal(body)


WORD = st.sampled_from(["cars", "night", "buses", "trees", "absent", "don't"])
LEAF = st.builds(lambda f, w: {"match": {f: w}}, st.sampled_from(["text", "attacks"]), WORD)
QUERY = st.recursive(
    LEAF,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "must": st.lists(inner, max_size=3),
            "should": st.lists(inner, max_size=3),
            "must_not": st.lists(inner, max_size=2),
            "filter": st.lists(inner, max_size=2),
        },
    ).map(lambda clauses: {"bool": clauses}),
    max_leaves=12,
)
INDEX = TextIndex.build(
    ARGUMENTS, sorted({"id", "text", "attacks", "topic", "tags", "supports", "original", "references"})
)


def holds(query: Any, document: dict[str, Any]) -> bool:
    """Whether a document matches, by the rules of a boolean query."""
    (kind, body), *_ = query.items()
    if kind == "match":
        ((field, word),) = body.items()
        return word in tokens(document[field])
    must = body.get("must", []) + body.get("filter", [])
    should = body.get("should", [])
    if any(holds(q, document) for q in body.get("must_not", [])):
        return False
    return all(holds(q, document) for q in must) and (
        bool(must) or not should or any(holds(q, document) for q in should)
    )


@settings(max_examples=200, deadline=None)
@given(QUERY)
def test_nested_queries_match_what_their_rules_say(query: Any) -> None:
    found = INDEX.matching(Queries(INDEX, ()).read(query))
    assert found == [place for place, document in enumerate(ARGUMENTS) if holds(query, document)]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 20_000) | st.floats(allow_nan=False) | st.text(max_size=8)
    | st.sampled_from(["text", "_doc", "cars", "id.keyword", "text_embedding_stella"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from([
            "query", "knn", "size", "from", "_source", "sort", "min_score", "match", "bool", "must", "should", "filter",
            "terms", "term", "ids", "values", "text", "boost", "fields", "multi_match", "field", "query_vector", "k",
            "exists", "dis_max", "queries", "includes", "value", "track_total_hits", "minimum_should_match", "must_not",
        ]),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@pytest.fixture(scope="module")
def anything(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return asked(write(tmp_path_factory.mktemp("search")))


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["query", "knn", "size", "_source", "sort", "min_score", "from"]), ANYTHING
    )
)
def test_whatever_is_asked_there_is_an_answer_or_a_refusal(anything: Any, body: Any) -> None:
    status, content = anything("/claimrev/_search", body)
    assert status in (200, 400)
    assert ("hits" in content) == (status == 200)
