"""Every misbehaving software, for real: its verdict, outcome and blame, and what its team is shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from runner.cli import render
from runner.engines.base import BuildSpec
from runner.engines.docker.engine import DockerEngine
from runner.engines.docker.owner import default_locks, private_folder
from runner.execution.machine import Machine
from runner.execution.trials.software import Checked, check
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.submissions.bundle import provisional
from runner.submissions.load import load_submission
from runner.tasks.load import load_task
from runner.views.audience import Audience, may_export
from runner.views.hints import hint
from runner.views.logs import log_lines
from runner.views.redact import redact_run
from tests.leftovers import KEPT
from tests.verdicts import cases

pytestmark = pytest.mark.engine
TEAM = Audience("team", cases.TEAM)


@pytest.fixture(scope="session")
def verdicts_image(
    engine: DockerEngine, base_image: ImageRef, tmp_path_factory: pytest.TempPathFactory
) -> ImageRef:
    """The one image that holds all softwares."""
    context = cases.image_context(tmp_path_factory.mktemp("verdicts") / "context")
    # Layers are cached by what a file is, and the time it was changed is part of that.
    for path in (context, *context.rglob("*")):
        os.utime(path, (0, 0))
    with FileLock(private_folder(default_locks()) / "test-build.lock"):
        return engine.build(
            BuildSpec(context, tag="proctor/test-verdicts", args={"BASE_IMAGE": base_image.id}, labels=KEPT)
        )


@contextmanager
def ran(
    case: cases.Case, folder: Path, engine: DockerEngine, evaluator: ImageRef, image: ImageRef
) -> Iterator[Checked]:
    cases.write_project(folder, image.id, [case])
    config = Config(root=folder, home=folder / "home", truths=None)
    task = load_task(config, cases.TASK)
    submission = load_submission(config, cases.TEAM, case.name)
    bundle = provisional(submission, image, submission.folder)
    machine = Machine(config, engine=engine, images={"evaluator": evaluator.id})
    with check(machine, bundle, task, task.datasets[cases.DATASET]) as checked:
        yield checked
    assert not list((folder / "home").glob("check-*"))


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("case", cases.load_cases(), ids=lambda case: case.name)
def test_what_becomes_of_it(
    case: cases.Case,
    tmp_path: Path,
    engine: DockerEngine,
    evaluator_image: ImageRef,
    verdicts_image: ImageRef,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ran(case, tmp_path, engine, evaluator_image, verdicts_image) as checked:
        outcome = checked.detail.run.outcome
        view = checked.view(TEAM)
        shown = json.dumps(dict(view), ensure_ascii=False)
        assert (outcome.verdict, outcome.name, outcome.blame) == (case.verdict, case.outcome, case.blame), (
            shown
        )
        assert outcome.costs_quota
        assert outcome.ranked == (case.outcome == "scored")
        render.show(view)
        told = capsys.readouterr().out + _told(view)
        for text in case.text:
            assert text in told
        helps = hint(view, checked.job.task)
        assert case.hint in helps and bool(case.hint) == bool(helps), helps
        assert set(case.codes) <= view["findings"]["codes"].keys()
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", told)
        assert outcome.name == "scored" or outcome.next
        _nothing_on_a_blinded_dataset(checked)


def _told(view: Mapping[str, Any]) -> str:
    """Every text in a view, one a line, as a person would read it."""
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for key, inner in value.items():
                found.append(str(key))
                walk(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                walk(inner)

    walk(dict(view))
    return "\n".join(found)


def _nothing_on_a_blinded_dataset(checked: Checked) -> None:
    """The same run, had it been on hidden data: no word that the software chose, no id, comes through."""
    hidden = replace(checked.job.dataset, visibility="blinded", scores="organiser")
    view = redact_run(checked.detail, TEAM, hidden)
    assert view["outcome"]["verdict"] == checked.detail.run.outcome.verdict
    assert hint(view, checked.job.task) == ""
    assert view["log"] == {} and view["scores"] == {} and view["topic_scores"] == {}
    assert view["run_tag"] is None and view["findings"]["lines"] == []
    told = _told(
        {**view, **dict.fromkeys(("command", "run", "submission", "software", "description", "tag"))}
    )
    attempt = checked.detail.attempt
    assert attempt is not None
    record = attempt.record()
    words = {name for name, _ in record["output"]["refused"]} | {f["name"] for f in record["output"]["files"]}
    for file in attempt.files("logs").values():
        with file.open() as log:
            words |= set(log.read().decode(errors="replace").split())
    words |= {d["text"] for d in _findings(checked)}
    words = {w for w in words if len(w) > 6 and w not in ("run.txt", "run.txt.gz")}
    leaked = [w for w in words if w in told and w not in _OURS]
    assert not leaked
    for refused in (
        lambda: list(log_lines(checked.detail, TEAM, hidden)),
        lambda: may_export(checked.detail, TEAM, hidden),
        lambda: redact_run(checked.detail, Audience("public"), hidden),
        lambda: redact_run(checked.detail, Audience("team", "other"), hidden),
    ):
        with pytest.raises(RunnerError) as caught:
            refused()
        assert caught.value.code == "E103"


# Words of our own sentences that a log may also hold.
_OURS = {"output", "memory", "directory", "software", "platform", "limit", "killed", "process"}


def _findings(checked: Checked) -> list[dict[str, str]]:
    if checked.detail.evaluation is None:
        return []
    return [{"text": f["message"]} for f in checked.detail.evaluation.findings()]
