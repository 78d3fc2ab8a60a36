"""The files that a task names: what a scenario sees of them, their digests, and whether they are right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Literal

import schemas
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError
from runner.model.task import Dataset, Model, Scenario, Source, Task, Workflow
from runner.model.view import matches
from runner.tasks.check import Coded, combine_errors
from runner.tasks.check_services import data_problem, input_problem, vector_problems
from runner.tasks.data_files import file_digest, files_digest, folder_files, within
from runner.tasks.views import Shown, ViewSummary, address, materialise, seen, view_digest, view_summary


def why_stage_missing(dataset: Dataset) -> str:
    """Why a dataset that is made from runs cannot be used yet; empty when it can be, or is none of these."""
    stage = dataset.stage
    if stage is None:
        return ""
    if not dataset.inputs.is_dir():
        return (
            f"E410: the inputs of {dataset.id} have not been made from the runs of {stage.task}/{stage.dataset}. "
            "Fix: runner data stage"
        )
    if not dataset.truths.is_dir() or not any(dataset.truths.iterdir()):
        return f"E402: {dataset.id} has no labels yet. Fix: runner labels import"
    return ""


def missing_sources(dataset: Dataset, which: str = "") -> list[Source]:
    """The files of a dataset that still have to be fetched or brought; ``which``: of ``inputs`` or ``truths`` only."""
    return [s for s in dataset.sources if s.name.startswith(which) and not s.path.is_file()]


def _files(dataset: Dataset, which: Literal["inputs", "truths"]) -> list[tuple[PurePosixPath, Path]]:
    """The files of one side of a dataset; never a part of them. Raises E402."""
    missing = missing_sources(dataset, which)
    if missing:
        names = ", ".join(s.name for s in missing)
        raise RunnerError(
            "E402",
            f'files of the dataset "{dataset.id}" have not been fetched',
            why=f"Missing: {schemas.show(names, 300)}.",
            fix=_fetch(missing[0], dataset.id),
        )
    return folder_files(dataset.inputs if which == "inputs" else dataset.truths)


def _fetch(source: Source, dataset: str, task: str = "TASK") -> str:
    """What brings a missing file."""
    if source.url is not None:
        return f"runner data pull {task} --dataset {dataset}"
    return f"get the file (the task's README says where), then: runner data import {task} {dataset} FILE --as {source.name}"


def view(dataset: Dataset, scenario: Scenario | None = None) -> list[Shown]:
    """What a scenario (None: the evaluator) sees of a dataset: files, and which fields of them. Raises E402."""
    return seen(dataset.id, _files(dataset, "inputs"), scenario.rules if scenario else None)


def view_files(dataset: Dataset, scenario: Scenario | None = None) -> list[tuple[PurePosixPath, Path]]:
    """The files that a scenario (None: the evaluator) may see, with their names in the container.

    Files whose fields are hidden are made first, once (``RUNNER_HOME/views``). Raises E402.
    """
    return materialise(view(dataset, scenario), _views(dataset))


def _views(dataset: Dataset) -> Path:
    return dataset.views or dataset.inputs.parent / ".views"


def inputs_digest(dataset: Dataset, scenario: Scenario | None = None) -> str:
    """Digest of a dataset's inputs, or of what a scenario sees of them. Raises E402 when they are missing."""
    return view_digest(view(dataset, scenario))


def view_addresses(dataset: Dataset, scenario: Scenario) -> set[str]:
    """The folders below ``RUNNER_HOME/views`` that a scenario needs. Raises E402."""
    return {address(shown) for shown in view(dataset, scenario) if shown.fields is not None}


def view_sights(task: Task, datasets: Sequence[str] | None = None) -> list[ViewSummary]:
    """What every scenario sees of every dataset, read from the very files that its containers get. Raises E402.

    Datasets whose inputs still have to be fetched, or made from runs, are left out.
    """
    return [
        view_summary(
            scenario.id, dataset.id, _files(dataset, "inputs"), view(dataset, scenario), _views(dataset)
        )
        for dataset in task.datasets.values()
        if (datasets is None or dataset.id in datasets)
        and not missing_sources(dataset, "inputs")
        and (dataset.stage is None or dataset.inputs.is_dir())
        for scenario in task.scenarios.values()
    ]


def truths_digest(dataset: Dataset) -> str:
    """Digest of a dataset's truths. Raises E402 when they are missing."""
    return files_digest(_files(dataset, "truths"))


def model_digest(model: Model) -> str:
    """Digest of a model folder's content as task.yaml names it (``sha256:…``). Raises E402."""
    return "sha256:" + files_digest(folder_files(model.path))


