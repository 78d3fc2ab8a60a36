"""What hosts delivered and nobody waits for any more is removed from the artefact store."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta

from runner.execution.cluster.keys import home_of, key_for
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive

OLD = timedelta(days=7)  # after which nobody comes back for what was delivered, or half of it
_ID = "([a-z0-9][a-z0-9._-]*)"
# How deliveries are called: HOME/SORT~TASK~RUN~NUMBER~TOKEN. Whatever else lies there is not ours to remove.
_DELIVERY = re.compile(f"([0-9a-f]{{16}})/([ae])~{_ID}~{_ID}~([0-9]{{1,6}})~[0-9a-f]{{8}}")


def sweep(artefacts: Artefacts, key: bytes, archive: RunArchive, now: datetime) -> list[str]:
    """Remove deliveries, whole or half, that nobody takes: of steps that ``archive`` has, whose secret is ``key``, evaluations of attempts
    after which there was another one, and of anybody's steps that are :data:`OLD`.

    A step that is under way is none of them. What cannot be removed stays. Returns the names of the others. Raises E313.
    """
    gone, home = [], home_of(key)
    for name in artefacts.attempts():
        if (found := _DELIVERY.fullmatch(name)) is None:
            continue
        whose, sort, task, run, number = found.groups()
        with suppress(PlatformError):
            ours = whose == home
            if (
                (ours and _is_sealed(archive, sort, task, run, int(number)))
                or _is_old(artefacts, name, now)
                or (ours and sort == "e" and _is_of_before(artefacts, key, archive, name, task, run))
            ):
                artefacts.forget(name)
                gone.append(name)
    return gone


def _is_sealed(archive: RunArchive, sort: str, task: str, run: str, number: int) -> bool:
    """Whether the archive has an attempt of that run and number, or that evaluation of its last attempt: no other is taken then."""
    if sort == "a":
        return archive.has_attempt(task, run, number)
    attempts = archive.attempts(task, run)
    return bool(attempts) and any(one.number == number for one in attempts[-1].evaluations())


def _is_of_before(
    artefacts: Artefacts, key: bytes, archive: RunArchive, name: str, task: str, run: str
) -> bool:
    """Whether an evaluation that was delivered whole is of another attempt than the last one: nobody takes it any more."""
    attempts = archive.attempts(task, run)
    of = artefacts.manifest(name, key_for(key, name)).get("attempt")
    return bool(attempts) and isinstance(of, int) and of != attempts[-1].number


def _is_old(artefacts: Artefacts, name: str, now: datetime) -> bool:
    changed = artefacts.changed(name)
    return changed is not None and now - changed > OLD
