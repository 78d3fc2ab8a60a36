"""What hosts delivered and nobody waits for any more is removed from the artefact store."""

from __future__ import annotations

from datetime import datetime, timedelta

from runner.execution.cluster.storage.artefacts import Artefacts
from runner.records.archive import RunArchive

OLD = timedelta(days=7)  # after which nobody comes back for what was delivered, or half of it


def sweep(artefacts: Artefacts, home: str, archive: RunArchive, now: datetime) -> list[str]:
    """Remove deliveries, whole or half, of the attempts of ``home`` that ``archive`` has, and of anybody's steps that are :data:`OLD`.

    A step that is under way is neither. Returns their names. Raises E313.
    """
    gone = []
    for name in artefacts.attempts():
        whose, _, attempt = name.partition("/")
        if (whose == home and _is_sealed(archive, attempt)) or _is_old(artefacts, name, now):
            artefacts.forget(name)
            gone.append(name)
    return gone


def _is_sealed(archive: RunArchive, attempt: str) -> bool:
    """Whether the archive has an attempt of that run and number: no other is taken then."""
    parts = attempt.split("~")
    if len(parts) != 5 or parts[0] != "a" or not parts[3].isdigit():
        return False
    return archive.has_attempt(parts[1], parts[2], int(parts[3]))


def _is_old(artefacts: Artefacts, name: str, now: datetime) -> bool:
    changed = artefacts.changed(name)
    return changed is not None and now - changed > OLD
