"""Tasks as their organisers define them: ``tasks/<task>/task.yaml`` and the files it names."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import schemas
from runner.config import Config
from runner.datafiles import file_digest, files_digest, folder_files, inside, matches, within
from runner.engines.base import MIB, Exceptions, Limits
from runner.errors import Problem, RunnerError
from runner.leaderboard.specs import expanded
from runner.taskchecks import NAME, Coded, DefinitionChecks, by_line, converted, inputs_folder, truths_folder
from runner.units import parse_duration, parse_limits, parse_size
from runner.views import Rule, Shown, Sight, address, materialise, seen, sight, view_digest

__all__ = [
    "EVALUATOR_LIMITS",
    "NAME",
    "Cell",
    "Coded",
    "Dataset",
    "Direction",
    "Measure",
    "Model",
    "Quota",
    "Rule",
    "Scenario",
    "Source",
    "Table",
    "Task",
    "Visibility",
    "by_line",
    "check_task",
    "converted",
    "file_digest",
    "files_digest",
    "folder_files",
    "inputs_digest",
    "inside",
    "load_task",
    "load_task_file",
    "load_tasks",
    "missing_sources",
    "model_digest",
    "parse_duration",
    "parse_limits",
    "parse_size",
    "task_ids",
    "task_problems",
    "truths_digest",
    "view",
    "view_addresses",
    "view_files",
    "view_sights",
    "work_digest",
]

EVALUATOR_LIMITS = Limits(wall_clock=1800.0, output=256 * MIB, tmp=512 * MIB)

Visibility = Literal["public", "blinded"]
Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Source:
    """A file of a dataset that is not delivered with the task. ``name`` is ``inputs/…`` or ``truths/…``.

    ``path`` is where it belongs; ``size`` is in bytes. Without ``url`` somebody has to bring it.
    """

    name: str
    path: Path
    url: str | None = None
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One split of a task: inputs shown to software, truths shown only to the evaluator.

    ``scores`` says who sees mean scores on the leaderboard before the organiser publishes
    (per-topic scores and logs of a blinded dataset are never shown to teams or the public).
    """

    id: str
    visibility: Visibility
    inputs: Path
    truths: Path
    topics: str | None = None  # file in inputs that lists the topics
    corpus: str | None = None  # file in inputs that lists the documents
    scores: Literal["public", "organiser"] = "organiser"
    description: str = ""
    sources: tuple[Source, ...] = ()
    views: Path | None = None  # where files whose fields are taken out are kept (RUNNER_HOME/views)


@dataclass(frozen=True)
class Scenario:
    """A named way of taking part, and what it may see of the inputs.

    ``files`` are glob patterns (None: all files); ``view`` are rules that can also hide fields of JSON lines.
    """

    id: str = "default"
    files: tuple[str, ...] | None = None
    view: tuple[Rule, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...] | None:
        """What may be seen, as rules; None for everything."""
        if self.view:
            return self.view
        return None if self.files is None else (Rule(self.files),)

    def whole_files(self, dataset: str) -> bool:
        """Whether no file of ``dataset`` has fields taken out, so that the files themselves can be mounted."""
        return all(
            r.fields is None or (r.datasets is not None and dataset not in r.datasets) for r in self.view
        )


