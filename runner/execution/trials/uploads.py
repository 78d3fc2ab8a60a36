"""The check of run files on the machine of who has them: scored where the truths are public, checked for their form elsewhere.

What others wrote is read in a container alone; a team's own files also by a plain process, where no engine is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.execution.machine import Machine
from runner.execution.trials.handed_in import check_handed_in
from runner.model.errors import RunnerError
from runner.model.task import Dataset, Task
from runner.submissions.definition import SubmissionFile
from runner.tasks.check_data import check_task
from runner.tasks.files import missing_sources


@dataclass(frozen=True)
class UploadCheck:
    """What the check of one run file gave.

    ``how``: ``scored`` (as in an official evaluation; ``view`` is its run), ``checked`` (only its form; ``text`` is what the
    checker said) or ``unchecked`` (``text`` says why). ``summary`` is what a bundle keeps of a scored one.
    """

    file: str
    dataset: str
    scenario: str
    how: Literal["scored", "checked", "unchecked"]
    good: bool
    text: str = ""
    view: Any = None
    summary: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same for ``--json``."""
        facts = {name: getattr(self, name) for name in ("file", "dataset", "scenario", "how", "good")}
        return {**facts, "message": self.text, "run": None if self.view is None else dict(self.view)}


def check_uploads(
    machine: Machine,
    submission: SubmissionFile,
    task: Task,
    *,
    dataset: str | None = None,
    scenario: str | None = None,
) -> Iterator[UploadCheck]:
    """Check the run files of a submission one after the other; ``dataset`` and ``scenario`` choose some of them.

    Raises E207 when none of them is meant, E402 when a chosen public dataset's files are wrong.
    """
    meant = [
        run for run in submission.run if dataset in (None, run.dataset) and scenario in (None, run.scenario)
    ]
    if not meant:
        what = f"{submission.team}/{submission.software} has no such run file"
        why = f"It has files for {', '.join(f'{r.dataset} in {r.scenario}' for r in submission.run)}."
        raise RunnerError("E207", what, why=why, fix="name one of these")
    for run in meant:
        chosen = task.datasets[run.dataset]
        # Everything is here that a score needs, and everybody may know the score.
        complete = (
            chosen.inputs.is_dir() and chosen.truths.is_dir() and not missing_sources(chosen, optional=False)
        )
        if chosen.visibility == "public" and complete:
            check_task(task, machine.config, [chosen.id], optional=False)
            yield _scored(machine, submission, task, chosen, run.scenario, run.path.name)
        else:
            yield check_form(machine, task, chosen, run.scenario, run.path)


def _scored(
    machine: Machine, submission: SubmissionFile, task: Task, dataset: Dataset, scenario: str, file: str
) -> UploadCheck:
    from runner.execution.trials.software import check_submission
    from runner.views.audience import Audience

    with check_submission(machine, submission, None, task, dataset, scenario) as checked:
        view = checked.view(Audience.parse(f"team:{submission.team}"))
        good, summary = checked.good, checked.summary()
        return UploadCheck(file, dataset.id, scenario, "scored", good, view=view, summary=summary)


def check_form(machine: Machine, task: Task, dataset: Dataset, scenario: str, file: Path) -> UploadCheck:
    """Whether a run file of anybody has the form that its task wants, as the evaluator's checker says in a container.

    Hidden inputs are looked up, too, where they are here: the result is for the owner of this machine alone.
    Raises PlatformError when the engine fails, and E304 when our image is not there.
    """
    form = check_handed_in(machine, task, dataset, scenario, file, lambda: False, hidden=True)
    how: Literal["unchecked", "checked"] = "unchecked" if form.how == "unchecked" else "checked"
    return UploadCheck(file.name, dataset.id, scenario, how, form.valid, "\n".join(form.lines()))


def check_own_form(task: Task, dataset: Dataset, scenario: str, file: Path) -> UploadCheck:
    """The same of a file that whoever asks made: the checker runs as a process of theirs, without a container.

    Unknown without inputs."""
    from runner.submissions.check_file import ask

    if not dataset.inputs.is_dir() or missing_sources(dataset, "inputs", optional=False):
        why = f"the inputs of {dataset.id} are not here"
        return UploadCheck(file.name, dataset.id, scenario, "unchecked", True, why)
    try:
        code, text = ask(task, dataset, file, scenario=scenario)
    except RunnerError as error:
        if error.code != "E404":
            raise
        return UploadCheck(file.name, dataset.id, scenario, "unchecked", True, error.why or error.what)
    return UploadCheck(file.name, dataset.id, scenario, "checked", code == 0, text)
