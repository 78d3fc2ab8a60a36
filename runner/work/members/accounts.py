"""Accounts, members and tokens: the third primary record beside archive and events, owned by work.

One database: ``accounts.sqlite`` in the data directory, readable for its owner alone, or a schema beside the store's. It is a record of its own so
that what is known of a person can be erased: events, archive and published things name accounts by opaque ids only
(``a-`` and 16 hex digits) and teams by their names. Tokens are kept as keys and never in the clear
(:mod:`runner.exchange.access`); whoever changes anything here publishes what tokens open anew (:func:`publish_access`),
so that revoking works at once, also while work is down.

What people said of themselves (:mod:`runner.work.members.people`) are tables of their own, named by ``account``. A change of tables is one
more row of :data:`_TABLES`: databases of before get the rows that they lack.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from runner.exchange.access import Role, Token
from runner.exchange.database import Database, DatabaseError, copied, moved
from runner.model.clock import Clock, SystemClock, stamp
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError, disk_error, no_such
from runner.model.names import BASELINES, check_apart, check_name
from runner.work.members.identities import TABLES as IDENTITIES
from runner.work.members.identities import Identities
from runner.work.members.people import TABLES as PEOPLE
from runner.work.members.people import WANTED, People
from runner.work.members.registrations import ACCEPTANCES, LET_IN, Registrations
from runner.work.members.registrations import TABLES as REGISTRATIONS
from runner.work.members.tokens import EXPIRING, SCOPES, Account, Tokens
from runner.work.members.tokens import TABLES as TOKENS
from runner.work.members.uses import TABLES as USES
from runner.work.members.uses import Uses
from schemas.files import make_private

_TABLES = (
    f"CREATE TABLE accounts (id TEXT PRIMARY KEY, role TEXT NOT NULL, team TEXT, created TEXT NOT NULL, closed TEXT);{TOKENS}",
    PEOPLE,
    EXPIRING,
    REGISTRATIONS,
    IDENTITIES,
    USES,
    *(WANTED, LET_IN, ACCEPTANCES),
)
VERSION = len(_TABLES)
FILE = "accounts.sqlite"
ELSEWHERE = "accounts.elsewhere"  # is there when they are in the database that RUNNER_DATABASE names


class Accounts:
    """The open accounts of a data directory; :func:`open_accounts` makes one."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db, self._clock = database, clock
        self.tokens = Tokens(database, clock)
        self.people = People(database)
        self.registrations = Registrations(database)
        self.identities = Identities(database)
        self.uses = Uses(database)

    def all(self) -> list[Account]:
        """Every account, in the order in which they were made."""
        rows = self._db.execute("SELECT id, role, team, created, closed FROM accounts ORDER BY rowid")
        return [Account(i, role, team, made, end, self.tokens.of(i)) for i, role, team, made, end in rows]

    def teams(self) -> list[str]:
        """The teams that have an open account, by name."""
        return sorted({one.team for one in self.all() if one.team is not None and one.closed is None})

    def of_team(self, team: str) -> Account:
        """The account of a team. Raises E102."""
        known = {one.team: one for one in self.all() if one.team is not None}
        if team not in known:
            raise no_such(
                "team", team, known, why="Nobody has an account for it.", fix=f"runner team add {team}"
            )
        return known[team]

    def named(self, text: str) -> Account:
        """The account of that id, or of the team of that name. Raises E102."""
        there = {one.team: one for one in self.all()} | {one.id: one for one in self.all()}
        found = there.get(text)  # a team that is called as an id is meant by its own
        if found is None:
            known = [one.id for one in self.all()]
            raise no_such("account", text, known, fix="runner account list names them")
        return found

    def add(self, role: Role, team: str | None = None, *, teams: Sequence[str] = ()) -> tuple[Account, Token]:
        """Make an account and its first token, which is shown now or never.

        Args:
            role: What the account is.
            team: Of which team, for the role ``team``.
            teams: Names of teams that there are without an account, which a new one must not look like.

        Raises:
            RunnerError: E208 for what is no name, or is the organiser's; E215 for one like another team's; E101 when the
                team has an account.
        """
        if team is not None:
            self._check_team(team, teams)
        account = "a-" + secrets.token_hex(8)
        with self._db:
            self._db.execute(
                "INSERT INTO accounts VALUES (?, ?, ?, ?, NULL)", (account, role, team, self._now())
            )
            token = self.tokens.new(account, role)
        return self._account(account), token

    def admit(self, account: str, team: str, token: str, key: str, *, teams: Sequence[str] = ()) -> Account:
        """Make the account of a team that registered, with the ids and the token that it was shown. As :meth:`add`; E101 also for
        a token that there is already."""
        self._check_team(team, teams)
        with self._db:
            if self.tokens.has(token):
                raise RunnerError("E101", "that token is another's", fix="register anew")
            row = (account, "team", team, self._now())
            self._db.execute("INSERT INTO accounts VALUES (?, ?, ?, ?, NULL)", row)
            self.tokens.insert(account, token, key, SCOPES["team"])
        return self._account(account)

    def has(self, account: str) -> bool:
        """Whether there is an account of that id."""
        return any(one.id == account for one in self.all())

    def _check_team(self, team: str, teams: Sequence[str]) -> None:
        check_name("team", team)
        if team == BASELINES:
            raise RunnerError("E208", f"{BASELINES} are the organiser's", fix="choose another name")
        with_account = [one.team for one in self.all() if one.team is not None]
        if team in with_account:
            fix = f"runner team rotate {team} makes a new token"
            raise RunnerError("E101", f"the team {team} has an account", fix=fix)
        check_apart("team", team, [*with_account, *teams])

    def close(self, account: Account) -> bool:
        """Close an account: its tokens open nothing any more. False when it was closed already."""
        with self._db:
            self.tokens.revoke(account)
            query = "UPDATE accounts SET closed = ? WHERE id = ? AND closed IS NULL"
            return self._db.execute(query, (self._now(), account.id)).rowcount == 1

    def reopen(self, account: Account) -> bool:
        """Open an account again: tokens of before stay revoked, new ones can be made. False when it was open. Raises E101 for one whose name was erased."""
        if account.role == "team" and account.team is None:
            raise RunnerError("E101", f"{account.id} was erased", fix="runner team add makes an account")
        with self._db:
            query = "UPDATE accounts SET closed = NULL WHERE id = ? AND closed IS NOT NULL"
            return self._db.execute(query, (account.id,)).rowcount == 1

    def erase(self, account: Account, *, keep_name: bool) -> None:
        """Close an account and erase all that is known of the people behind it; ``keep_name`` keeps the name of its team."""
        self.close(account)
        self.uses.erase(account.id)
        with self._db:
            self.tokens.erase(account)
            if not keep_name:
                self._db.execute("UPDATE accounts SET team = NULL WHERE id = ?", (account.id,))
        self.identities.untie(account.id)
        self.people.erase(account.id)

    def known(self, account: str, token: str) -> tuple[Account, str] | None:
        """The account that a request names and the key of its token, also of one that was revoked; None where there is none."""
        key = self.tokens.key(account, token)
        return None if key is None else (self._account(account), key)

    def copy_to(self, other: Database) -> None:
        """Put all that is known here into a database that has our tables, and nothing in them."""
        copied(self._db, other)

    def _account(self, id: str) -> Account:
        return next(one for one in self.all() if one.id == id)

    def _now(self) -> str:
        return stamp(self._clock.now())


