"""Accounts managed: what stands in events, and what is left of a person who was erased."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.exchange.access import Access, Token
from runner.exchange.address import note_address, noted_address
from runner.views.history import told
from runner.work.managing import managing
from runner.work.members.accounts import open_accounts
from runner.work.notices.due import Notice
from runner.work.notices.outbox import Outbox
from tests.runner.execution.test_pool import World
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project, call

__all__ = ["cli"]

PEOPLE = ("Ada Lovelace", "Grace Hopper", "ada@example.org", "University of Somewhere")


def everything(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def add(cli: Cli, team: str = "alpha") -> str:
    names = ("--member", PEOPLE[0], "--member", PEOPLE[1])
    said = cli("team", "add", team, *names, "--contact", PEOPLE[2], "--affiliation", PEOPLE[3], "--json")
    return str(said.json["account"])


def test_organisers_and_assistants_sign_in_like_teams(project: Project, cli: Cli) -> None:
    token = call(project, "account", "add", "assistant", "--member", "Bob").out.strip()
    assert token.startswith("proctor_")
    [grant] = Access.read(project.config.published).grants.values()
    assert (grant.role, grant.team, grant.scopes) == ("assistant", None, ("read", "manage"))
    [listed] = cli("account", "list", "--json").json
    assert listed["role"] == "assistant" and token.split("_", 2)[2] not in str(listed)
    assert "Bob" in cli("account", "list").out
    assert cli("team", "list", "--json").json == []
    again = cli("account", "rotate", listed["id"]).out.strip()
    assert again != token and len(Access.read(project.config.published).grants) == 1
    cli("account", "close", listed["id"])
    assert Access.read(project.config.published).grants == {}
    before = cli("account", "list", "--json").json
    refused = cli("account", "add", "assessor", expect=2)
    assert "E101" in refused.err and refused.out == "" and cli("account", "list", "--json").json == before
    for bad in (
        ("add", "team"),
        ("add", "king"),
        ("close", "a-0000000000000000"),
        ("rotate", listed["id"]),
    ):
        cli("account", *bad, expect=2)


def test_tokens_and_links_are_told_apart_with_their_ends_and_uses(project: Project, cli: Cli) -> None:
    token = cli("team", "add", "alpha").out.strip().split("_")[1]
    cli("team", "link", "alpha", "--url", "http://127.0.0.1:8080", "--hours", "24")
    with managing(project.config) as office:
        office.accounts.uses.note(token, "2031-05-01T12:00:00Z")
        office.accounts.uses.note(token, "2031-04-01T12:00:00Z")
    [alpha] = cli("team", "list", "--json").json
    own, link = alpha["opens"]
    assert (own["id"], own["kind"], own["until"], own["last_used"]) == (
        token,
        "token",
        None,
        "2031-05-01T12:00:00Z",
    )
    assert (link["kind"], link["scopes"], link["last_used"]) == ("link", ["link"], None) and link["until"]
    said = cli("team", "list").out
    assert link["id"] in said and "2031-05-01" in said
    assert max(map(len, said.splitlines())) <= 80


def test_a_link_leads_to_where_the_front_said_that_people_reach_it(project: Project, cli: Cli) -> None:
    cli("team", "add", "alpha")
    assert "E101" in cli("team", "link", "alpha", expect=2).err
    assert len(cli("team", "list", "--json").json[0]["tokens"]) == 1, "no link was made"
    project.config.inbox.mkdir(parents=True)
    note_address(project.config.inbox, "https://task.example.org/")
    assert cli("team", "link", "alpha").out.startswith("https://task.example.org/link/proctor_")
    for url in ("http://[::1]:8080", "http://127.0.0.1:41234"):
        note_address(project.config.inbox, url)
        assert cli("account", "link", "alpha", "--json").json["link"].startswith(f"{url}/link/")
    (project.home / "link.json").write_text('{"front": "https://far.example.org"}')
    assert cli("team", "link", "alpha").out.startswith("https://far.example.org/link/")
    own = cli("team", "link", "alpha", "--url", "https://own.example.org/").out
    assert own.startswith("https://own.example.org/link/")
    assert "E101" in cli("team", "link", "alpha", "--url", "ftp://x", expect=2).err


PLANTED = (b"https://x\x1b[31m", b"https://" + b"x" * 4000, b"javascript:alert(1)", b"https://a/b c")


@pytest.mark.parametrize("planted", [*PLANTED, b"https://u:p@h", None])
def test_what_a_hostile_front_notes_as_its_address_is_none(project: Project, planted: bytes | None) -> None:
    path = project.config.inbox / "address"
    path.parent.mkdir(parents=True)
    if planted is None:
        os.mkfifo(path)
    else:
        path.write_bytes(planted)
    assert noted_address(project.config.inbox) is None
    path.unlink()
    (project.home / "there").write_text("https://task.example.org")
    path.symlink_to(project.home / "there")
    assert noted_address(project.config.inbox) is None


def test_events_name_accounts_by_opaque_ids_alone(project: Project, cli: Cli) -> None:
    account = add(cli)
    cli("team", "people", "alpha", "--member", PEOPLE[1])
    cli("team", "rotate", "alpha")
    cli("team", "close", "alpha")
    cli("account", "erase", account)
    log = project.config.events.read_text()
    assert account in log and not any(word in log for word in (*PEOPLE, "alpha"))
    with managing(project.config) as office:
        assert [account in one.says for one in told(office.store.log)] == [True] * 4


def test_nothing_of_who_was_erased_is_left_in_any_file(project: Project, cli: Cli) -> None:
    """Searched for in the bytes of all files: free pages, journals, and what was noted for notices."""
    for n in range(8):  # pages that are used again, and some that are not
        add(cli, f"team-{n}")
    account = add(cli, "gamma-team")
    token = cli("team", "rotate", "gamma-team").out.strip()
    with closing(Outbox(project.config)) as outbox:
        due = datetime(2031, 5, 1, tzinfo=UTC)
        outbox.add(
            "mail:team:gamma-team",
            [Notice("deadline:x", "deadline", "gamma-team", "of gamma-team", "/")],
            due,
        )
    assert b"gamma-team" in everything(project.home)
    cli("account", "erase", account)
    for n in range(8):
        cli("account", "erase", f"team-{n}")
    assert "gamma-team" not in cli("account", "list").out
    left = everything(project.home)
    for word in (*PEOPLE, "gamma-team", "team-7", Token.read(token).key):  # type: ignore[union-attr]
        assert word.encode() not in left, word


def test_a_close_that_was_cut_off_is_noted_by_the_next_one(project: Project, cli: Cli) -> None:
    account = add(cli)
    with managing(project.config) as office:
        office.accounts.close(office.accounts.named(account))  # killed before the event
        assert not office.close(office.accounts.named(account)) and not office.close(
            office.accounts.named(account)
        )
        types = [one.type for one in office.store.log]
    assert types == ["account-added", "account-closed"]


def test_one_member_is_erased_and_the_others_stay(project: Project, cli: Cli) -> None:
    account = add(cli)
    [ada, grace] = cli("team", "people", "alpha", "--json").json["members"]
    cli("account", "erase", "alpha", "--member", ada["id"])
    found = cli("team", "people", "alpha", "--json").json
    assert found["members"] == [grace] and found["closed"] is None and found["contact"] == PEOPLE[2]
    cli("account", "erase", "alpha", "--member", ada["id"], expect=2)
    assert PEOPLE[0].encode() not in everything(project.home) and account in found["id"]


def test_a_person_is_erased_and_log_boards_and_rebuild_stay_valid(project: Project, cli: Cli) -> None:
    project.write_task(uploads=True)
    world = World(project)
    try:
        account = add(cli)
        run = world.hand_in("alpha")
        world.work()
        world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
        board = ("leaderboard", "mini", "--json", "--as", "public")
        before, log = cli(*board).json, project.config.events.read_bytes()
        assert before["rows"] and PEOPLE[0].encode() in everything(project.home)
        cli("account", "erase", account)
        assert not any(word.encode() in everything(project.home) for word in PEOPLE)
        assert project.config.events.read_bytes().startswith(log), "nothing of the log was changed"
        cli("store", "verify")
        cli("store", "rebuild")
        assert cli(*board).json["rows"] == before["rows"]
        cli("show", run, "--as", "team:alpha")
    finally:
        world.close()
    with open_accounts(project.config) as accounts:
        [one] = accounts.all()
        assert one.closed and not one.tokens and one.team == "alpha", "nobody takes the name of its runs over"
    cli("team", "add", "alpha", expect=2)


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[31mred", "x" * 101, "‮gnp.exe", "  "])
def test_texts_about_people_print(text: str, cli: Cli) -> None:
    for option in ("--member", "--contact", "--affiliation"):
        assert "E101" in cli("team", "add", "alpha", option, text, expect=2).err
    assert cli("team", "list", "--json").json == []


def test_closing_again_publishes_what_a_kill_left_unpublished(project: Project, cli: Cli) -> None:
    with managing(project.config) as office:
        account, _ = office.add("team", "alpha")
        office.accounts.close(account)  # and then it was killed, or the disk was full
        assert Access.read(project.config.published).grants
    cli("team", "close", "alpha")
    assert Access.read(project.config.published).grants == {}
