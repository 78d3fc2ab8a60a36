"""What the coordinator writes down: one event for each thing that happened, and the store after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runner.model.config import Config
from runner.model.errors import PlatformError
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.records.events import COORDINATOR
from runner.records.integrity import uncommitted
from runner.records.store.connect import Store


def commit(store: Store, sealed: Attempt | Evaluation) -> None:
    """Record a sealed attempt or evaluation: event first, then the store. Once for each, ever."""
    task, run, attempt, evaluation = sealed.key
    data = {"task": task, "run": run, "attempt": attempt, "manifest": sealed.manifest_digest()}
    if evaluation is None:
        store.commit("attempt-committed", data, actor=COORDINATOR)
    else:
        store.commit("evaluation-committed", {**data, "evaluation": evaluation}, actor=COORDINATOR)


def commit_orphans(store: Store) -> int:
    """Commit what a killed process had sealed but not recorded, and sweep its unfinished folders.

    Returns how many attempts and evaluations were taken over. Runs of a submission that the log does not know are left
    alone: no event could name them (the log was cut, which ``runner store verify`` says).
    """
    from runner.records.store.queries import submissions

    store.archive.sweep()
    known = {entry.id for entry in submissions(store)}
    found = [s for s in uncommitted(store.archive, store.log) if _submission(store.archive, s) in known]
    for sealed in found:
        commit(store, sealed)
    return len(found)


def _submission(archive: RunArchive, sealed: Attempt | Evaluation) -> str | None:
    """The submission that something sealed belongs to; None where its lock is damaged, which verify says."""
    number = sealed.number if isinstance(sealed, Attempt) else sealed.attempt
    try:
        return archive.attempt(sealed.task, sealed.run_id, number).submission()
    except PlatformError:
        return None


@contextmanager
def coordinator(config: Config) -> Iterator[None]:
    """Be the only coordinator of this data directory. Raises E306 when another process is."""
    from filelock import FileLock, Timeout

    config.locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(config.locks / "coordinator.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise PlatformError(
            "another runner evaluate is at work on this data directory",
            why=f"It holds {config.locks / 'coordinator.lock'}.",
            fix="wait for it to end, or stop it with Ctrl-C",
            code="E306",
        ) from error
    try:
        yield
    finally:
        lock.release()
