"""Software that is executed by hosts of a cluster: what they are ordered, and when."""

from __future__ import annotations

from dataclasses import replace

from runner.execution.attempt import first_cases, sidecars_of
from runner.execution.cluster.duties import Duty, Prepared
from runner.execution.cluster.order import Order, OrderedImage
from runner.execution.cluster.roles import Role, check_travels
from runner.execution.cluster.storage.taking import take_in
from runner.execution.executors.base import Host
from runner.execution.job import Job
from runner.execution.plan import Planned
from runner.execution.workflows.beside import with_files
from runner.model.container import ImageRef
from runner.records.archive import Attempt, Evaluation
from runner.submissions.kept import take_image

LATE = 1800.0  # seconds that a step may take beside its own limit: data and image are fetched, and what it wrote is delivered
STAYS = "start the same command again without RUNNER_CLUSTER and RUNNER_EVALUATION_CLUSTER"  # where a host was chosen in error


class Software(Duty):
    """Software is executed by hosts, but for that beside which models are asked: keys and kept replies stay on the coordinator's machine. Run
    files, which nobody executes, stay there, too."""

    role: Role = "software"

    def prepare(self, planned: Planned, host: Host) -> Prepared:
        """See :class:`~runner.execution.cluster.duties.Duty`. The lock of the attempt is compared with what is there now."""
        job = planned.job or self._workspace.job(planned.run)
        check_travels(job, fix=STAYS)
        self._workspace.check_current(job)
        job, beside = self._beside(job, host)
        first = first_cases(job)
        first = with_files(first) if first is not None and job.workflow == "interactive" else first
        store = self.stores.of(job.dataset.visibility)
        data, image = self._bringing[store].data(job, first), self._image(planned)
        archive = self._workspace.store.archive
        longest = job.limits.wall_clock * (1 if first is None else 2) + LATE
        staging = archive.begin(job.task.id, job.run_id)

        def order(name: str) -> Order:
            return Order(name, staging.number, job, first, image, data, beside)

        def take(delivered: str, key: bytes, by: str) -> Attempt:
            return take_in(store, delivered, key, staging, archive, job, by)

        return self._prepared(staging, order, store, longest, take, host)

    def failed(self, result: Attempt | Evaluation) -> bool:
        """See :class:`~runner.execution.cluster.duties.Duty`."""
        return bool(result.record(check=False)["verdict"]["name"] == "platform-error")

    def _image(self, planned: Planned) -> OrderedImage:
        """Where hosts get the image: from the registry that it came from, else from an archive that is made once."""
        bundle = self._workspace.bundles[planned.run.submission.id]
        image = bundle.data["image"]
        if digest := image.get("repo_digest"):
            return OrderedImage(image["id"], repo_digest=digest)

        def here() -> ImageRef:
            found = take_image(self._engine, bundle)
            assert found is not None, "software has an image"
            return found

        return self._archives.ordered(image["id"], here)

    def _beside(self, job: Job, host: Host) -> tuple[Job, tuple[OrderedImage, ...]]:
        """An interactive job as a host can execute it, and the images of the containers beside it; any other job as it is."""
        if job.workflow != "interactive":
            return job, ()
        found = {"": self._engine.resolve(sidecars_of(job))}
        found |= {name: self._engine.resolve(one.image) for name, one in job.services.items() if one.image}
        # By its identity: what is loaded from an archive has no digest of a registry.
        services = {
            name: replace(one, image=found[name].id if name in found else None)
            for name, one in job.services.items()
        }
        images = tuple(self._archives.ours(image, host) for image in found.values())
        return with_files(replace(job, services=services)), images
