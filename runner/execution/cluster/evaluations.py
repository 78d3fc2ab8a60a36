"""Evaluations by hosts of a cluster of their own, which see truths: what they are ordered, and when."""

from __future__ import annotations

import schemas
from runner.execution.attempt import ordered_evaluation
from runner.execution.cluster.duties import Archives, Prepared
from runner.execution.cluster.keys import home_of, key_for, key_of
from runner.execution.cluster.order import Bringing, EvaluationOrder, Role, Tree, laid_down
from runner.execution.cluster.places import role_of
from runner.execution.cluster.software import LATE, STAYS
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.stores import Stores
from runner.execution.cluster.storage.taking import take_in_evaluation
from runner.execution.contract import files_for_evaluator, output_of
from runner.execution.evaluation import most_handed
from runner.execution.evaluator import Evaluator
from runner.execution.executors.base import Host
from runner.execution.executors.local import LocalExecutor
from runner.execution.plan import Planned
from runner.model.errors import RunnerError
from runner.records.archive import Attempt, Evaluation


class Evaluations:
    """Evaluations are done by hosts, but for those that may ask models: keys and kept replies stay on the coordinator's machine."""

    role: Role = "evaluations"

    def __init__(self, local: LocalExecutor, stores: Stores) -> None:
        self._workspace, self.stores = local.workspace, stores
        self._bringing, self._engine = Bringing(stores.open), local.engine
        self._archives = Archives(local.engine, stores.open, self._workspace.store.archive.root.parent)
        self.key = key_of(self._workspace.store.archive)
        self.home = home_of(self.key)

    def prepare(self, planned: Planned, host: Host) -> Prepared:
        """See :class:`~runner.execution.cluster.duties.Duty`."""
        run, archive, store = planned.run, self._workspace.store.archive, self.stores.open
        if role_of(self._workspace, planned) != self.role:
            what = f"the evaluation of {run.id} stays on this machine"
            why = "Hosts evaluate, but for what may ask models: keys and kept replies stay here."
            raise RunnerError("E101", what, why=why, fix=STAYS)
        task, number = self._workspace.tasks[run.submission.task], run.outcome.attempt
        assert number is not None
        attempt, evaluator = archive.attempt(task.id, run.id, number), self._workspace.evaluators[task.id]
        dataset = task.datasets[run.dataset]
        data, image = self._bringing.shown(evaluator, dataset), self._archives.ours(evaluator.image, host)
        main, records, output = self._output(attempt, evaluator, store)
        longest = evaluator.task.evaluator_limits.wall_clock + LATE
        staging = archive.begin_evaluation(attempt)
        try:
            name = f"{self.home}/{staging.path.name}"
            asked = ordered_evaluation(attempt, staging.number, evaluator, dataset)
            order = EvaluationOrder(
                name,
                staging.number,
                run.id,
                number,
                evaluator,
                dataset,
                run.scenario,
                main,
                records,
                output,
                image,
                data,
                schemas.digest(asked),
            )
            content, url = laid_down(order, self.stores, store, longest, granted=host.granted)
        except BaseException:
            archive.discard(staging)
            raise

        def take(delivered: str, by: str) -> Evaluation:
            key = key_for(self.key, delivered)
            return take_in_evaluation(
                store, delivered, key, staging, archive, attempt, asked, evaluator.task, by
            )

        needs = frozenset({image.id, *data})
        return Prepared(name, staging, content, store, needs, longest, take, url)

    def failed(self, result: Attempt | Evaluation) -> bool:
        """See :class:`~runner.execution.cluster.duties.Duty`."""
        record = result.record(check=False)
        return bool(record["status"] == "error" and record["fault"] == "platform")

    def _output(self, attempt: Attempt, evaluator: Evaluator, store: Artefacts) -> tuple[str, bool, Tree]:
        """The run file's name, whether the platform's records are beside it, and the files that the evaluator is given."""
        main, records = attempt.record()["output"]["file"], attempt.lock()["workflow"] == "interactive"
        assert main is not None, "only attempts with a run file are evaluated"
        with output_of(attempt) as output:
            files = files_for_evaluator(output, main, most_handed(evaluator.task, records=records))
            return main, records, tuple((name, store.put(what)) for name, what in files.items())
