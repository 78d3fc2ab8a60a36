"""What the commands print and write: tables, JSON, and files in folders that are made if need be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))] if rows else []
    return [
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def pretty(data: Any) -> str:
    """JSON for people: indented, letters of all languages as they are. Raises ValueError for what JSON cannot hold."""
    return json.dumps(data, indent=2, ensure_ascii=False)


def print_json(data: Any) -> None:
    """Print data as :func:`pretty` writes it."""
    print(pretty(data))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of ``path`` for the block that writes it. Raises :class:`EvaluatorError` if that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        what = f"{path} cannot be written"
        raise EvaluatorError(what, (error.strerror or "").lower(), usage=True) from None


def number(value: float | None, digits: int = 4) -> str:
    """A figure with this many digits behind its point; a dash for what is not defined."""
    return "–" if value is None else f"{value:.{digits}f}"
