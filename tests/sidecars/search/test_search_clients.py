"""What real clients send, over HTTP: the official Python clients, and the requests of the baselines and of GenIRSim."""

from __future__ import annotations

import importlib
import json
import random
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.worlds.search_arguments import ARGUMENTS, DIMENSIONS, VECTOR_FIELDS

INDEX = "claimrev"


@pytest.fixture(params=["elasticsearch8", "elasticsearch9"])
def es(request: pytest.FixtureRequest, server: Any) -> Iterator[Any]:
    """An official client, with the address as participants are given it: up to the index, with a path."""
    module = importlib.import_module(request.param)
    client = module.Elasticsearch(f"{server.where}/arguments", max_retries=0)
    client.errors = module
    yield client
    client.close()


def test_python_baseline(es: Any) -> None:
    answer = es.search(
        index=INDEX,
        query={"match": {"attacks": {"query": "Buses could replace cars."}}},
        size=1,
        source_excludes=list(VECTOR_FIELDS),
    )
    (hit,) = answer["hits"]["hits"]
    assert (hit["_id"], hit["_source"]["text"]) == ("1.2", ARGUMENTS[1]["text"])
    assert isinstance(hit["_score"], float)
    assert not set(VECTOR_FIELDS) & set(hit["_source"])
    kind = answer.meta.headers["content-type"]
    assert kind.startswith("application/vnd.elasticsearch+json;compatible-with=")
    assert answer.meta.headers["x-elastic-product"] == "Elasticsearch"


def test_nearest_neighbours_without_size_or_source(es: Any) -> None:
    knn = {"field": VECTOR_FIELDS[0], "query_vector": [0.5] * DIMENSIONS, "k": 10, "num_candidates": 100}
    for answer in (es.search(index=INDEX, knn=knn), es.search(index=INDEX, body={"knn": knn})):
        hits = answer["hits"]["hits"]
        assert len(hits) == 6
        assert all(len(hit["_source"][field]) == DIMENSIONS for hit in hits for field in VECTOR_FIELDS)
        assert [hit["_score"] for hit in hits] == sorted((hit["_score"] for hit in hits), reverse=True)


def test_everything_else_that_clients_offer(es: Any) -> None:
    assert es.ping()
    assert es.info()["version"]["number"].startswith("8.")
    assert es.cluster.health()["status"] == "green"
    assert es.indices.exists(index=INDEX)
    assert not es.indices.exists(index="other")
    mapping = es.indices.get_mapping(index=INDEX)[INDEX]["mappings"]["properties"]
    assert mapping["text_embedding_stella"]["dims"] == DIMENSIONS
    assert mapping["text"]["type"] == "text"
    assert INDEX in es.indices.get(index=INDEX)
    assert es.count(index=INDEX, query={"match": {"text": "cars"}})["count"] == 3
    assert es.count(index=INDEX)["count"] == 6
    trams = {"text": ARGUMENTS[5]["text"]}
    assert es.get(index=INDEX, id="10104.4", source_includes=["text"])["_source"] == trams
    assert es.get_source(index=INDEX, id="1.1", source_includes="id") == {"id": "1.1"}
    assert es.exists(index=INDEX, id="1.1")
    assert not es.exists(index=INDEX, id="1.9")
    with pytest.raises(es.errors.NotFoundError) as caught:
        es.get(index=INDEX, id="1.9")
    assert caught.value.body == {"_index": INDEX, "_id": "1.9", "found": False}
    assert es.search(query={"match": {"text": "trams"}})["hits"]["total"]["value"] == 1
    assert es.search(index=INDEX, query={"match_all": {}}, from_=4, size=5)["hits"]["hits"][0]["_id"] == "2.2"


def test_several_searches_at_once(es: Any) -> None:
    trams = {"query": {"match": {"text": "trams"}}, "_source": False}
    searches = [{"index": INDEX}, trams, {}, {"query": {"fuzzy": {}}}, {"index": "other"}, {}]
    responses = es.msearch(index=INDEX, searches=searches)["responses"]
    assert [r["status"] for r in responses] == [200, 400, 404]
    assert responses[0]["hits"]["hits"][0]["_id"] == "10104.4"
    assert responses[1]["error"]["type"] == "parsing_exception"


def test_neighbours_of_several_searches_at_once_are_those_of_each_alone(es: Any) -> None:
    dice = random.Random(7)

    def near() -> dict[str, Any]:
        field = dice.choice(("attacks_embedding_stella", "text_embedding_stella"))
        vector = [dice.gauss(0, 1) for _ in range(4)]
        return {"field": field, "query_vector": vector, "k": dice.randrange(1, 7)}

    bodies: list[dict[str, Any]] = [
        {"knn": [near() for _ in range(1 + n % 3)], "_source": False} for n in range(24)
    ]
    bodies[3]["knn"][0]["filter"] = {"match": {"text": "night"}}
    bodies[5] = {"query": {"fuzzy": {}}}
    bodies[7]["query"] = {"match": {"text": "trams"}}
    searches = [line for body in bodies for line in ({}, body)]
    responses = es.msearch(index=INDEX, searches=searches)["responses"]
    assert responses.pop(5)["status"] == 400
    del bodies[5]
    assert [one["hits"] for one in responses] == [es.search(index=INDEX, **body)["hits"] for body in bodies]


