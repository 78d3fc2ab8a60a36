"""Lists of findings for people: errors come first, and all warnings of a code are one line with their count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

SEVERITIES = ("error", "defect", "warning")  # the gravest first

R = TypeVar("R", bound=Mapping[str, Any])
Row = Mapping[
    str, Any
]  # file, line, code, severity, message, fix; ``times`` where it stands for several findings


def severity_rank(severity: str) -> int:
    """Return the place of a severity in :data:`SEVERITIES`; unknown ones come last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def in_order(rows: Iterable[R]) -> list[R]:
    """Return findings by severity, the gravest first; those of one severity keep their order."""
    return sorted(rows, key=lambda row: severity_rank(row["severity"]))


def group_warnings(rows: Iterable[Row], counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return findings in order; of each code of warnings only the first, with the number of all as ``times``.

    Args:
        rows: The findings that were kept.
        counts: The number of findings by code, including those that were not kept.
    """
    ordered = in_order(rows)
    numbers = Counter(row["code"] for row in ordered)
    grouped: list[dict[str, Any]] = []
    codes: set[str] = set()
    for row in ordered:
        if not _is_warning(row):
            grouped.append(dict(row))
        elif row["code"] not in codes:
            codes.add(row["code"])
            grouped.append({**row, "times": counts.get(row["code"], numbers[row["code"]])})
    return grouped


def describe(row: Row) -> str:
    """Return a finding as one line: place, code, severity, number of times, message and fix."""
    place = row.get("file", "") + (f":{row['line']}" if row.get("line") else "")
    times = f" ({row['times']:,} times)" if row.get("times", 1) > 1 else ""
    fix = f" Fix: {row['fix']}" if row.get("fix") else ""
    return f"{place}: {row['code']} {row['severity']}{times}: {row['message'].rstrip('.')}.{fix}"


def list_findings(
    rows: Iterable[Row], counts: Mapping[str, int], *, most: int, summaries: Sequence[Row] = ()
) -> list[str]:
    """Return lines about findings: about ``most`` errors and defects, how many more there are, then the warnings.

    Of many errors, the first ones of each code are listed, so that no code hides another.

    Args:
        rows: The findings that were kept.
        counts: The number of findings by code, including those that were not kept.
        most: The number of errors and defects to list.
        summaries: Findings that say what all of a code amount to; not counted, and listed before the others.
    """
    rows = in_order(rows)
    grave = [row for row in rows if not _is_warning(row)]
    codes = {row["code"] for row in grave}
    each = most if len(grave) <= most else max(1, most // len(codes))
    listed: Counter[str] = Counter()
    lines = [describe(row) for row in summaries if not _is_warning(row)]
    for row in grave:
        if listed[row["code"]] < each:
            listed[row["code"]] += 1
            lines.append(describe(row))
    warnings = group_warnings([row for row in (*summaries, *rows) if _is_warning(row)], counts)
    described = {row["code"] for row in warnings}
    more = [
        f"{count - listed[code]:,} more {code}"
        for code, count in sorted(counts.items())
        if count > listed[code] and code not in described
    ]
    if more:
        lines.append(f"... and {', '.join(more)}")
    return [*lines, *map(describe, warnings)]


def _is_warning(row: Row) -> bool:
    return severity_rank(row["severity"]) >= SEVERITIES.index("warning")
