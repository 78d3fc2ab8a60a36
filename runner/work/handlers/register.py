"""A registration: somebody without an account asks for one, with a token that the front made and showed them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runner.model.calendar import Registering, calendar
from runner.model.clock import stamp
from runner.model.errors import RunnerError
from runner.model.names import check_name, contact_problem, paragraph_problem
from runner.tasks.files import terms_of
from runner.views.text import plural
from runner.work.handlers.wish import Wish
from runner.work.managing import Managing
from runner.work.members.people import check_said
from runner.work.members.registrations import DAY, Registration


def register(wish: Wish) -> dict[str, Any]:
    """Make an account at once, or have the registration wait for the organiser, as the task says.

    What is refused names no other team and repeats nothing that was sent: nobody learns here who takes part.
    """
    office = Managing(wish.config, wish.store, wish.accounts)
    waits = wish.account.id in {one.account for one in office.accounts.registrations.waiting()}
    if office.accounts.has(wish.account.id) and not waits:  # as before
        return {"pending": False}
    asked, rules = _asked(wish)
    if rules.approve == "organiser":
        office.wait(asked)
        return {"pending": True}
    last = office.accounts.registrations.last_day(asked.task, wish.clock.now())
    if len(last) >= rules.per_day and not waits:
        again = stamp(datetime.fromisoformat(last[-rules.per_day]) + DAY)
        what = f"{plural(rules.per_day, 'team')} registered for this task within 24 hours, and no more are let in"
        raise RunnerError("E210", what, fix=f"come again after {again}")
    office.wait(asked)
    try:
        office.admit(asked, at_once=True)
    except RunnerError as error:
        if error.code not in ("E101", "E208", "E215"):
            raise
        office.accounts.registrations.remove(asked.account)
        raise RunnerError("E208", "a team cannot be called so here", fix="choose another name") from None
    return {"pending": False}


def _asked(wish: Wish) -> tuple[Registration, Registering]:
    """What is asked for, checked as far as strangers may know, and the rules of its task. Raises RunnerError."""
    d, task, now = wish.data, wish.tasks.get(wish.data["task"]), wish.clock.now()
    rules = None if task is None else calendar(task).registration
    if task is None or rules is None:
        raise RunnerError("E102", "nobody registers for this task here", fix="ask its organiser")
    if not rules.is_open(now):
        raise RunnerError("E210", "teams cannot register now", fix="see the dates on the task's page")
    missing = [key for key, asked in rules.asks.items() if asked == "required" and not d.get(key)]
    if missing:
        raise RunnerError("E201", f"missing: {', '.join(missing)}", fix="fill it in")
    text = terms_of(task, rules)
    terms = ("", "") if text is None else (rules.terms_version, text.sha256)
    if (d.get("terms_version", ""), d.get("terms_sha256", "")) != terms:
        raise RunnerError(
            "E201", "the terms were changed, or not accepted", fix="load the page again and read them"
        )
    try:
        check_name("team", d["team"])
    except RunnerError as error:
        raise RunnerError("E208", "that is no name for a team", fix=error.fix) from None
    told = {key: d.get(key, "") for key in ("contact", "affiliation", "purpose")}
    members = tuple(d.get("members", ()))
    if told["contact"] and (problem := contact_problem(told["contact"])):
        raise RunnerError(
            "E201", f"the contact {problem}", fix="write a mail address at which somebody answers"
        )
    check_said(told["contact"], told["affiliation"], members)
    if problem := paragraph_problem(told["purpose"]):
        raise RunnerError("E201", f"the purpose {problem}", fix="write plain text")
    account, token = wish.account.id, wish.token
    asked = Registration(
        account,
        wish.request,
        token,
        d["key"],
        stamp(now),
        task.id,
        d["team"],
        members=members,
        terms=terms,
        **told,
    )
    return asked, rules
