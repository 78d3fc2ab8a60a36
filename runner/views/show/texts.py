"""Texts of participants, made safe to show: bounded, without control characters, line breaks kept as such."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import Any

from runner.model.errors import RunnerError, no_such
from runner.views.audience import escape

MAX_TEXT = 8000  # characters of one text
MAX_LINES = 400
MAX_ID = 200
_BREAKS = re.compile(r"\r\n?|\n")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def shown(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` with its line breaks, each line escaped; cut (with "…") at ``limit`` characters or 400 lines.

    Only here may a shown text have a line break: what prints it has to mark every line as a quotation.
    """
    lines = _BREAKS.split(text[: limit + 1].strip("\r\n").replace("\t", " "))
    cut = len(text) > limit or len(lines) > MAX_LINES
    joined = "\n".join(escape(line, 2 * limit) for line in lines[:MAX_LINES])
    return joined[: limit - 1] + "…" if cut or len(joined) > limit else joined


def number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def whole(value: Any) -> int | None:
    """A whole number, or None for anything else."""
    return value if type(value) is int and abs(value) < 1 << 53 else None


def chosen(text: str, of: int) -> frozenset[int]:
    """The numbers named by ``3``, ``2-5``, ``1,4`` or ``all``, of those from 1 to ``of``. Raises E101 and E102."""
    if text.strip() == "all":
        return frozenset(range(1, of + 1))
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise RunnerError(
                "E101",
                f"{escape(text, 60)} is no choice of debates",
                why="They are named by their numbers.",
                fix="write --debate 3, 2-5, 1,4 or all",
            )
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        found |= set(range(max(first, 1), min(last, of) + 1))
        if not 1 <= first <= last <= of:
            why = f"The run has {of:,}." if of else "The run has none."
            fix = f"name one from 1 to {of}" if of else "runner show tells how far the run is"
            raise no_such("debate", part.strip(), why=why, fix=fix, limit=30)
    return frozenset(found)


def counted(pairs: Iterable[tuple[str, int]]) -> str:
    """``timeout 2, status 1``."""
    return ", ".join(f"{name} {count:,}" for name, count in pairs)


def plural(count: int, name: str) -> str:
    """``1 debate``, ``1,000 debates``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"
