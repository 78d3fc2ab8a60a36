"""What a team decides of its own submissions: that one is withdrawn, that one counts."""

from __future__ import annotations

from typing import Any

from runner.model.clock import stamp
from runner.model.errors import no_such
from runner.model.run import Submission
from runner.work.handlers.wish import Wish


def withdraw_own(wish: Wish) -> dict[str, Any]:
    """Withdraw a submission of the team, as ``runner withdraw`` does; one that has run keeps its place in the quota."""
    from runner.submissions.register import withdraw

    entry = _own(wish)
    withdraw(wish.store, entry.id, wish.data.get("reason", ""), actor=entry.team)
    return {"submission": entry.id}


def choose_own(wish: Wish) -> dict[str, Any]:
    """Have a submission of the team count for its row, as ``runner choose`` does, at the time at which that was asked."""
    from runner.records.store.queries import submissions
    from runner.submissions.register import choose

    entry = _own(wish)
    others = [one for one in submissions(wish.store) if (one.team, one.task) == (entry.team, entry.task)]
    last = max((one.chosen[-1] for one in others if one.chosen), default=None)
    task = wish.tasks.get(entry.task)
    if task is None:
        raise no_such("task", entry.task, why="The submission is for it.", fix="ask the organiser")
    # Killed between the event and its decision, work comes here again: what was chosen since it was asked for stays.
    done = last is not None and entry.chosen[-1:] == (last,) and last[1] >= stamp(wish.clock.now())
    if not done:
        choose(wish.store, task, entry.id, clock=wish.clock, actor=entry.team)
    return {"submission": entry.id}


def _own(wish: Wish) -> Submission:
    """The team's submission that is meant. Raises E102: another team's is answered as one that is not there."""
    from runner.records.store.queries import submissions

    wanted = wish.data["submission"]
    own = {entry.id: entry for entry in submissions(wish.store) if entry.team == wish.account.team}
    if wanted not in own:
        raise no_such("submission", wanted, own, of=f"team {wish.account.team}", fix="runner runs lists them")
    return own[wanted]