def work_digest(task: Task, workflow: Workflow | None = None) -> str:
    """Digest of what the definition says about how software is run, for the lock.

    ``workflow`` is the submission's choice where there are several.

    Limits, exceptions, data and models stand in the lock themselves; titles, measures and tables do not change
    what a software computes, so that editing them starts no run again.
    """
    chosen = workflow if workflow in task.workflows else task.workflow
    return schemas.digest({"id": task.id, "workflow": chosen, "output": task.output})


def task_problems(task: Task, config: Config, datasets: Sequence[str] | None = None) -> list[Problem]:
    """What is wrong with the files that the task names; opens and hashes them. Empty when all is well.

    ``datasets`` looks at those only (before an evaluation on them); None looks at all and at models and
    baselines too (``runner task check``).
    """
    return [problem for _, problem in _deep(task, config, datasets)]


def check_task(task: Task, config: Config, datasets: Sequence[str] | None = None) -> None:
    """Raise E403 or E402 with all of :func:`task_problems`, if there are any."""
    found = _deep(task, config, datasets)
    if found:
        raise combine_errors(found, f"the files of the task {task.id} are not right")


def _deep(task: Task, config: Config, wanted: Sequence[str] | None) -> list[Coded]:
    doc = schemas.load_yaml(task.folder / "task.yaml", f"tasks/{task.folder.name}/task.yaml")
    found: list[Coded] = []

    def add(pointer: Sequence[str | int], what: str, fix: str, code: str = "E402") -> None:
        found.append((code, Problem(doc.where(pointer), what, fix)))

    def files(
        pointer: Sequence[str | int], folder: Path, what: str, fix: str
    ) -> list[tuple[PurePosixPath, Path]]:
        try:
            listed = folder_files(folder)
        except RunnerError as error:
            add(pointer, f"{what}: {error.what}", error.fix if folder.is_dir() else fix)
            return []
        if not listed:
            add(pointer, f"{what}: the folder {schemas.show(folder.name)} holds no files", fix)
        return listed

    hidden: list[tuple[int, str, Path]] = []
    shown: list[tuple[str, PurePosixPath, Path]] = []
    for i, dataset in enumerate(task.datasets.values()):
        if wanted is not None and dataset.id not in wanted:
            continue
        at = ("datasets", i)
        missing = missing_sources(dataset)
        if wanted is None and (missing or why_stage_missing(dataset)):
            continue  # said by whoever asks for them: the definition can be right without the data
        for k, source in enumerate(dataset.sources):
            if source in missing:
                add(
                    (*at, "sources", k),
                    f'"{schemas.show(source.name)}" of "{dataset.id}" has not been fetched',
                    _fetch(source, dataset.id, task.id),
                )
        if missing:
            continue
        inputs = files(
            at,
            dataset.inputs,
            f'inputs of "{dataset.id}"',
            "fetch or make the data; the task's README says how",
        )
        outside = dataset.visibility == "blinded" and not task.demo
        place = (
            f"put them at $RUNNER_TRUTHS/{task.id}/{dataset.id}"
            if outside
            else "fetch or make the data; the task's README says how"
        )
        truths = files(at, dataset.truths, f'truths of "{dataset.id}"', place)
        if outside and truths and within(dataset.truths, config.root):
            add(
                at,
                f'the truths of the blinded dataset "{dataset.id}" lie in the tree that participants get',
                "set RUNNER_TRUTHS to a folder outside the project and move them there",
                "E403",
            )
        shown += [(dataset.id, name, path) for name, path in inputs]
        hidden += [
            (i, dataset.id, path)
            for name, path in truths
            if not any(matches(pattern, str(name)) for pattern in task.shared)
        ]
        names = {str(name) for name, _ in inputs}
        for key in ("topics", "corpus"):
            file = getattr(dataset, key)
            if inputs and file is not None and file not in names:
                add(
                    (*at, key),
                    f'"{schemas.show(file)}" is not among the inputs of "{dataset.id}"',
                    schemas.closest(file, names).strip() or "correct the name",
                )
        named = {str(name) for name, _ in truths}
        named |= {
            str(folder) for name, _ in truths for folder in name.parents[:-1]
        }  # such as nuggets, a file a topic
        for k, measure in enumerate(task.measures.values()):
            if truths and measure.truths not in named:
                add(
                    ("measures", k, "truths"),
                    f'"{schemas.show(measure.truths)}" is not among the truths of "{dataset.id}"',
                    schemas.closest(measure.truths, named).strip() or "correct the name",
                )
        for problem in (*_view_problems(task, dataset, inputs), *_driver_problems(task, dataset, inputs)):
            add(*problem)
    for name, service in task.services.items():
        for key, folder in (("data", service.data), ("prompts", service.prompts)):
            if folder is None:
                continue
            spot: tuple[str | int, ...] = ("services", name, *(("llm",) if key == "prompts" else ()), key)
            listed = files(
                spot, folder, f"{key} of the service {name}", "make the data; the task's README says how"
            )
            if key == "data" and listed and (wrong := data_problem(name, {str(n) for n, _ in listed})):
                add(spot, wrong, "make the data; the task's README says how")
            if key == "data":
                for wrong, fix in vector_problems(name, {str(n): path for n, path in listed}):
                    add(spot, wrong, fix)
            shown += [(f"service {name}", n, path) for n, path in listed]
    public = {d.id for d in task.datasets.values() if d.visibility == "public"}
    found += [("E403", p) for p in _leaks(doc, hidden, shown, public)]
    if wanted is None:
        for i, model in enumerate(task.models):
            if files(
                ("models", i),
                model.path,
                f'model for "{model.target}"',
                "fetch the model; the task's README says how",
            ):
                actual = model_digest(model)
                if actual != model.digest:
                    add(
                        ("models", i, "digest"),
                        f'the model for "{model.target}" has another content',
                        f"if it is right, write digest: {actual}",
                    )
        for i, table in enumerate(task.tables.values()):
            if table.baseline and not (config.submissions / table.baseline / "submission.yaml").is_file():
                add(
                    ("tables", i, "baseline"),
                    f'there is no software "{table.baseline}"',
                    "add it under submissions/, or name another baseline",
                )
    return found


