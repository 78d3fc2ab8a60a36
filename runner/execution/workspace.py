"""What planning and work look at: the store, the loaded tasks, the registered bundles and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import schemas
from runner.execution.evaluator import Evaluator
from runner.execution.job import InputRun, Job
from runner.execution.lock import make_job
from runner.execution.replies import replies_of
from runner.model.config import EngineFor
from runner.model.errors import RunnerError
from runner.model.names import BASELINES
from runner.model.pins import of_task, pins
from runner.model.run import Run, Submission, run_id
from runner.model.task import Task
from runner.records.store.connect import Store
from runner.records.store.queries import pauses, runs, submissions, team_limits
from runner.records.store.results import Evaluated, measured
from runner.submissions.bundle import Bundle
from runner.tasks.data_files import file_digest
from runner.tasks.files import inputs_digest, truths_digest

# What of task.yaml decides how software is run, and on what: the rest may change while runs are executed.
LOCKED = (
    "workflow",
    "workflows",
    "output",
    "limits",
    "exceptions",
    "models",
    "services",
    "interaction",
    "scenarios",
    "datasets",
)
Pauses = Mapping[tuple[str, str], str]  # by task and dataset (empty: all of the task), with the reason
# Who may hand in for a dataset and when, and who sees its scores.
RULES_OF_DATASETS = (
    "opens",
    "closes",
    "grace",
    "quota",
    "requires",
    "scores",
    "publish_at",
    "public_topics",
    "smoke",
)


@dataclass(frozen=True)
class Workspace:
    """The store, the loaded tasks, the registered bundles by submission id, and the runs of all of them.

    ``own_profile`` says whether the engine's machine can use the platform's own seccomp profile, ``sidecars`` is the
    identity of the image of the sidecars of interactive software (None: not known here). ``evaluators`` (by task) are known where work is
    done.
    """

    store: Store
    tasks: Mapping[str, Task]
    bundles: Mapping[str, Bundle]
    own_profile: bool = True
    sidecars: str | None = None
    engine_for: EngineFor = "both"
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict)
    _digests: dict[tuple[str, str, str | None], str] = field(default_factory=dict)
    # task -> SHA-256 of a task.yaml that is as it was loaded
    _definitions: dict[str, str] = field(default_factory=dict)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run, in the order of registration, as it stood when this was asked first."""
        return tuple(self.runs_now())

    @cached_property
    def _pauses(self) -> Pauses:
        return pauses(self.store)

    @cached_property
    def _limits(self) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        return team_limits(self.store)

    def task_for(self, submission: Submission) -> Task:
        """The task of a submission, with the limits that hold for its team."""
        task = self.tasks[submission.task]
        own = self._limits.get((task.id, submission.team))
        return task if own is None else replace(task, limits=replace(task.limits, **own))

    def why_paused(self, run: Run, now: Pauses | None = None) -> str:
        """Why nothing of ``run`` is begun while its task or dataset is paused; empty where neither is.

        ``now`` is what is paused by now; None: what was when this was asked first.
        """
        task, paused = run.submission.task, self._pauses if now is None else now
        for place, name in ((task, ""), (f"{task} {run.dataset}", run.dataset)):
            if (task, name) in paused:
                return f"paused; runner task resume {place} takes it up again"
        return ""

    @cached_property
    def _measured(self) -> Mapping[Evaluated, frozenset[str]]:
        return measured(self.store)

    def measures_of(self, run: Run) -> frozenset[str]:
        """The measures that the evaluation which decided ``run``'s outcome has, or waits for; none without one."""
        outcome = run.outcome
        if outcome.attempt is None or outcome.evaluation is None:
            return frozenset()
        return self._measured.get((run.id, outcome.attempt, outcome.evaluation), frozenset())

    def runs_now(self) -> list[Run]:
        """Every run as it stands now."""
        return runs(self.store, self.tasks.values(), running=self.store.archive.live())

    @cached_property
    def _latest(self) -> Mapping[tuple[str, str, str], Submission]:
        """The latest submission of each software (task, team, software) that was not withdrawn, as in :attr:`runs`."""
        usable = (run.submission for run in self.runs if run.submission.withdrawn is None)
        return {(one.task, one.team, one.software): one for one in usable}

    def input_ids(self, run: Run, *, now: bool = False) -> dict[str, str]:
        """Input name → run id for a software that takes other runs as input.

        The input is the latest submission of the named software that was not withdrawn, in the same cell: as in
        :attr:`runs`, or ``now``. Raises E207 when there is none, or when it belongs to another team.
        """
        inputs = {}
        for name, source in self.bundles[run.submission.id].data["inputs"].items():
            team, software = owner_of(source, run.submission.team)
            task = run.submission.task
            latest = self._latest.get((task, team, software))
            if now:
                named = submissions(self.store, task=task, team=team, software=software, withdrawn=False)
                latest = next(reversed(named), None)
            if latest is None:
                what = f"the input {name} ({source}) is not registered"
                raise RunnerError("E207", what, fix=f"register {source} first")
            inputs[name] = run_id(latest.id, run.dataset, run.scenario)
        return inputs

    def digest(self, run: Run, side: Literal["inputs", "truths"]) -> str:
        """The digest of what ``run`` sees of its dataset, or of the dataset's truths; the files are looked at once.

        Raises E402 when files are missing.
        """
        task = self.tasks[run.submission.task]
        dataset = task.datasets[run.dataset]
        key = (task.id, dataset.id, run.scenario if side == "inputs" else None)
        if key not in self._digests:
            shown = task.scenarios[run.scenario] if side == "inputs" else None
            self._digests[key] = inputs_digest(dataset, shown) if shown else truths_digest(dataset)
        return self._digests[key]

    def evaluated_again(self, run: Run, image: str | None) -> bool:
        """Whether an evaluation of ``run`` waits to be accepted that was made from the truths and definitions that there are now.

        ``image`` is the identity of the task's evaluator that it has to be by (None: nobody knows, and any will do).
        """
        task = self.tasks.get(run.submission.task)
        if (
            run.waiting is None
            or run.outcome.attempt is None
            or task is None
            or run.dataset not in task.datasets
        ):
            return False
        attempt = self.store.archive.attempt(task.id, run.id, run.outcome.attempt)
        record = attempt.evaluation(run.waiting).record(check=False)
        try:
            same = record.get("truths_digest") == self.digest(run, "truths")
        except RunnerError:  # files are missing: evaluating it says so
            return False
        by = record.get("evaluator", {}).get("image_id")
        return same and record.get("pins") == pins(of_task(task)) and image in (None, by)

    def job(self, run: Run) -> Job:
        """The job of ``run``. Raises RunnerError when its task, data or inputs are not there.

        Inputs are looked up as they stand now: they may have been made since the plan.
        """
        task, bundle = self.task_for(run.submission), self.bundles[run.submission.id]
        sources = self.input_ids(run, now=True)
        return make_job(
            bundle,
            task,
            task.datasets[run.dataset],
            run.scenario,
            own_profile=self.own_profile,
            view=self.digest(run, "inputs") if run.scenario in task.scenarios else None,
            input_runs=[self._input(task, name, source) for name, source in sources.items()],
            sidecars=self.sidecars,
            replies=replies_of(self.store.archive.root.parent, task.id),
        )

    def check_current(self, job: Job) -> None:
        """Raise E402 when what a job was made from has changed since: the task's definition, or the files it is given.

        Hours can lie between a plan and a start, and the lock of the attempt must say what was really executed.
        """
        task, path = job.task, job.task.folder / "task.yaml"
        changed: list[str] = []
        if path.is_file() and self._definitions.get(task.id) != (digest := file_digest(path)):
            now = schemas.load_yaml(path).data
            keys = now if isinstance(now, dict) else {}
            before = task.definition
            changed = [f"{key} in task.yaml" for key in LOCKED if _locked(keys, key) != _locked(before, key)]
            if not changed:
                self._definitions[task.id] = digest
        pinned = job.lock["digests"]
        if inputs_digest(job.dataset, task.scenarios[job.scenario]) != pinned["view"]:
            changed.append(f"the inputs of {job.dataset.id}")
        if [upload.sha256() for upload in job.uploads] != pinned["uploads"]:
            changed.append("its run file")
        if changed:
            what, why = (
                f"{job.run_id} is not what was planned any more",
                f"Changed since: {', '.join(changed)}.",
            )
            raise RunnerError("E402", what, why=why, fix="start the same command again")

    def _input(self, task: Task, name: str, source: str) -> InputRun:
        attempts = self.store.archive.attempts(task.id, source)
        good = [a for a in attempts if a.record()["verdict"]["name"] == "ok"]
        if not good:
            what = f"the input run {source} has not succeeded"
            raise RunnerError("E207", what, fix=f"runner show {source}")
        return InputRun.of(name, good[-1])


def _locked(definition: Mapping[str, Any], key: str) -> Any:
    """What a definition says under ``key``, without the rules of datasets that change no run."""
    value = definition.get(key)
    if key != "datasets" or not isinstance(value, list):
        return value
    return [
        {k: v for k, v in row.items() if k not in RULES_OF_DATASETS} if isinstance(row, dict) else row
        for row in value
    ]


def owner_of(source: str, team: str) -> tuple[str, str]:
    """Team and software of an input (``software`` of the own team, or ``team/software``). Raises E207.

    Runs of other teams would give their results away, so only the own team's and the baselines' are open.
    """
    owner, _, software = source.rpartition("/")
    owner = owner or team
    if owner not in (team, BASELINES):
        what, why = f"the input {source} belongs to another team", "Its runs are not yours to read."
        raise RunnerError("E207", what, why=why, fix=f"name a software of your own, or {BASELINES}/…")
    return owner, software
