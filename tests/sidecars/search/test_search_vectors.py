from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.search import vectors
from sidecars.search.errors import DataError
from sidecars.search.requests import Nearest, Search
from sidecars.search.searching import TOGETHER, parts_of
from sidecars.search.vectors import Matrix, inverse_lengths
from tests.worlds.search_arguments import ARGUMENTS, write
from tests.worlds.search_parts import asked, words

FIELD = "text_embedding_stella"
VALUES = st.floats(-8, 8, width=16)


def matrix(rows: Any, dtype: str = "f4") -> Matrix:
    values = np.array(rows, dtype=dtype)
    return Matrix(values, inverse_lengths(values))


def test_the_score_is_one_plus_the_cosine_halved(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    rows = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 2, 0, 0], [-3, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    np.save(folder / f"{FIELD}.npy", np.array(rows, dtype="f4"))
    ask = asked(folder).search
    knn = {"field": FIELD, "query_vector": [2, 0, 0, 0], "k": 10, "num_candidates": 100}
    hits = ask({"knn": knn})["hits"]
    # cosines 1, 1, sqrt(1/2), 0, -1; the row of zeros has no vector
    assert [(hit["_id"], hit["_score"]) for hit in hits["hits"]] == [
        ("1.1", 1.0),
        ("10104.4", 1.0),
        ("1.2", pytest.approx(0.8535534, rel=1e-6)),
        ("1.3", 0.5),
        ("2.1", 0.0),
    ]
    assert hits["total"] == {"value": 5, "relation": "eq"}
    assert hits["max_score"] == 1.0
    every = ask({"query": {"match_all": {}}})["hits"]["hits"]
    assert [FIELD in hit["_source"] for hit in every] == [True, True, True, True, False, True]


@settings(max_examples=100, deadline=None)
@given(
    data=st.data(),
    count=st.integers(1, 30),
    dimensions=st.integers(1, 5),
    k=st.integers(1, 35),
    dtype=st.sampled_from(["f2", "f4"]),
)
def test_the_nearest_are_those_of_brute_force(
    data: Any, count: int, dimensions: int, k: int, dtype: str
) -> None:
    rows = data.draw(
        st.lists(st.lists(VALUES, min_size=dimensions, max_size=dimensions), min_size=count, max_size=count)
    )
    query = data.draw(st.lists(VALUES, min_size=dimensions, max_size=dimensions).filter(any))
    among = data.draw(
        st.none() | st.sets(st.integers(0, count - 1)).map(lambda s: np.array(sorted(s), dtype=np.int64))
    )
    found = matrix(rows, dtype).nearest(np.array(query, dtype="f4"), k, among)
    wide = np.array(rows, dtype=dtype).astype("f8")
    squares = (wide.astype("f4") ** 2).sum(axis=1)
    expected = [
        (i, float(wide[i] @ np.array(query) / np.linalg.norm(wide[i]) / np.linalg.norm(query)))
        for i in (range(count) if among is None else among)
        if squares[i] > 0
    ]
    assert len(found) == min(k, len(expected))
    by_place = dict(expected)
    assert [c for _, c in found] == pytest.approx([by_place[i] for i, _ in found], abs=1e-6)
    assert [c for _, c in found] == pytest.approx(sorted(by_place.values(), reverse=True)[:k], abs=1e-6)


def test_equal_vectors_have_equal_scores_wherever_they_lie() -> None:
    random = np.random.default_rng(3)
    rows = random.standard_normal((5000, 64)).astype("f4")
    same = list(range(5, 5000, 37))
    rows[same] = rows[5]
    found = matrix(rows).nearest(rows[5], 100)
    assert [place for place, _ in found] == same[:100]
    assert {cosine for _, cosine in found} == {found[0][1]}


def test_a_filter_is_applied_before_the_k_nearest_are_chosen(ask: Any) -> None:
    knn = {"field": FIELD, "query_vector": [1, 2, 3, 4], "k": 2, "num_candidates": 10}
    roads = {"term": {"topic.keyword": "Should roads be narrower?"}}
    body = {"knn": {**knn, "filter": roads}, "_source": False}
    hits = ask.search(body)["hits"]["hits"]
    assert {hit["_id"] for hit in hits} == {"2.1", "2.2"}
    body["knn"]["filter"] = [{"match": {"topic": "roads"}}, {"exists": {"field": "tags"}}]
    assert [hit["_id"] for hit in ask.search(body)["hits"]["hits"]] == ["2.1"]


def test_query_and_knn_together_add_their_scores(ask: Any) -> None:
    query = {"match": {"text": "cars"}}
    knn = {"field": FIELD, "query_vector": [1, 2, 3, 4], "k": 3, "num_candidates": 10, "boost": 0.5}
    words = {h["_id"]: h["_score"] for h in ask.search({"query": query})["hits"]["hits"]}
    near = {h["_id"]: h["_score"] for h in ask.search({"knn": knn})["hits"]["hits"]}
    both = ask.search({"query": query, "knn": knn})["hits"]
    expected = {name: words.get(name, 0) + near.get(name, 0) for name in words.keys() | near.keys()}
    assert {h["_id"]: h["_score"] for h in both["hits"]} == pytest.approx(expected, rel=1e-6)
    scores = [h["_score"] for h in both["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert both["total"]["value"] == len(expected)
    # Cut to one hit: the neighbours still have the score of their match.
    first = ask.search({"query": query, "knn": knn, "size": 1})["hits"]
    assert first["hits"] == both["hits"][:1]
    assert first["total"] == both["total"]


def test_several_knn_are_added(ask: Any) -> None:
    one = {"field": FIELD, "query_vector": [1, 2, 3, 4], "k": 6, "num_candidates": 10}
    two = {"field": "attacks_embedding_stella", "query_vector": [4, 3, 2, 1], "k": 6, "num_candidates": 10}
    scores = [
        {h["_id"]: h["_score"] for h in ask.search({"knn": k})["hits"]["hits"]}
        for k in (one, two, [one, two])
    ]
    assert scores[2] == pytest.approx(
        {name: scores[0][name] + scores[1][name] for name in scores[0]}, rel=1e-6
    )


def test_least_similarity_and_number_of_neighbours(ask: Any) -> None:
    knn = {"field": FIELD, "query_vector": [1, 2, 3, 4], "k": 6, "num_candidates": 10}
    scores = [h["_score"] for h in ask.search({"knn": knn})["hits"]["hits"]]
    similar = ask.search({"knn": {**knn, "similarity": 0.0}})["hits"]["hits"]
    assert [h["_score"] for h in similar] == [s for s in scores if s >= 0.5]
    assert 0 < len(similar) < len(scores)
    k_is_the_size = ask.search({"knn": {"field": FIELD, "query_vector": [1, 2, 3, 4]}, "size": 3})["hits"]
    assert len(k_is_the_size["hits"]) == k_is_the_size["total"]["value"] == 3


def test_a_half_precision_vector_comes_back_as_it_is_stored(
    asking: Callable[..., Any], tmp_path: Path
) -> None:
    ask = asking(dtype="f2")
    rows = np.load(tmp_path / "data0" / f"{FIELD}.npy")
    hits = ask.search({"query": {"match_all": {}}})["hits"]["hits"]
    assert [hit["_source"][FIELD] for hit in hits] == rows.tolist()


# A file with other numbers, and the values that the error names. None is a file without any.
UNUSABLE: list[tuple[Any, set[str]]] = [
    (np.zeros((6, 4), "f8"), {"float64"}),
    (np.zeros((6, 4), ">f4"), {">f4"}),
    (np.zeros(6, "f4"), {"shape", "6"}),
    (np.asfortranarray(np.zeros((6, 4), "f4")), {"shape", "6", "4"}),
    (np.zeros((5, 4), "f4"), {"5", "6"}),
    (np.zeros((6, 0), "f4"), {"0", "4096"}),
    (np.array([{}] * 6), {".npy"}),
    (None, {".npy"}),
]


@pytest.mark.parametrize(("rows", "values"), UNUSABLE)
def test_matrices_that_cannot_be_used(tmp_path: Path, rows: Any, values: set[str]) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY")
    if rows is not None:
        np.save(tmp_path / "a.npy", rows, allow_pickle=True)
    with pytest.raises(DataError) as caught:
        Matrix.open(tmp_path / "a.npy", len(ARGUMENTS))
    assert words(caught.value) >= values, caught.value


def test_the_fingerprint_notices_a_change_anywhere_in_a_small_file(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = random.standard_normal((200, 64)).astype("f4")
    seen = set()
    for place in (None, 0, 77, 199):
        changed = rows.copy()
        if place is not None:
            changed[place, 3] += 1
        np.save(tmp_path / "a.npy", changed)
        seen.add(vectors.fingerprint(tmp_path / "a.npy"))
    assert len(seen) == 4


def test_what_this_processor_multiplies_is_looked_at_before_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dice = np.random.default_rng(7)
    rows, query = dice.standard_normal((600, 64)).astype("f2"), dice.standard_normal(64).astype("f4")
    look, multiply = vectors.exact_enough.__wrapped__, vectors.by_numkong
    found = matrix(rows, "f2").nearest(query, 5)
    assert look()
    monkeypatch.setattr(vectors, "by_numkong", lambda queries: lambda of: multiply(queries)(of) * 1.002)
    assert not look()
    monkeypatch.setattr(vectors, "numkong", None)  # no wheel for this machine
    monkeypatch.setattr(vectors, "exact_enough", look)
    of = matrix(rows, "f2")
    assert of.nearest(query, 5) == found
    assert of.nearest(query, 5, estimates=of.estimates([query, -query])[0]) == found


@pytest.mark.parametrize("together", [1, 3])  # vectors whose neighbours are looked for at once
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_the_first_are_the_first_of_all_also_where_estimates_are_in_another_order(
    dtype: str, together: int
) -> None:
    dice = np.random.default_rng(7)
    query = dice.standard_normal(1024).astype("f4")
    rows = (query + (1.0 if dtype == "f2" else 0.01) * dice.standard_normal((3000, 1024))).astype(dtype)
    of = matrix(rows, dtype)
    [*_, line] = of.estimates([query] * together)
    every = of.nearest(query, len(rows), estimates=line)
    assert sorted(every, key=lambda one: (-one[1], one[0])) == every
    sizes, by_estimate = [1, 7, *range(1000, 2000, 50)], np.argsort(-line, kind="stable")
    assert any({*by_estimate[:k].tolist()} != {place for place, _ in every[:k]} for k in sizes)
    for k in sizes:
        assert of.nearest(query, k, estimates=line) == every[:k]
    least = every[20][1]
    assert of.nearest(query, 100, at_least=least, estimates=line) == every[:21]


def test_estimates_of_small_and_large_numbers_are_as_near_as_is_said() -> None:
    dice = np.random.default_rng(7)
    rows = np.sign(dice.standard_normal((600, 4096))) * 10.0 ** dice.uniform(-7.5, 4.5, (600, 1))
    rows = (rows * dice.uniform(0.2, 1, rows.shape)).astype("f2")
    query = (np.sign(rows[3]) * 10.0 ** dice.uniform(-9, 0, 4096)).astype("f4")
    wide, of = rows.astype("f8"), matrix(rows, "f2")
    wide /= np.where((wide != 0).any(axis=1), np.linalg.norm(wide, axis=1), 1)[:, None]
    exact = wide @ (query / np.linalg.norm(query.astype("f8")))
    for line in of.estimates([query])[0], of.estimates([query] * 2)[1]:
        has = line != -2
        assert has.sum() > 550
        assert np.abs(line - exact)[has].max() < vectors.MARGIN


@pytest.mark.parametrize("alone", [0, vectors.ALONE])  # read by two threads, by one
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_the_nearest_to_several_vectors_are_those_to_each_bit_for_bit(
    dtype: str, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "ALONE", alone)
    dice = np.random.default_rng(3)
    rows = dice.standard_normal((1500, 64)).astype(dtype)
    rows[700:710] = rows[20]  # equal ones, in several blocks
    rows[5] = 0
    of, queries = matrix(rows, dtype), [*dice.standard_normal((9, 64), dtype="f4"), rows[20].astype("f4")]
    together = of.estimates(queries)
    for query, line in zip(queries, together, strict=True):
        assert of.nearest(query, 15, estimates=line) == of.nearest(query, 15)
    assert together.shape == (10, 1500) and (together[:, 5] == -2).all()


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_neighbours_of_many_vectors_take_four_bytes_a_row_and_vector(dtype: str) -> None:
    dice = np.random.default_rng(3)
    of, queries = matrix(dice.standard_normal((40_000, 8)), dtype), [*dice.standard_normal((16, 8), "f4")]
    tracemalloc.start()
    try:
        of.estimates(queries)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * 40_000 * 16


def test_searches_are_looked_for_together_up_to_so_many_vectors() -> None:
    def of(count: int) -> Search:
        vector = np.ones(4, dtype="f4")
        return Search("knn", None, tuple(Nearest(FIELD, vector, 2, None, -1.0, 1.0) for _ in range(count)))

    for counts, expected in (
        ((8, 7, 8), 15),
        ((8, 8, 1), TOGETHER),
        ((TOGETHER + 1, 1), TOGETHER + 1),
        ((1,) * 20, TOGETHER),
    ):
        assert len(parts_of([of(count) for count in counts])) == expected, counts
