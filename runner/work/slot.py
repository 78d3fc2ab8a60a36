"""A slot for what takes long, such as the registration of a software: one at a time, beside the clerk, who never waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from runner.work.checks import Later


class Slot:
    """The slot. What it did is asked for by the id of a request; nothing is kept on the disk, as everything can be done again."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "slot")
        self._job: tuple[str, Future[Mapping[str, Any]]] | None = None

    def has(self, id: str) -> bool:
        """Whether a request is being done, or was and nobody has asked for it since."""
        return self._job is not None and self._job[0] == id

    def of(self, id: str, job: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """What ``job`` gave for a request, or raises what it raised; Later until then, or while another one is being done."""
        if self._job is None:
            self._job = (id, self._threads.submit(job))
        known, future = self._job
        if known != id or not future.done():
            if known != id and future.done():  # its request went away
                self._job = None
            raise Later
        self._job = None
        return future.result()

    def close(self) -> None:
        """Wait for what is being done."""
        self._threads.shutdown()
