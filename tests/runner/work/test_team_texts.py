"""Texts of a person who was erased: listed, cleared on request, and gone from all that is shown."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.exchange.inbox import answer, answered
from runner.records.store.connect import open_store
from runner.work.members.accounts import open_accounts
from tests.runner.execution.test_pool import World, good
from tests.worlds.command_line import Cli, cli
from tests.worlds.mini import Project, call_here
from tests.worlds.records import TASK
from tests.worlds.records import World as Records

__all__ = ["cli"]

PERSON = "Anna Beispiel"
MAIL = "anna@example.org"
WORDS = (PERSON, MAIL)
ADDRESS = "https://anna.example.org/paper"


@pytest.fixture
def world(project: Project, cli: Cli) -> Iterator[World]:
    """A scored submission of a team whose texts name a person, on open scores."""
    project.write_task(uploads=True, asks={"paper": "optional", "affiliation": "optional"})
    new_world = World(project)
    cli("team", "add", "beta", "--member", PERSON, "--contact", MAIL)
    new_world.hand_in(
        "beta",
        "dense",
        good,
        description=f"written by {PERSON}, {MAIL}",
        tag="annas",
        display_name=f"dense of {PERSON}",
        team_display_name=PERSON,
        paper=ADDRESS,
        affiliation=PERSON,
    )
    new_world.work()
    new_world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    yield new_world
    new_world.close()


def shown(project: Project, capsys: pytest.CaptureFixture[str]) -> str:
    """All that the public and the team see of it."""
    run = call_here(project, ["runs", "--json"], capsys).json[0]["run"]
    commands = [
        ["leaderboard", "mini", "--format", name, "--as", "public"] for name in ("csv", "html", "json")
    ]
    commands += [["show", run, "--json", "--as", who] for who in ("team:beta", "organiser")]
    return "".join(call_here(project, command, capsys).out for command in commands)


@pytest.mark.slow
def test_erasing_lists_what_is_shown_and_clearing_removes_it(
    world: World, capsys: pytest.CaptureFixture[str], cli: Cli
) -> None:
    project = world.project
    before = shown(project, capsys)
    assert all(word in before for word in (*WORDS, ADDRESS, "annas"))
    result = cli("account", "erase", "beta")
    fields = {entry["field"] for entry in cli("team", "texts", "beta", "--json").json}
    assert fields == {"description", "tag", "display_name", "team_display_name", "paper", "affiliation"}
    assert all(
        name in result.all for name in (*fields, *WORDS, "--clear-texts", "events.jsonl", "submissions/")
    )
    assert PERSON in shown(project, capsys), "nothing is cleared without a word"
    log = project.config.events.read_bytes()
    cli("account", "erase", "beta", "--clear-texts")
    assert project.config.events.read_bytes().startswith(log)
    after = shown(project, capsys)
    assert not [word for word in (*WORDS, ADDRESS, "annas") if word in after]
    cli("site", "build", str(project.root / "site"))
    pages = [path.read_bytes() for path in (project.root / "site").rglob("*") if path.is_file()]
    assert pages and not [word for word in (*WORDS, ADDRESS) if any(word.encode() in page for page in pages)]
    assert cli("team", "texts", "beta", "--json").json == []
    assert "texts-cleared" in {event.type for event in world.store.log}
    cli("store", "verify")
    cli("store", "rebuild")
    assert not [word for word in WORDS if word in shown(project, capsys)]


def test_erasing_a_member_clears_no_text_of_the_team(world: World, cli: Cli) -> None:
    project = world.project
    cli("team", "people", "beta", "--member", PERSON, "--member", "Ada", "--contact", MAIL)
    with open_accounts(project.config) as accounts:
        account = accounts.named("beta")
        members = [member.id for member in accounts.people.of(account.id).members]
    log = project.config.events.read_bytes()
    command = ("account", "erase", "beta", "--member", members[0])
    assert "E101" in cli(*command, "--clear-texts", expect=2).err
    assert project.config.events.read_bytes() == log, "nobody was erased"
    result = cli(*command)
    assert PERSON in result.all and "description" in result.all
    assert cli("team", "texts", "beta", "--json").json


def test_a_team_without_an_account_can_be_cleared_too(project: Project, tmp_path: Path, cli: Cli) -> None:
    """The table of the organiser names people; the teams have no accounts."""
    project.write_task(uploads=True)
    (tmp_path / "b.txt").write_text("".join(f"dev-{n} Q0 d1 1 2.0 second\n" for n in (1, 2, 3)))
    (tmp_path / "runs.csv").write_text(
        "team,run,file,dataset,team_display_name,description,display_name\n"
        f'beta,dense,b.txt,dev,"{PERSON}","written by {PERSON}, {MAIL}",dense\n'
    )
    (project.root / "submissions").mkdir(exist_ok=True)
    cli("register", "--table", str(tmp_path / "runs.csv"), "--task", "mini")
    texts = cli("team", "texts", "beta", "--json").json
    assert {entry["field"] for entry in texts} == {"description", "display_name", "team_display_name"}
    assert cli("team", "texts", "beta", "--clear-texts", "--json").json == []
    assert cli("team", "texts", "nobody", "--json").json == []


@pytest.mark.parametrize(("typed", "left"), [(b"y\n", False), (b"n\n", True), (b"\n", True)])
def test_at_a_terminal_clearing_is_asked_for(world: World, typed: bytes, left: bool, cli: Cli) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", "account", "erase", "beta"],
        env=world.project.environment(),
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    os.write(master, typed)
    result = process.communicate(timeout=60)[0]
    os.close(master)
    os.close(slave)
    assert process.returncode == 0 and b"Clear them?" in result, result
    assert bool(cli("team", "texts", "beta", "--json").json) is left


def test_a_frozen_round_shows_cleared_texts_no_more(tmp_path: Path) -> None:
    """The file of the round keeps them, since its hash is in the event log."""
    from datetime import UTC, datetime

    from runner.model.clock import FixedClock
    from runner.tasks.load import load_task
    from runner.views.audience import ORGANISER, PUBLIC
    from runner.views.leaderboard.export import export
    from runner.views.leaderboard.rounds import board, freeze
    from runner.views.team_texts import clear_texts

    world = Records.make(tmp_path / "project")
    project = Project(tmp_path / "project", world.config.home, tmp_path / "truths")
    measures = [
        {"id": "ndcg", "measure": "nDCG@10", "truths": "qrels.txt"},
        {"id": "rr", "measure": "RR", "truths": "qrels.txt"},
    ]
    table = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg"}
    project.write_task(
        TASK, measures=measures, tables=[table], rounds=[{"id": "final", "at": "2026-01-05 23:59 UTC"}]
    )
    task = load_task(project.config, TASK)
    submission = world.register(
        "alpha", "x", description=f"by {PERSON}", display_name=PERSON, team_display_name=MAIL, tag="annas"
    )
    world.evaluation(world.attempt(submission), {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}})
    world.commit("dataset-published", task=TASK, dataset="test")
    freeze(
        world.config,
        world.store,
        task,
        "final",
        clock=FixedClock(datetime(2027, 1, 1, tzinfo=UTC)),
        anyway=True,
    )

    def seen() -> str:
        boards = [board(world.store, task, "final", None, who) for who in (ORGANISER, PUBLIC)]
        return "".join(export(entry, name) for entry in boards for name in ("csv", "html", "json"))

    assert all(word in seen() for word in (PERSON, MAIL, "annas"))
    assert clear_texts(world.store, "alpha") == 1
    assert not [word for word in (PERSON, MAIL, "annas") if word in seen()]
    world.store.close()


def test_answers_to_an_erased_team_are_no_longer_published(project: Project, cli: Cli) -> None:
    cli("team", "add", "alpha")
    cli("team", "add", "beta")
    published = project.config.published
    with open_accounts(project.config) as accounts:
        ids = {entry.team: entry.id for entry in accounts.all()}
    requests = {"alpha": "a" * 32, "beta": "b" * 32}
    with open_store(project.config) as store:
        for team, request in requests.items():
            facts = {
                "request": request,
                "account": ids[team],
                "team": team,
                "kind": "withdraw",
                "arrival": "2031-05-01T11:00:00Z",
            }
            facts |= {
                "sha256": None,
                "accepted": False,
                "code": "E102",
                "what": f"team {team} has no such submission",
            }
            store.commit("request-decided", facts, actor=team)
            about = {key: facts[key] for key in ("team", "kind", "arrival", "sha256", "accepted")}
            answer(published, request, about)
    result = cli("account", "erase", "alpha")
    assert (
        answered(published, requests["alpha"]) is None and answered(published, requests["beta"]) is not None
    )
    assert not [path for path in published.rglob("*") if path.is_file() and b"alpha" in path.read_bytes()]
    assert "alpha" in json.dumps(result.err)
