"""What is written down without being commanded: one event for each thing that happened, and the store after it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from runner.model.config import Config
from runner.model.errors import PlatformError
from runner.model.run import Run
from runner.records.archive import Attempt, Evaluation, RunArchive
from runner.records.archive_lock import COORDINATOR_LOCK, WORK_LOCK, exclusive, is_held
from runner.records.events import COORDINATOR
from runner.records.integrity import uncommitted
from runner.records.store.connect import Refused, Store
from runner.records.store.results import counting

if TYPE_CHECKING:
    from runner.model.task import Task

REGISTERING = 600.0  # seconds: large images are taken in meanwhile
IN_AN_EVENT = 1000  # evaluations, so that an event stays short enough


def commit(store: Store, *sealed: Attempt | Evaluation) -> None:
    """Record sealed attempts and evaluations: an event of each, and the store with it. Once for each, ever; together those of one call.

    An evaluation that says something else than the one that counts is only proposed: :func:`settle` makes it count.
    No two of a call may be of the same attempt. Raises Refused where the store cannot hold one of them: none is recorded then.
    """
    if sealed:
        store.commit_all([_event(store, one) for one in sealed], actor=COORDINATOR)


def _event(store: Store, sealed: Attempt | Evaluation) -> tuple[str, dict[str, Any]]:
    """Type and data of the event by which something is committed."""
    task, run, attempt, evaluation = sealed.key
    data = {"task": task, "run": run, "attempt": attempt, "manifest": sealed.manifest_digest()}
    if evaluation is None:
        return "attempt-committed", data
    proposed = {"proposed": True} if isinstance(sealed, Evaluation) and _displaces(store, sealed) else {}
    return "evaluation-committed", {**data, "evaluation": evaluation, **proposed}


def settle(
    store: Store, runs: Iterable[Run], reason: str, *, accept: bool = True, actor: str = "organiser"
) -> None:
    """Accept or discard the evaluations that wait, with an event for each task (several, where they are very many)."""
    event = "evaluations-accepted" if accept else "evaluations-discarded"
    by_task: dict[str, list[tuple[str, int | None, int]]] = {}
    for run in runs:
        if run.waiting is not None:
            by_task.setdefault(run.submission.task, []).append((run.id, run.outcome.attempt, run.waiting))
    for task, found in by_task.items():
        for start in range(0, len(found), IN_AN_EVENT):
            part = [list(one) for one in found[start : start + IN_AN_EVENT]]
            data = {"task": task, "count": len(part), "evaluations": part, "reason": reason}
            store.commit(event, data, actor=actor)


def _displaces(store: Store, new: Evaluation) -> bool:
    """Whether an evaluation gave another result than the one of its attempt that counts, or the same by other definitions."""
    if new.number == 1 or new.record(check=False)["status"] == "error":
        return False
    number = counting(store, new.run_id, new.attempt)
    if number is None:
        return False
    old = store.archive.attempt(new.task, new.run_id, new.attempt).evaluation(number)
    try:
        return _says(old) != _says(new)
    except (PlatformError, KeyError):
        return True


def _says(evaluation: Evaluation) -> list[Any]:
    """What an evaluation means: status, values, what was asked for, and the digest of its scores by topic."""
    record, result = evaluation.record(check=False), evaluation.result() or {}
    parts = [result.get(name) for name in ("status", "measures", "pending", "judge")]
    return [*parts, record.get("pins"), evaluation.manifest()["scores.jsonl"]["sha256"]]


def record_export(
    store: Store, task: Task | None, what: str, name: str, form: str, audience: object, content: str
) -> None:
    """Record that results went out, and by which rules of the task. The same again to the same person is no event.

    Args:
        store: The open store.
        task: Whose results; None where the task is gone.
        what: A leaderboard, plot, run, page, comparison or forms.
        name: The table, run or dataset.
        form: The format.
        audience: For whom it was made.
        content: What goes out, as text, or what stands for it: of this the SHA-256 is kept.
    """
    from runner.records.policy import note_policies
    from runner.records.store.decisions import exported

    note_policies(store, [] if task is None else [task])
    of = "" if task is None else task.id
    facts = {"task": of, "what": what, "name": name, "format": form, "audience": str(audience)}
    digest = hashlib.sha256(content.encode()).hexdigest()
    person = store.log.person.name if store.log.person else ""
    if exported(store, **facts, person=person) != digest:
        store.commit("results-exported", {**facts, "sha256": digest}, actor="organiser")


def commit_orphans(store: Store) -> int:
    """Commit what a killed process had sealed but not recorded, and sweep its unfinished folders.

    Returns how many attempts and evaluations were taken over. What the store cannot hold stays where it is, without an event,
    which ``runner store verify`` says. Runs of a submission that the log does not know are left
    alone: no event could name them (the log was cut, which ``runner store verify`` says).
    """
    from runner.records.store.queries import submissions

    store.archive.sweep()
    known = {entry.id for entry in submissions(store)}
    found = [s for s in uncommitted(store.archive, store.log) if _submission(store.archive, s) in known]
    taken = 0
    for sealed in found:
        store.archive.settle(sealed)
        with suppress(Refused):
            commit(store, sealed)
            taken += 1
    return taken


def _submission(archive: RunArchive, sealed: Attempt | Evaluation) -> str | None:
    """The submission that something sealed belongs to; None where its lock is damaged, which verify says."""
    number = sealed.number if isinstance(sealed, Attempt) else sealed.attempt
    try:
        return archive.attempt(sealed.task, sealed.run_id, number).submission()
    except PlatformError:
        return None


@contextmanager
def registering(config: Config) -> Iterator[None]:
    """Be the only one who registers, names or freezes: quotas and names are looked at and used in one go.

    Raises E306 when another process has been at it for :data:`REGISTERING` seconds: it stands still.
    """
    path = config.locks / "register.lock"

    def refused() -> PlatformError:
        why = f"It has held {path} for {REGISTERING:g} s."
        fix = "look at what runs (runner work, runner register, runner submit): let it go on (kill -CONT), or end it"
        return PlatformError("another process is registering", why=why, fix=fix, code="E306")

    with exclusive(path, REGISTERING, refused):
        yield


@contextmanager
def coordinator(config: Config, store: Store, *, is_work: bool = False) -> Iterator[None]:
    """Be the only coordinator of this data directory and of its ``store``; ``is_work``: for the work process.

    Raises E306 when another process is.
    """
    path = config.locks / COORDINATOR_LOCK

    def refused() -> PlatformError:
        what, fix = "another runner evaluate", "wait for it to end, or stop it with Ctrl-C"
        if not is_work and is_held(config.locks / WORK_LOCK):
            what = "runner work"
            fix = "leave it to it: it does what is missing by itself; to choose or force runs, end it first (--dry-run needs nobody's end)"
        what = f"{what} is at work on this data directory"
        return PlatformError(what, why=f"It holds {path}.", fix=fix, code="E306")

    with exclusive(path, 0, refused), store.coordinating():
        yield