def test_refusals_are_the_errors_that_clients_know(es: Any) -> None:
    errors = es.errors
    with pytest.raises(errors.NotFoundError) as caught:
        es.search(index="other", query={"match_all": {}})
    assert caught.value.error == "index_not_found_exception"
    with pytest.raises(errors.BadRequestError) as caught:
        es.search(index=INDEX, query={"query_string": {"query": "cars"}})
    assert caught.value.error == "parsing_exception"
    assert "[query_string]" in caught.value.body["error"]["reason"]
    for refused in (
        lambda: es.search(index=INDEX, aggs={"n": {"terms": {"field": "tags.keyword"}}}),
        lambda: es.search(index=INDEX, q="cars"),
        lambda: es.search(index=INDEX, scroll="1m"),
        lambda: es.search(index=INDEX, sort=[{"id.keyword": "asc"}]),
        lambda: es.index(index=INDEX, id="1", document={}),
        lambda: es.indices.delete(index=INDEX),
        lambda: es.indices.create(index="mine"),
        lambda: es.bulk(operations=[{"delete": {"_index": INDEX, "_id": "1.1"}}]),
        lambda: es.open_point_in_time(index=INDEX, keep_alive="1m"),
        lambda: es.cat.indices(),
    ):
        with pytest.raises(errors.ApiError) as caught:
            refused()
        assert caught.value.status_code in (400, 404, 405)
        assert caught.value.body["error"]["reason"]
    assert es.count(index=INDEX)["count"] == 6


def fetch(address: str, body: Any = None, method: str | None = None, **headers: str) -> tuple[int, Any, Any]:
    """One request, as a client writes it who knows nothing of Elasticsearch: (status, headers, JSON)."""
    raw = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
    sent = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    request = urllib.request.Request(
        address, data=raw, headers=sent if raw is not None else headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read() or b"null")


def test_javascript_baseline(server: Any) -> None:
    body = {
        "query": {"match": {"attacks": {"query": "Buses could replace cars."}}},
        "_source": {"excludes": list(VECTOR_FIELDS)},
    }
    status, headers, answer = fetch(f"{server.where}/arguments/claimrev/_search?size=1", body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert set(answer) == {"took", "timed_out", "_shards", "hits"}
    assert answer["_shards"] == {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    assert answer["timed_out"] is False
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["1.2"]
    status, _, answer = fetch(
        f"{server.where}/arguments/claimrev/_search?size=1", {"query": {"nonsense": {}}}
    )
    assert (status, answer["status"]) == (400, 400)
    assert "error" in answer


def test_the_page_of_the_task(server: Any) -> None:
    body = {"query": {"match": {"supports": {"query": "cars", "operator": "or"}}}}
    status, _, answer = fetch(f"{server.where}/arguments/claimrev/_search?pretty&size=10", body)
    assert (status, len(answer["hits"]["hits"])) == (200, 3)
    request = urllib.request.Request(f"{server.where}/arguments/claimrev/_search?pretty&size=0")
    with urllib.request.urlopen(request, timeout=20) as plain:
        assert plain.read().startswith(b'{\n  "took": ')


def test_genirsim_and_a_body_in_a_get(server: Any) -> None:
    query = {"multi_match": {"query": "cars", "fields": ["text", "attacks"]}}
    body: dict[str, Any] = {"query": query, "_source": ["id", "text"]}
    status, _, answer = fetch(f"{server.where}/arguments/claimrev/_search?size=2", body)
    assert status == 200
    assert [set(hit["_source"]) for hit in answer["hits"]["hits"]] == [{"id", "text"}] * 2
    body = {"query": {"match": {"text": "trams"}}}
    status, _, answer = fetch(f"{server.where}/claimrev/_search", body, "GET")
    assert (status, answer["hits"]["hits"][0]["_id"]) == (200, "10104.4")


@pytest.mark.parametrize("version", ["8", "9"])
def test_the_answer_has_the_type_that_was_asked_for(server: Any, version: str) -> None:
    kind = f"application/vnd.elasticsearch+json; compatible-with={version}"
    for address, status in (("claimrev/_search", 200), ("other/_search", 404)):
        found, headers, _ = fetch(f"{server.where}/arguments/{address}", {}, Content_Type=kind, Accept=kind)
        assert found == status
        assert headers["content-type"].replace(" ", "") == kind.replace(" ", "")
        assert headers["x-elastic-product"] == "Elasticsearch"


def test_other_types_are_refused(server: Any) -> None:
    where = f"{server.where}/claimrev/_search"
    for kind in ("text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "application/cbor"):
        status, headers, answer = fetch(where, {}, Content_Type=kind)
        assert (status, answer["status"]) == (406, 406)
        assert f"[{kind}]" in answer["error"]["reason"]
        assert headers["x-elastic-product"] == "Elasticsearch"
    kind = "application/vnd.elasticsearch+json; compatible-with=7"
    assert fetch(where, {}, Content_Type=kind, Accept=kind)[0] == 400
