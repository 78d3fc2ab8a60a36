"""A leaderboard as CSV and TSV, with cells that no spreadsheet takes for a formula."""

from __future__ import annotations

from runner.model.clock import STAMP
from runner.views.leaderboard.rows import LeaderboardTable


def to_csv(table: LeaderboardTable, separator: str = ",") -> str:
    """One line a submission, ranked ones first; scores at full precision. No cell starts a spreadsheet formula."""
    from runner.views.leaderboard import frames

    made = frames.leaderboard(table)
    # Who judged, and how reliable that is, where somebody did; staleness where something is stale.
    left_out = [] if table.judges else [*frames.JUDGES]
    left_out += [] if any(row.stale for row in table.rows) else ["stale"]
    left_out += [] if table.rank_by.figure else [*frames.RANKS]
    left_out += [] if table.parts else ["topics_of"]
    left_out += [name for name in frames.ABOUT if not any(getattr(row, name) for row in table.rows)]
    left_out += [] if table.names else [column.name for column in frames.NAMES]
    made["registered"] = made["registered"].dt.strftime(STAMP)
    made["baseline"] = made["baseline"].map({True: "yes", False: "no"})
    for name in made.select_dtypes("string").columns:
        made[name] = made[name].map(no_formula, na_action="ignore")
    # A measure keeps its id here, also where another column has the same name: perspective-2024 has a measure p.
    own = {
        frames.measure_column(column.id) + end: column.id + end
        for column in table.columns
        for end in ("", "_low", "_high")
    }
    text: str = (
        made.drop(columns=left_out)
        .rename(columns=own)
        .to_csv(sep=separator, index=False, lineterminator="\n")
    )
    return text


def to_tsv(table: LeaderboardTable) -> str:
    """:func:`to_csv` with tabs between the cells."""
    return to_csv(table, "\t")


def no_formula(value: str) -> str:
    """Text that a spreadsheet takes as text: what could start a formula gets an apostrophe in front."""
    return f"'{value}" if value.lstrip()[:1] in tuple("=+-@|%") or value[:1] in ("\t", "\r", "\n") else value
