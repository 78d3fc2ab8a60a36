"""Accounts: the third record, apart from archive and events."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from runner.exchange.access import Access, Token
from runner.exchange.database import Database
from runner.exchange.inbox import Inbox, Request, answered
from runner.exchange.receipts import KEY, Signer
from runner.model.clock import FixedClock
from runner.model.config import Config
from runner.model.errors import RunnerError
from runner.records.backup import backup, restore
from runner.records.store.connect import open_store
from runner.work.members.accounts import VERSION, copy_accounts, open_accounts, publish_access
from runner.work.requests import Requests
from tests.worlds import records
from tests.worlds.mini import Project, call


@pytest.fixture
def project(project: Project, either: str) -> Project:
    """Its accounts are in a file, and once more in PostgreSQL."""
    project.database = records.database_for(project.home)
    return project


def refused(code: str) -> pytest.RaisesExc[RunnerError]:
    return pytest.raises(RunnerError, check=lambda error: error.code == code)


def test_what_a_token_may_is_what_its_account_is(project: Project) -> None:
    with open_accounts(project.config) as accounts:
        team, token = accounts.add("team", "alpha")
        organiser, theirs = accounts.add("organiser")
        assert accounts.known(team.id, token.id) == (team, token.key)
        assert accounts.known(organiser.id, token.id) is None and accounts.known(team.id, "0" * 12) is None
        accounts.tokens.check(team, token.id, "hand-in")
        for account, which, scope in (
            (organiser, theirs.id, "hand-in"),
            (organiser, token.id, "read"),
        ):
            with refused("E103"):
                accounts.tokens.check(account, which, scope)
        assert accounts.close(team) and not accounts.close(team)
        with refused("E103"):
            accounts.tokens.check(team, token.id, "read")
        assert [one.closed is None for one in accounts.all()] == [False, True] and accounts.teams() == []


def test_revoking_counts_at_the_front_at_once_without_work(project: Project) -> None:
    published = project.config.published
    with open_accounts(project.config) as accounts:
        account, old = accounts.add("team", "alpha")
        publish_access(project.config, accounts)
        assert Access.read(published).grant(old) is not None
        new = accounts.tokens.rotate(account)
        publish_access(project.config, accounts)
    assert Access.read(published).grant(old) is None and Access.read(published).grant(new) is not None


def test_names_that_cannot_be_told_apart_are_refused(project: Project) -> None:
    with open_accounts(project.config) as accounts:
        accounts.add("team", "alpha")
        for name, teams, code in (("ALPHA", [], "E215"), ("bOb", ["b0b"], "E215"), ("organiser", [], "E208")):
            with refused(code):
                accounts.add("team", name, teams=teams)
        accounts.add("team", "gamma", teams=["gamma-two"])


def test_a_backup_brings_the_accounts_back_and_they_are_the_owners_alone(
    project: Project, tmp_path: Path
) -> None:
    call(project, "team", "add", "alpha")
    (project.home / "events.jsonl").touch()
    key = Signer.load(project.home / KEY).public
    backup(project.config, tmp_path / "backup", partial(copy_accounts, project.config))
    back = Project(project.root, tmp_path / "back", project.truths)
    restore(tmp_path / "backup", back.home)
    assert (back.home / "accounts.sqlite").stat().st_mode & 0o077 == 0
    back.database = records.database_for(back.home)
    with open_accounts(project.config) as old, open_accounts(back.config) as new:
        assert new.all() == old.all() != []
    assert (back.home / "accounts.sqlite").exists() is (back.database is None), "they are in one place"
    assert Signer.load(back.home / KEY).public == key, "what was signed holds afterwards, too"


def test_accounts_of_a_newer_program_are_left_alone(project: Project) -> None:
    with open_accounts(project.config):
        pass
    set_version(project.config, VERSION + 1)
    with refused("E306"), open_accounts(project.config):
        pass


def test_a_file_that_is_no_database_is_said(project: Project) -> None:
    project.database = None
    project.home.mkdir(exist_ok=True)
    (project.home / "accounts.sqlite").write_bytes(b"no database at all, for sure" * 50)
    with refused("E306"), open_accounts(project.config):
        pass


def set_version(config: Config, number: int) -> None:
    with closing(Database(config.database_url or config.home / "accounts.sqlite", "accounts")) as database:
        database.execute("UPDATE version SET number = ?", [number])


FIRST = """
CREATE TABLE accounts (id TEXT PRIMARY KEY, role TEXT NOT NULL, team TEXT, created TEXT NOT NULL, closed TEXT);
CREATE TABLE tokens (id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (id), key TEXT NOT NULL,
                     scopes TEXT NOT NULL, created TEXT NOT NULL, revoked TEXT);
