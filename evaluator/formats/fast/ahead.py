"""Looking at blocks ahead of the reader, in two threads where there are two processors for it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator

import numpy as np

from evaluator.formats.blocks import Block
from evaluator.formats.fast.block import Judged, examine
from evaluator.formats.fast.words import Unusual
from evaluator.formats.ranked import Examined, Rules

_MOST = 2  # threads; the work that only one can do at a time would keep a third waiting

# Freed at once. The C library then keeps as much freed memory as that for what comes next; else it would give that of
# every block back to the system, which costs more than computing with it.
_KEPT = 24 << 20


def threads() -> int:
    """How many threads look at blocks: ``OMP_NUM_THREADS`` (1 in our image) or as many as there are processors, at most two."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(_MOST, int(wanted) if wanted.isdecimal() and int(wanted) else _processors())


def _processors() -> int:
    """How many processors this process may use, or as many as there are where the system (macOS) does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_lines(data: bytes, start: int, end: int) -> int:
    """How many lines end in ``data[start:end]``."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8)[start:end] == 10))


class Looking:
    """Looks at blocks of one run, in one thread where ``alone``; see :class:`evaluator.formats.trec_lines.Ahead`."""

    def __init__(self, rules: Rules, *, alone: bool = False) -> None:
        self._rules, self._judged = rules, Judged(rules)
        self._threads = 1 if alone else threads()

    def __call__(self, blocks: Iterator[Block]) -> Generator[tuple[Block, Examined | None]]:
        """The blocks in order, with what each says; None where there is anything unusual in it."""
        np.empty(_KEPT, dtype=np.uint8)
        many = self._threads
        if many < 2:
            yield from ((block, self._look(block)) for block in blocks)
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        waiting: deque[tuple[Block, Future[Examined | None]]] = deque()
        pool = ThreadPoolExecutor(many)
        try:
            for block in blocks:
                waiting.append((block, pool.submit(self._look, block)))
                if len(waiting) > many:
                    first, examined = waiting.popleft()
                    yield first, examined.result()
            for block, examined in waiting:
                yield block, examined.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _look(self, block: Block) -> Examined | None:
        try:
            return examine(block.data, block.lines, self._rules, self._judged)
        except Unusual:
            return None
