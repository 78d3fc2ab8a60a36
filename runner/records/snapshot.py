"""Frozen rounds as files: written once, and read only when their hash is the one in the event log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.errors import PlatformError, Problem
from schemas.files import atomic_file, make_private

if TYPE_CHECKING:
    from runner.records.events import Event


MAX_SNAPSHOT = 64 * 2**20


def snapshot_path(home: Path, task_id: str, round_id: str) -> Path:
    """Where the snapshot of a round lies in the data directory ``home``."""
    return home / "snapshots" / task_id / f"{round_id}.json"


def write_snapshot(path: Path, text: bytes) -> None:
    """Write a snapshot as a whole. One without an event was never acknowledged and is replaced."""
    make_private(path.parent)
    with atomic_file(path, mode=0o444, sync=True) as file:
        file.write(text)


def read_snapshot(home: Path, task_id: str, round_id: str, digest: str) -> dict[str, Any]:
    """The snapshot whose SHA-256 is ``digest``. Raises E307 when it is missing or was changed."""
    path = snapshot_path(home, task_id, round_id)
    try:
        if path.stat().st_size > MAX_SNAPSHOT:
            raise snapshot_changed(path, "is larger than any snapshot")
        text = path.read_bytes()
    except OSError as error:
        raise snapshot_changed(path, f"cannot be read ({error.strerror or error})") from error
    if hashlib.sha256(text).hexdigest() != digest:
        raise snapshot_changed(path, "is not what was frozen: its hash does not match the event log")
    data: dict[str, Any] = json.loads(text)
    wrong = schemas.validate(data, "snapshot")
    if wrong:
        raise snapshot_changed(path, f"cannot be used by this program: {wrong[0].what}")
    return data


def snapshot_changed(path: Path, what: str) -> PlatformError:
    """The error E307 for a snapshot that is not as it was frozen; ``what`` says in what way."""
    return PlatformError(
        "a frozen round was changed or damaged",
        why=f"{path.parent.name}/{path.name} {what}.",
        fix="restore the folder snapshots/ from a backup",
        code="E307",
    )


def verify(home: Path, events: Iterable[Event]) -> list[Problem]:
    """What is wrong with the snapshots that the event log names."""
    found = []
    for event in events:
        if event.type == "round-frozen":
            d = event.data
            try:
                read_snapshot(home, d["task"], d["round"], d["sha256"])
            except PlatformError as error:
                found.append(Problem(f"snapshots/{d['task']}/{d['round']}.json", error.why, error.fix))
    return found