@dataclass(frozen=True)
class Measure:
    """A figure of the task: ``measure`` is the kind's name for it (ir-measures strings for ``adhoc``)."""

    id: str
    measure: str
    truths: str
    direction: Direction = "higher"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One dataset in one scenario."""

    dataset: str
    scenario: str = "default"


@dataclass(frozen=True)
class Table:
    """A ranking: which cells, ranked by which measure, aggregated over cells by ``aggregate``."""

    id: str
    cells: tuple[Cell, ...]
    rank_by: str
    measures: tuple[str, ...]
    aggregate: str = "mean"  # one of runner.leaderboard.specs.AGGREGATES
    baseline: str | None = None  # team/software that others are tested against
    title: str = ""
    description: str = ""
    unit: Literal["software", "team"] = "software"  # what a row is
    part_of: str | None = None  # made for one cell of that table


@dataclass(frozen=True)
class Quota:
    """How much one team may register for this task; ``attempts`` caps executions of one run."""

    submissions: int = 50
    attempts: int = 10
    teams: Mapping[str, int] = field(default_factory=dict)  # per-team extension: total submissions


@dataclass(frozen=True)
class Model:
    """A read-only folder mounted where the software expects it, pinned by the digest of its content."""

    path: Path
    target: str
    digest: str


@dataclass(frozen=True)
class Task:
    """A shared task, loaded and checked. ``definition`` is the parsed task.yaml; ``digest`` its SHA-256."""

    id: str
    title: str
    kind: str
    workflow: Literal["batch", "upload", "interactive"]
    folder: Path
    datasets: Mapping[str, Dataset]
    scenarios: Mapping[str, Scenario]
    measures: Mapping[str, Measure]
    tables: Mapping[str, Table]
    limits: Limits
    evaluator_limits: Limits
    output: str = "run.txt"
    quota: Quota = Quota()
    evaluator_image: str | None = None  # None: the platform's own
    score_precision: Literal["float32", "double"] = "float32"
    options: Mapping[str, Any] = field(default_factory=dict)  # checked by schemas/kinds/<kind>.schema.json
    severities: Mapping[str, str] = field(default_factory=dict)  # finding code -> error|defect|warning|ignore
    exceptions: Mapping[str, Exceptions] = field(default_factory=dict)  # granted, by "team/software"
    models: tuple[Model, ...] = ()
    demo: bool = False
    uploads: bool = False  # run files are taken beside software
    shared: tuple[str, ...] = ()  # patterns of truths that participants get as well
    description: str = ""
    digest: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict)

    @property
    def takes_uploads(self) -> bool:
        """Whether run files are taken."""
        return self.uploads or self.workflow == "upload"

    @property
    def takes_software(self) -> bool:
        """Whether software is taken."""
        return self.workflow != "upload"

    def usual_scenario(self) -> Scenario:
        """The scenario called ``default``, or else the first."""
        return self.scenarios.get("default") or next(iter(self.scenarios.values()))

    def public_dataset(self) -> Dataset | None:
        """The first public dataset: where softwares are checked before they are registered."""
        return next((d for d in self.datasets.values() if d.visibility == "public"), None)


# --- loading -----------------------------------------------------------------------------------------------


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
        near = schemas.closest(task_id, task_ids(config))
        raise RunnerError(
            "E102",
            f'there is no task "{schemas.show(task_id)}"',
            why=f"tasks/{schemas.show(task_id)}/task.yaml does not exist.",
            fix=near.strip() or "see the folders under tasks/",
        )
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
        raise _error(found, f"the task {schemas.show(folder.name)} cannot be used")
    return _build(config, folder, doc.data)


def _error(found: Sequence[Coded], what: str) -> RunnerError:
    """One error for all problems, under the gravest code: leaked truths, then the definition, then files."""
    codes = {code for code, _ in found}
    code = next(c for c in ("E403", "E405", "E401", "E402") if c in codes)
    count = "one problem" if len(found) == 1 else f"{len(found)} problems"
    return RunnerError(code, what, why=f"{count} found.", fix="mend what is listed", problems=by_line(found))


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
        workflow=data.get("workflow", "batch"),
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
    inputs, truths = inputs_folder(folder, row), truths_folder(config, folder, data, row)
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


# --- views and digests ------------------------------------------------------------------------------------


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


def view_sights(task: Task, datasets: Sequence[str] | None = None) -> list[Sight]:
    """What every scenario sees of every dataset, read from the very files that its containers get. Raises E402.

    Datasets with files that still have to be fetched are left out.
    """
    return [
        sight(scenario.id, dataset.id, _files(dataset, "inputs"), view(dataset, scenario), _views(dataset))
        for dataset in task.datasets.values()
        if (datasets is None or dataset.id in datasets) and not missing_sources(dataset, "inputs")
        for scenario in task.scenarios.values()
    ]


def truths_digest(dataset: Dataset) -> str:
    """Digest of a dataset's truths. Raises E402 when they are missing."""
    return files_digest(_files(dataset, "truths"))


def model_digest(model: Model) -> str:
    """Digest of a model folder's content as task.yaml names it (``sha256:…``). Raises E402."""
    return "sha256:" + files_digest(folder_files(model.path))


def work_digest(task: Task) -> str:
    """Digest of what the definition says about how software is run, for the lock.

    Limits, exceptions, data and models stand in the lock themselves; titles, measures and tables do not change
    what a software computes, so that editing them starts no run again.
    """
    return schemas.digest({"id": task.id, "workflow": task.workflow, "output": task.output})


# --- deep checks -------------------------------------------------------------------------------------------


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
        raise _error(found, f"the files of the task {task.id} are not right")


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
        if missing and wanted is None:
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
        for k, measure in enumerate(task.measures.values()):
            if truths and measure.truths not in named:
                add(
                    ("measures", k, "truths"),
                    f'"{schemas.show(measure.truths)}" is not among the truths of "{dataset.id}"',
                    schemas.closest(measure.truths, named).strip() or "correct the name",
                )
        for problem in _view_problems(task, dataset, inputs):
            add(*problem)
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
                    f'the truths of "{dataset}" are also among the inputs of "{other}", as {schemas.show(str(name))}',
                    "remove them from the inputs",
                )
