"""What a team wants to be told by mail, and where to; what the organiser does not send it does not get."""

from __future__ import annotations

from typing import Any

from runner.model.errors import RunnerError
from runner.model.names import contact_problem
from runner.work.handlers.wish import Wish


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