@contextmanager
def open_accounts(config: Config, *, clock: Clock | None = None) -> Iterator[Accounts]:
    """The accounts of a data directory; the database is made when it is not there.

    Raises PlatformError E306 when it cannot be used, or is of a newer version than this program.
    """
    try:
        with closing(_opened(config)) as database:
            yield Accounts(database, clock or SystemClock())
    except DatabaseError as error:
        fix = "restore it from a backup, or have its owner give it to you"
        if config.database_url and (config.home / FILE).exists():
            fix = "remove the file, or drop the schema of accounts there: docs/how-to/postgres.md"
        elif config.database_url:
            fix = "start the server, or correct RUNNER_DATABASE (in proctor.yaml: database); runner doctor tries it"
        raise PlatformError("the accounts cannot be used", why=f"{error}.", fix=fix, code="E306") from error
    except OSError as error:
        raise disk_error("the accounts cannot be used", error, config.home / FILE) from error


def copy_accounts(config: Config, target: Path) -> bool:
    """Write a copy of the accounts, as they stand between two changes, to a file of SQLite for its owner alone; False where there are
    none. Raises E306."""
    if not any((config.home / name).exists() for name in (FILE, ELSEWHERE)):
        return False
    with open_accounts(config) as accounts, closing(Database(target)) as copy:
        copy.follow(_TABLES)
        accounts.copy_to(copy)
    return True


def _opened(config: Config) -> Database:
    """The database with the tables of today. Accounts that stand in a file move to the server that is named now.

    Raises DatabaseError, OSError and PlatformError E306.
    """
    file, elsewhere = config.home / FILE, config.home / ELSEWHERE
    if not config.database_url:
        if elsewhere.exists() and not file.exists():
            why = f"They are in the database of which {elsewhere} tells."
            fix = "set RUNNER_DATABASE; docs/how-to/postgres.md says how they come back into a file"
            raise PlatformError("the accounts are not here", why=why, fix=fix, code="E306")
        return _current(Database(file))
    database = Database(config.database_url, "accounts")
    try:
        if not moved(file, database, _TABLES):
            with database:
                new = database.follow(_TABLES) == 0
                if new and elsewhere.exists():
                    why = f"The database that RUNNER_DATABASE names has none, and {elsewhere} says that they were in one."
                    fix = "name that one; or remove that file to begin with no accounts"
                    raise PlatformError("the accounts are not there", why=why, fix=fix, code="E306")
        make_private(elsewhere.parent)
        elsewhere.touch(0o600)
        return _current(database)
    except BaseException:
        database.close()
        raise


def _current(database: Database) -> Database:
    """A database with the tables of today. Raises DatabaseError, and E306 for one of a newer version."""
    try:
        if database.follow(_TABLES) > VERSION:
            why = "They were written by a newer version of this program."
            raise PlatformError("the accounts cannot be read", why=why, fix="use that version", code="E306")
    except BaseException:
        database.close()
        raise
    return database


def publish_access(config: Config, accounts: Accounts) -> None:
    """Publish what tokens open, at once: what is revoked opens nothing from now on. Raises OSError."""
    accounts.tokens.access().write(config.published)
