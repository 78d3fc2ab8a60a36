"""What organisers do with accounts: each change counts in the accounts, is published at once, and is an event.

The one implementation behind `runner team`, `runner account` and what is approved of registrations. Events name accounts by their
opaque ids and nobody else: what is erased later was never in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import schemas
from runner.exchange.access import Role, Token
from runner.exchange.inbox import answer, remove_answer
from runner.exchange.security import SecurityLog
from runner.model.clock import Clock
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.records.store.connect import Store, open_store
from runner.records.store.queries import submissions
from runner.work.members.accounts import Accounts, open_accounts, publish_access
from runner.work.members.identities import Identity
from runner.work.members.registrations import Registration
from runner.work.members.tokens import Account
from runner.work.notices.outbox import forget_team

ACTOR = "organiser"
_CLOSES = {"account-added": False, "account-reopened": False, "account-closed": True, "account-erased": True}


@dataclass(frozen=True)
class Managing:
    """Accounts and store of a data directory, both open."""

    config: Config
    store: Store
    accounts: Accounts

    def add(self, role: Role, team: str | None = None) -> tuple[Account, Token]:
        """Make an account and its first token, which is shown now or never. Raises E101, E208 and E215 for a team's name."""
        known = [entry.team for entry in submissions(self.store) if entry.team != team]
        account, token = self.accounts.add(role, team, teams=known)
        self._done("account-added", account, role=role)
        return account, token

    def lend_token(self, account: Account, token: str, key: str, lasts: timedelta) -> None:
        """Note a token for a while, of somebody whom a provider knows (:meth:`Accounts.lend`)."""
        new = self.accounts.tokens.lend(account, token, key, lasts)
        self._once("token-added", account, new=new, token=token, by="provider")
        publish_access(self.config, self.accounts)

    def tie(self, account: Account, identity: Identity) -> None:
        """Let somebody sign in at a provider for an account. Raises E101 when they are another's."""
        self.accounts.identities.tie(account.id, identity)
        self._done("account-tied", account)

    def untie(self, account: Account) -> bool:
        """Have nobody sign in at a provider for an account, from this moment; whether anybody could."""
        done = self.accounts.identities.untie(account.id)
        self.accounts.tokens.take_back(account)
        if done:
            self._done("account-untied", account)
        publish_access(self.config, self.accounts)
        return done

    def wait(self, asked: Registration) -> None:
        """Have a registration wait for the organiser. Raises E101 when too many do."""
        self.accounts.registrations.put(asked)
        SecurityLog(self.config.home).note("registration waits", account=asked.account)

    def admit(self, asked: Registration, team: str | None = None, *, at_once: bool = False) -> Account:
        """Make the account that was registered for, under another name of the ``team`` where one is given. Raises as :meth:`add`.

        Unless it is let in ``at_once``, without a person, it is among those who are told (:mod:`runner.work.notices`).
        """
        if self.accounts.has(asked.account):  # killed before, the rest was not done
            return self._admitted(asked, at_once)
        name = team or asked.team
        known = [entry.team for entry in submissions(self.store) if entry.team != name]
        if any(entry.team == name for entry in submissions(self.store)):
            why = "Whoever has the account of a team has its softwares, too."
            fix = "runner team add makes an account for who handed them in; or give this one another name"
            raise RunnerError("E101", f"softwares of {name} were handed in before", why=why, fix=fix)
        self.accounts.admit(asked.account, name, asked.token, asked.key, teams=known)
        return self._admitted(asked, at_once)

    def _admitted(self, asked: Registration, at_once: bool) -> Account:
        account = self.accounts.named(asked.account)
        self.accounts.people.put(
            account.id, contact=asked.contact, affiliation=asked.affiliation, members=asked.members
        )
        self.accounts.registrations.accepted(asked, None if at_once else account.created)
        self._once("account-added", account, new=False, role="team")
        self._answer(asked, accepted=True, pending=False)
        self.accounts.registrations.remove(asked.account)
        return account

    def reject(self, asked: Registration, reason: str) -> None:
        """Refuse a registration, and erase what was said in it."""
        self.accounts.registrations.remove(asked.account)
        SecurityLog(self.config.home).note("registration refused", account=asked.account)
        facts = {"code": "E103", "what": "the organiser did not let the team in", "why": reason}
        self._answer(asked, accepted=False, **facts)

    def _answer(self, asked: Registration, **facts: Any) -> None:
        about = {"team": None, "kind": "register", "arrival": asked.arrival, "sha256": None}
        answer(self.config.published, asked.request, {**about, **facts})

    def rotate(self, account: Account) -> Token:
        """A new token in the place of all others. Raises E101 for an account that is closed."""
        token = self.accounts.tokens.rotate(account)
        self._done("token-replaced", account, token=token.id)
        return token

    def link(self, account: Account, lasts: timedelta) -> tuple[Token, str]:
        """A one-time link for an account, and until when (UTC). Raises E101 for one that is closed."""
        if account.closed is not None:
            raise RunnerError("E101", f"the account of {account.team or account.role} is closed")
        token, until = self.accounts.tokens.link(account, lasts)
        self._done("link-made", account, token=token.id)
        return token, until

    def put_token(
        self,
        account: Account,
        by: str,
        at: datetime,
        token: str,
        key: str,
        scopes: Sequence[str],
        replaces: bool,
    ) -> None:
        """Note a token that its owner asked for with another one or a link (:meth:`runner.work.members.tokens.Tokens.put`)."""
        new = self.accounts.tokens.put(account, by, at, token, key, scopes, replaces)
        self._once("token-added", account, new=new, token=token, by=by)
        publish_access(self.config, self.accounts)

    def close(self, account: Account, reason: str = "") -> bool:
        """Close an account, and tie nobody at a provider to it any more; False when it was closed already. What is open is published
        in both cases: the first try may have failed."""
        done = self.accounts.close(account)
        publish_access(self.config, self.accounts)
        if done or not self._told_closed(account):
            self._done("account-closed", account, **_why(reason))
        self._untie_closed(account)
        return done

    def reopen(self, account: Account, reason: str = "") -> bool:
        """Open an account that was closed; False when it was open. Nobody signs in before they are given a token, or tied anew."""
        if account.closed is not None:
            self._untie_closed(account)  # closed before closing did it, or killed meanwhile
        done = self.accounts.reopen(account)
        if done or self._told_closed(account):
            self._done("account-reopened", account, **_why(reason))
        return done

    def _untie_closed(self, account: Account) -> None:
        if self.accounts.identities.untie(account.id):
            self._done("account-untied", account)

    def erase(self, account: Account, member: str | None = None) -> int:
        """Erase what is known of the people of an account and close it; or erase only one ``member``. Raises E102.

        The name of a team that handed something in stays, since boards and archive have it: nobody else gets it.

        Returns:
            The number of published answers to its requests that were removed. They name the team, and the closed account cannot read them.
        """
        if member is None:
            handed_in = any(entry.team == account.team for entry in submissions(self.store))
            self.accounts.erase(account, keep_name=handed_in)
            if account.team is not None and not handed_in:
                forget_team(self.config, account.team)
        else:
            self.accounts.people.erase_member(account.id, member)
        self._done("account-erased", account, **({} if member is None else {"member": member}))
        return 0 if member is not None else self._remove_answers(account)

    def _remove_answers(self, account: Account) -> int:
        requests = {
            event.data["request"]
            for event in self.store.log
            if event.type == "request-decided" and event.data.get("account") == account.id
        }
        return sum(remove_answer(self.config.published, request) for request in requests)

    def _once(self, event: str, account: Account, *, new: bool, **facts: str) -> None:
        """Note an event that the log has not: killed between accounts and event, work does the same again."""
        same = {"account": account.id, **{key: facts[key] for key in ("token",) if key in facts}}
        if new or not any(one.type == event and same.items() <= one.data.items() for one in self.store.log):
            self._done(event, account, **facts)

    def _told_closed(self, account: Account) -> bool:
        """Whether an account is closed by what the log says; killed before the event, somebody does the same again."""
        closed = False
        for one in self.store.log:
            if one.data.get("account") == account.id and one.type in _CLOSES:
                closed = _CLOSES[one.type] if "member" not in one.data else closed
        return closed

    def _done(self, event: str, account: Account, **facts: str) -> None:
        publish_access(self.config, self.accounts)
        self.store.commit(event, {"account": account.id, **facts}, actor=ACTOR)
        SecurityLog(self.config.home).note(event, account=account.id, **facts)


def _why(reason: str) -> dict[str, str]:
    return {"reason": schemas.show(reason, 500)} if reason else {}


@contextmanager
def managing(config: Config, *, clock: Clock | None = None) -> Iterator[Managing]:
    """The accounts of a data directory for one change or several. Raises E306 and E307."""
    with open_store(config) as store, open_accounts(config, clock=clock) as accounts:
        yield Managing(config, store, accounts)
