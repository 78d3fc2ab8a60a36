"""What organisers and assistants decide on the web at once: it neither discloses anything nor gives anybody power.

Each is done by the function behind the command of the same name. Events name the account (``person``) and the request; by
that a request that work comes to again is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.model.config import Person
from runner.model.errors import RunnerError, no_such
from runner.records.store.queries import find_run
from runner.work.handlers.wish import Wish
from runner.work.managing import Managing
from runner.work.proposals import Desk

if TYPE_CHECKING:
    from runner.model.run import Run
    from runner.model.task import Task
    from runner.records.store.connect import Store

BOTH = ("organiser", "assistant")


def review_run(wish: Wish) -> dict[str, Any]:
    """Approve or flag the attempt of a run that counts now, or take that back, as ``runner review`` does."""
    from runner.records.review import decide

    store, d = _asked(wish, BOTH), wish.data
    if not _is_done(wish):
        reason, to, seen = d.get("reason", ""), d.get("to", "organiser"), _as_told(wish)
        decide(store, wish.tasks, d["run"], d["state"], reason, to, seen=seen)
    return {}


def rerun(wish: Wish) -> dict[str, Any]:
    """Have a run executed once more, as ``runner evaluate --force`` does; the coordinator comes to it in its next round.

    On hidden data each execution is another message to the team: here only where the last one failed through us. Raises E103.
    """
    from runner.records.review import restart

    store = _asked(wish, BOTH)
    if _is_done(wish):
        return {}
    seen = _as_told(wish)
    task = wish.tasks.get(seen.submission.task)
    if seen.outcome.name != "withdrawn" and seen.submission.how != "uploaded":
        if not may_rerun(seen, task):
            if seen.outcome.todo == "run":
                return {}  # it waits, as it is told; if it has ended since, it is not executed behind that
            why = "Each execution on hidden data is another message to its team; the web asks for one only where the last failed on our side."
            raise RunnerError(
                "E103",
                f"{seen.id} is executed again beside work alone",
                why=why,
                fix=f"runner evaluate --run {seen.id} --force",
            )
        if not may_rerun(find_run(store, seen.id, wish.tasks.values(), running=store.archive.live()), task):
            return {}
    restart(store, wish.tasks, seen.id, wish.data.get("reason", ""))
    return {}


def withdraw_any(wish: Wish) -> dict[str, Any]:
    """Withdraw a submission of any team, as ``runner withdraw`` does; its place in the quota is given back at the terminal alone."""
    from runner.submissions.register import withdraw

    store = _asked(wish, ("organiser",))
    if not _is_done(wish):
        withdraw(store, wish.data["submission"], wish.data.get("reason", ""))
    return {"submission": wish.data["submission"]}


def change_team(wish: Wish) -> dict[str, Any]:
    """Close the account of a team, as ``runner team close`` does, or open it again: then it has no token before one is made for it."""
    store, name = _asked(wish, ("organiser",)), wish.data["team"]
    if not _is_done(wish):
        office = Managing(wish.config, store, wish.accounts)
        known = {one.team: one for one in wish.accounts.all() if one.team is not None}
        if name not in known:
            raise no_such("team", name, known, fix="runner team list names them")
        change = office.close if wish.data["action"] == "close" else office.reopen
        change(known[name], wish.data.get("reason", ""))
    return {}


def _asked(wish: Wish, may: tuple[str, ...]) -> Store:
    """The store for what is asked for. Raises E103 for another role."""
    if wish.account.role not in may:
        who = " and ".join(f"{role}s" for role in may)
        raise RunnerError("E103", f"only {who} decide this", fix="ask an organiser")
    return wish.store.asked_for(Person(wish.account.id, "account"), wish.request)


def _as_told(wish: Wish) -> Run:
    """The run that is asked about, as the web tells it. Raises E102."""
    with wish.as_told() as store:
        return find_run(store, wish.data["run"], wish.tasks.values(), running=store.archive.live())


def may_rerun(run: Run, task: Task | None) -> bool:
    """Whether the web may have a run of a software executed again: on hidden data only where it is held for a failure of ours."""
    dataset = None if task is None else task.datasets.get(run.dataset)
    shown = task is not None and (task.demo or (dataset is not None and dataset.visibility == "public"))
    return shown or run.outcome.failed_through_us


def _is_done(wish: Wish) -> bool:
    """Whether work did this request before, and was killed before it could note its decision."""
    return any(event.data.get("request") == wish.request for event in wish.store.log)


def propose(wish: Wish) -> dict[str, Any]:
    """Check a proposal; its event keeps it, and nothing happens. Raises E103 for who is no organiser."""
    if wish.account.role != "organiser":
        raise RunnerError("E103", "only organisers propose", fix="ask an organiser")
    with wish.as_told() as store:
        return {"proposal": Desk(Managing(wish.config, store, wish.accounts), wish.tasks).checked(wish.data)}
