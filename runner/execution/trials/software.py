"""The local check: one software on one public dataset, in the graded sandbox, with the graded evaluator.

Everything is recorded as in an official evaluation, but in a scratch data directory that is removed afterwards.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.engines.base import Engine
from runner.execution.coordinator import Silent, coordinating
from runner.execution.job import InputRun, Job
from runner.execution.machine import Machine
from runner.execution.replies import replies_of
from runner.model.config import Config
from runner.model.container import ImageRef
from runner.model.errors import RunnerError, no_such
from runner.model.outcome import once
from runner.model.task import Dataset, Task
from runner.records.store.run_detail import RunDetail
from runner.submissions.bundle import Bundle, provisional
from runner.submissions.definition import SubmissionFile
from runner.tasks.files import view_files
from runner.views.audience import Audience, escape
from runner.views.redact import RunView, redact_run
from schemas.details import read as read_detail
from schemas.files import make_private


@dataclass(frozen=True)
class Checked:
    """What a local check gave: the job, and everything about its run as a store has it."""

    job: Job
    detail: RunDetail

    @property
    def good(self) -> bool:
        """Whether the run would be scored, as far as that can be said here.

        Only the organiser may hold the key of the models that judge: a run that waits for nothing else is good.
        """
        return self.detail.run.outcome.name == "scored" or self.unjudged

    @property
    def unjudged(self) -> bool:
        """Whether the run ended well and could not be judged because models cannot be asked here."""
        last = self.detail.evaluation
        if self.detail.run.outcome.verdict != "ok" or last is None:
            return False
        record = last.record(check=False)
        said = read_detail(record.get("detail"), str(record.get("message") or ""))
        return record["status"] == "error" and said.code == "E408"

    @property
    def our_failure(self) -> str:
        """What failed on our side, in full; empty when nothing did.

        Only for the person at this machine: it is not redacted, and nothing of a check is kept to look it up later.
        """
        if self.detail.run.outcome.blame != "platform" or self.detail.attempt is None:
            return ""
        verdict = self.detail.attempt.record(check=False)["verdict"]
        if verdict["blame"] == "platform":
            return escape(f"{verdict['name']}: {verdict['detail'] or verdict['name']}", 2000)
        last = self.detail.evaluation
        return escape(f"the evaluation: {last.record(check=False)['message']}", 2000) if last else ""

    def view(self, audience: Audience) -> RunView:
        """The run as ``audience`` may see it."""
        run = replace(self.detail.run, outcome=once(self.detail.run.outcome))
        return redact_run(replace(self.detail, run=run), audience, self.job.dataset)

    def summary(self) -> dict[str, Any]:
        """What a bundle keeps of the check."""
        outcome = self.detail.run.outcome
        status = {"scored": "valid", "invalid": "invalid"}.get(outcome.name)
        return {
            "verdict": outcome.verdict,
            "status": status,
            "dataset": self.job.dataset.id,
            "scores": {name: measure.value for name, measure in self.detail.measures.items()},
        }


def public_dataset(task: Task, wanted: str | None = None) -> Dataset:
    """The dataset for local checks: the one asked for, else the task's first public one. Raises E102, E103."""
    if wanted is None:
        found = task.public_dataset()
        if found is None:
            raise RunnerError("E102", f"{task.id} has no public dataset", fix="name one with --dataset")
        return found
    if wanted not in task.datasets:
        raise no_such("dataset", wanted, task.datasets, of=task.id, fix="name one of them")
    return task.datasets[wanted]


@contextmanager
def check(
    machine: Machine,
    bundle: Bundle,
    task: Task,
    dataset: Dataset,
    scenario: str = "default",
    *,
    input_runs: Sequence[InputRun] = (),
    host: str | None = None,
) -> Iterator[Checked]:
    """Execute and evaluate ``bundle`` on ``dataset``; the files are there until the context ends.

    ``host`` is the address of a host of the cluster that executes it (None: this machine).
    Raises RunnerError for what is not the software's doing.
    """
    config = machine.config
    machine.engine()
    machine.evaluator()  # missing: known before anything is made
    make_private(config.home)
    scratch = replace(config, home=Path(tempfile.mkdtemp(prefix="check-", dir=config.home)))
    url = f"sqlite:///{scratch.database}"
    # The real data directory's: what was paid for once is not paid for again by a check.
    replies = replies_of(config.home, task.id)
    try:
        with coordinating(scratch, Silent(), machine=machine, tasks={task.id: task}, url=url) as coordinator:
            made = coordinator.once(
                bundle, dataset, scenario, input_runs=input_runs, replies=replies, host=host
            )
            yield Checked(*made)
    finally:
        remove_scratch(scratch.home)


def remove_scratch(folder: Path) -> None:
    """Remove the scratch folder of a check; the archive in it was sealed read-only."""
    for inner, _, _ in os.walk(folder):
        Path(inner).chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)


