"""A stream that keeps moving, or is given up: for what is sent to the engine.

While somebody fills a volume the engine holds that container's lock: nobody can look at it, remove it or remove its image until
the sender is done or gone. So a sender whose source hangs (a disk that is away, a pipe that nobody writes to) must go.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import TypeVar

from runner.model.errors import PlatformError

T = TypeVar("T")

STALL = 120.0  # seconds without a single chunk
AHEAD = 4  # chunks that are read ahead of what was sent


def moving(chunks: Iterator[T], doing: str, *, stall: float = STALL, seconds: float) -> Generator[T]:
    """``chunks`` as they come, read by a thread of their own.

    Raises :class:`PlatformError` when none comes for ``stall`` seconds, or after ``seconds`` in all; and whatever ``chunks`` raises.
    The thread ends with the next chunk then; one that hangs for good holds nothing of the engine, and no process back.
    """
    ready: queue.Queue[T | BaseException | None] = queue.Queue(AHEAD)
    over = threading.Event()

    def put(item: T | BaseException | None) -> None:
        while not over.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.2)
                return

    def read() -> None:
        try:
            for chunk in chunks:
                put(chunk)
                if over.is_set():
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001  (a thread's border: raised again where it is used)
            put(error)

    threading.Thread(target=read, name="reads ahead", daemon=True).start()
    end = time.monotonic() + seconds
    try:
        while True:
            left = min(stall, end - time.monotonic())
            try:
                item = ready.get(timeout=max(0.0, left))
            except queue.Empty:
                raise PlatformError(
                    f"{doing} stood still and was given up",
                    why=f"Nothing could be read for {stall:g} s."
                    if left == stall
                    else f"It was not done after {seconds:g} s.",
                    fix="look at the disk that the files are on",
                ) from None
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