INSERT INTO accounts VALUES ('a-0123456789abcdef', 'team', 'alpha', '2031-05-01T12:00:00Z', NULL);
INSERT INTO tokens VALUES ('0123456789ab', 'a-0123456789abcdef', 'k', 'read hand-in', '2031-05-01T12:00:00Z', NULL);
CREATE TABLE version (one INTEGER PRIMARY KEY, number INTEGER NOT NULL);
INSERT INTO version VALUES (1, 1);
"""


def test_databases_of_before_get_the_tables_that_they_lack(project: Project) -> None:
    project.home.mkdir(exist_ok=True)
    with sqlite3.connect(project.home / "accounts.sqlite") as connection:
        connection.executescript(FIRST)
    for _ in range(2):
        with open_accounts(project.config) as accounts:
            account = accounts.of_team("alpha")
            accounts.people.put(account.id, contact="ada@example.org")
            assert account.tokens == ("0123456789ab",)
            assert accounts.tokens.access().grants["0123456789ab"].expires is None


@pytest.mark.parametrize(
    ("arrival", "code"),
    [("2031-05-01T23:59:59Z", "E102"), ("2031-05-02T00:00:00Z", "E102"), ("2031-05-02T00:00:01Z", "E103")],
)
def test_what_came_in_time_counts_also_when_work_was_down_until_later(
    project: Project, arrival: str, code: str
) -> None:
    """A sign-in at a provider lasts until midnight here: what was asked for before is looked at an hour later."""
    start, token, made = datetime(2031, 5, 1, 12, tzinfo=UTC), Token.new(), Token.new()
    with open_accounts(project.config, clock=FixedClock(start)) as accounts:
        account, _ = accounts.add("team", "alpha")
        accounts.tokens.lend(account, token.id, token.key, timedelta(hours=12))
    more = {"token": made.id, "key": made.key, "scopes": ["read"], "replaces": False}
    asked = [
        Request.new(kind, account.id, token.id, "alpha", arrival, data)
        for kind, data in (("withdraw", {"submission": "alpha.x.0"}), ("token", more))
    ]
    for one in asked:
        Inbox(project.config.inbox).put(one, token.key)
    later = FixedClock(start + timedelta(hours=13))
    with open_store(project.config) as store, open_accounts(project.config, clock=later) as accounts:
        Requests(project.config, store, accounts, lambda _: None, later).round({})
        accounts.tokens.take_back(account)
        with refused("E103"):
            accounts.tokens.check(account, token.id, "read", start)  # taken away is taken away
    found = [answered(project.config.published, one.id) or {} for one in asked]
    assert found[0]["code"] == code
    assert found[1].get("code") == (None if code == "E102" else "E103")


def test_what_was_lent_gives_no_token_that_stays(project: Project) -> None:
    """Who is untied from a provider's people has nothing left, whatever they made meanwhile."""
    start = datetime(2031, 5, 1, 12, tzinfo=UTC)
    with open_accounts(project.config, clock=FixedClock(start)) as accounts:
        account, _ = accounts.add("team", "alpha")
        lent, made = Token.new(), Token.new()
        accounts.tokens.lend(account, lent.id, lent.key, timedelta(hours=12))
        more = (start, made.id, made.key, ("read", "hand-in"), False)
        assert accounts.tokens.put(account, lent.id, *more)
        assert accounts.tokens.access().grants[made.id].expires == "2031-05-02T00:00:00Z"
        accounts.tokens.take_back(account)
        for token in (lent, made):
            with refused("E103"):
                accounts.tokens.check(account, token.id, "hand-in")