def command_line(job: Job) -> str:
    """A ``docker run`` line that comes as close to the sandbox as the command line can, for people to copy.

    The run file lands in a new folder ``output`` of the folder where the line is run. Not in it: the platform's
    seccomp profile, the byte and file quota on the output directory, the wall-clock limit, and input runs.
    ``runner try`` has them all. Empty for an uploaded run, which needs no container, and for a server, which needs
    more than one.
    """
    import shlex

    from runner.tasks.tira import INPUT, OUTPUT

    if job.image is None or job.workflow == "interactive":
        return ""
    limits = job.limits
    words = [
        "docker", "run", "--rm", "--network=none", "--ipc=none", "--read-only", "--cap-drop=ALL",
        "--security-opt=no-new-privileges", "--init", "--no-healthcheck", "--user=20000:20000",
        "--hostname=sandbox", "--add-host=sandbox:127.0.0.1", "-e", "USER=sandbox", "-e", "LOGNAME=sandbox",
        f"--memory={limits.memory}", f"--memory-swap={limits.memory}", f"--cpus={limits.cpus:g}",
        f"--pids-limit={limits.pids}", f"--ulimit=nofile={limits.open_files}:{limits.open_files}",
        f"--tmpfs=/tmp:rw,nosuid,nodev,size={limits.tmp}", f"--tmpfs=/dev/shm:rw,nosuid,nodev,noexec,size={limits.shm}",
    ]  # fmt: skip
    scenario = job.task.scenarios[job.scenario]
    mounts = [(INPUT, job.dataset.inputs)]
    if scenario.rules is not None:
        mounts = [(f"{INPUT}/{name}", path) for name, path in view_files(job.dataset, scenario)]
    for target, source in [*mounts, *((model.target, model.path) for model in job.models)]:
        words += ["--mount", f"type=bind,src={source},dst={target},readonly"]
    for name, value in job.env.items():
        words += ["-e", f"{name}={value}"]
    for path in job.exceptions.writable:
        words.append(f"--tmpfs={path}:rw,nosuid,nodev,size={job.exceptions.writable_bytes}")
    if job.command:
        words.append(f"--entrypoint={job.command[0]}")
    words += [job.image, *(job.command or ())[1:]]
    # Writable for everybody, as the software runs as a user that this machine does not know.
    return f'mkdir -p -m 777 output && docker run -v "$PWD/output":{OUTPUT} {shlex.join(words[2:])}'


@contextmanager
def check_submission(
    machine: Machine,
    submission: SubmissionFile,
    image: ImageRef | None,
    task: Task,
    dataset: Dataset,
    scenario: str,
) -> Iterator[Checked]:
    """:func:`check` a submission as it lies in its folder, after the runs that it takes as input.

    ``image`` is its image (None for uploaded run files). Raises E207 when an input cannot be made.
    """
    machine.evaluator()  # missing: known before anything is run
    with (
        input_runs(machine, submission, task, dataset, scenario) as inputs,
        _bundle(machine.config, machine.engine(), submission, image) as bundle,
        check(machine, bundle, task, dataset, scenario, input_runs=inputs) as checked,
    ):
        yield checked


@contextmanager
def _bundle(
    config: Config, engine: Engine, submission: SubmissionFile, image: ImageRef | None
) -> Iterator[Bundle]:
    """The bundle of a submission: nothing but its description, or with the run files in a scratch folder."""
    if not submission.run:
        yield provisional(submission, image, submission.folder)
        return
    from runner.submissions.pack import write

    make_private(config.home)
    with tempfile.TemporaryDirectory(prefix="check-", dir=config.home) as scratch:
        yield write(submission, None, Path(scratch) / "bundle", engine=engine, check=None, with_archive=False)


@contextmanager
def input_runs(
    machine: Machine,
    submission: SubmissionFile,
    task: Task,
    dataset: Dataset,
    scenario: str,
    above: tuple[str, ...] = (),
) -> Iterator[list[InputRun]]:
    """The runs that ``submission`` takes as input, made here on ``dataset``, with their own inputs first.

    Raises E207 when an input is no software of the same task, fails, or needs itself.
    """
    from runner.execution.workspace import owner_of
    from runner.submissions.load import load_submission
    from runner.submissions.pack import image_of

    here = f"{submission.team}/{submission.software}"
    if here in above:
        fix = "correct inputs in submission.yaml"
        raise RunnerError("E207", f"the inputs of {here} lead back to itself", fix=fix)
    inputs = []
    with ExitStack() as open_checks:
        for name, source in submission.inputs.items():
            needed = load_submission(machine.config, *owner_of(source, submission.team))
            if needed.task != task.id:
                what = f"the input {source} is for the task {needed.task}"
                raise RunnerError("E207", what, fix=f"name a software for {task.id}")
            deeper = open_checks.enter_context(
                input_runs(machine, needed, task, dataset, scenario, (*above, here))
            )
            bundle = provisional(needed, image_of(machine.config, machine.engine(), needed), needed.folder)
            checked = open_checks.enter_context(
                check(machine, bundle, task, dataset, scenario, input_runs=deeper)
            )
            if not checked.good or checked.detail.attempt is None:
                fix = f"runner try --team {needed.team} --software {needed.software}"
                raise RunnerError("E207", f"the input run of {source} failed", fix=fix)
            inputs.append(InputRun.of(name, checked.detail.attempt))
        yield inputs
