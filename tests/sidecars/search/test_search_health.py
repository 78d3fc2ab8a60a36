"""The server answers about its health while its threads are busy."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx2

from sidecars.search.api import Answer, Call
from sidecars.search.app import application


class Slow:
    """Answers searches only when it is let go, and says whether it is there at once."""

    def __init__(self) -> None:
        self.threads = 1
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
