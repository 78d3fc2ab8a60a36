"""The files that a task names: what a scenario sees of them, their digests, and whether they are right."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

import schemas
from runner.model.calendar import Registering, calendar
from runner.model.errors import RunnerError
from runner.model.task import Dataset, Model, Scenario, Source, Task, Workflow
from runner.tasks.data_files import files_digest, folder_files, inside
from runner.tasks.views import (
    Files,
    Shown,
    ViewSummary,
    address,
    count_topics,
    materialise,
    seen,
    topic_ids,
    view_digest,
    view_summary,
)


@dataclass(frozen=True)
class Terms:
    """What teams accept: a text, and its SHA-256."""

    text: str
    sha256: str


def terms_of(task: Task, rules: Registering) -> Terms | None:
    """The terms that teams accept when they register; None where the task has none. Raises E401 when they cannot be read."""
    if not rules.terms_file:
        return None
    path = inside(task.folder, rules.terms_file)
    try:
        if path is None:
            raise OSError("it is not inside the task's folder")
        content = path.read_bytes()
        return Terms(content.decode(), hashlib.sha256(content).hexdigest())
    except (OSError, UnicodeDecodeError) as error:
        what = f"the terms of {task.id} cannot be read"
        raise RunnerError("E401", what, why=str(error), fix="write them as plain text (UTF-8)") from error


def terms_now(task: Task) -> tuple[str, Terms] | None:
    """The version of a task's terms and the terms themselves, as they are now; None where it has none. Raises E401."""
    rules = calendar(task).registration
    found = None if rules is None else terms_of(task, rules)
    return None if rules is None or found is None else (rules.terms_version, found)


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


def missing_sources(dataset: Dataset, which: str = "", *, optional: bool = True) -> list[Source]:
    """The files of a dataset that still have to be fetched or brought.

    Args:
        dataset: the dataset.
        which: of ``inputs`` or ``truths`` only.
        optional: also those without which run files are scored (software needs them).
    """
    return [
        source
        for source in dataset.sources
        if source.name.startswith(which) and (optional or not source.optional) and not source.path.is_file()
    ]


def absent(dataset: Dataset) -> list[str]:
    """The optional files of a dataset that are not here, as the dataset's folder knows them (``inputs/ids.txt``)."""
    return [source.name for source in missing_sources(dataset) if source.optional]


def _files(dataset: Dataset, which: Literal["inputs", "truths"]) -> Files:
    """The files of one side of a dataset; never a part of those that are not optional. Raises E402."""
    missing = missing_sources(dataset, which, optional=False)
    if missing:
        what = f'files of the dataset "{dataset.id}" have not been fetched'
        why = f"Missing: {schemas.show(', '.join(s.name for s in missing), 300)}."
        raise RunnerError("E402", what, why=why, fix=how_to_get(missing[0], dataset.id))
    return folder_files(dataset.inputs if which == "inputs" else dataset.truths)


def how_to_get(source: Source, dataset: str, task: str = "TASK") -> str:
    """What a person does to get a missing file of a dataset."""
    if source.url is not None:
        return f"runner data pull {task} --dataset {dataset}"
    return f"get the file (the task's README says where), then: runner data import {task} {dataset} FILE --as {source.name}"


def view(dataset: Dataset, scenario: Scenario | None = None) -> list[Shown]:
    """What a scenario (None: the evaluator) sees of a dataset: files, and which fields of them. Raises E402."""
    found = seen(dataset.id, _files(dataset, "inputs"), scenario.rules if scenario else None)
    return [
        replace(one, topics=dataset.sample) if dataset.sample and str(one.name) == dataset.topics else one
        for one in found
    ]


def part(dataset: Dataset, scenario: Scenario, topics: int) -> Dataset | None:
    """``dataset`` with so many of its topics alone, always the same ones: a dataset as any other, for the same images and
    limits. None where it has no more than that, or ``scenario`` sees no list of them. Raises E402 when files are missing.
    """
    shown = next((one for one in view(dataset, scenario) if str(one.name) == dataset.topics), None)
    if shown is None or count_topics(shown.path) <= topics:
        return None
    return replace(dataset, sample=topics, smoke=None)


def topics_of(dataset: Dataset, scenario: Scenario) -> list[str]:
    """The ids of the topics of a dataset, or of a part of one, where they can be told. Raises E402."""
    listed = (path for name, path in view_files(dataset, scenario) if str(name) == dataset.topics)
    return [topic for path in listed for topic in topic_ids(path)]


def view_files(dataset: Dataset, scenario: Scenario | None = None) -> list[tuple[PurePosixPath, Path]]:
    """The files that a scenario (None: the evaluator) may see.

    Files whose fields are hidden are written first, once, into ``RUNNER_HOME/views``.

    Returns:
        The name of each file in the container, and where it lies.

    Raises:
        RunnerError: E402 when files are missing or a line of one is no JSON object, E306 when none can be written.
    """
    return materialise(view(dataset, scenario), _views(dataset))


def _views(dataset: Dataset) -> Path:
    return dataset.views or dataset.inputs.parent / ".views"


def inputs_digest(dataset: Dataset, scenario: Scenario | None = None) -> str:
    """Digest of a dataset's inputs, or of what a scenario sees of them. Raises E402 when they are missing."""
    return view_digest(view(dataset, scenario))


def view_addresses(dataset: Dataset, scenario: Scenario) -> set[str]:
    """The folders below ``RUNNER_HOME/views`` that a scenario needs. Raises E402."""
    return {address(shown) for one in _parts(dataset) for shown in view(one, scenario) if not shown.whole}


def view_digests(dataset: Dataset, scenario: Scenario) -> set[str]:
    """The digests of all that runs in a scenario are shown of a dataset: of all of it, and of its first cases. Raises E402."""
    return {inputs_digest(one, scenario) for one in _parts(dataset)}


def _parts(dataset: Dataset) -> list[Dataset]:
    return [dataset, replace(dataset, sample=dataset.smoke)] if dataset.smoke else [dataset]


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
