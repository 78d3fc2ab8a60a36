"""What hosts delivered and nobody waits for any more is removed from the artefact store."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta

from runner.execution.cluster.keys import home_of, key_for
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.model.errors import PlatformError
from runner.model.outcome import UNSETTLED
from runner.records.archive import Attempt, RunArchive

OLD = timedelta(days=7)  # after which nobody comes back for what was delivered, or half of it
_TASK, _RUN = "([a-z0-9][a-z0-9-]{0,39})", "([a-z0-9][a-z0-9._-]{0,250})"  # no longer than a disk has names
# How deliveries are called: HOME/SORT~TASK~RUN~NUMBER~TOKEN. Whatever else lies there is not ours to remove.
_DELIVERY = re.compile(f"([0-9a-f]{{16}})/([ae])~{_TASK}~{_RUN}~([0-9]{{1,6}})~[0-9a-f]{{8}}")


def sweep(artefacts: Artefacts, key: bytes, archive: RunArchive, now: datetime) -> list[str]:
    """Remove deliveries, whole or half, that nobody takes: of steps that ``archive`` has, whose secret is ``key``, evaluations of other
    attempts than the one that counts, and of anybody's steps that are :data:`OLD`.

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
                (ours and sort == "a" and archive.has_attempt(task, run, int(number)))
                or _is_old(artefacts, name, now)
                or (
                    ours and sort == "e" and _is_judged(artefacts, key, archive, name, task, run, int(number))
                )
            ):
                artefacts.forget(name)
                gone.append(name)
    return gone


def _is_judged(
    artefacts: Artefacts, key: bytes, archive: RunArchive, name: str, task: str, run: str, number: int
) -> bool:
    """Whether nobody takes an evaluation of that number any more: the attempt that counts has one, or it was delivered whole and is of
    another attempt."""
    counts = next((one for one in reversed(archive.attempts(task, run)) if _is_settled(one)), None)
    if counts is None:
        return False
    if any(one.number == number for one in counts.evaluations()):
        return True
    of = artefacts.manifest(name, key_for(key, name)).get("attempt")
    return type(of) is int and of != counts.number


def _is_settled(attempt: Attempt) -> bool:
    """Whether an attempt counts (:mod:`runner.model.outcome`), where no other does after it."""
    verdict = attempt.record(check=False).get("verdict")
    return isinstance(verdict, dict) and verdict.get("name") not in UNSETTLED


def _is_old(artefacts: Artefacts, name: str, now: datetime) -> bool:
    changed = artefacts.changed(name)
    return changed is not None and now - changed > OLD
