"""What is wrong with the organiser's data of one dataset, and how much of what it holds: for organisers only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

KEPT, KEPT_WARNINGS = 5, 1  # of one sort in one file; all are counted
_EVERY = 2.0  # seconds between two lines of progress


class DataReport:
    """Collects problems (``grave`` ones make scores wrong) with file and line, and statistics.

    Of one sort in one file the first :data:`KEPT` are kept (one of those that are not grave), and all are counted. Texts may name ids, and nothing else that
    stands in truths.
    """

    def __init__(self) -> None:
        self.statistics: dict[str, Any] = {"topics": None, "documents": None, "truths": []}
        self._found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def add(
        self, sort: str, file: str, line: int | None, what: str, fix: str = "", *, grave: bool = True
    ) -> None:
        """Note a problem of a sort, with the file as the dataset's folder knows it (``truths/qrels.txt``)."""
        key = (sort, file)
        self._counts[key] = self._counts.get(key, 0) + 1
        found = self._found.setdefault(key, [])
        if len(found) < (KEPT if grave else KEPT_WARNINGS):
            found.append({"file": file, "line": line, "what": what, "fix": fix, "grave": grave})

    def as_json(self) -> dict[str, Any]:
        """``statistics`` and ``problems`` in the order of files and lines; the last kept of a sort says how many more."""
        problems = []
        for key, found in self._found.items():
            more = self._counts[key] - len(found)
            last = found[-1]
            rest = f" (and {more:,} more like it)" if more else ""
            problems += [*found[:-1], {**last, "what": last["what"] + rest}]
        problems.sort(key=lambda one: (one["file"], one["line"] or 0))
        return {"statistics": self.statistics, "problems": problems}


def progress(name: str) -> Callable[[float], None]:
    """A listener that says on stderr, every few seconds, how far the reading of the file ``name`` is."""
    started = said = time.monotonic()

    def heard(share: float) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= _EVERY and share > 0:
            said = now
            left = (now - started) * (1 - share) / share
            sys.stderr.write(f"reading {name}: {share:.0%}, about {left:.0f} s left\n")
            sys.stderr.flush()

    return heard
