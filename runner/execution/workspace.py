"""What planning and work look at: the store, the loaded tasks, the registered bundles and their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from runner.execution.evaluator import Evaluator
from runner.execution.job import InputRun, Job
from runner.execution.lock import make_job
from runner.execution.replies import replies_of
from runner.model.config import EngineFor
from runner.model.errors import RunnerError
from runner.model.run import Run, run_id
from runner.model.task import Task
from runner.records.store.connect import Store
from runner.records.store.measured import Evaluated, measured
from runner.records.store.queries import runs
from runner.submissions.bundle import Bundle
from runner.tasks.data_files import files_digest, folder_files

BASELINES = "baselines"


@dataclass(frozen=True)
class Workspace:
    """The store, the loaded tasks, the registered bundles by submission id, and the runs of all of them.

    ``own_profile`` says whether the engine's machine can use the platform's own seccomp profile, ``sidecars`` is the
    identity of the image beside interactive software (None: not known here). ``evaluators`` are there where work is
    done, by task.
    """

    store: Store
    tasks: Mapping[str, Task]
    bundles: Mapping[str, Bundle]
    own_profile: bool = True
    sidecars: str | None = None
    engine_for: EngineFor = "both"
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run, in the order of registration, as it stood when this was asked first."""
        return tuple(self.runs_now())

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

    def input_ids(self, run: Run, among: Iterable[Run]) -> dict[str, str]:
        """Input name → run id for a software that takes other runs as input.

        The input is the latest submission of the named software in ``among`` that was not withdrawn, in the same cell.
        Raises E207 when there is none, or when it belongs to another team.
        """
        bundle = self.bundles[run.submission.id]
        found = {}
        for name, source in bundle.data["inputs"].items():
            team, software = owner_of(source, run.submission.team)
            mine = [
                other.submission
                for other in among
                if (other.submission.team, other.submission.software) == (team, software)
                and other.submission.task == run.submission.task
                and other.submission.withdrawn is None
            ]
            if not mine:
                raise RunnerError(
                    "E207", f"the input {name} ({source}) is not registered", fix=f"register {source} first"
                )
            found[name] = run_id(mine[-1].id, run.dataset, run.scenario)
        return found

    def job(self, run: Run) -> Job:
        """The job of ``run``. Raises RunnerError when its task, data or inputs are not there.

        Inputs are looked up as they stand now: they may have been made since the plan.
        """
        task = self.tasks[run.submission.task]
        sources: dict[str, str] = {}
        if self.bundles[run.submission.id].data["inputs"]:
            sources = self.input_ids(run, self.runs_now())
        inputs = [self._input(task, name, source) for name, source in sources.items()]
        return make_job(
            self.bundles[run.submission.id],
            task,
            task.datasets[run.dataset],
            run.scenario,
            own_profile=self.own_profile,
            input_runs=inputs,
            sidecars=self.sidecars,
            replies=replies_of(self.store.archive.root.parent, task.id),
        )

    def _input(self, task: Task, name: str, source: str) -> InputRun:
        attempts = self.store.archive.attempts(task.id, source)
        good = [a for a in attempts if a.record()["verdict"]["name"] == "ok"]
        if not good:
            raise RunnerError(
                "E207", f"the input run {source} has not succeeded", fix=f"runner show {source}"
            )
        output = good[-1].output
        return InputRun(name, source, output, files_digest(folder_files(output)))


def owner_of(source: str, team: str) -> tuple[str, str]:
    """Team and software of an input (``software`` of the own team, or ``team/software``). Raises E207.

    Runs of other teams would give their results away, so only the own team's and the baselines' are open.
    """
    owner, _, software = source.rpartition("/")
    owner = owner or team
    if owner not in (team, BASELINES):
        raise RunnerError(
            "E207",
            f"the input {source} belongs to another team",
            why="Its runs are not yours to read.",
            fix=f"name a software of your own, or {BASELINES}/…",
        )
    return owner, software
