"""Teams that may sign in: add, list, close, and a new token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.cli import context, options, output
from runner.cli.app import group

if TYPE_CHECKING:
    from runner.exchange.access import Token

teams = group("team", "Teams that may sign in at the server, and their tokens.")


@teams.command(epilog="Examples:  runner team add alpha  |  runner team add alpha --json")
def add(team: options.TeamArgument, as_json: options.JsonOption = False) -> None:
    """Make an account for a team, and print its token, which is shown this once. Softwares handed in before stay the team's."""
    from runner.records.store.queries import submissions
    from runner.work.accounts import open_accounts, publish_access

    where = context.config()
    with context.store(where) as store, open_accounts(where) as accounts:
        known = [entry.team for entry in submissions(store) if entry.team != team]
        account, token = accounts.add("team", team, teams=known)
        publish_access(where, accounts)
    _shown(team, account.id, token, as_json)


@teams.command("list", epilog="Examples:  runner team list  |  runner team list --json")
def list_(as_json: options.JsonOption = False) -> None:
    """List the teams that have an account, with the ids of their tokens."""
    from runner.work.accounts import open_accounts

    with open_accounts(context.config()) as accounts:
        found = [one for one in accounts.all() if one.team is not None]
    if as_json:
        output.as_json([vars(one) | {"tokens": list(one.tokens)} for one in found])
    elif not found:
        output.say("no teams; runner team add NAME makes an account for one")
    else:
        rows = [
            (one.team or "", one.id, one.created[:10], (one.closed or "")[:10], " ".join(one.tokens))
            for one in found
        ]
        output.table(("team", "account", "since", "closed", "tokens"), rows)


@teams.command(epilog="Examples:  runner team rotate alpha")
def rotate(team: options.TeamArgument, as_json: options.JsonOption = False) -> None:
    """Give a team a new token; the ones before open nothing from this moment, and who is signed in with one is not any more."""
    from runner.work.accounts import open_accounts, publish_access

    where = context.config()
    with open_accounts(where) as accounts:
        account = accounts.of_team(team)
        token = accounts.rotate(account)
        publish_access(where, accounts)
    _shown(team, account.id, token, as_json)


@teams.command(epilog="Examples:  runner team close alpha")
def close(team: options.TeamArgument) -> None:
    """Close a team's account: nobody signs in for it any more. What it handed in stays."""
    from runner.work.accounts import open_accounts, publish_access

    where = context.config()
    with open_accounts(where) as accounts:
        done = accounts.close(accounts.of_team(team))
        publish_access(where, accounts)
    output.say(f"the account of {team} {'is closed' if done else 'was closed already'}")


def _shown(team: str, account: str, token: Token, as_json: bool) -> None:
    """Print a token, once."""
    if as_json:
        output.as_json({"team": team, "account": account, "token": str(token)})
        return
    output.say(f"the token of {team}; it is not shown again, and whoever has it is {team}:")
    output.data(str(token))
