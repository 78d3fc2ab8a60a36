"""Evaluations by hosts of a cluster of their own, which see truths: what they are ordered, and when."""

from __future__ import annotations

import schemas
from runner.execution.attempt import ordered_evaluation
from runner.execution.cluster.duties import Duty, Prepared
from runner.execution.cluster.order import EvaluationOrder, Tree
from runner.execution.cluster.roles import Role, role_of
from runner.execution.cluster.software import LATE, STAYS
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.taking import take_in_evaluation
from runner.execution.contract import files_for_evaluator
from runner.execution.evaluation import most_handed
from runner.execution.evaluator import Evaluator
from runner.execution.executors.base import Host
from runner.execution.plan import Planned
from runner.model.errors import RunnerError
from runner.records.archive import Attempt, Evaluation


class Evaluations(Duty):
    """Evaluations are done by hosts, but for those that may ask models: keys and kept replies stay on the coordinator's machine."""

    role: Role = "evaluations"

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
        data, image = (
            self._bringing[store].shown(evaluator, dataset),
            self._archives.ours(evaluator.image, host),
        )
        main, records, output = self._output(attempt, evaluator, store)
        longest = evaluator.task.evaluator_limits.wall_clock + LATE
        staging = archive.begin_evaluation(attempt)
        asked = ordered_evaluation(attempt, staging.number, evaluator, dataset)

        def order(name: str) -> EvaluationOrder:
            what = (name, staging.number, run.id, number, evaluator, dataset, run.scenario, main, records)
            return EvaluationOrder(*what, output, image, data, schemas.digest(asked))

        def take(delivered: str, key: bytes, by: str) -> Evaluation:
            place = (store, delivered, key, staging, archive)
            return take_in_evaluation(*place, attempt, asked, evaluator.task, by)

        return self._prepared(staging, order, store, longest, take, host)

    def failed(self, result: Attempt | Evaluation) -> bool:
        """See :class:`~runner.execution.cluster.duties.Duty`."""
        record = result.record(check=False)
        return bool(record["status"] == "error" and record["fault"] == "platform")

    def _output(self, attempt: Attempt, evaluator: Evaluator, store: Artefacts) -> tuple[str, bool, Tree]:
        """The run file's name, whether the platform's records are beside it, and the files that the evaluator is given."""
        main, records = attempt.record()["output"]["file"], attempt.lock()["workflow"] == "interactive"
        assert main is not None, "only attempts with a run file are evaluated"
        with attempt.output() as output:
            files = files_for_evaluator(output, main, most_handed(evaluator.task, records=records))
            return main, records, tuple((name, store.put(what)) for name, what in files.items())
