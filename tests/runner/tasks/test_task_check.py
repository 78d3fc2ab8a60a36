"""``runner task check --run`` tells why a baseline did not prove its task, in JSON as well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from runner.cli import context
from runner.cli.commands import task_check
from runner.execution.trials import prove
from runner.tasks import scaffold
from tests.worlds.definitions import project


def test_a_failed_proof_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = project(tmp_path / "root")
    scaffold.new_task(config, "mine")
    row = {"software": "baselines/b", "dataset": "dev", "scenario": "default", "outcome": "failed"}
    row |= {"why": "run-error: exit code 7", "scores": {}, "good": False}
    monkeypatch.setattr(context, "config", lambda: config)
    wrong = prove.Ordered("dev", "default", {"ap": {"perfect": 0.2, "empty": 0.4}}, ("ap: upside down",))
    monkeypatch.setattr(prove, "prove", lambda *_: [row])
    monkeypatch.setattr(prove, "prove_order", lambda *_: [wrong])
    for as_json in (False, True):
        with pytest.raises(typer.Exit) as end:
            task_check.check("mine", run=True, as_json=as_json)
        assert end.value.exit_code == 1
        out, err = capsys.readouterr()
        assert "exit code 7" in out
        if as_json:
            said = json.loads(out)
            assert (said["task"], said["good"], said["runs"]) == ("mine", False, [row])
            assert said["order"] == [wrong.as_dict()]
        else:
            assert "0.2000 > 0.4000" in out and "FAIL: dev" in err and wrong.wrong[0] in err
