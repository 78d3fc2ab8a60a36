"""Tasks as their organisers define them: ``tasks/<task>/task.yaml`` and the files it names.

What a task is stands in :mod:`runner.model.task`, what its files hold in :mod:`runner.tasks.files`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError, no_such
from runner.model.limits import MIB, Exceptions, Limits, framed, parse_limits, parse_size
from runner.model.mapping import from_mapping
from runner.model.names import NAME
from runner.model.problems import Problems
from runner.model.task import (
    ASKS,
    Cell,
    Dataset,
    Measure,
    Model,
    Quota,
    Ranking,
    Rule,
    Scenario,
    Source,
    Stage,
    Table,
    Task,
)
from runner.tasks.check import check_definition, workflows_of
from runner.tasks.check_services import check_inside
from runner.tasks.data_files import inside
from runner.tasks.folders import inputs_folder, truths_folder
from runner.tasks.services import parse_interaction, parse_services
from runner.tasks.tables import expanded

MOST_OF_OPTION = 256 << 10  # bytes of a file that options name

Form = Literal["json", "text"]
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
    """The task of that name, with its definition checked; its data files are not opened.

    Whether these are right is :func:`runner.tasks.check_data.check_task`.

    Args:
        config: where the project and its data directory are.
        task_id: the name of a folder under ``tasks/``.

    Raises:
        RunnerError: E102 when there is no such task, E405 when task.yaml is no YAML, E401 when it is not a valid
            definition, and E403 when it keeps truths where participants are. All problems are in the error.
    """
    return load_task_file(config, task_folder(config, task_id))


def task_folder(config: Config, task_id: str) -> Path:
    """The folder of the task of that name. Raises E102 when there is none."""
    if not NAME.fullmatch(task_id) or task_id not in task_ids(config):
        why = f"tasks/{schemas.show(task_id)}/task.yaml does not exist."
        raise no_such("task", task_id, task_ids(config), why=why, fix="see the folders under tasks/")
    return config.tasks / task_id


def load_task_file(config: Config, folder: Path) -> Task:
    """The task in ``folder``, which may lie anywhere (tests have their own). Raises as :func:`load_task`."""
    problems = read_definition(config, folder)
    if isinstance(problems.doc.data, dict):
        data = problems.doc.data if not problems.found else schemas.usable(problems.doc, "task")
        check_definition(config, folder, data, problems)
        check_option_files(folder, data, problems)
    problems.refuse(f"the task {schemas.show(folder.name)} cannot be used")
    return _build(config, folder, problems.doc.data)


def read_definition(config: Config, folder: Path) -> Problems:
    """The task.yaml in ``folder``, and in which ways it is not in its form; what it refers to is not looked at."""
    try:
        name = (folder / "task.yaml").relative_to(config.root).as_posix()
    except ValueError:
        name = f"{folder.name}/task.yaml"
    doc = schemas.load_yaml(folder / "task.yaml", name)
    problems = Problems(doc, "E405" if doc.data is None and doc.problems else "E401")
    problems.take(schemas.validate(doc, "task"))
    return problems


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
    workflows, evaluator = workflows_of(data), data.get("evaluator", {})
    scenarios = data.get("scenarios", [{"id": "default"}])
    limits = dict(data.get("limits", {}))
    image = {"image_limit": parse_size(limits.pop("image"))} if "image" in limits else {}
    limits, frame = framed(limits)
    shared = {"precision": data["precision"]} if "precision" in data else {}
    measures = [from_mapping(Measure, {**shared, **row}) for row in data["measures"]]
    return from_mapping(
        Task,
        data,
        workflow=workflows[0],
        workflows=workflows,
        interaction=parse_interaction(data.get("interaction")),
        services=parse_services(folder, data.get("services", {})),
        evaluator_gateway=evaluator.get("gateway", False),
        evaluator_image=evaluator.get("image"),
        folder=folder,
        datasets={row["id"]: _dataset(config, folder, data, row) for row in data["datasets"]},
        scenarios={row["id"]: _scenario(row) for row in scenarios},
        measures={measure.id: measure for measure in measures},
        tables={row["id"]: _table(row, [measure.id for measure in measures]) for row in expanded(data)},
        limits=parse_limits({"loopback": _default_loopback(data), **limits}),
        frame=frame,
        **image,
        evaluator_limits=parse_limits(evaluator.get("limits", {}), EVALUATOR_LIMITS),
        budget_hours=data.get("budget", {}).get("hours"),
        quota=from_mapping(Quota, data.get("quota", {})),
        log_excerpts=parse_size(data.get("log_excerpts", Task.log_excerpts)),
        verify_before=data.get("verify", {}).get("before", Task.verify_before),
        exceptions={name: _exceptions(row) for name, row in data.get("exceptions", {}).items()},
        asks={**ASKS, **data.get("asks", {})},
        options=with_files(folder, data["kind"], data.get("options", {}), "json"),
        models=[from_mapping(Model, row, path=folder / row["path"]) for row in data.get("models", ())],
        digest=schemas.digest(data),
        definition=data,
    )


def _default_loopback(data: Mapping[str, Any]) -> bool:
    """True if systems get a loopback interface unless ``limits.loopback`` decides.

    The kernel chooses TCP source ports with a table that all network namespaces share, so a blinded run with a
    loopback can pass hidden topics to a public one.
    """
    return "batch" not in workflows_of(data) or all(row["visibility"] == "public" for row in data["datasets"])


def _scenario(row: Mapping[str, Any]) -> Scenario:
    view = [
        rule | {"files": [rule["files"]]} if isinstance(rule["files"], str) else rule
        for rule in row.get("view", ())
    ]
    return from_mapping(Scenario, row, view=[from_mapping(Rule, rule) for rule in view])


def _exceptions(row: Mapping[str, Any]) -> Exceptions:
    size = parse_size(row.get("writable_bytes", Exceptions.writable_bytes))
    return from_mapping(Exceptions, row, writable_bytes=size)


def _dataset(config: Config, folder: Path, data: Mapping[str, Any], row: Mapping[str, Any]) -> Dataset:
    inputs, truths = inputs_folder(config, folder, data, row), truths_folder(config, folder, data, row)
    assert inputs is not None and truths is not None  # checked before
    stage = row.get("from")
    return from_mapping(
        Dataset,
        {"scores": "public" if row["visibility"] == "public" else "organiser", **row},
        inputs=inputs,
        truths=truths,
        sources=[_source(inputs, truths, source) for source in row.get("sources", ())],
        views=config.home / "views",
        quota=_dataset_quota(data.get("quota", {}), row["quota"]) if "quota" in row else None,
        public_topics=int(row["public_topics"][:-1]) / 100 if "public_topics" in row else None,
        stage=stage
        and from_mapping(Stage, stage | stage.get("sample", {}), name=stage.get("as", Stage.name)),
    )


def _dataset_quota(task: Mapping[str, Any], own: Mapping[str, Any]) -> Quota:
    """A dataset's quota: without a number of its own that of the task, single teams' too."""
    shared = {} if "submissions" in own else {k: task[k] for k in ("submissions", "teams") if k in task}
    return from_mapping(Quota, {**shared, **own})


def _source(inputs: Path, truths: Path, row: Mapping[str, Any]) -> Source:
    side, _, name = row["path"].partition("/")
    return from_mapping(Source, row, name=row["path"], path=(inputs if side == "inputs" else truths) / name)


def _table(row: Mapping[str, Any], order: Sequence[str]) -> Table:
    rank_by = Ranking.read(row["rank_by"])
    shown = list(dict.fromkeys((*rank_by.measures, *order)))
    cells = [from_mapping(Cell, cell) for cell in row["cells"]]
    on = row["pick"]["best"] if isinstance(row.get("pick"), Mapping) else None
    pick = "best" if on else row.get("pick", Table.pick)
    return from_mapping(
        Table, {"measures": shown, **row}, cells=cells, rank_by=rank_by, pick=pick, best_on=on
    )


class Named(NamedTuple):
    """A file that options name: the keys that lead to its path, and how it is read."""

    at: tuple[str | int, ...]
    path: str
    form: Form


def named_files(kind: str, options: Mapping[str, Any]) -> list[Named]:
    """The files that options name: those that the schema of the kind marks with ``x-file``, in order.

    ``json`` is read with the task, so that the evaluator gets what is in the file, and every evaluation is pinned by it.
    ``text`` is for people and checks: only who asks for it gets the content.
    """
    if kind not in schemas.kinds():
        return []
    return list(_named(schemas.schema(f"kinds/{kind}"), options, ()))


def _named(node: Mapping[str, Any], value: Any, at: tuple[str | int, ...]) -> Iterator[Named]:
    if "x-file" in node and isinstance(value, str):
        yield Named(at, value, node["x-file"])
    elif isinstance(value, Mapping):
        for key, below in node.get("properties", {}).items():
            if key in value:
                yield from _named(below, value[key], (*at, key))
    elif isinstance(value, list) and isinstance(node.get("items"), dict):
        for place, one in enumerate(value):
            yield from _named(node["items"], one, (*at, place))


def check_option_files(folder: Path, data: Mapping[str, Any], problems: Problems) -> None:
    """Note files of options that leave the task's folder, are not there, too large, or no JSON."""
    where = problems.doc.name.rpartition("/")[0]
    for one in named_files(data.get("kind", ""), data.get("options", {})):
        at = ("options", *one.at)
        path = inside(folder, one.path)
        if path is None:
            check_inside(folder, at, one.path, problems)
        elif not path.is_file():
            problems.add(at, f"there is no file {schemas.show(one.path)}", "write it, or correct the path")
        elif path.stat().st_size > MOST_OF_OPTION:
            problems.add(
                at, f"{schemas.show(one.path)} has more than {MOST_OF_OPTION >> 10} KiB", "make it smaller"
            )
        elif one.form == "json":
            problems.take(schemas.load_json(path, f"{where}/{one.path}" if where else one.path).problems)
        elif _text(path) is None:
            problems.add(at, f"{schemas.show(one.path)} is not UTF-8 text", "save it as UTF-8")


def with_files(folder: Path, kind: str, options: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """The options with the content of the files of one form in the place of their paths; the files were checked."""
    found: dict[str, Any] = dict(options)
    for one in named_files(kind, options):
        path = inside(folder, one.path)
        if one.form == form and path is not None and path.is_file():
            content = schemas.load_json(path, one.path).data if form == "json" else _text(path)
            found = _put(found, one.at, content)
    return found


def _put(holder: Any, at: tuple[str | int, ...], content: Any) -> Any:
    """A copy of ``holder`` with another value at a place."""
    if not at:
        return content
    key: Any = at[0]
    if isinstance(holder, list):
        return [_put(one, at[1:], content) if place == key else one for place, one in enumerate(holder)]
    return {**holder, key: _put(holder[key], at[1:], content)}


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
