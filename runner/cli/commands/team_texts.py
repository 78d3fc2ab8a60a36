"""Erase accounts, and list and clear the texts of teams."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import accounts as show
from runner.cli import context, options, output
from runner.cli.commands.team import accounts, teams

if TYPE_CHECKING:
    from runner.records.store.connect import Store

ClearOption = Annotated[
    bool,
    typer.Option(
        "--clear-texts", help="Also remove the team's texts from boards, pages and exports, without asking."
    ),
]
STAYS = (
    "Still there, because hashes cover it: the registrations in events.jsonl, the bundles in submissions/, the files in snapshots/ and archive/, "
    "and the names of the team and its systems, which their runs have. Copies of earlier backups, exports and sites stay too: delete them."
)


@accounts.command(
    "erase",
    epilog="Examples:  runner account erase a-0123456789abcdef  |  runner account erase alpha --clear-texts  |  "
    "runner account erase alpha --member m-0123456789abcdef",
)
def erase(
    account: options.AccountArgument, member: options.MemberIdOption = None, clear_texts: ClearOption = False
) -> None:
    """Erase what is known of the people behind an account, and close it. With --member, erase one member only.

    Lists the texts of the team that are still shown, such as descriptions, and offers to clear them. Event log, bundles and frozen
    rounds keep them, as do backups that were made before.
    """
    from runner.work.managing import managing

    with managing(context.config()) as office:
        owner = office.accounts.named(account)
        answers = office.erase(owner, member)
        output.say(f"erased: {member or 'everybody'} of {owner.id}")
        if answers:
            output.say(f"removed: {answers} published answers to its requests")
        if owner.team is not None:
            _offer_to_clear(office.store, owner.team, clear=clear_texts)
    show.spread()


@teams.command(
    "texts",
    epilog="Examples:  runner team texts alpha  |  runner team texts alpha --clear-texts  |  runner team texts alpha --json",
)
def texts(
    team: options.TeamArgument, clear_texts: ClearOption = False, as_json: options.JsonOption = False
) -> None:
    """List the texts of a team that are shown, such as descriptions and display names; with --clear-texts remove them.

    The team needs no account.
    """
    from runner.records.store.team_texts import clear_texts as clear
    from runner.records.store.team_texts import remaining_texts

    where = context.config()
    with context.store(where) as store:
        if not as_json:
            _offer_to_clear(store, team, clear=clear_texts)
            return
        if clear_texts:
            clear(store, team)
        output.as_json([vars(text) for text in remaining_texts(store, team)])


def _offer_to_clear(store: Store, team: str, *, clear: bool) -> None:
    from runner.records.store.queries import submissions
    from runner.records.store.team_texts import clear_texts, remaining_texts

    remaining = remaining_texts(store, team)
    if remaining:
        output.say(f"Texts of {team} on boards, pages and exports:")
        output.table(
            ("submission", "field", "text"),
            [(text.submission or "(the team)", text.field, text.text) for text in remaining],
        )
        if clear or (sys.stdin.isatty() and typer.confirm("Clear them?", default=False, err=True)):
            count = clear_texts(store, team)
            output.say(f"cleared the texts of {count} submissions; runner work publishes without them")
        else:
            output.say(f"To clear them: runner team texts {team} --clear-texts")
    elif not submissions(store, team=team):
        output.say(f"no submission of {team} has texts")
        return
    else:
        output.say(f"no text of {team} is shown")
    output.say(STAYS)
