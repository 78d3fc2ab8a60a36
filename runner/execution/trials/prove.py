"""Prove a task before it opens: each baseline is run and scored on every dataset, and outputs of a known order are, too."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from runner.execution.evaluation import proof
from runner.execution.evaluator import Evaluator
from runner.execution.machine import Machine
from runner.execution.trials.software import check_submission
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.submissions.load import load_submission
from runner.submissions.pack import image_of
from runner.tasks.files import missing_sources, why_stage_missing


def prove(
    machine: Machine, task: Task, say: Callable[[str], None], registered: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Run the baselines that the task's tables name on every dataset, in every scenario they enter.

    Returns one row for each: software, dataset, scenario, outcome, why, scores, and ``good`` when it was scored and
    :func:`shows_something`. Baselines that are ``registered`` without a folder, such as uploaded run files, are left out.
    Raises E402 when the task names no baseline.
    """
    names = sorted({table.baseline for table in task.tables.values() if table.baseline})
    if not names:
        fix = (
            "write one (a changed copy of one in submissions/baselines, or of the software in the task's kit, will do for a "
            "start), and name it in a table of task.yaml as baseline: team/software"
        )
        raise RunnerError("E402", f"{task.id} names no baseline", why="A proof needs a software.", fix=fix)
    engine = machine.engine([task.limits, task.evaluator_limits])
    machine.evaluator()  # missing: known before anything is built
    rows: list[dict[str, Any]] = []
    for name in names:
        team, _, software = name.partition("/")
        if name in registered and not (machine.config.submissions / name / "submission.yaml").is_file():
            say(f"left out {name}: it was uploaded and is not run here")
            continue
        submission = load_submission(machine.config, team, software)
        if submission.task != task.id:
            what, why = f"the baseline {name} is for the task {submission.task}", "cannot be proven with it."
            fix = f"name a software for {task.id} as the table's baseline"
            raise RunnerError("E207", what, why=f"{task.id} {why}", fix=fix)
        say(f"building {name} …")
        image = image_of(machine.config, engine, submission)
        for dataset in task.datasets.values():
            missing = "its files have not been fetched" if missing_sources(dataset) else ""
            if why := missing or why_stage_missing(dataset):
                say(f"left out {dataset.id}: {why}")
                continue
            for scenario in submission.scenarios:
                say(f"running {name} on {dataset.id} …")
                with check_submission(machine, submission, image, task, dataset, scenario) as checked:
                    scores, outcome = checked.summary()["scores"], checked.detail.run.outcome
                    good = checked.good and shows_something(task, scores)
                    cell = {"software": name, "dataset": dataset.id, "scenario": scenario}
                    result = {"outcome": outcome.name, "why": outcome.reason, "scores": scores}
                    rows.append({**cell, **result, "good": good})
    return rows


def shows_something(task: Task, scores: Mapping[str, float]) -> bool:
    """Whether a figure that a table ranks by is there and not 0; where lower is better, 0 is the best that there is."""
    ranked = {measure for table in task.tables.values() for measure in table.rank_by.measures}
    return any(
        name in scores and (scores[name] > 0 or task.measures[name].direction == "lower") for name in ranked
    )


@dataclass(frozen=True)
class Ordered:
    """What outputs that were made from the truths of one dataset, for one scenario, showed.

    ``values``: for each measure those of the outputs, from the best to the worst. ``wrong`` says what is not as it has to be,
    ``unproven`` names measures of which nothing is known. ``why`` says why no outputs could be made, or is empty.
    """

    dataset: str
    scenario: str
    values: Mapping[str, Mapping[str, float | None]]
    wrong: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**vars(self), **{key: list(getattr(self, key)) for key in ("wrong", "unproven")}}


def prove_order(machine: Machine, task: Task, say: Callable[[str], None]) -> list[Ordered]:
    """Have the evaluator make outputs from the truths of every dataset, in the scenarios that tables rank, and score them.

    The outputs stay in its container, and nothing is recorded. Raises E404 when the evaluator fails, E304 without its image.
    """
    cells = dict.fromkeys(
        (cell.dataset, cell.scenario) for table in task.tables.values() for cell in table.cells
    )
    if task.evaluator_image is not None:
        return [Ordered(*cell, {}, why="its evaluator is an image of its own") for cell in cells]
    engine = machine.engine([task.evaluator_limits])
    image = machine.evaluator()
    found = []
    for dataset, scenario in cells:
        of = task.datasets[dataset]
        if missing_sources(of) or why_stage_missing(of):
            found.append(Ordered(dataset, scenario, {}, why="its files are still to come"))
            continue
        say(f"scoring outputs of a known order on {dataset} …")
        evaluator = Evaluator.of(
            replace(task, evaluator_gateway=False), [of], engine, image
        )  # no model is asked
        name = f"proof.{task.id}.{secrets.token_hex(4)}"
        said = proof(evaluator, of, scenario, engine, name)
        found.append(_read(task, dataset, scenario, said))
    return found


def _read(task: Task, dataset: str, scenario: str, said: Mapping[str, Any]) -> Ordered:
    """What the evaluator said; that a measure by which a table ranks tells outputs apart is looked at here."""
    if not said["made"]:
        why = f"outputs of a known order cannot be made for the kind {task.kind}; only its baseline proves it"
        return Ordered(dataset, scenario, {}, why=why)
    wrong = [f"{one['measure']}: {what}" for one in said["orders"] for what in one["wrong"]]
    ranking = {
        measure
        for table in task.tables.values()
        if any((cell.dataset, cell.scenario) == (dataset, scenario) for cell in table.cells)
        for measure in table.rank_by.measures
    }
    values = {one["measure"]: one["values"] for one in said["orders"]}
    for name in sorted(ranking & values.keys()):
        if len(set(values[name].values())) == 1:
            wrong.append(f"{name}: tells no output from another, and a table ranks by it")
    return Ordered(dataset, scenario, values, tuple(wrong), tuple(said["unproven"]))
