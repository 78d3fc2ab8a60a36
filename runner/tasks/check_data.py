"""Whether the files that a task names are right: there, as the definition says, and no truths among the inputs."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import schemas
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError
from runner.model.limits import absurd
from runner.model.problems import Pointer, Problems
from runner.model.task import Dataset, Scenario, Source, Task, matches
from runner.tasks.check_services import data_problem, input_problem, vector_problems
from runner.tasks.data_files import contents, folder_files, unpacked, within
from runner.tasks.files import (
    absent,
    how_to_get,
    missing_sources,
    model_digest,
    part,
    view_files,
    why_stage_missing,
)
from runner.tasks.folders import (
    exposed,
    holds_files,
    how_to_hide,
    in_task,
    private_root,
    tree,
    where_hidden,
)
from runner.tasks.transfer.offers import hidden_files, offers, read_hidden
from runner.tasks.views import Files, seen

_MAKE = "fetch or make the data; the task's README says how"


def task_problems(
    task: Task,
    config: Config,
    datasets: Collection[str] | None = None,
    *,
    registered: Collection[str] = (),
) -> list[Problem]:
    """What is wrong with the files that the task names; opens and hashes them. Empty when all is well.

    ``datasets`` looks at those only (before an evaluation on them); None looks at all and at models and
    baselines too (``runner task check``). A baseline without a folder must be among the ``registered`` systems.
    """
    return _checked(task, config, datasets, registered=registered).in_order()


def check_task(
    task: Task,
    config: Config,
    datasets: Collection[str] | None = None,
    *,
    optional: bool = True,
    registered: Collection[str] = (),
) -> None:
    """Raise E403 or E402 with all of :func:`task_problems`, if there are any; ``optional`` files may not be missing either."""
    _checked(task, config, datasets, optional=optional, registered=registered).refuse(
        f"the files of the task {task.id} are not right"
    )


def _checked(
    task: Task,
    config: Config,
    datasets: Collection[str] | None,
    *,
    optional: bool = False,
    registered: Collection[str] = (),
) -> Problems:
    doc = schemas.load_yaml(task.folder / "task.yaml", f"tasks/{task.folder.name}/task.yaml")
    checks = _FileChecks(task, config, Problems(doc, "E402"))
    for i, dataset in enumerate(task.datasets.values()):
        if datasets is None or dataset.id in datasets:
            missing = missing_sources(dataset, optional=optional)
            checks.dataset(i, dataset, missing, required=datasets is not None)
    checks.services()
    if datasets is None:
        checks.other_tasks()
    checks.leaks()
    if datasets is None:
        checks.reach()
        checks.downloads()
        checks.models()
        checks.baselines(registered)
        checks.limits()
    return checks.problems


@dataclass
class _FileChecks:
    """The checks of one task, and what they have seen so far.

    ``hidden`` are files of truths with the position and name of their dataset, ``shown`` the files that participants
    may see, with the words for where they lie, and ``elsewhere`` those of other tasks.
    """

    task: Task
    config: Config
    problems: Problems
    hidden: list[tuple[int, str, Path]] = field(default_factory=list)
    shown: list[tuple[str, PurePosixPath, Path]] = field(default_factory=list)
    elsewhere: list[tuple[str, PurePosixPath, Path]] = field(default_factory=list)

    def files(self, at: Pointer, folder: Path, what: str, fix: str = _MAKE) -> Files:
        """The files of a folder; a problem and nothing where there are none."""
        try:
            found = folder_files(folder)
        except RunnerError as error:
            self.problems.add(at, f"{what}: {error.what}", error.fix if folder.is_dir() else fix)
            return []
        if not found:
            self.problems.add(at, f"{what}: the folder {schemas.show(folder.name)} holds no files", fix)
        return found

    def dataset(self, i: int, dataset: Dataset, missing: Collection[Source], *, required: bool) -> None:
        """Inputs and truths of a dataset. Unless it is ``required``, it may lack the files in ``missing``."""
        at, later = ("datasets", i), absent(dataset)
        if missing or (not required and why_stage_missing(dataset)):
            for k, source in enumerate(dataset.sources):
                if required and source in missing:
                    what = f'"{schemas.show(source.name)}" of "{dataset.id}" has not been fetched'
                    fix = how_to_get(source, dataset.id, self.task.id)
                    self.problems.add((*at, "sources", k), what, fix)
            return
        inputs = self.files(at, dataset.inputs, f'inputs of "{dataset.id}"')
        self.shown += [(f'inputs of "{dataset.id}"', name, path) for name, path in inputs]
        for key in ("topics", "corpus"):
            if (file := getattr(dataset, key)) is not None and f"inputs/{file}" not in later:
                self.among((*at, key), file, {str(name) for name, _ in inputs}, f'inputs of "{dataset.id}"')
        self.truths(i, dataset, required=required)
        if inputs:
            self.views(dataset, inputs)
            self.driver(dataset, inputs)

    def truths(self, i: int, dataset: Dataset, *, required: bool) -> None:
        """The truths of a dataset: there, outside what participants get, and with the files of the measures."""
        outside = dataset.visibility == "blinded" and not self.task.demo
        row = self.task.definition["datasets"][i]
        here = in_task(self.task.folder, row, "truths") if outside and "from" not in row else None
        if not required and here is not None and holds_files(here) and not holds_files(dataset.truths):
            return  # reach() reports that they have to be moved; where they belong, nothing can be missing yet
        fix = f"put them at {where_hidden(self.task.id, dataset.id)}" if outside else _MAKE
        truths = self.files(("datasets", i), dataset.truths, f'truths of "{dataset.id}"', fix)
        if outside and truths and within(dataset.truths, tree(self.config)):
            self.problems.add(
                ("datasets", i),
                f'the truths of the blinded dataset "{dataset.id}" lie in the tree that participants get',
                "set RUNNER_PRIVATE to a folder outside the project and move them there",
                "E403",
            )
        shared = self.task.shared
        self.hidden += [
            (i, dataset.id, path)
            for name, path in truths
            if not any(matches(pattern, str(name)) for pattern in shared)
        ]
        # A measure may name a folder, such as nuggets with a file for each topic.
        named = {str(part) for name, _ in truths for part in (name, *name.parents[:-1])}
        for k, measure in enumerate(self.task.measures.values()):
            if f"truths/{measure.truths}" not in absent(dataset):
                self.among(("measures", k, "truths"), measure.truths, named, f'truths of "{dataset.id}"')

    def reach(self) -> None:
        """Hidden inputs in what participants clone, and hidden truths that were left there though others are used."""
        task = self.task
        for i, dataset, side, folder in exposed(self.config, task.folder, task.definition):
            row = task.datasets[dataset]
            if folder == row.truths:  # said where the truths are looked at
                continue
            in_use = folder == row.inputs or not holds_files(row.truths)
            lie = "lie" if in_use else "also lie, unused,"
            what = f'the {side} of the blinded dataset "{dataset}" {lie} in the tree that participants clone'
            fix = how_to_hide(self.config, task.id, dataset, side)
            if within(folder, private_root(self.config)):
                fix = "set RUNNER_PRIVATE to a folder outside the project, and move them there"
            self.problems.add(("datasets", i), what, fix, "E411" if side == "inputs" else "E403")

    def downloads(self) -> None:
        """What is offered for download and cannot be: names that are none for an address, and contents that are hidden."""
        hidden = read_hidden(
            [one for one in hidden_files([self.task]) if one[1].exists()]
        )  # what is not: elsewhere
        for i, dataset in enumerate(self.task.datasets.values()):
            for side in dataset.downloads:
                folder = dataset.inputs if side == "inputs" else dataset.truths
                try:
                    for offer in offers(self.task, dataset.id, side) if folder.is_dir() else ():
                        hidden.refuse(offer)
                except RunnerError as error:
                    at = ("datasets", i, "downloads", side)
                    self.problems.add(at, f"{error.what}. {error.why}".strip(" ."), error.fix, error.code)

    def among(self, at: Pointer, file: str, names: Collection[str], where: str) -> None:
        """A file that is not among those that there are, where there are any."""
        if names and file not in names:
            fix = schemas.closest(file, names).strip() or "correct the name"
            self.problems.add(at, f'"{schemas.show(file)}" is not among the {where}', fix)

    def views(self, dataset: Dataset, inputs: Files) -> None:
        """Patterns that fit nothing, and files whose fields cannot be taken out."""
        everywhere = self.input_names(dataset, inputs)
        for k, scenario in enumerate(self.task.scenarios.values()):
            for at, pattern in _patterns(scenario, dataset):
                if not any(matches(pattern, name) for name in everywhere):
                    what = f'"{schemas.show(pattern)}" fits no input of "{dataset.id}"'
                    self.problems.add(("scenarios", k, *at), what, "correct the pattern")
            try:
                if dataset.smoke and part(dataset, scenario, 0) is None:
                    what = f'sees no topics in {schemas.show(dataset.topics)}, so "{dataset.id}" has no first cases'
                    self.problems.add(("scenarios", k), what, "show it that file, or take smoke out")
                if not view_files(dataset, scenario):
                    what = f'sees no input of "{dataset.id}" at all'
                    self.problems.add(("scenarios", k), what, "correct its patterns")
            except RunnerError as error:
                if error.code != "E402":
                    raise
                what = f'"{dataset.id}": {error.what}. {error.why.rstrip(".")}'
                self.problems.add(("scenarios", k), what, error.fix)

    def input_names(self, dataset: Dataset, inputs: Files) -> set[str]:
        """The names of input files in any dataset: as forms may differ, a pattern is wrong only when it fits in none."""
        names = {str(name) for name, _ in inputs}
        for other in self.task.datasets.values():
            names |= {source.name.removeprefix("inputs/") for source in other.sources}
            names |= {other.stage.name} if other.stage else set()
            if other.id != dataset.id:
                with suppress(RunnerError):  # its own problem, reported at its own place
                    names |= {str(name) for name, _ in folder_files(other.inputs)}
        return names

    def driver(self, dataset: Dataset, inputs: Files) -> None:
        """Scenarios in which a driver would find nothing to read."""
        interaction = self.task.interaction
        for k, scenario in enumerate(self.task.scenarios.values() if interaction else ()):
            names = {str(shown.name) for shown in seen(dataset.id, inputs, scenario.rules)}
            if interaction and names and (wrong := input_problem(names, interaction.mode)):
                at = ("scenarios", k) if "scenarios" in self.task.definition else ("interaction", "mode")
                what = f'what is seen of "{dataset.id}" {wrong}'
                self.problems.add(at, what, "add the file, or let the scenario see it")

    def services(self) -> None:
        """The data and prompts of services."""
        for name, service in self.task.services.items():
            at = ("services", name)
            if service.data is not None:
                files = self.files((*at, "data"), service.data, f"data of the service {name}")
                self.shown += [(f"data of the service {name}", file, path) for file, path in files]
                if files and (wrong := data_problem(name, {str(file) for file, _ in files})):
                    self.problems.add((*at, "data"), wrong, _MAKE)
                for wrong, fix in vector_problems(name, {str(file): path for file, path in files}):
                    self.problems.add((*at, "data"), wrong, fix)
            if service.prompts is not None:
                files = self.files((*at, "llm", "prompts"), service.prompts, f"prompts of the service {name}")
                self.shown += [(f"data of the service {name}", file, path) for file, path in files]

    def leaks(self) -> None:
        """Files of truths whose content is also shown, packed or not. Only what has the same size unpacked is hashed.

        Truths of a public dataset are no secret, and may be training data of another one; but nobody may find there
        those of a blinded one.
        """
        shown = [*self.shown, *self.public_truths()]
        hidden = [(i, dataset, unpacked(path)) for i, dataset, path in self.hidden]
        wanted = {size for _, _, (size, _) in hidden if size}
        copies: dict[tuple[int, str], list[tuple[str, PurePosixPath]]] = {}
        outside: dict[tuple[int, str], list[tuple[str, PurePosixPath]]] = {}
        for place, name, path in shown:
            for content in contents(path, wanted):
                copies.setdefault(content, []).append((place, name))
        for place, name, path in self.elsewhere:
            for content in contents(path, wanted):
                outside.setdefault(content, []).append((place, name))
        for i, dataset, content in hidden:
            public = self.task.datasets[dataset].visibility == "public"
            found = [*copies.get(content, ()), *(() if public else outside.get(content, ()))]
            for other, name in found if content[0] else ():
                if public and other != f'inputs of "{dataset}"':
                    continue
                what = f'the truths of "{dataset}" are also among the {other}, as {schemas.show(str(name))}'
                self.problems.add(("datasets", i), what, "remove them from there", "E403")

    def other_tasks(self) -> None:
        """Truths of blinded datasets among the inputs of public datasets of other tasks."""
        from runner.tasks.load import load_task, task_ids

        for name in task_ids(self.config):
            with suppress(RunnerError):  # what is wrong with another task is said when that one is checked
                other = load_task(self.config, name) if name != self.task.folder.name else None
                for dataset in other.datasets.values() if other is not None else ():
                    where = f'inputs of the dataset "{dataset.id}" of the task "{name}"'
                    if dataset.visibility == "public" and dataset.inputs.is_dir():
                        self.elsewhere += [(where, file, path) for file, path in folder_files(dataset.inputs)]

    def public_truths(self) -> list[tuple[str, PurePosixPath, Path]]:
        """What measures read of the truths of public datasets, which everybody gets."""
        found = []
        read = {measure.truths for measure in self.task.measures.values()}
        for _, dataset, path in self.hidden:
            row = self.task.datasets[dataset]
            name = PurePosixPath(path.relative_to(row.truths).as_posix())
            offered = "truths" in row.downloads
            if row.visibility == "public" and (
                offered or any(str(part) in read for part in (name, *name.parents))
            ):
                found.append((f'truths of the public dataset "{dataset}"', name, path))
        return found

    def limits(self) -> None:
        """Limits that nothing can work under, or that are none."""
        definition = self.task.definition
        evaluator, frame = definition.get("evaluator", {}), self.task.frame
        whole = replace(self.task.limits, **frame)  # type: ignore[arg-type]
        for at, limits, given in (
            (("limits",), self.task.limits, definition.get("limits", {})),
            *([(("limits",), whole, frame)] if frame else []),
            (("evaluator", "limits"), self.task.evaluator_limits, evaluator.get("limits", {})),
        ):
            for key, what, fix in absurd(limits):
                place = (*at, key) if key in given else at
                self.problems.add(place, f"{key}: {what}", fix, "E401")

    def models(self) -> None:
        """Models that are not there, or have another content than their digest says."""
        for i, model in enumerate(self.task.models):
            what, fix = f'model for "{model.target}"', "fetch the model; the task's README says how"
            if self.files(("models", i), model.path, what, fix):
                actual = model_digest(model)
                if actual != model.digest:
                    what = f'the model for "{model.target}" has another content'
                    self.problems.add(
                        ("models", i, "digest"), what, f"if it is right, write digest: {actual}"
                    )

    def baselines(self, registered: Collection[str]) -> None:
        """Note tables whose baseline is neither a folder nor ``registered``, such as an uploaded run file."""
        for i, table in enumerate(self.task.tables.values()):
            if (
                table.baseline
                and table.baseline not in registered
                and not (self.config.submissions / table.baseline / "submission.yaml").is_file()
            ):
                what = f'there is no software "{table.baseline}"'
                fix = "add it under submissions/, upload its run files, or name another baseline"
                self.problems.add(("tables", i, "baseline"), what, fix)


def _patterns(scenario: Scenario, dataset: Dataset) -> list[tuple[tuple[str | int, ...], str]]:
    """The patterns of a scenario that are for a dataset, each with its place in the scenario."""
    return [
        (("view", r, "files") if scenario.view else ("files", p), pattern)
        for r, rule in enumerate(scenario.rules or ())
        if rule.datasets is None or dataset.id in rule.datasets
        for p, pattern in enumerate(rule.files)
    ]
