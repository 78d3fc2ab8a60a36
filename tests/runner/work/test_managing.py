"""Accounts managed: what stands in events, and what is left of a person who was erased."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.exchange.access import Access
from runner.views.history import told
from runner.work.accounts import open_accounts
from runner.work.managing import managing
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


def test_organisers_and_assistants_sign_in_like_teams(project: Project) -> None:
    said = call(project, "account", "add", "assistant", "--member", "Bob")
    token = said.out.strip()
    assert said.code == 0 and token.startswith("proctor_") and "assistant" in said.err
    [grant] = Access.read(project.config.published).grants.values()
    assert (grant.role, grant.team, grant.scopes) == ("assistant", None, ("read", "manage"))
    [listed] = call(project, "account", "list", "--json").json
    assert listed["role"] == "assistant" and token.split("_")[2] not in str(listed)
    assert "assistant Bob" in call(project, "account", "list").out
    assert call(project, "team", "list", "--json").json == []
    again = call(project, "account", "rotate", listed["id"]).out.strip()
    assert again != token and len(Access.read(project.config.published).grants) == 1
    call(project, "account", "close", listed["id"])
    assert Access.read(project.config.published).grants == {}
    for bad in (("add", "team"), ("add", "king"), ("close", "a-0000000000000000"), ("rotate", listed["id"])):
        call(project, "account", *bad, expect=2)


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
