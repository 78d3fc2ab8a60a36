"""Accounts on the terminal: as tables, as facts, and the links and tokens that are printed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner.cli import context, output
from runner.model.errors import RunnerError
from runner.views.text import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.exchange.access import Token
    from runner.model.config import Config
    from runner.work.members.people import Known
    from runner.work.members.tokens import Account
    from runner.work.members.uses import TokenFacts

LATE = 30.0  # seconds since work reached a front on another machine, until that is said


def spread() -> None:
    """Say when a front on another machine knows of a change; one with the same folder knows it already."""
    from runner.work.link import last_contact

    there = last_contact(context.config())
    if there is None:
        return
    if there.seconds < LATE:
        output.say(f"{there.front} knows it at the next contact with work, within seconds")
        return
    output.say(
        f"{there.front} knows it at the next contact with work; the last was {duration(there.seconds)} ago."
    )
    output.say("Until then pages open with what held before. What is handed in so meanwhile is refused here.")


def shown(account: Account, token: Token, as_json: bool) -> None:
    """Print a token, once."""
    if as_json:
        output.as_json(
            {"team": account.team, "role": account.role, "account": account.id, "token": str(token)}
        )
        return
    who = account.team or f"{account.role} {account.id}"
    output.say(f"the token of {who}; it is not shown again, and whoever has it is {who}:")
    output.data(str(token))


def facts(account: Account) -> dict[str, Any]:
    """An account as data."""
    return vars(account) | {"tokens": list(account.tokens)}


def rows(account: Account, name: str, tokens: Sequence[TokenFacts]) -> list[tuple[str, ...]]:
    """An account in a table: a row for each token and link; ids of 12 characters name them."""
    if account.closed is not None or not tokens:
        state = "none" if account.closed is None else f"closed {account.closed[:10]}"
        return [(name, account.id, "", state, "", "")]
    return [
        (name, account.id, one.id, one.kind, (one.until or "")[:10], (one.last_used or "never")[:10])
        for one in tokens
    ]


def said(of: Known) -> dict[str, Any]:
    """What is known of its people, as data."""
    members = [vars(one) for one in of.members]
    return {"contact": of.contact, "affiliation": of.affiliation, "members": members}


def lines(of: Known) -> dict[str, str]:
    """The same, to be printed."""
    named = {one.id: one.name for one in of.members}
    return {"contact": of.contact, "affiliation": of.affiliation, **named}


def name(account: Account, of: Known) -> str:
    """An account for people: its team, or its role and who it is."""
    if account.team is not None:
        return account.team
    names = ", ".join(one.name for one in of.members)
    return f"{account.role} {names}".strip() if account.role != "team" else "(erased)"


def address(config: Config, url: str | None) -> str:
    """How people reach the server: as is said, or as work or the front was told. Raises E101."""
    from runner.cli.serving import check_people
    from runner.exchange.address import noted_address
    from runner.work.link import last_contact

    if url is not None:
        return check_people(url)
    elsewhere = last_contact(config)
    found = elsewhere.front if elsewhere is not None else noted_address(config.inbox)
    if found is None:
        why = "No front has run with this data directory yet, and a link leads to it."
        fix = "say it: --url https://task.example.org; or start runner serve first"
        raise RunnerError("E101", "by which address do people reach the server?", why=why, fix=fix)
    return found.rstrip("/")
