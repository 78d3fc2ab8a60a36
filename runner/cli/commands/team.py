"""Who may sign in: teams by their names, all accounts by their ids; one implementation behind both groups of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.cli import accounts as show
from runner.cli import context, options, output
from runner.cli.app import accounts, teams
from runner.model.clock import SystemClock, stamp
from runner.model.errors import RunnerError, no_such

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner.exchange.access import Role
    from runner.work.members.accounts import Accounts
    from runner.work.members.tokens import Account


@teams.command(
    "add",
    epilog='Examples:  runner team add alpha  |  runner team add alpha --member "Ada Lovelace" --contact ada@example.org',
)
def add_team(
    team: options.TeamArgument,
    member: options.MemberOption = None,
    contact: options.ContactOption = None,
    affiliation: options.AffiliationOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Make an account for a team, and print its token, which is shown this once. Softwares handed in before stay the team's."""
    _added("team", team, member, contact, affiliation, as_json)


@accounts.command(
    "add",
    epilog='Examples:  runner account add organiser --member "Ada Lovelace"  |  runner account add assistant --contact bob@example.org',
)
def add_account(
    role: options.RoleArgument,
    member: options.MemberOption = None,
    contact: options.ContactOption = None,
    affiliation: options.AffiliationOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Make an account for an organiser or assistant, and print its token, which is shown this once.

    An assistant looks after runs, and neither sees nor opens what the organiser has not published.
    """
    from runner.exchange.access import ROLES

    if role == "assessor":
        why = "Nothing is open to this role yet."
        raise RunnerError(
            "E101", "no account is made for an assessor", why=why, fix="use organiser or assistant"
        )
    known = {one: one for one in ROLES if one not in ("team", "assessor")}
    if role not in known:
        fix = f"use one of {', '.join(known)}; runner team add NAME makes that of a team"
        raise no_such("role", role, known, fix=fix, code="E101")
    _added(known[role], None, member, contact, affiliation, as_json)


@teams.command("list", epilog="Examples:  runner team list  |  runner team list --people --json")
def list_teams(people: options.PeopleOption = False, as_json: options.JsonOption = False) -> None:
    """List the teams that have an account, with their tokens and one-time links: until when each holds, and when it was used last.

    Used means that something was asked for with it; who only looks is not noted.
    """
    _listed(lambda one: one.team is not None, people, as_json, "no teams; runner team add NAME makes one")


@accounts.command("list", epilog="Examples:  runner account list  |  runner account list --people")
def list_accounts(people: options.PeopleOption = False, as_json: options.JsonOption = False) -> None:
    """List all accounts, with their tokens and one-time links: until when each holds, and when it was used last."""
    _listed(lambda _: True, people, as_json, "no accounts; runner account add ROLE makes one")


@teams.command("people", epilog='Examples:  runner team people alpha --member "Ada Lovelace" --member "Bob"')
def people_of_team(
    team: options.TeamArgument,
    member: options.MemberOption = None,
    contact: options.ContactOption = None,
    affiliation: options.AffiliationOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show who is behind a team, or note it anew: what is named replaces what was known. It stands in no event."""
    _people(lambda known: known.of_team(team), member, contact, affiliation, as_json)


@accounts.command(
    "people", epilog="Examples:  runner account people a-0123456789abcdef --contact ada@example.org"
)
def people_of_account(
    account: options.AccountArgument,
    member: options.MemberOption = None,
    contact: options.ContactOption = None,
    affiliation: options.AffiliationOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show who is behind an account, or note it anew: what is named replaces what was known. It stands in no event."""
    _people(lambda known: known.named(account), member, contact, affiliation, as_json)


@teams.command("rotate", epilog="Examples:  runner team rotate alpha")
def rotate_team(team: options.TeamArgument, as_json: options.JsonOption = False) -> None:
    """Give a team a new token; the ones before open nothing from this moment, and who is signed in with one is not any more."""
    _rotated(lambda known: known.of_team(team), as_json)


@accounts.command("rotate", epilog="Examples:  runner account rotate a-0123456789abcdef")
def rotate_account(account: options.AccountArgument, as_json: options.JsonOption = False) -> None:
    """Give an account a new token; the ones before open nothing from this moment."""
    _rotated(lambda known: known.named(account), as_json)


@teams.command(
    "link",
    epilog="Examples:  runner team link alpha --url https://task.example.org  |  runner team link alpha --hours 24",
)
def link_team(
    team: options.TeamArgument,
    url: options.PeopleUrlOption = None,
    hours: options.HoursOption = 72,
    as_json: options.JsonOption = False,
) -> None:
    """Print a link to send to a team: it shows a new token once, when the button on its page is pressed; looking uses nothing up."""
    _linked(lambda known: known.of_team(team), url, hours, as_json)


@accounts.command(
    "link", epilog="Examples:  runner account link a-0123456789abcdef --url https://task.example.org"
)
def link_account(
    account: options.AccountArgument,
    url: options.PeopleUrlOption = None,
    hours: options.HoursOption = 72,
    as_json: options.JsonOption = False,
) -> None:
    """Print a link to send to somebody: it shows a new token once, when the button on its page is pressed."""
    _linked(lambda known: known.named(account), url, hours, as_json)


@teams.command("close", epilog="Examples:  runner team close alpha")
def close_team(team: options.TeamArgument) -> None:
    """Close a team's account: nobody signs in for it any more, at a provider neither. What it handed in stays."""
    _closed(lambda known: known.of_team(team))


@teams.command("reopen", epilog="Examples:  runner team reopen alpha")
def reopen_team(team: options.TeamArgument, reason: options.ReasonOption = "") -> None:
    """Open a team's account again. Its tokens of before stay revoked: runner team link has it make a new one."""
    from runner.work.managing import managing

    with managing(context.config()) as office:
        done = office.reopen(office.accounts.of_team(team), reason)
    output.say(f"the account of {team} {'is open again, without a token' if done else 'was open already'}")


@accounts.command("close", epilog="Examples:  runner account close a-0123456789abcdef")
def close_account(account: options.AccountArgument) -> None:
    """Close an account: it opens nothing any more. What was handed in with it stays."""
    _closed(lambda known: known.named(account))


@teams.command("waiting", epilog="Examples:  runner team waiting  |  runner team waiting --json")
def waiting(as_json: options.JsonOption = False) -> None:
    """List the registrations that wait for the organiser, with what was said in them."""
    from runner.work.members.accounts import open_accounts

    with open_accounts(context.config()) as known:
        found = known.registrations.waiting()
    shown = ("account", "team", "task", "arrival", "contact", "affiliation", "members", "purpose")
    if as_json:
        output.as_json([{name: getattr(one, name) for name in shown} for one in found])
    elif not found:
        output.say("nobody waits")
    for one in () if as_json else found:
        lines = {name: getattr(one, name) for name in shown}
        output.facts({**lines, "members": ", ".join(one.members), "terms": one.terms[0]})
        output.data("")


@teams.command(
    "approve",
    epilog="Examples:  runner team approve a-0123456789abcdef  |  runner team approve alpha --name alpha-2",
)
def approve(registration: options.RegistrationArgument, name: options.OtherNameOption = None) -> None:
    """Let a team in that registered: its token opens from now on."""
    from runner.work.managing import managing

    with managing(context.config()) as office:
        account = office.admit(office.accounts.registrations.named(registration), name)
    output.say(f"{account.team} is in; its account is {account.id}")


@teams.command(
    "reject", epilog='Examples:  runner team reject a-0123456789abcdef --reason "we do not know you"'
)
def reject(registration: options.RegistrationArgument, reason: options.ReasonOption = "") -> None:
    """Refuse a registration, and erase what was said in it. The reason is shown to who registered."""
    from runner.work.managing import managing

    with managing(context.config()) as office:
        office.reject(office.accounts.registrations.named(registration), reason)
    output.say("refused, and erased")


@accounts.command(
    "tie",
    epilog="Examples:  runner account tie alpha --subject 248289761001  |  runner account tie a-0123456789abcdef --mail ada@example.org",
)
def tie(
    account: options.AccountArgument, subject: options.SubjectOption = None, mail: options.MailOption = None
) -> None:
    """Let somebody sign in for an account at the provider (OpenID Connect) that oidc.json in the data directory names."""
    from runner.cli.serving import read_provider
    from runner.exchange.oidc import FILE
    from runner.work.managing import managing
    from runner.work.members.identities import Identity

    if (subject is None) == (mail is None):
        raise RunnerError("E101", "who is it?", fix="name either --subject or --mail")
    where = context.config()
    issuer = read_provider(where.home / FILE).issuer
    who = ("subject", subject) if subject is not None else ("mail", str(mail).strip().casefold())
    with managing(where) as office:
        office.tie(found := office.accounts.named(account), Identity(issuer, *who))
    output.say(f"they sign in for {found.team or found.id} at {issuer}")


@accounts.command("untie", epilog="Examples:  runner account untie alpha")
def untie(account: options.AccountArgument) -> None:
    """Have nobody sign in at a provider for an account any more; who is signed in so is not from this moment."""
    from runner.work.managing import managing

    with managing(context.config()) as office:
        done = office.untie(office.accounts.named(account))
    output.say("nobody signs in for it at a provider any more" if done else "nobody was tied to it")


def _added(
    role: Role,
    team: str | None,
    member: Sequence[str] | None,
    contact: str | None,
    affiliation: str | None,
    as_json: bool,
) -> None:
    from runner.work.managing import managing
    from runner.work.members.people import check_said

    check_said(contact, affiliation, member)
    with managing(context.config()) as office:
        account, token = office.add(role, team)
        office.accounts.people.put(account.id, contact=contact, affiliation=affiliation, members=member)
    show.shown(account, token, as_json)


def _listed(wanted: Callable[[Account], bool], people: bool, as_json: bool, nobody: str) -> None:
    from runner.work.members.accounts import open_accounts

    now = stamp(SystemClock().now())
    with open_accounts(context.config()) as known:
        found = [(one, known.people.of(one.id)) for one in known.all() if wanted(one)]
        tokens = {one.id: known.uses.of(one.id, now) for one, _ in found}
    if as_json:
        listed = ((one, of, [vars(token) for token in tokens[one.id]]) for one, of in found)
        output.as_json(
            [
                show.facts(one) | {"opens": opens} | (show.said(of) if people else {})
                for one, of, opens in listed
            ]
        )
    elif not found:
        output.say(nobody)
    elif people:
        for one, of in found:
            output.facts({"account": one.id, "is": show.name(one, of), **show.lines(of)})
            output.data("")
    else:
        rows = [row for one, of in found for row in show.rows(one, show.name(one, of), tokens[one.id])]
        output.table(
            ("who", "account", "token", "kind", "until", "last used"), rows, drop=("last used", "kind")
        )


def _people(
    choose: Callable[[Accounts], Account],
    member: Sequence[str] | None,
    contact: str | None,
    affiliation: str | None,
    as_json: bool,
) -> None:
    from runner.work.members.accounts import open_accounts

    with open_accounts(context.config()) as known:
        account = choose(known)
        if (member, contact, affiliation) != (None, None, None):
            known.people.put(account.id, contact=contact, affiliation=affiliation, members=member)
        of, terms = known.people.of(account.id), known.registrations.terms_of(account.id)
    if as_json:
        output.as_json(show.facts(account) | show.said(of) | {"terms": terms})
        return
    output.facts({"account": account.id, "is": show.name(account, of), **show.lines(of)})
    for one in terms:
        purpose = f": {one['purpose']}" if one["purpose"] else ""
        output.data(
            f"terms {one['version'] or '(none)'} of {one['task']}, {one['accepted']}{output.printable(purpose)}"
        )


def _rotated(choose: Callable[[Accounts], Account], as_json: bool) -> None:
    from runner.work.managing import managing

    with managing(context.config()) as office:
        account = choose(office.accounts)
        token = office.rotate(account)
    show.shown(account, token, as_json)
    show.spread()


def _linked(choose: Callable[[Accounts], Account], url: str | None, hours: int, as_json: bool) -> None:
    from datetime import timedelta

    from runner.work.managing import managing

    config = context.config()
    at = show.address(config, url)
    with managing(config) as office:
        account = choose(office.accounts)
        link, until = office.link(account, timedelta(hours=hours))
    where = f"{at}/link/{link}"
    if as_json:
        output.as_json({"account": account.id, "link": where, "until": until})
        return
    output.say(f"send it to {account.team or account.id}; it gives a token once, until {until}:")
    output.data(where)


def _closed(choose: Callable[[Accounts], Account]) -> None:
    from runner.work.managing import managing

    with managing(context.config()) as office:
        account = choose(office.accounts)
        tied = bool(office.accounts.identities.of(account.id))
        done = office.close(account)
    output.say(f"the account of {account.team or account.id} {'is closed' if done else 'was closed already'}")
    if tied:
        output.say("nobody at a provider is tied to it any more: runner account tie does that anew")
    show.spread()
