"""What is published, without the large files that a front on another machine has only in part: nothing else that is new waits for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import schemas
from runner.exchange.pieces import Pieces
from runner.exchange.published import FILE, Object, Publisher, View


def files_in_pieces(to: Publisher, databases: Iterable[str]) -> dict[Object, set[str]]:
    """The files in pieces that these databases have, each with the names of its pieces below the root."""
    found = {}
    for database in set(databases):
        view = View(to.root, database)
        for one in view.below("data/"):
            if one.kind == FILE and one not in found:
                found[one] = {f"files/{x[:2]}/{x}" for x in Pieces.read(view.data(one)).pieces}
    return found


def without(to: Publisher, audiences: Mapping[str, str], late: Collection[Object]) -> dict[str, str]:
    """The databases of ``audiences`` without the files ``late``; lists of data say of these only that they are coming."""
    paths, found = {one.path for one in late}, {}
    for audience, database in audiences.items():
        view = View(to.root, database)
        objects = [one for one in view.below("") if one not in late]
        found[audience] = to.database([_listed(to, view, one, paths) for one in objects])
    return found


def _listed(to: Publisher, view: View, of: Object, late: Collection[str]) -> Object:
    """An object; the list of a task's data without files that are late."""
    if of.kind != "data":
        return of
    data = view.data(of)
    for dataset in data["datasets"]:
        there = [x for x in dataset["files"] if f"{of.path}/{dataset['id']}/{x['name']}" not in late]
        data["coming"] += len(dataset["files"]) - len(there)
        dataset["files"] = there
    return replace(of, data=to.keep(schemas.canonical(data)))
