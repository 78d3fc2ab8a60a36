"""Decisions of a team about its own submissions, notices, terms and tokens."""

from __future__ import annotations

from typing import Any

from runner.model.clock import stamp
from runner.model.errors import RunnerError, no_such
from runner.model.names import contact_problem
from runner.model.run import Submission
from runner.tasks.files import terms_now
from runner.work.handlers.wish import Wish
from runner.work.managing import Managing


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


def choose_notices(wish: Wish) -> dict[str, Any]:
    """Note which notices a team wants, and its address where one is given. It stands in no event."""
    if wish.account.role != "team":
        raise RunnerError(
            "E103", "only teams choose their notices", fix="notices.yaml has those of organisers"
        )
    mail = wish.data.get("mail")
    if mail is not None and (problem := contact_problem(mail)):
        raise RunnerError("E101", f"the address {problem}", fix="give one at which somebody reads")
    people = wish.accounts.people
    people.want(wish.account.id, wish.data["about"])
    if mail is not None:
        people.put(wish.account.id, contact=mail)
    return {}


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


def make_token(wish: Wish) -> dict[str, Any]:
    """Note a token. The link, or the token that is replaced, opens nothing from now on; the same wish changes nothing more."""
    d, at = wish.data, wish.clock.now()
    office = Managing(wish.config, wish.store, wish.accounts)
    office.put_token(wish.account, wish.token, at, d["token"], d["key"], d["scopes"], d["replaces"])
    return {}
