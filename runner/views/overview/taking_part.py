"""Who takes part in a task, and what its baselines reach: read from its leaderboards as somebody sees them, and from nothing else.

So neither tells more than the leaderboards do: of one that is not open nothing is counted, and names that are made up there stay so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from runner.model.names import BASELINES
from runner.views.leaderboard.formats.parts import figure
from runner.views.leaderboard.rows import LeaderboardTable, Row, Unranked


def participation(boards: Sequence[LeaderboardTable]) -> dict[str, int] | None:
    """How many ``teams``, ``softwares`` and ``runs`` stand on these leaderboards, without baselines; None without a leaderboard."""
    if not boards:
        return None
    found = [row for table in boards for row in _taking_part(table)]
    softwares = {(row.team, one) for row in found for one in row.software.split(", ")}
    return {
        "teams": len({row.team for row in found}),
        "softwares": len(softwares),
        "runs": len({run for row in found for run in row.runs}),
    }


def _taking_part(table: LeaderboardTable) -> Iterable[Row | Unranked]:
    yield from (row for row in table.rows if not row.baseline)
    for row in table.unranked:
        if row.team != BASELINES and f"{row.team}/{row.software}" != table.baseline:
            yield row


def baselines(boards: Iterable[LeaderboardTable], cells: Collection[str] = ()) -> list[dict[str, Any]]:
    """The baselines on these leaderboards in the order in which they are met: what each is, and where it stands.

    ``cells`` are leaderboards of a single cell of others: they are named only where a baseline stands on none else.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for table in boards:
        for row in table.rows:
            if row.baseline:
                name = table.displayed(row)
                one = {"team": row.team, "software": row.software, "name": name, "says": row.description}
                found.setdefault((row.team, row.software), {**one, "places": []})["places"].append(
                    _place(table, row)
                )
    for kept in found.values():
        kept["places"] = [place for place in kept["places"] if place["table"] not in cells] or kept["places"]
    return list(found.values())


def _place(table: LeaderboardTable, row: Row) -> dict[str, Any]:
    """Where a row stands, and its score on the measure that is asked first."""
    column = next(one for one in table.columns if one.id == table.rank_by.first)
    value = row.values.get(column.id)
    return {
        "table": table.table,
        "title": table.heading or table.table,
        "rank": row.rank,
        "of": len(table.rows),
        "measure": column.measure,
        "score": figure(value.mean if value else None, column),
    }
