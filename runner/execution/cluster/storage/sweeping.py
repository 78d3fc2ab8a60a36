"""What hosts delivered and nobody waits for any more is removed from the artefact store."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta

from runner.execution.cluster.keys import home_of
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive

OLD = timedelta(days=7)  # after which nobody comes back for what was delivered, or half of it
_TASK, _RUN = "([a-z0-9][a-z0-9-]{0,39})", "([a-z0-9][a-z0-9._-]{0,250})"  # no longer than a disk has names
# How deliveries are called: HOME/SORT~TASK~RUN~NUMBER~TOKEN. Whatever else lies there is not ours to remove.
_DELIVERY = re.compile(f"([0-9a-f]{{16}})/([ae])~{_TASK}~{_RUN}~([0-9]{{1,6}})~[0-9a-f]{{8}}")


def sweep(artefacts: Artefacts, key: bytes, archive: RunArchive, now: datetime) -> list[str]:
    """Remove deliveries, whole or half, that nobody takes: of attempts that ``archive`` has, whose secret is ``key``, and of anybody's
    steps that are :data:`OLD`.

    A step that is under way is none of them. What cannot be removed stays. Returns the names of the others. Raises E313.
    """
    gone, home = [], home_of(key)
    for name in artefacts.attempts():
        if (found := _DELIVERY.fullmatch(name)) is None:
            continue
        whose, sort, task, run, number = found.groups()
        with suppress(PlatformError):
            done = whose == home and sort == "a" and archive.has_attempt(task, run, int(number))
            if done or _is_old(artefacts, name, now):
                artefacts.forget(name)
                gone.append(name)
    return gone


def _is_old(artefacts: Artefacts, name: str, now: datetime) -> bool:
    changed = artefacts.changed(name)
    return changed is not None and now - changed > OLD
