"""Local checks of a team: one broken software stops no other, and failures that are not the team's are named."""

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
from runner.model.container import Exit
from runner.model.errors import FAILED, PlatformError, RunnerError
from runner.model.outcome import AttemptFacts, derive, once
from runner.submissions.definition import SubmissionFile
from tests.worlds import definitions
from tests.worlds import interactive_jobs as jobs
from tests.worlds.definitions import project, write_submission, write_task


def test_a_broken_build_does_not_stop_the_teams_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = project(tmp_path / "root")
    write_task(config)
    for name in ("broken", "fine"):
        write_submission(config, "task: toy\nbuild: {context: .}\n", "alpha", name)

    def tried(_config: object, submission: SubmissionFile, *_: Any, **__: Any) -> tuple[bool, dict[str, Any]]:
        if submission.software == "broken":
            raise RunnerError("E203", "building broken failed")
        return True, {"software": submission.software}

    monkeypatch.setattr(context, "config", lambda: config)
    monkeypatch.setattr(submit, "try_on_public_data", tried)
    with pytest.raises(typer.Exit) as end:
        submit.try_("alpha", as_json=True)
    said = capsys.readouterr()
    assert end.value.exit_code == RunnerError("E203", "x").exit_code
    assert "E203" in said.err and '"fine"' in said.out


@pytest.mark.parametrize("where", ["session", "start", "copy_out"])
@pytest.mark.parametrize("dataset", ["dev", "test"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_failure_of_ours_always_has_a_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    dataset: str,
    as_json: bool,
) -> None:
    """Also on a blinded dataset, where a team is told less: whoever tries a software has no organiser to ask."""
    config = project(tmp_path / "root", truths=tmp_path / "truths")
    write_task(config)
    write_submission(config, f"task: toy\nimage: {identity('soft')}\n", "alpha", "one")
    failure = PlatformError("the keeper did not start", why="fault-17")
    engine = FakeEngine({"soft": writes, "ours": Exit(code=0)}, faults={where: [failure]})
    monkeypatch.setattr(context, "config", lambda: config)
    machine = Machine(config, engine=engine, images={"evaluator": identity("ours")})
    monkeypatch.setattr(context, "machine", lambda *_: machine)
    with pytest.raises(typer.Exit) as end:
        submit.try_("alpha", dataset=dataset, as_json=as_json)
    text = capsys.readouterr()
    assert end.value.exit_code == FAILED
    assert "platform-error" in text.err and "fault-17" in text.err
    assert ("fault-17" in text.out) is (dataset == "dev")
    expected = once(derive([AttemptFacts(1, "platform-error")])).next
    assert expected in " ".join(text.out.split()), "nothing is tried again"
    engine.close()


def writes(mounts: Mounts, out: Path) -> None:
    out.joinpath("run.txt").write_text("1 Q0 d1 1 1.0 x\n")


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
