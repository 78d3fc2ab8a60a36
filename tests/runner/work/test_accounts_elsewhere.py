"""Accounts that move into PostgreSQL: they are in one place, and nobody takes an empty one for all there are."""

from __future__ import annotations

from runner.work.members.accounts import copy_accounts, open_accounts
from tests.runner.work.members.test_accounts import refused
from tests.worlds.mini import Project
from tests.worlds.postgres import Server


def test_accounts_move_to_the_server_that_is_named_and_are_in_one_place(
    project: Project, postgres: Server
) -> None:
    server = postgres.database_for(project.home)
    with open_accounts(project.config) as accounts:
        account, token = accounts.add("team", "alpha")
        accounts.add("team", "beta")
        accounts.people.put(account.id, contact="ada@example.org", members=["Grace", "Ada"])
        before, known = accounts.all(), accounts.people.of(account.id)
    kept = (project.home / "accounts.sqlite").read_bytes()
    project.database = server
    with open_accounts(project.config) as accounts:
        assert accounts.all() == before and accounts.people.of(account.id) == known
        assert accounts.known(account.id, token.id) == (before[0], token.key)
    assert not (project.home / "accounts.sqlite").exists()
    project.database = None
    with refused("E306"), open_accounts(project.config):
        pass
    (project.home / "accounts.sqlite").write_bytes(kept)
    project.database = server
    with refused("E306"), open_accounts(project.config):
        pass


def test_a_backup_has_the_accounts_before_they_move_and_after(project: Project, postgres: Server) -> None:
    with open_accounts(project.config) as accounts:
        accounts.add("team", "alpha")
        before = accounts.all()
    project.database = postgres.database_for(project.home)
    for number in range(2):
        copy = project.home.parent / f"{number}" / "accounts.sqlite"
        assert copy_accounts(project.config, copy)
        there = Project(project.root, copy.parent, project.truths)
        with open_accounts(there.config) as accounts:
            assert accounts.all() == before
    project.database = None
    with refused("E306"):
        copy_accounts(project.config, project.home.parent / "none")


def test_a_database_without_the_accounts_that_were_in_one_is_refused(
    project: Project, postgres: Server
) -> None:
    project.database = postgres.database_for(project.home)
    with open_accounts(project.config) as accounts:
        accounts.add("team", "alpha")
    project.database = postgres.database_for(project.home.parent)
    with refused("E306"), open_accounts(project.config):
        pass
    (project.home / "accounts.elsewhere").unlink()
    with open_accounts(project.config) as accounts:
        assert accounts.all() == []
