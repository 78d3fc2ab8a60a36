"""Made-up names in place of those of other teams, as long as a task asks for it.

A name follows from the task's random key, which only the event log holds: it is always the same on the boards of one task, and tells
nothing on those of another. The organiser sees the true names, a team its own; baselines keep theirs.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.names import BASELINES
from runner.model.run import Run, Submission, run_id
from runner.records.store import queries
from runner.records.store.decisions import names_opened
from runner.views.audience import PUBLIC, Audience, not_for
from runner.views.coarse import day
from runner.views.leaderboard.choosing import Entry, Group
from runner.views.leaderboard.rows import LeaderboardTable, Row, Unranked

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store

UNTIL_PUBLISHED = "published"
# Texts of a submission that say nothing of who it is from; whatever else is text is left out.
_KEPT = ("task", "method", "registered", "workflow")


@dataclass(frozen=True)
class Names:
    """The names of a task's teams and softwares as an audience sees them: made up by ``key`` (empty: the true ones), but for those
    of the teams ``shown`` and of the softwares ``baselines``. ``until``: when all are shown, in words."""

    key: str = ""
    shown: Collection[str] = ()
    baselines: Collection[str] = ()
    until: str = ""
    _runs: dict[str, str] = field(default_factory=dict)  # true ids of runs that were met → made-up ones

    def hides(self, team: str, software: str) -> bool:
        """Whether another name stands for these."""
        return bool(self.key) and team not in self.shown and f"{team}/{software}" not in self.baselines

    def submission(self, s: Submission) -> Submission:
        """The submission under the names that are seen; what its team wrote of it is left out where they are made up."""
        if not self.hides(s.team, s.software):
            return s
        team, software = self.team(s.team), self.software(s.team, s.software)
        id = f"{team}.{software}.{self._made('submission', s.id).encode().hex()[:8]}"
        written: dict[str, Any] = {
            name: "" for name, value in vars(s).items() if isinstance(value, str) and name not in _KEPT
        }
        return replace(s, **{**written, "id": id, "team": team, "software": software, "tag": software})

    def team(self, team: str) -> str:
        """The made-up name of a team."""
        return f"team-{self._made('team', team)}"

    def software(self, team: str, software: str) -> str:
        """The made-up name of a software."""
        return f"software-{self._made('software', team, software)}"

    def _made(self, *what: str) -> str:
        digest = hmac.digest(bytes.fromhex(self.key), schemas.canonical(["name", *what]), "sha256")
        return base64.b32encode(digest[:5]).decode().lower()

    def groups(self, groups: Collection[Group]) -> list[Group]:
        """What competes for the rows of a board under the names that are seen, in their order."""
        return sorted(map(self._group, groups), key=lambda group: group.key) if self.key else list(groups)

    def _group(self, group: Group) -> Group:
        known = {e.submission.id: self.submission(e.submission) for e in group.entries}
        ids = {true: seen.id for true, seen in known.items()}

        def run(one: Run | None) -> Run | None:
            if one is None:
                return None
            self._runs[one.id] = run_id(ids[one.submission.id], one.dataset, one.scenario)
            return replace(one, submission=known[one.submission.id])

        entries = [Entry(known[e.submission.id], tuple(map(run, e.runs))) for e in group.entries]
        first = entries[0].submission
        return replace(
            group,
            key=(first.team, first.software if group.key[1] else ""),
            entries=tuple(entries),
            chosen=tuple(map(run, group.chosen)),
            named=tuple(None if id is None else ids.get(id, id) for id in group.named),
            unknown=tuple(ids.get(id, id) for id in group.unknown),
        )

    def table(self, table: LeaderboardTable) -> LeaderboardTable:
        """A board that was made of :meth:`groups`, also without the true ids of runs, and with days in place of times."""
        if not self.key:
            return table
        note = f"Names of other teams and their softwares are made up until {self.until}; each team sees its own."
        return replace(
            table,
            rows=tuple(map(self._row, table.rows)),
            unranked=tuple(
                replace(row, runs=self._ids(row.runs), registered=_day(row)) for row in table.unranked
            ),
            notes=(note, *table.notes),
            each=tuple(replace(one, notes=(note, *one.notes)) for one in table.each),
        )

    def _row(self, row: Row) -> Row:
        cells = tuple(replace(cell, run=self._runs.get(cell.run, cell.run)) for cell in row.cells)
        return replace(row, runs=self._ids(row.runs), cells=cells, registered=_day(row))

    def _ids(self, runs: Collection[str]) -> tuple[str, ...]:
        return tuple(self._runs.get(id, id) for id in runs)

    def revealed(self, data: Any, own: Collection[Submission]) -> Any:
        """JSON data of a board with made-up names only, with those of the ``own`` submissions as they are."""
        hidden = replace(self, shown=())
        seen = {one.id: hidden.submission(one) for one in own}
        true: dict[str, str] = {seen[s.id].team: s.team for s in own}
        true |= {seen[s.id].software: s.software for s in own}
        ids = {seen[s.id].id: s.id for s in own}
        return _replaced(data, ids, true)


def _day(row: Row | Unranked) -> str:
    return f"{day(row.registered)}T00:00:00Z"


def _replaced(data: Any, *names: Mapping[str, str]) -> Any:
    """JSON data with names replaced in every string, mapping after mapping."""
    if isinstance(data, dict):
        return {key: _replaced(value, *names) for key, value in data.items()}
    if isinstance(data, list):
        return [_replaced(value, *names) for value in data]
    if isinstance(data, str):
        for mapping in names:
            for old, new in mapping.items():
                data = data.replace(old, new)
    return data


def names_for(store: Store, task: Task, audience: Audience) -> Names:
    """The names on the boards of ``task`` for ``audience``. A baseline of any of its tables has its true name on all of them: on
    one board with and on another without it, scores would tell which made-up name is its.

    Names are shown from the event on that opens them, or that publishes the last closed scores. Raises E103 as long as no key
    was drawn.
    """
    until = task.anonymous_until
    if not until or audience.kind == "organiser":
        return Names()
    with store.read() as connection:
        key, published = queries.key_in(connection, task.id), queries.published_in(connection, task.id)
    closed = [
        one.id for one in task.datasets.values() if one.visibility == "blinded" and one.id not in published
    ]
    opened = (
        not closed
        if task.definition["anonymous"]["until"] == UNTIL_PUBLISHED
        else names_opened(store, task.id)
    )
    if opened:
        return Names()
    if not key:
        raise not_for(audience, f"boards of {task.id}: its names are not made up yet")
    own = [audience.team] if audience.team else []
    baselines = frozenset(table.baseline for table in task.tables.values() if table.baseline)
    return Names(key, (BASELINES, *own), baselines, until)


def sees_as(store: Store, task: Task, audience: Audience) -> Audience:
    """The audience whose boards of ``task`` are those of ``audience``, too: for a team everybody, unless names are made up.

    Raises E103 as :func:`names_for`.
    """
    made_up = task.anonymous_until and names_for(store, task, audience).key
    return audience if audience.kind == "organiser" or made_up else PUBLIC
