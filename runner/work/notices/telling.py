"""The loop that tells: apart from the clerk, so that no receiver keeps anybody waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import schemas
from runner.exchange.database import DatabaseError
from runner.exchange.published import Published
from runner.model.clock import Clock
from runner.model.config import Config
from runner.model.errors import RunnerError, disk_error
from runner.model.names import contact_problem
from runner.work.members.accounts import Accounts, open_accounts
from runner.work.members.registrations import DAY
from runner.work.notices.due import ADMITTED, Notice, let_in, notices
from runner.work.notices.outbox import Outbox
from runner.work.notices.sending import NotSent, Unknown, call, identity, mail
from runner.work.notices.settings import CHOSEN, Settings, load

PACE = 5.0  # seconds between two looks
MOST = 20  # notices that are sent at a time


class Telling:
    """Tells whoever ``notices.yaml`` names. ``say`` and ``problem`` take what the organiser should know."""

    def __init__(
        self, config: Config, clock: Clock, say: Callable[[str], None], problem: Callable[[RunnerError], None]
    ) -> None:
        self.config, self.clock, self.say, self.problem = config, clock, say, problem
        self._told = ""

    def run(self, stop: threading.Event) -> None:
        """Tell until ``stop`` is set. What fails is said once, and tried again."""
        while not stop.is_set():
            try:
                self.round(stop)
                self._told = ""
            except RunnerError as error:
                self._failed(error)
            except (OSError, DatabaseError) as error:
                self._failed(disk_error("nobody can be told", OSError(str(error)), self.config.home))
            stop.wait(PACE)

    def _failed(self, error: RunnerError) -> None:
        if self._told != str(error):
            self.problem(error)
        self._told = str(error)

    def round(self, stop: threading.Event) -> None:
        """Look what there is to tell, and send what is due. Raises RunnerError, OSError, DatabaseError."""
        settings = load(self.config.root)
        if settings is None:
            return
        with closing(Outbox(self.config)) as outbox, open_accounts(self.config) as accounts:
            self._collect(settings, outbox, accounts)
            for _ in range(MOST):
                found = outbox.next(self.clock.now())
                if found is None or stop.is_set():
                    return
                self._send(settings, outbox, accounts, *found)

    def _collect(self, settings: Settings, outbox: Outbox, accounts: Accounts) -> None:
        now, teams = self.clock.now(), accounts.teams()
        found = list(notices(Published(self.config.published), teams, now, settings.deadline_hours))
        found += let_in(accounts.registrations.let_in(now - DAY))
        for hook in settings.hooks:
            of = [one for one in found if one.about in hook.about and hook.team in (None, one.team)]
            outbox.add(f"hook:{hook.id}", of, now)
        if settings.mail is not None:
            wanted = [one for one in found if one.about in settings.mail.about]
            if settings.mail.organisers:
                outbox.add("mail:organisers", wanted, now)
            for team in teams if settings.mail.teams else ():
                told = _wanted(settings, accounts, team)
                own = [one for one in wanted if one.team == team]
                outbox.add(f"mail:team:{team}", own, now, told)

    def _send(
        self, settings: Settings, outbox: Outbox, accounts: Accounts, receiver: str, notice: Notice
    ) -> None:
        """Send one notice; what becomes of it is noted in the outbox, and said where it did not come."""
        id, url = identity(receiver, notice), settings.url + notice.path
        try:
            if receiver.startswith("hook:"):
                hook = next((one for one in settings.hooks if f"hook:{one.id}" == receiver), None)
                if hook is None:
                    return outbox.drop(receiver, notice.key)
                call(hook, notice, id, url)
            else:
                to = _addresses(settings, accounts, receiver, notice.about)
                if settings.mail is None or not to:
                    return outbox.drop(receiver, notice.key)
                mail(settings.mail, ", ".join(to), notice, id, url)
            outbox.sent(receiver, notice.key)
        except NotSent as why:
            again = outbox.failed(receiver, notice.key, self.clock.now())
            then = "it is tried again" if again else "it is given up"
            self.say(f"{receiver} was not told of {notice.key}: {schemas.show(str(why), 300)}; {then}")
        except Unknown as why:
            outbox.drop(receiver, notice.key)
            self.say(
                f"whether {receiver} was told of {notice.key} is not known: {schemas.show(str(why), 300)}"
            )
        return None


def of_team(settings: Settings | None, accounts: Accounts, team: str) -> dict[str, Any]:
    """What a team is told by mail (schemas/notices-of-team.schema.json): what the organiser sends, of that what the team wants, where to."""
    mail = None if settings is None or not settings.mail or not settings.mail.teams else settings.mail
    sent = () if mail is None or (settings and team in settings.quiet) else mail.about
    may = [one for one in sent if one in CHOSEN]
    account = accounts.of_team(team).id
    wants, contact = accounts.people.wants(account), accounts.people.of(account).contact.strip()
    name, _, host = contact.partition("@")
    return {
        "may": may,
        "about": [one for one in may if wants is None or one in wants],
        "to": f"{name[:1]}…@{host}" if not contact_problem(contact) else "",
    }


def _wanted(settings: Settings, accounts: Accounts, team: str) -> list[str]:
    """What a team gets: what it chose, and that it was let in, before which it could choose nothing, unless it wants no mail at all."""
    found: list[str] = of_team(settings, accounts, team)["about"]
    off = team in settings.quiet or accounts.people.wants(accounts.of_team(team).id) == ()
    sent = settings.mail is not None and settings.mail.teams and ADMITTED in settings.mail.about
    return [*found, ADMITTED] if sent and not off else found


def of_teams(config: Config, accounts: Accounts) -> dict[str, Any]:
    """The same for each team that has an account; nobody is told anything where notices.yaml cannot be used."""
    try:
        settings = load(config.root)
    except RunnerError:  # said by who tells
        settings = None
    return {team: of_team(settings, accounts, team) for team in accounts.teams()}


def _addresses(settings: Settings, accounts: Accounts, receiver: str, about: str) -> list[str]:
    """Where mail for a receiver goes now; nowhere for a team that is quiet, does not want it, is closed, or has no address."""
    if settings.mail is None:
        return []
    if receiver == "mail:organisers":
        return list(settings.mail.organisers)
    team = receiver.removeprefix("mail:team:")
    if team not in accounts.teams() or about not in _wanted(settings, accounts, team):
        return []
    contact = accounts.people.of(accounts.of_team(team).id).contact.strip()
    return [] if contact_problem(contact) else [contact]
