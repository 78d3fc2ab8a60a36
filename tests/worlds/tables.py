"""Leaderboards that are compared: those of two machines are the same but for what is measured there."""

from __future__ import annotations

import csv
import io

MEASURED = {"wall_seconds", "cpu_seconds", "memory_peak", "registered"}  # and the date


def without_measured(table: str) -> list[dict[str, str]]:
    """The rows of a leaderboard (CSV) without the columns of measured time and memory."""
    rows = list(csv.DictReader(io.StringIO(table)))
    assert rows, table
    return [{key: one for key, one in row.items() if key not in MEASURED} for row in rows]
