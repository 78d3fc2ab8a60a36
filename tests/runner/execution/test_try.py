"""``runner try`` for a whole team: what is wrong with one software stops no other."""

from __future__ import annotations

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
from runner.model.verdict import TABLE
from runner.submissions.definition import SubmissionFile
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
    assert TABLE["platform-error"].next not in " ".join(text.out.split()), "nothing is tried again"
    engine.close()


def writes(mounts: Mounts, out: Path) -> None:
    out.joinpath("run.txt").write_text("1 Q0 d1 1 1.0 x\n")
