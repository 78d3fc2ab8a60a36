"""Files of reports, and JSON lines as such."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluator.argue.formats.report import Report, Style, as_json


def write_reports(
    reports: Sequence[Report], path: Path, *, style: Style = "list", key: str = "responses"
) -> None:
    """Write reports as JSON Lines, all in one citation style (``list`` if one of them lacks scores)."""
    if style == "scores" and any(
        d not in s.scores for r in reports for s in r.sentences for d in s.citations
    ):
        style = "list"
    with path.open("wb") as file:
        for report in reports:
            file.write(line_of(as_json(report, style=style, key=key)))


def line_of(data: Any) -> bytes:
    """One JSON line: keys in their order, UTF-8. Raises ValueError for what JSON cannot hold."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"
