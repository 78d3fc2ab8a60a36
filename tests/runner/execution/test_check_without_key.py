"""A task whose simulated user is a language model, checked by a team that has no key: said, and packed all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from runner.cli import context
from runner.cli.commands import submit
from runner.engines.fake import FakeEngine, Mounts, identity
from runner.execution.machine import Machine
from runner.model.errors import FAILED
from tests.worlds import definitions
from tests.worlds import interactive_jobs as jobs

ADDRESS = "https://models.example.org/v1"
GATEWAY = {"base_url": ADDRESS, "key": "EXAMPLE_KEY", "models": ["m"], "calls": 9, "tokens": 9}


def refuses(mounts: Mounts) -> None:
    """A gateway without a key, and without a reply to what it is asked."""
    line = {"status": 503, "code": "unknown_reply"}
    (mounts["/log"] / "calls.jsonl").write_text(json.dumps(line) + "\n")
    jobs.stays(mounts)


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """A software of the team alpha, on an engine where it would debate well."""
    monkeypatch.delenv("EXAMPLE_KEY", raising=False)
    config = definitions.project(tmp_path)
    services = {"user": {"data": "services/arguments", "llm": {"model": "m"}}, "gateway": GATEWAY}
    folder = definitions.write_task(
        config,
        workflow="interactive",
        output="simulations.jsonl",
        interaction={"mode": "debate"},
        services=services,
    )
    for dataset in ("dev", "test"):
        (folder / f"datasets/{dataset}/inputs/claims.jsonl").write_text('{"id": "1", "claim": "x"}\n')
    jobs.arguments(folder / "services/arguments")
    definitions.write_submission(config, f"task: toy\nimage: {jobs.THEIRS}\n", "alpha", "one")
    failed = {"failure": {"part": "user", "message": "status 502"}}
    engine = jobs.engine(gateway=refuses, driver=jobs.writes(**failed))
    monkeypatch.setattr(context, "config", lambda: config)
    # Nobody gets as far as to ask an evaluator.
    ours = {"evaluator": identity(jobs.OURS), "sidecars": identity(jobs.OURS)}
    machine = Machine(config, engine=engine, images=ours)
    monkeypatch.setattr(context, "machine", lambda *_: machine)
    return engine


@pytest.mark.parametrize("command", ["pack", "submit"])
def test_a_team_without_the_key_is_told_how_to_go_on(
    team: FakeEngine, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    call: Any = getattr(submit, command)
    with pytest.raises(typer.Exit) as end:
        call("alpha")
    assert end.value.exit_code == FAILED
    said = capsys.readouterr()
    text = said.out + said.err
    assert all(word in text for word in ("--no-check", "E408", "EXAMPLE_KEY"))

    # In JSON as well, where what was seen is data.
    with pytest.raises(typer.Exit):
        call("alpha", as_json=True)
    said = capsys.readouterr()
    assert "--no-check" in said.err and "E408" in json.dumps(json.loads(said.out))

    # And that way works.
    before = len(team.started)
    call("alpha", check=False)
    assert "alpha.one" in capsys.readouterr().err and len(team.started) == before


def test_a_failure_of_the_softwares_own_is_not_excused(
    team: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line is only for what is no fault of the team's."""
    report = jobs.said(ready=False, ready_ms=None, debates=0, turns=0)
    made = jobs.engine(gateway=jobs.stays, driver=jobs.writes(report))
    team.script.update(made.script)
    with pytest.raises(typer.Exit):
        submit.pack("alpha")
    said = capsys.readouterr()
    assert "--no-check" not in said.out + said.err and "unhealthy" in said.out + said.err
