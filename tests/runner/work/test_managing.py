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
from tests.worlds.mini import Project, call

PEOPLE = ("Ada Lovelace", "Grace Hopper", "ada@example.org", "University of Somewhere")


def everything(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def add(project: Project, team: str = "alpha") -> str:
    names = ("--member", PEOPLE[0], "--member", PEOPLE[1])
    said = call(
        project, "team", "add", team, *names, "--contact", PEOPLE[2], "--affiliation", PEOPLE[3], "--json"
    )
    return str(said.json["account"])


def test_no_account_is_made_for_an_assessor(project: Project) -> None:
    """Nothing is open to the role yet, and its token would open nothing."""
    said = call(project, "account", "add", "assessor", expect=2)
    assert "E101" in said.err and said.out == ""
    assert call(project, "account", "list", "--json").json == []


def test_organisers_and_assistants_sign_in_like_teams(project: Project) -> None:
    said = call(project, "account", "add", "assistant", "--member", "Bob")
    token = said.out.strip()
    assert said.code == 0 and token.startswith("proctor_") and "assistant" in said.err
    [grant] = Access.read(project.config.published).grants.values()
    assert (grant.role, grant.team, grant.scopes) == ("assistant", None, ("read", "manage"))
    [listed] = call(project, "account", "list", "--json").json
    assert listed["role"] == "assistant" and token.split("_", 2)[2] not in str(listed)
    assert "assistant Bob" in call(project, "account", "list").out
    assert call(project, "team", "list", "--json").json == []
    again = call(project, "account", "rotate", listed["id"]).out.strip()
    assert again != token and len(Access.read(project.config.published).grants) == 1
    call(project, "account", "close", listed["id"])
    assert Access.read(project.config.published).grants == {}
    for bad in (("add", "team"), ("add", "king"), ("close", "a-0000000000000000"), ("rotate", listed["id"])):
        call(project, "account", *bad, expect=2)


def test_tokens_and_links_are_told_apart_with_their_ends_and_uses(project: Project) -> None:
    token = call(project, "team", "add", "alpha").out.strip().split("_")[1]
    call(project, "team", "link", "alpha", "--url", "http://127.0.0.1:8080", "--hours", "24")
    with managing(project.config) as office:
        office.accounts.uses.note(token, "2031-05-01T12:00:00Z")
        office.accounts.uses.note(token, "2031-04-01T12:00:00Z")
    [alpha] = call(project, "team", "list", "--json").json
    own, link = alpha["opens"]
    assert (own["id"], own["kind"], own["until"], own["last_used"]) == (
        token,
        "token",
        None,
        "2031-05-01T12:00:00Z",
    )
    assert (link["kind"], link["scopes"], link["last_used"]) == ("link", ["link"], None) and link["until"]
    said = call(project, "team", "list").out
    assert " link " in said and "2031-05-01" in said and "never" in said
    assert max(map(len, said.splitlines())) <= 80
    call(project, "team", "close", "alpha")
    assert "closed 20" in call(project, "team", "list").out


def test_a_link_leads_to_where_the_front_said_that_people_reach_it(project: Project) -> None:
    call(project, "team", "add", "alpha")
    said = call(project, "team", "link", "alpha", expect=2)
    assert "--url https://task.example.org" in said.err and "runner serve" in said.err
    assert len(call(project, "team", "list", "--json").json[0]["tokens"]) == 1, "no link was made"
    project.config.inbox.mkdir(parents=True)
    note_address(project.config.inbox, "https://task.example.org/")
    assert call(project, "team", "link", "alpha").out.startswith("https://task.example.org/link/proctor_")
    for url in ("http://[::1]:8080", "http://127.0.0.1:41234"):
        note_address(project.config.inbox, url)
        assert call(project, "account", "link", "alpha", "--json").json["link"].startswith(f"{url}/link/")
    (project.home / "link.json").write_text('{"front": "https://far.example.org"}')
    assert call(project, "team", "link", "alpha").out.startswith("https://far.example.org/link/")
    own = call(project, "team", "link", "alpha", "--url", "https://own.example.org/").out
    assert own.startswith("https://own.example.org/link/")
    assert "no address" in call(project, "team", "link", "alpha", "--url", "ftp://x", expect=2).err


@pytest.mark.parametrize(
    "planted",
    [
        b"https://x\x1b[31m",
        b"https://" + b"x" * 4000,
        b"javascript:alert(1)",
        b"https://a/b c",
        b"https://u:p@h",
        None,
    ],
)
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


def test_events_name_accounts_by_opaque_ids_alone(project: Project) -> None:
    account = add(project)
    call(project, "team", "people", "alpha", "--member", PEOPLE[1])
    call(project, "team", "rotate", "alpha")
    call(project, "team", "close", "alpha")
    call(project, "account", "erase", account)
    log = project.config.events.read_text()
    assert account in log and not any(word in log for word in (*PEOPLE, "alpha"))
    with managing(project.config) as office:
        says = [one.says for one in told(office.store.log)]
    assert says[0] == f"the account {account} was made, as team" and len(says) == 4


def test_nothing_of_who_was_erased_is_left_in_any_file(project: Project) -> None:
    """Searched for in the bytes of all files: free pages, journals, and what was noted for notices."""
    for n in range(8):  # pages that are used again, and some that are not
        add(project, f"team-{n}")
    account = add(project, "gamma-team")
    token = call(project, "team", "rotate", "gamma-team").out.strip()
    with closing(Outbox(project.config)) as outbox:
        due = datetime(2031, 5, 1, tzinfo=UTC)
        outbox.add(
            "mail:team:gamma-team",
            [Notice("deadline:x", "deadline", "gamma-team", "of gamma-team", "/")],
            due,
        )
    assert b"gamma-team" in everything(project.home)
    call(project, "account", "erase", account)
    for n in range(8):
        call(project, "account", "erase", f"team-{n}")
    left = everything(project.home)
    for word in (*PEOPLE, "gamma-team", "team-7", Token.read(token).key):  # type: ignore[union-attr]
        assert word.encode() not in left, word


def test_a_close_that_was_cut_off_is_noted_by_the_next_one(project: Project) -> None:
    account = add(project)
    with managing(project.config) as office:
        office.accounts.close(office.accounts.named(account))  # killed before the event
        assert not office.close(office.accounts.named(account)) and not office.close(
            office.accounts.named(account)
        )
        types = [one.type for one in office.store.log]
    assert types == ["account-added", "account-closed"]


def test_one_member_is_erased_and_the_others_stay(project: Project) -> None:
    account = add(project)
    [ada, grace] = call(project, "team", "people", "alpha", "--json").json["members"]
    call(project, "account", "erase", "alpha", "--member", ada["id"])
    found = call(project, "team", "people", "alpha", "--json").json
    assert found["members"] == [grace] and found["closed"] is None and found["contact"] == PEOPLE[2]
    call(project, "account", "erase", "alpha", "--member", ada["id"], expect=2)
    assert PEOPLE[0].encode() not in everything(project.home) and account in found["id"]


def test_a_person_is_erased_and_log_boards_and_rebuild_stay_valid(project: Project) -> None:
    project.write_task(uploads=True)
    world = World(project)
    try:
        account = add(project)
        run = world.hand_in("alpha")
        world.work()
        world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
        board = ("leaderboard", "mini", "--json", "--as", "public")
        before, log = call(project, *board).json, project.config.events.read_bytes()
        assert before["rows"] and PEOPLE[0].encode() in everything(project.home)
        call(project, "account", "erase", account)
        assert not any(word.encode() in everything(project.home) for word in PEOPLE)
        assert project.config.events.read_bytes().startswith(log), "nothing of the log was changed"
        call(project, "store", "verify")
        call(project, "store", "rebuild")
        assert call(project, *board).json["rows"] == before["rows"]
        call(project, "show", run, "--as", "team:alpha")
    finally:
        world.close()
    with open_accounts(project.config) as accounts:
        [one] = accounts.all()
        assert one.closed and not one.tokens and one.team == "alpha", "nobody takes the name of its runs over"
    call(project, "team", "add", "alpha", expect=2)


def test_a_name_that_stands_nowhere_is_erased_too(project: Project) -> None:
    account = add(project, "lovelace-group")
    call(project, "account", "erase", account)
    assert b"lovelace-group" not in everything(project.home)
    assert "(erased)" in call(project, "account", "list").out


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[31mred", "x" * 101, "‮gnp.exe", "  "])
def test_texts_about_people_print(project: Project, text: str) -> None:
    for option in ("--member", "--contact", "--affiliation"):
        assert "E101" in call(project, "team", "add", "alpha", option, text, expect=2).err
    assert call(project, "team", "list", "--json").json == []


def test_closing_again_publishes_what_a_kill_left_unpublished(project: Project) -> None:
    with managing(project.config) as office:
        account, _ = office.add("team", "alpha")
        office.accounts.close(account)  # and then it was killed, or the disk was full
        assert Access.read(project.config.published).grants
    call(project, "team", "close", "alpha")
    assert Access.read(project.config.published).grants == {}