def _view_problems(
    task: Task, dataset: Dataset, inputs: Sequence[tuple[PurePosixPath, Path]]
) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Patterns that fit nothing, and files whose fields cannot be taken out."""
    if not inputs:
        return
    # Datasets may come in different forms, so a pattern is wrong only when it fits in none of them.
    everywhere = {str(name) for name, _ in inputs}
    for other in task.datasets.values():
        everywhere |= {s.name.removeprefix("inputs/") for s in other.sources}
        everywhere |= {other.stage.name} if other.stage else set()
        if other.id != dataset.id:
            with suppress(RunnerError):  # its own problem, said at its own place
                everywhere |= {str(name) for name, _ in folder_files(other.inputs)}
    for k, scenario in enumerate(task.scenarios.values()):
        for r, rule in enumerate(scenario.rules or ()):
            if rule.datasets is not None and dataset.id not in rule.datasets:
                continue
            for p, pattern in enumerate(rule.files):
                if any(matches(pattern, name) for name in everywhere):
                    continue
                at: tuple[str | int, ...] = ("scenarios", k, "files", p)
                if scenario.view:
                    at = ("scenarios", k, "view", r, "files")
                yield at, f'"{schemas.show(pattern)}" fits no input of "{dataset.id}"', "correct the pattern"
        try:
            if not view_files(dataset, scenario):
                yield ("scenarios", k), f'sees no input of "{dataset.id}" at all', "correct its patterns"
        except RunnerError as error:
            if error.code != "E402":
                raise
            yield ("scenarios", k), f'"{dataset.id}": {error.what}. {error.why.rstrip(".")}', error.fix


def _driver_problems(
    task: Task, dataset: Dataset, inputs: Sequence[tuple[PurePosixPath, Path]]
) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Scenarios in which a driver would find nothing to read."""
    if task.interaction is None or not inputs:
        return
    for k, scenario in enumerate(task.scenarios.values()):
        names = {str(shown.name) for shown in seen(dataset.id, inputs, scenario.rules)}
        if names and (wrong := input_problem(names, task.interaction.mode)):
            at = ("scenarios", k) if "scenarios" in task.definition else ("interaction", "mode")
            yield at, f'what is seen of "{dataset.id}" {wrong}', "add the file, or let the scenario see it"


def _leaks(
    doc: schemas.Document,
    hidden: Sequence[tuple[int, str, Path]],
    shown: Sequence[tuple[str, PurePosixPath, Path]],
    public: Collection[str],
) -> Iterator[Problem]:
    """Truths files whose content is also a file of some inputs. Only files of equal size are hashed.

    Truths of a ``public`` dataset are no secret, and may be training data of another one.
    """
    sizes: dict[int, list[tuple[str, PurePosixPath, Path]]] = {}
    for entry in shown:
        sizes.setdefault(entry[2].stat().st_size, []).append(entry)
    for i, dataset, path in hidden:
        size = path.stat().st_size
        for other, name, copy in sizes.get(size, ()) if size else ():
            if (other == dataset or dataset not in public) and file_digest(path) == file_digest(copy):
                yield Problem(
                    doc.where(("datasets", i)),
                    f'the truths of "{dataset}" are also among the {_place(other)}, as {schemas.show(str(name))}',
                    "remove them from there",
                )


def _place(where: str) -> str:
    """``inputs of "x"`` of a dataset, or the data of a service (which is no name of a dataset)."""
    return f"data of the {where}" if " " in where else f'inputs of "{where}"'
