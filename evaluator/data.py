"""What is wrong with the organiser's data of one dataset, and how much of what it holds: for organisers only."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evaluator.errors import EvaluatorError
from schemas import show

KEPT, KEPT_WARNINGS = 5, 1  # of one sort in one file; all are counted
_PLACE = re.compile(r"([^:\s]+):(\d+):? +(.*)", re.DOTALL)
_EVERY = 2.0  # seconds between two lines of progress


class DataReport:
    """Collects problems (``grave`` ones make scores wrong) with file and line, and statistics.

    Of one sort in one file the first :data:`KEPT` are kept (one of those that are not grave), and all are counted. Texts may name ids, and nothing else that
    stands in truths.
    """

    def __init__(self) -> None:
        self.statistics: dict[str, Any] = {"topics": None, "documents": None, "truths": []}
        self.nouns: dict[str, str] = {}  # what the kind calls a topic, a document, a judgment, a grade
        self._found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def add(
        self, sort: str, file: str, line: int | None, what: str, fix: str = "", *, grave: bool = True
    ) -> None:
        """Note a problem of a sort, with the file as the dataset knows it (``truths/qrels.txt``), or ``task/task.yaml``."""
        key = (sort, file)
        self._counts[key] = self._counts.get(key, 0) + 1
        found = self._found.setdefault(key, [])
        if len(found) < (KEPT if grave else KEPT_WARNINGS):
            found.append({"file": file, "line": line, "what": what, "fix": fix, "grave": grave})

    def error(self, side: str, error: EvaluatorError, name: str = "") -> None:
        """Note what a reader of ``inputs`` or ``truths`` refused, with file and line where it names them, else ``name``."""
        said = error.why or error.what
        found = _PLACE.match(said)
        file, line, what = found.groups() if found else (name, None, said)
        folder = name.rpartition("/")[0] + "/" if found and "/" in name and "/" not in file else ""
        whole = what if found or what == error.what else f"{error.what}: {what}"
        sort = re.sub(r"\d+", "#", whole)
        self.add(sort, f"{side}/{folder}{file}", int(line) if line else None, whole, error.fix)

    def broken(self, side: str, name: str) -> Callable[[EvaluatorError], None]:
        """A listener for a reader of the file ``name``, which goes on after every line that is wrong."""
        return lambda error: self.error(side, error, name)

    def without(
        self,
        known: Iterable[Any],
        file: str,
        there: Mapping[Any, int | None],
        other: str,
        what: str,
        fix: str,
    ) -> None:
        """Note ids of the file ``other``, each ``there`` at its line, that ``known`` ones of ``file`` have not among them."""
        ids = set(known)
        for one, line in there.items():
            if one not in ids:
                said = f'the {what} "{show(str(one), 60)}" is not in {file}'
                self.add(f"not in {file}", other, line, said, fix)

    def truths(
        self, file: str, judgments: int, documents: int, topics: int, grades: Mapping[Any, int]
    ) -> None:
        """Count what one file of truths holds."""
        row = {"file": file, "judgments": judgments, "topics": topics, "documents": documents}
        row["grades"] = {str(grade): grades[grade] for grade in sorted(grades)}
        self.statistics["truths"].append(row)

    def as_json(self) -> dict[str, Any]:
        """``statistics`` and ``problems`` in the order of files and lines; the last kept of a sort says how many more."""
        problems = []
        for key, found in self._found.items():
            more = self._counts[key] - len(found)
            last = found[-1]
            rest = f" (and {more:,} more like it)" if more else ""
            problems += [*found[:-1], {**last, "what": last["what"] + rest}]
        problems.sort(key=lambda one: (one["file"], one["line"] or 0))
        return {"statistics": {**self.statistics, "nouns": self.nouns}, "problems": problems}


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
