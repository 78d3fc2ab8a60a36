"""A team accepts the terms of a task: what may be downloaded under them is open to it from then on."""

from __future__ import annotations

from typing import Any

from runner.model.errors import RunnerError, no_such
from runner.tasks.files import terms_now
from runner.work.handlers.wish import Wish


def accept_terms(wish: Wish) -> dict[str, Any]:
    """Note that the team accepted the terms in their present version, and when. Raises E103 for who is no team, E201 for other terms."""
    if wish.account.role != "team":
        raise RunnerError("E103", "only teams accept terms", fix="sign in as a team")
    task = wish.tasks.get(wish.data["task"])
    terms = None if task is None else terms_now(task)
    if task is None or terms is None:
        what = wish.data["task"]
        raise no_such(
            "terms", what, why="There is no such task here, or it has none.", fix="ask its organiser"
        )
    version, text = terms
    if (wish.data["terms_version"], wish.data["terms_sha256"]) != (version, text.sha256):
        fix = "load the page again and read them"
        raise RunnerError("E201", "the terms were changed since you read them", fix=fix)
    registrations = wish.accounts.registrations
    registrations.accept(wish.account.id, task.id, (version, text.sha256), wish.clock.now())
    return {}
