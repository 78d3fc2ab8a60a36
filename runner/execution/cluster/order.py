"""What a host is asked to do: one job, with the digests of everything that it needs and nothing else.

Orders are pickled: they go from the coordinator to its hosts, which do what it says anyway. Nothing comes back so
(:mod:`runner.execution.cluster.taking`).
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from runner.engines.base import Fill, Volume
from runner.execution.cluster.artefacts import Artefacts
from runner.execution.job import Job
from runner.execution.workflows.batch import data_mounts
from runner.records.contents import Content

NOWHERE = Path("/nonexistent")
Tree = tuple[tuple[str, Content], ...]  # the files of a volume, by their names in it


@dataclass(frozen=True)
class OrderedImage:
    """Where a host gets an image from that it lacks: a registry by digest, or an archive in the artefact store."""

    id: str
    repo_digest: str | None = None
    archive: Content | None = None


@dataclass(frozen=True)
class Order:
    """One attempt: its ``name`` and ``number``, the job, the same on its first cases (None: it has none), and its data by digest."""

    name: str
    number: int
    job: Job
    first: Job | None
    image: OrderedImage
    data: Mapping[str, Tree]

    def dump(self) -> bytes:
        """As bytes; what only the coordinator's machine has is left out: where truths and inputs lie there."""
        return pickle.dumps(
            replace(self, job=_elsewhere(self.job), first=self.first and _elsewhere(self.first))
        )

    @classmethod
    def load(cls, data: bytes) -> Order:
        """What :meth:`dump` gave, at a host. Only for bytes whose digest the coordinator has named."""
        order = pickle.loads(data)  # noqa: S301, TID251 - the coordinator's own words, by their digest
        if not isinstance(order, cls):
            raise TypeError("not an order")
        return order


class Bringing:
    """Takes the data of jobs to the artefact store, once for each digest; in the place of an engine, see :func:`data_mounts`."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts
        self._brought: dict[str, Tree] = {}

    def data_volume(self, digest: str, fill: Fill) -> Volume:
        """Bring the files of a volume."""
        if digest not in self._brought:
            files = ((str(name), self._artefacts.put(path)) for name, path in fill())
            self._brought[digest] = tuple(files)
        return Volume(digest)

    def data(self, *jobs: Job | None) -> dict[str, Tree]:
        """The data of jobs, which are in the store then. Raises E402, E306, E307 and E313."""
        mounts = [mount for job in jobs if job is not None for mount in data_mounts(job, self)]
        return {mount.volume.name: self._brought[mount.volume.name] for mount in mounts}


def _elsewhere(job: Job) -> Job:
    dataset = replace(job.dataset, inputs=NOWHERE, truths=NOWHERE, views=None, sources=())
    datasets = {job.dataset.id: dataset}
    task = replace(job.task, folder=NOWHERE, datasets=datasets, definition={})
    runs = tuple(replace(one, attempt=replace(one.attempt, path=NOWHERE)) for one in job.input_runs)
    return replace(job, task=task, dataset=dataset, input_runs=runs)
