"""What the store holds about each run, as a digest: as long as it is the same, every answer about that run is.

It is made of the rows of all tables, so that a table that is added later counts too: those of the run, of its submission and of its task,
and those that belong to none of these. :data:`FOLLOWING` are left out. They are filled from sealed evaluations, whose manifests' SHA-256
stand in a row that is looked at.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlalchemy import select

from runner.records.store import tables as t

if TYPE_CHECKING:
    from runner.model.run import Submission
    from runner.records.store.connect import Store

FOLLOWING = (t.measures, t.resamples, t.pending, t.topic_scores, t.findings)
_POSITION = t.meta  # up to which event the store knows the log: it changes with every one
_OWNERS = ("run", "submission", "task")  # columns that say whose a row is, the first that a table has


class States:
    """The digests of a store as it is now."""

    def __init__(self, store: Store) -> None:
        rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        with store.read() as connection:
            for table in t.metadata.sorted_tables:
                if table in FOLLOWING or table is _POSITION:
                    continue
                kind = next((one for one in _OWNERS if one in table.c), "")
                column = kind
                if table is t.submissions:
                    kind, column = "submission", "id"
                for row in connection.execute(select(table)):
                    owner = str(getattr(row, column)) if kind else ""
                    rows[kind, owner].append(f"{table.name} {tuple(row)!r}")
        self._found = {owner: _digest(sorted(said)) for owner, said in rows.items()}

    def of(self, run: str, submission: Submission) -> str:
        """The digest of what there is about a run of a submission."""
        owners = (("run", run), ("submission", submission.id), ("task", submission.task), ("", ""))
        return _digest(self._found.get(owner, "") for owner in owners)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256(repr(list(parts)).encode()).hexdigest()
