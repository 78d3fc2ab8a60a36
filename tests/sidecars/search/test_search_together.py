from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from sidecars.search.api import Answer, Api, Call
from sidecars.search.app import application
from sidecars.search.prepared import open_collection
from sidecars.search.together import TOGETHER
from sidecars.search.vectors import Matrix
from tests.worlds.search_arguments import ARGUMENTS, write

FIELD = "text_embedding_stella"
MANY = TOGETHER + 4


class Held(Matrix):
    """Its first reading waits until it is let go. Notes how many vectors each reading was for."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sizes: list[int] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.fails = False

    def estimates(self, queries: Any, *args: Any, **more: Any) -> Any:
        """What the matrix estimates, or MemoryError where it ``fails``."""
        self.sizes.append(len(queries))
        if not self.begun.is_set():
            self.begun.set()
            assert self.go.wait(60)
        if self.fails:
            raise MemoryError
        return super().estimates(queries, *args, **more)


class Paced(Matrix):
    """Each reading ends once all that the one before it served have returned. Every third fails."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sizes: list[int] = []
        self.returned, self.more = 0, threading.Condition()
        self.patience = 60

    def estimates(self, queries: Any, *args: Any, **more: Any) -> Any:
        """Return the estimates. Raises MemoryError for every third reading, TimeoutError if a reader does not return."""
        served = sum(self.sizes)
        self.sizes.append(len(queries))
        with self.more:
            if not self.more.wait_for(lambda: self.returned >= served, self.patience):
                self.patience = 0
                raise TimeoutError(f"{served} were served, {self.returned} of them returned")
        if len(self.sizes) % 3 == 0:
            raise MemoryError
        return super().estimates(queries, *args, **more)

    def left(self) -> None:
        """Somebody returned."""
        with self.more:
            self.returned += 1
            self.more.notify_all()


def call(vector: Any) -> Call:
    body = {"knn": {"field": FIELD, "query_vector": vector, "k": 3}}
    return Call("POST", "/_search", body=json.dumps(body).encode(), content_type="application/json")


class Queue(threading.Semaphore):
    """Held by those who work; says when so many gave it back to wait."""

    def __init__(self, many: int) -> None:
        super().__init__(1)
        self.left, self.all = many, threading.Event()

    def release(self, n: int = 1) -> None:
        """Give it back."""
        self.left -= n
        if self.left <= 0:
            self.all.set()
        super().release(n)


def asked(folder: Path, *, fails: bool) -> tuple[list[Any], list[Any], list[int]]:
    """Ask many questions while the matrix is being read.

    Returns the answers, or what was raised; the answers to each question alone; and the size of each reading.
    """
    dice = np.random.default_rng(3)
    calls = [call(vector.tolist()) for vector in dice.standard_normal((MANY + 1, 4))]
    with open_collection(write(folder)) as collection:
        alone = [Api(collection, "claimrev").answer(one).content["hits"] for one in calls]
        held = Held.open(folder / f"{FIELD}.npy", len(ARGUMENTS))
        collection.matrices = {**collection.matrices, FIELD: held}
        api = Api(collection, "claimrev")
        waiting = Queue(MANY + 1)
        api.together.working = waiting

        def answer(one: Call) -> Any:
            with waiting:
                try:
                    return api.answer(one).content["hits"]
                except MemoryError as error:
                    return error

        with ThreadPoolExecutor(MANY + 1) as pool:
            try:
                first = pool.submit(answer, calls[0])
                assert held.begun.wait(60)
                others = [pool.submit(answer, one) for one in calls[1:]]
                assert waiting.all.wait(60)
                held.fails = fails
            finally:
                held.go.set()
            return [one.result(60) for one in (first, *others)], alone, held.sizes


def test_who_comes_while_a_matrix_is_read_shares_the_next_reading_and_gets_what_it_would_alone(
    tmp_path: Path,
) -> None:
    found, alone, sizes = asked(tmp_path / "data", fails=False)
    assert found == alone
    assert sizes == [1, TOGETHER, MANY - TOGETHER]


def test_an_error_while_a_matrix_is_read_reaches_each_that_waits_for_it(tmp_path: Path) -> None:
    found, _, _ = asked(tmp_path / "data", fails=True)
    assert [type(one) for one in found] == [MemoryError] * (MANY + 1)


def test_what_waits_for_neighbours_keeps_nobody_from_working(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with open_collection(write(folder)) as collection:
        held = Held.open(folder / f"{FIELD}.npy", len(ARGUMENTS))
        collection.matrices = {**collection.matrices, FIELD: held}
        api = Api(collection, "claimrev", threads=1)

        def answer(one: Call) -> int:
            with api.working:
                return api.answer(one).status

        with ThreadPoolExecutor(2) as pool:
            try:
                near = pool.submit(answer, call([1, 2, 3, 4]))
                assert held.begun.wait(60)
                count = Call("GET", "/claimrev/_count")
                assert pool.submit(answer, count).result(60) == 200
                assert not near.done()
            finally:
                held.go.set()
            assert near.result(60) == 200


def test_whoever_a_reading_served_returns_before_the_next_ends_also_where_some_fail(tmp_path: Path) -> None:
    """A closed loop: who returned asks again at once."""
    folder, dice, clients, rounds = tmp_path / "data", np.random.default_rng(5), 6, 20
    calls = [call(vector.tolist()) for vector in dice.standard_normal((clients, 4))]
    with open_collection(write(folder)) as collection:
        alone = [Api(collection, "claimrev").answer(one).content["hits"] for one in calls]
        paced = Paced.open(folder / f"{FIELD}.npy", len(ARGUMENTS))
        collection.matrices = {**collection.matrices, FIELD: paced}
        api = Api(collection, "claimrev", threads=2)

        def ask(one: Call) -> list[Any]:
            found = []
            for _ in range(rounds):
                with api.working:
                    try:
                        found.append(api.answer(one).content["hits"])
                    except MemoryError:
                        found.append(None)
                    paced.left()
            return found

        with ThreadPoolExecutor(clients) as pool:
            found = list(pool.map(ask, calls, timeout=120))
    for some, hits in zip(found, alone, strict=True):
        assert all(one in (None, hits) for one in some)
    failed = sum(some.count(None) for some in found)
    assert sum(paced.sizes) == clients * rounds
    assert failed == sum(paced.sizes[2::3]) > 0


class Slow:
    """Answers searches only when it is let go, and says whether it is there at once."""

    def __init__(self) -> None:
        self.threads, self.working = 1, threading.Semaphore(1)
        self.go = threading.Event()
        self.asked: list[str] = []

    def answer(self, call: Call) -> Answer:
        self.asked.append(call.path)
        if call.path != "/healthz":
            assert self.go.wait(20)
        return Answer(200, {"path": call.path})


def test_health_is_told_while_every_thread_is_busy() -> None:
    async def main(api: Any) -> None:
        transport = httpx2.ASGITransport(application(api))
        async with httpx2.AsyncClient(transport=transport, base_url="http://search") as client:
            searches = [asyncio.create_task(client.post("/claimrev/_search", json={})) for _ in range(3)]
            while "/claimrev/_search" not in api.asked:
                await asyncio.sleep(0.01)
            health = await asyncio.wait_for(client.get("/healthz"), 10)
            assert (health.status_code, health.json()) == (200, {"path": "/healthz"})
            assert health.headers["X-Elastic-Product"] == "Elasticsearch"
            assert not any(one.done() for one in searches)
            api.go.set()
            assert [one.status_code for one in await asyncio.gather(*searches)] == [200] * 3

    api = Slow()
    try:
        asyncio.run(main(api))
    finally:
        api.go.set()
