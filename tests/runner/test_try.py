"""``runner try`` for a whole team: what is wrong with one software stops no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from definitions import project, write_submission, write_task

from runner.cli import context, submit
from runner.errors import RunnerError
from runner.submissions import SubmissionFile


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
    monkeypatch.setattr(submit, "_tried", tried)
    with pytest.raises(typer.Exit) as end:
        submit.try_("alpha", as_json=True)
    said = capsys.readouterr()
    assert end.value.exit_code == RunnerError("E203", "x").exit_code
    assert "E203" in said.err and '"fine"' in said.out
