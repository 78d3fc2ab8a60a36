"""What organisers decide and write about single runs. Each is an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import schemas
from runner.model.errors import RunnerError
from runner.records.store.queries import find_run

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store

MAX_TEXT = 2000  # characters


def decide(
    store: Store, tasks: Mapping[str, Task], run_id: str, state: str, reason: str = "", to: str = "organiser"
) -> bool:
    """Approve (``approved``) or flag (``flagged``) the attempt of a run that counts now, or take that back (``open``).

    Args:
        store: The open store.
        tasks: The tasks that there are.
        run_id: The whole id of the run.
        state: What is decided.
        reason: Why it is flagged; needed for that.
        to: ``organiser``, or ``team``: its team is told of the flag, too.

    Returns:
        Whether that was new.

    Raises:
        RunnerError: E101 for a flag without a reason or with one that is too long, E102 for a run without an attempt.
    """
    found = find_run(store, run_id, tasks.values(), running=store.archive.live())
    if found.outcome.attempt is None:
        raise RunnerError("E102", f"{found.id} has no attempt to be reviewed", fix="runner evaluate")
    reason = _text(reason, "the reason of a flag") if state == "flagged" else ""
    before = (
        ("open", "", to)
        if found.review is None
        else (found.review.state, found.review.reason, found.review.to)
    )
    if before[:2] == (state, reason) and (state != "flagged" or before[2] == to):
        return False
    data = {"task": found.submission.task, "run": found.id, "attempt": found.outcome.attempt}
    store.commit("run-reviewed", {**data, "state": state, "reason": reason, "to": to}, actor="organiser")
    return True


def comment_run(store: Store, tasks: Mapping[str, Task], run_id: str, text: str, to: str) -> None:
    """Write a comment on a run, ``to`` the organisers, or its team, too. Raises E101 and E102 as :func:`decide`."""
    found = find_run(store, run_id, tasks.values(), running=store.archive.live())
    if found.outcome.attempt is None:
        raise RunnerError("E102", f"{found.id} has no attempt to be commented", fix="runner evaluate")
    data = {"task": found.submission.task, "run": found.id, "text": _text(text, "a comment"), "to": to}
    store.commit("run-commented", data, actor="organiser")


def _text(text: str, what: str) -> str:
    if not text.strip() or len(text) > MAX_TEXT:
        why = f"It has {len(text):,} characters; 1 to {MAX_TEXT:,} are taken."
        raise RunnerError("E101", f"{what} must be a text", why=why, fix="write a sentence or two")
    return schemas.show(text, MAX_TEXT)
