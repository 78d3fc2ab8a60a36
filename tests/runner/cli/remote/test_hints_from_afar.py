"""What is said to whoever asks a server names commands that work as they are printed; receipts are fetched by a command."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from runner.cli.app import app
from runner.cli.main import load_commands
from runner.exchange.receipts import Signer, examine
from tests.runner.cli.remote.test_hostile_answers import TOKEN, known
from tests.worlds.hostile_server import ANSWER, ID, REQUEST, RUN, SHA, TIME, Answer, good, hostile
from tests.worlds.mini import Project, call_here

# What work says when it refuses, as its handlers and `register` write it.
FIXES = ("runner runs lists them", "runner show RUN says why, runner logs RUN has its log", "withdraw one")


def refusing(fix: str) -> Any:
    words = {"what": "no such submission", "why": "", "fix": fix}
    answer = {**ANSWER, "accepted": False, "code": "E102", **words}

    def making(method: str, path: str) -> Answer:
        data = {**REQUEST, "answer": answer} if "/requests/" in path else good(method, path)
        return Answer(json.dumps(data).encode())

    return making


@pytest.fixture
def home(tmp_path: Path, project: Project) -> Project:
    project.env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "RUNNER_TOKEN": TOKEN}
    return project


@pytest.mark.parametrize("fix", FIXES)
@pytest.mark.parametrize("verb", ["withdraw", "choose"])
def test_hints_of_a_refusal_ask_the_same_server(
    home: Project, verb: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with hostile(refusing(fix)) as (url, _):
        known(home, url)
        said = call_here(home, [verb, RUN, "--to", "local"], capsys)
    assert said.code == 2 and "E102" in said.err
    hints = re.findall(r"runner (?:runs|show|logs|status)[^,;)]*", said.err)
    assert len(hints) == 1 + fix.count("runner "), "the line about waiting has one, too"
    assert all(one.count("--to") == one.count("--to local") == 1 for one in hints), said.err


def test_the_printed_status_command_works(home: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with hostile(refusing("")) as (url, _):
        known(home, url)
        said = call_here(home, ["withdraw", RUN, "--to", "local"], capsys)
        [command] = re.findall(r"runner (status \S+ --to \S+)", said.err)
        shown = call_here(home, shlex.split(command), capsys)
    assert shown.code == 1 and "E102" in shown.out


def test_a_receipt_is_fetched(home: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statement = {"server": "https://x.example", "request": ID, "kind": "run-file", "team": "alpha"}
    statement |= {"sha256": SHA, "size": 5, "task": "mini", "began": TIME, "arrived": TIME}
    arrival = Signer.load(tmp_path / "key").sign("arrival", statement)
    one = {**REQUEST, "answer": None, "receipt": arrival}
    given = [one]
    with hostile(lambda method, path: Answer(json.dumps(given[0]).encode())) as (url, _):
        known(home, url)
        said = call_here(home, ["receipt", "get", ID, "--to", "local"], capsys)
        assert said.code == 0 and examine(said.json) == [] and said.json["arrival"] == arrival
        given[0] = {**one, "receipt": None}
        none = call_here(home, ["receipt", "get", ID, "--to", "local"], capsys)
    assert none.code == 2 and f"runner status {ID} --to local" in none.err


def test_every_command_that_hints_may_name_takes_a_server() -> None:
    load_commands()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name in ("runs", "show", "logs", "status"):
        assert any("--to" in option.opts for option in commands[name].params), name
