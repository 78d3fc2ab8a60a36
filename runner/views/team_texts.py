"""Texts that teams wrote about their submissions, and their removal from what is shown.

A registration is an event of the hash chain and a bundle with a digest, so both keep their words. The event ``texts-cleared`` makes the
store forget them: boards, run pages, exports and frozen rounds show what the store knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.records.store.queries import submissions

if TYPE_CHECKING:
    from runner.records.store.connect import Store

FIELDS = ("description", "paper", "affiliation", "tag", "withdrawn_reason", "source")
METADATA = "ir-metadata.yml"


@dataclass(frozen=True)
class TeamText:
    """A text of a team that is still shown: the submission that it belongs to (empty: the team itself), its field, and the text."""

    submission: str
    field: str
    text: str


def remaining_texts(store: Store, team: str) -> list[TeamText]:
    """Return the texts of a team that the store still holds, the names of the team and its systems included."""
    return list(dict.fromkeys(_remaining_texts(store, team)))


def _remaining_texts(store: Store, team: str) -> Iterator[TeamText]:
    for entry in submissions(store, team=team):
        if entry.team_display_name:
            yield TeamText("", "team_display_name", entry.team_display_name)
        if entry.display_name:
            yield TeamText(entry.id, "display_name", entry.display_name)
        if entry.texts_cleared:
            continue
        values: Mapping[str, Any] = {**vars(entry), "source": (entry.source or {}).get("remote")}
        for name in FIELDS:
            if values[name] and (name, values[name]) != ("tag", entry.software):
                yield TeamText(entry.id, name, str(values[name]))
        metadata = store.archive.root.parent / "submissions" / entry.id / "bundle" / METADATA
        if metadata.is_file():
            yield TeamText(entry.id, METADATA, "(a file)")


def clear_texts(store: Store, team: str) -> int:
    """Remove the texts of a team from all that is shown; return the number of its submissions. Raises E306 and E307."""
    entries = [entry.id for entry in submissions(store, team=team)]
    if entries:
        store.commit("texts-cleared", {"team": team, "submissions": entries}, actor="organiser")
    return len(entries)


def without_cleared_texts(store: Store, board: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a frozen board without the texts that were cleared after the round was frozen."""
    cleared = [entry for entry in submissions(store, task=board["task"]) if entry.texts_cleared]
    if not cleared:
        return board
    ids, tags = {entry.id for entry in cleared}, {entry.id: entry.software for entry in cleared}
    rows = [_without_texts(row, tags) if row["submission"] in ids else row for row in board["rows"]]
    names = dict(board.get("names", {}))
    for entry in cleared:
        _remove_names(names, (entry.team, f"{entry.team}/{entry.software}"))
    return {**board, "rows": rows, **({"names": names} if "names" in board else {})}


def _without_texts(row: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    other = {key: value for key, value in row.items() if key not in ("description", "paper", "affiliation")}
    return {**other, "tag": tags[row["submission"]] if row["tag"] else ""}


def _remove_names(names: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        names.pop(key, None)
