"""Leaderboards and tasks of a server, on the terminal of a team: the same lines as beside it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from runner.cli.app import app
from runner.exchange import tails
from runner.exchange.published import Published, Publisher
from runner.exchange.tails import Tail
from tests.runner.web.test_api_v1 import TEAMS, front
from tests.runner.web.test_routes import Front
from tests.worlds import records
from tests.worlds.mini import Project, Said, call_here

__all__ = ["front"]


@pytest.fixture
def home(tmp_path: Path, project: Project, front: Front) -> Project:
    """A folder with nothing of the task, where alpha has logged in."""
    config = tmp_path / "config"
    project.env = {"XDG_CONFIG_HOME": str(config)}
    folder = config / "proctor/servers"
    folder.mkdir(parents=True, mode=0o700)
    facts = {"name": "local", "url": front.url, "token": str(front.tokens["team"]), "team": "alpha"}
    (folder / "local.json").touch(0o600)
    (folder / "local.json").write_text(json.dumps(facts))
    return project


def board(home: Project, capsys: pytest.CaptureFixture[str], *more: str) -> Said:
    return call_here(home, ["leaderboard", records.TASK, "--to", "local", *more], capsys)


def test_boards_in_every_format(home: Project, front: Front, capsys: pytest.CaptureFixture[str]) -> None:
    with front.client("team") as team:
        of = team.get(f"/api/v1/tasks/{records.TASK}").json()
        name = of["boards"][0]["id"]
        data = team.get(f"/api/v1/tasks/{records.TASK}/boards/{name}").json()
    said = board(home, capsys)
    assert said.code == 0 and data["rows"], said.all
    for row in data["rows"]:
        assert row["software"] in said.out and row["team"] in said.out
    assert board(home, capsys, "--json").json == data
    rows = list(csv.DictReader(io.StringIO(board(home, capsys, "--format", "csv").out)))
    assert [one["software"] for one in rows][: len(data["rows"])] == [one["software"] for one in data["rows"]]
    assert board(home, capsys, "--round", "final").code == 0
    measures = board(home, capsys, "--format", "ir_measures").out.splitlines()
    assert ["alpha.y", "all", "ndcg"] in [line.split()[:3] for line in measures]
    chosen = board(home, capsys, "--against", "alpha.y", "--json").json
    assert chosen["significance"]["against"] == "alpha/y"
    assert [row["comparison"] is None for row in chosen["rows"]] == [
        row["team"] == "alpha" for row in data["rows"]
    ]


def test_what_the_server_does_not_give_is_said(home: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for more, code in (
        (("--table", "none"), "E102"),
        (("--round", "none"), "E102"),
        (("--unit", "team"), "E101"),
        (("--against", "none"), "E102"),
        (("--round", "final", "--against", "alpha/y"), "E101"),
        (("--format", "trec"), "E101"),
    ):
        said = board(home, capsys, *more)
        assert said.code == 2 and code in said.err, (more, said.all)
    assert "E102" in call_here(home, ["leaderboard", "none", "--to", "local"], capsys).err


def test_tasks_are_shown_as_at_home(home: Project, front: Front, capsys: pytest.CaptureFixture[str]) -> None:
    project = front.exchange.parents[0]
    own = {"RUNNER_ROOT": str(project), "RUNNER_HOME": str(project / "home")}
    for words in (("list",), ("list", "--json"), ("show", records.TASK)):
        there = call_here(home, ["task", *words, "--to", "local"], capsys)
        as_ = ("--as", "team:alpha") if words[0] == "show" else ()
        here = CliRunner().invoke(app, ["task", *words, *as_], env=own)
        assert there.code == 0 and there.out == here.stdout, (there.all, here.output)
    assert "for alpha" in call_here(home, ["task", "show", records.TASK, "--to", "local"], capsys).out
    data = call_here(home, ["task", "show", records.TASK, "--to", "local", "--json"], capsys).json
    assert data["team"]["team"] == "alpha" and data["id"] == records.TASK and "printed" not in data
    assert "E102" in call_here(home, ["task", "show", "none", "--to", "local"], capsys).err


def test_the_log_of_a_running_run(home: Project, front: Front, capsys: pytest.CaptureFixture[str]) -> None:
    root, name = front.exchange / "published", tails.new_name()
    audiences = ("public", *(f"team:{team}" for team in TEAMS))
    before = {audience: Published(root).view(audience).below("") for audience in audiences}
    logs = {one.title for one in before["team:alpha"] if one.kind == "log"}
    runs = {one.title for one in before["team:alpha"] if one.kind == "run" and one.title.startswith("alpha.")}
    silent = min(runs - logs)

    def logs_of(run: str, expect: int = 0) -> Said:
        said = call_here(home, ["logs", run, "--to", "local"], capsys)
        assert said.code == expect, said.all
        return said

    refused = logs_of(silent, 2)
    assert "E102" in refused.err and f"runner show {silent} --to local" in refused.err
    to = Publisher(root)
    tail = to.object(f"tails/{silent}", "tail", silent, {"file": name})
    to.publish({**before, "team:alpha": [*before["team:alpha"], tail]})
    try:
        assert logs_of(silent).out == "", "nothing was written yet"
        tails.write(root, name, Tail(7, "half a line\nfirst\nsecond"))
        said = logs_of(silent)
        cut, *lines = said.out.splitlines()
        assert cut.startswith("[cut: ") and lines == ["first", "second"] and silent in said.err
        assert logs_of(min(logs)).err == "", "the log of another run is whole"
        path = f"/api/v1/runs/{silent}/log"
        with front.client("team") as team, front.client("other") as other, front.client() as nobody:
            assert team.get(path).json()["running"] is True
            assert {other.get(path).status_code, nobody.get(path).status_code} <= {401, 404}
    finally:
        to.publish(before)
