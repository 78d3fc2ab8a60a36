"""Tasks as their organisers define them: ``tasks/<task>/task.yaml`` and the files it names.

What a task is stands in :mod:`runner.model.task`, what its files hold in :mod:`runner.tasks.files`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError, no_such
from runner.model.limits import MIB, Exceptions, Limits, parse_limits, parse_size
from runner.model.task import (
    Cell,
    Dataset,
    Measure,
    Model,
    Quota,
    Scenario,
    Source,
    Stage,
    Table,
    Task,
)
from runner.model.view import Rule
from runner.tasks.check import (
    NAME,
    Coded,
    DefinitionChecks,
    combine_errors,
    converted,
    inputs_folder,
    truths_folder,
    workflows_of,
)
from runner.tasks.services import parse_interaction, parse_services
from runner.tasks.tables import expanded

EVALUATOR_LIMITS = Limits(wall_clock=1800.0, output=256 * MIB, tmp=512 * MIB)


def task_ids(config: Config) -> list[str]:
    """The names of the folders under ``tasks/`` that hold a task.yaml, sorted; nothing is read or checked."""
    if not config.tasks.is_dir():
        return []
    return sorted(
        p.name
        for p in config.tasks.iterdir()
        if not p.name.startswith(".") and os.path.lexists(p / "task.yaml")
    )


def load_task(config: Config, task_id: str) -> Task:
    """The task of that name, with its definition checked; its data files are not opened (see :func:`check_task`).

    Raises E102 when there is no such task, E405 when task.yaml is no YAML, E401 when it is not a valid
    definition, and E403 when it keeps truths where participants are. All problems are in the error.
    """
    if not NAME.fullmatch(task_id) or task_id not in task_ids(config):
        why = f"tasks/{schemas.show(task_id)}/task.yaml does not exist."
        raise no_such("task", task_id, task_ids(config), why=why, fix="see the folders under tasks/")
    return load_task_file(config, config.tasks / task_id)


def load_task_file(config: Config, folder: Path) -> Task:
    """The task in ``folder``, which may lie anywhere (tests have theirs beside them). Raises as :func:`load_task`."""
    try:
        name = (folder / "task.yaml").relative_to(config.root).as_posix()
    except ValueError:
        name = f"{folder.name}/task.yaml"
    doc = schemas.load_yaml(folder / "task.yaml", name)
    found: list[Coded] = [("E401", p) for p in converted(schemas.validate(doc, "task"))]
    if doc.data is None and doc.problems:
        found = [("E405", p) for _, p in found]
    elif isinstance(doc.data, dict):
        found += DefinitionChecks(config, folder, doc).run()
    if found:
        raise combine_errors(found, f"the task {schemas.show(folder.name)} cannot be used")
    return _build(config, folder, doc.data)


def load_tasks(config: Config) -> tuple[dict[str, Task], list[RunnerError]]:
    """All tasks that can be loaded, by name, and one error for each that cannot."""
    tasks: dict[str, Task] = {}
    errors: list[RunnerError] = []
    for task_id in task_ids(config):
        try:
            tasks[task_id] = load_task(config, task_id)
        except RunnerError as error:
            errors.append(error)
    return tasks, errors


def _build(config: Config, folder: Path, data: Mapping[str, Any]) -> Task:
    """The task of a definition that was found to be right."""
    datasets = [_dataset(config, folder, data, row) for row in data["datasets"]]
    scenarios = [
        Scenario(
            row["id"],
            tuple(row["files"]) if "files" in row else None,
            tuple(_rule(rule) for rule in row.get("view", ())),
        )
        for row in data.get("scenarios", [{"id": "default"}])
    ]
    measures = [
        Measure(
            row["id"], row["measure"], row["truths"], row.get("direction", "higher"), row.get("options", {})
        )
        for row in data["measures"]
    ]
    order = [m.id for m in measures]
    workflows = workflows_of(data)
    evaluator, quota = data.get("evaluator", {}), data.get("quota", {})
    grants = {
        name: Exceptions(
            tuple(grant.get("writable", ())),
            parse_size(grant.get("writable_bytes", Exceptions.writable_bytes)),
            grant.get("root", False),
        )
        for name, grant in data.get("exceptions", {}).items()
    }
    return Task(
        id=data["id"],
        title=data["title"],
        kind=data["kind"],
        workflow=workflows[0],
        workflows=workflows,
        interaction=parse_interaction(data.get("interaction")),
        services=parse_services(folder, data.get("services", {})),
        evaluator_gateway=evaluator.get("gateway", False),
        folder=folder,
        datasets={d.id: d for d in datasets},
        scenarios={s.id: s for s in scenarios},
        measures={m.id: m for m in measures},
        tables={row["id"]: _table(row, order) for row in expanded(data)},
        limits=parse_limits(data.get("limits", {})),
        evaluator_limits=parse_limits(evaluator.get("limits", {}), EVALUATOR_LIMITS),
        output=data.get("output", "run.txt"),
        quota=Quota(**quota),
        evaluator_image=evaluator.get("image"),
        score_precision=data.get("score_precision", "float32"),
        options=data.get("options", {}),
        severities=data.get("severities", {}),
        exceptions=grants,
        models=tuple(
            Model(folder / row["path"], row["target"], row["digest"]) for row in data.get("models", ())
        ),
        demo=data.get("demo", False),
        uploads=data.get("uploads", False),
        shared=tuple(data.get("shared", ())),
        description=data.get("description", ""),
        digest=schemas.digest(data),
        definition=data,
    )


def _rule(row: Mapping[str, Any]) -> Rule:
    files, fields, datasets = row["files"], row.get("fields"), row.get("datasets")
    return Rule(
        (files,) if isinstance(files, str) else tuple(files),
        None if fields is None else tuple(fields),
        None if datasets is None else tuple(datasets),
    )


def _dataset(config: Config, folder: Path, data: Mapping[str, Any], row: Mapping[str, Any]) -> Dataset:
    inputs, truths = inputs_folder(config, folder, row), truths_folder(config, folder, data, row)
    assert inputs is not None and truths is not None  # checked before
    return Dataset(
        id=row["id"],
        visibility=row["visibility"],
        inputs=inputs,
        truths=truths,
        topics=row.get("topics"),
        corpus=row.get("corpus"),
        scores=row.get("scores", "public" if row["visibility"] == "public" else "organiser"),
        description=row.get("description", ""),
        sources=tuple(_source(inputs, truths, source) for source in row.get("sources", ())),
        views=config.home / "views",
        stage=_stage(row.get("from")),
    )


def _stage(row: Mapping[str, Any] | None) -> Stage | None:
    if row is None:
        return None
    sample = row.get("sample", {})
    return Stage(
        **{key: row[key] for key in ("task", "dataset", "file", "scenario", "runs") if key in row},
        name=row.get("as", Stage.name),
        debates=sample.get("debates"),
        seed=sample.get("seed", 0),
    )


def _source(inputs: Path, truths: Path, row: Mapping[str, Any]) -> Source:
    which, _, name = row["path"].partition("/")
    path = (inputs if which == "inputs" else truths) / name
    return Source(row["path"], path, row.get("url"), row.get("size"), row.get("sha256"), row.get("md5"))


def _table(row: Mapping[str, Any], order: list[str]) -> Table:
    shown = row.get("measures") or [row["rank_by"], *(m for m in order if m != row["rank_by"])]
    return Table(
        id=row["id"],
        cells=tuple(Cell(cell["dataset"], cell.get("scenario", "default")) for cell in row["cells"]),
        rank_by=row["rank_by"],
        measures=tuple(shown),
        aggregate=row.get("aggregate", "mean"),
        baseline=row.get("baseline"),
        title=row.get("title", ""),
        description=row.get("description", ""),
        unit=row["unit"],
        part_of=row.get("part_of"),
    )
