"""Whether a task's evaluator image can compute the task's measures, asked before the task opens.

Asked in the words of the public contract, so that any image can answer: the image is given a run without a single line.
An evaluator that can do its work says that this run is valid or invalid; one that cannot compute a measure says
``error``, and is then asked for each measure on its own.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import schemas
from runner.engines.base import Engine
from runner.execution.contract import RunFiles
from runner.execution.evaluation import Evaluated, EvaluationJob
from runner.execution.evaluator import Evaluator
from runner.model.errors import Problem, RunnerError
from runner.model.task import Dataset, Measure, Task
from runner.tasks.files import missing_sources, why_stage_missing
from schemas.details import Detail

MANY = 30  # measures that are asked for one by one


class Answer(NamedTuple):
    """What is known of one measure: ``computed`` (None: it could not be found out), and ``why`` not."""

    id: str
    measure: str
    computed: bool | None
    why: str = ""


def ask(engine: Engine, task: Task, default_image: str) -> list[Answer]:
    """Ask the evaluator image of ``task`` (its own, or the platform's) whether it can compute each measure.

    Raises E304 when the image is missing, and PlatformError when the engine fails.
    """
    # A public one if there is one: nothing has to wait for runs on hidden data to end then.
    datasets = sorted(task.datasets.values(), key=lambda d: d.visibility != "public")
    dataset = next((d for d in datasets if _complete(d)), None)
    if dataset is None:
        return _all(task, None, "no dataset has all its files")
    if task.evaluation_gateway is not None:
        return _all(task, None, "its evaluator asks models; runner task check --run tries it")
    evaluator = Evaluator.of(task, [dataset], engine, default_image)

    def tried(measures: Mapping[str, Measure]) -> Evaluated:
        some = replace(evaluator, task=replace(task, measures=measures))
        return _on_an_empty_run(some, dataset, engine)

    together = tried(task.measures)
    if together.status != "error":
        return _all(task, True, "")
    return _one_by_one(task, together.detail, tried)


def _one_by_one(
    task: Task, together: Detail, tried: Callable[[Mapping[str, Measure]], Evaluated]
) -> list[Answer]:
    """Ask for every measure alone, after asking for all at once failed."""
    if not 1 < len(task.measures) <= MANY:
        alone = {name: Evaluated("error", together, None, "", "") for name in task.measures}
    else:
        alone = {name: tried({name: m}) for name, m in task.measures.items()}
    failing = [name for name, done in alone.items() if done.status == "error"]
    # A stranger's evaluator may fail on a run without lines: if it fails on all, that says nothing of the measures.
    certain = task.evaluator_image is None or 0 < len(failing) < len(alone)
    if not failing:  # each alone, but not together
        return _all(task, False if task.evaluator_image is None else None, str(together))
    refused = False if certain else None
    return [
        Answer(name, m.measure, refused, str(alone[name].detail))
        if name in failing
        else Answer(name, m.measure, True)
        for name, m in task.measures.items()
    ]


def _complete(dataset: Dataset) -> bool:
    return not missing_sources(dataset) and not why_stage_missing(dataset) and dataset.truths.is_dir()


def _all(task: Task, computed: bool | None, why: str) -> list[Answer]:
    return [Answer(m.id, m.measure, computed, why) for m in task.measures.values()]


def _on_an_empty_run(evaluator: Evaluator, dataset: Dataset, engine: Engine) -> Evaluated:
    task = evaluator.task
    with tempfile.TemporaryDirectory(prefix="measures-") as scratch:
        run, staging = Path(scratch) / "run", Path(scratch) / "evaluation"
        run.mkdir()
        staging.mkdir()
        (run / task.output).touch()
        files, name = RunFiles(run, task.output), f"check.{task.id}.{secrets.token_hex(4)}"
        return EvaluationJob(
            evaluator, dataset, task.default_scenario().id, files, engine, name, staging
        ).evaluate()


def refusal(task: Task, answers: list[Answer]) -> RunnerError | None:
    """The error for measures that the evaluator cannot compute, each with its line in task.yaml; None if there are none."""
    bad = [answer for answer in answers if answer.computed is False]
    if not bad:
        return None
    name = f"tasks/{task.id}/task.yaml"
    doc = schemas.load_yaml(task.folder / "task.yaml", name)
    places = {m.get("id"): i for i, m in enumerate(task.definition.get("measures", []))}
    problems = [
        Problem(
            doc.problem(("measures", places.get(answer.id, 0), "measure"), "", "").where,
            f"the evaluator image cannot compute {schemas.show(answer.measure)}: {answer.why}",
        )
        for answer in bad
    ]
    count = "one measure" if len(bad) == 1 else f"{len(bad)} measures"
    what = f"the evaluator of {task.id} cannot compute {count}"
    why = "It was given a run without a line, and ended with an error."
    fix = "name other measures, correct the truths, or name an evaluator image that can (docs/how-to/own-evaluator.md)"
    return RunnerError("E404", what, why=why, fix=fix, problems=problems)
