"""A run taken out of the archive, and the command line that stands for its sandbox."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from runner.execution.job import Job
from runner.execution.trials.software import command_line
from runner.model.task import Model
from runner.records.store import run_detail
from runner.views.audience import ORGANISER
from runner.views.export import export_run
from runner.views.redact import redact_run
from tests.worlds import records
from tests.worlds.records import World


def test_prototext_has_the_measures_as_the_task_writes_them(tmp_path: Path) -> None:
    world = World.make(tmp_path / "world")
    submission = world.scored("a", "x", mean=0.5)
    task = records.task()
    detail = run_detail.detail(world.store, f"{submission}.test", [task])
    view = redact_run(detail, ORGANISER, task.datasets["test"])
    names = {name: measure.measure for name, measure in task.measures.items()}
    written = export_run(detail, view, tmp_path / "out", names)
    assert written == sum(1 for path in (tmp_path / "out").rglob("*") if path.is_file())
    text = (tmp_path / "out" / "evaluation.prototext").read_text()
    assert 'key: "nDCG@10"' in text and 'key: "ndcg"' not in text


def test_the_command_line_can_be_pasted() -> None:
    task = records.task()
    job = Job(
        run_id="a.x.00000000.dev",
        submission_id="a.x.00000000",
        team="a",
        software="x",
        task=task,
        dataset=task.datasets["dev"],
        scenario="default",
        workflow="batch",
        image="sha256:1234",
        command=("sh", "-c", "it's $HOME"),
        env={"outputDir": "/tira-data/output"},
        limits=task.limits,
        models=(Model(Path("/models/m"), "/model", "sha256:0"),),
    )
    line = command_line(job)
    words = shlex.split(line)
    assert words[:6] == ["mkdir", "-p", "-m", "777", "output", "&&"]
    assert "$PWD/output:/tira-data/output" in words
    assert "type=bind,src=/models/m,dst=/model,readonly" in words
    assert words[-4:] == ["--entrypoint=sh", "sha256:1234", "-c", "it's $HOME"]
    assert command_line(replace(job, image=None)) == ""
