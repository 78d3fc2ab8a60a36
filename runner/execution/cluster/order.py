"""What a host is asked to do: one job or one evaluation, with the digests of everything that it needs and nothing else.

Orders are pickled: they go from the coordinator to its hosts, which do what it says anyway. Nothing comes back so
(:mod:`runner.execution.cluster.storage.taking`).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from runner.engines.base import Fill, Mount, Volume
from runner.execution.cluster.line import MAX_WISH
from runner.execution.cluster.roles import Role
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.grants import Grants
from runner.execution.cluster.storage.stores import Stores
from runner.execution.evaluation import shown
from runner.execution.evaluator import Evaluator
from runner.execution.job import Job
from runner.execution.workflows import mounts_of
from runner.model.errors import RunnerError
from runner.model.sidecars import Service
from runner.model.task import Dataset, Task
from runner.records.contents import Content
from runner.tasks.files import missing_sources

BROUGHT = 86400.0  # seconds for which data that were brought to a store are not looked for there again
MOST_URL = MAX_WISH - 1000  # characters of what grants an order, which the line brings among others
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
    """One attempt: its ``name`` and ``number``, the job, the same on its first cases (None: it has none), and its data by digest.

    ``beside`` are the images of the containers beside interactive software. ``grants`` open what it needs for a host that has no credentials of the store.
    """

    name: str
    number: int
    job: Job
    first: Job | None
    image: OrderedImage
    data: Mapping[str, Tree]
    beside: tuple[OrderedImage, ...] = ()
    grants: Grants | None = None
    role: ClassVar[Role] = "software"

    def dump(self) -> bytes:
        """As bytes; what only the coordinator's machine has is left out: where truths and inputs lie there."""
        return pickle.dumps(
            replace(self, job=_elsewhere(self.job), first=self.first and _elsewhere(self.first))
        )

    def contents(self) -> set[Content]:
        """All that it needs of the store in which its data are; its image may be in another one."""
        return _contents(self.data.values())

    @property
    def images(self) -> tuple[OrderedImage, ...]:
        """All images that it needs."""
        return (self.image, *self.beside)


@dataclass(frozen=True)
class EvaluationOrder:
    """One evaluation of an attempt: its ``name`` and ``number``, what is evaluated (the file ``run`` and others, ``output``), by what, and
    the data by digest. ``asked`` pins all that its record says of what was asked for; ``records`` as in
    :class:`~runner.execution.contract.RunFiles`.
    """

    name: str
    number: int
    run_id: str
    attempt: int
    evaluator: Evaluator
    dataset: Dataset
    scenario: str
    run: str
    records: bool
    output: Tree
    image: OrderedImage
    data: Mapping[str, Tree]
    asked: str
    grants: Grants | None = None
    role: ClassVar[Role] = "evaluations"

    def dump(self) -> bytes:
        """As :meth:`Order.dump`."""
        dataset = _dataset_elsewhere(self.dataset)
        evaluator = replace(self.evaluator, task=_task_elsewhere(self.evaluator.task, dataset))
        return pickle.dumps(replace(self, evaluator=evaluator, dataset=dataset))

    def contents(self) -> set[Content]:
        """As :meth:`Order.contents`."""
        return _contents([*self.data.values(), self.output])

    @property
    def images(self) -> tuple[OrderedImage, ...]:
        """As :meth:`Order.images`."""
        return (self.image,)


def laid_down(
    order: Order | EvaluationOrder, stores: Stores, store: Artefacts, seconds: float, *, granted: bool
) -> tuple[Content, str]:
    """Put an order into the ``store`` of its data; with grants for so long where the host works by them.

    Returns its content, and by what the host may read it (empty: by its own credentials). Raises E313, and E101 where the store signs
    addresses that are too long.
    """
    if not granted:
        return store.put(order.dump()), ""
    grants = store.grants(order.contents(), order.name, seconds)
    if archives := [image.archive for image in order.images if image.archive is not None]:
        opened = stores.open.grants(archives, order.name, seconds).read
        grants = replace(grants, read={**grants.read, **opened})
    content = store.put(replace(order, grants=grants).dump())
    if len(url := store.grants([content], order.name, seconds).read[content.sha256]) > MOST_URL:
        what = f"the artefact store {store.place} signs addresses of {len(url):,} characters"
        why = f"An order holds one of at most {MOST_URL:,}; what they hold of temporary credentials is that long."
        fix = (
            "give the coordinator credentials of the store whose session token is shorter, or that have none"
        )
        raise RunnerError("E101", what, why=why, fix=fix)
    return content, url


def _contents(trees: Iterable[Tree]) -> set[Content]:
    return {content for tree in trees for _, content in tree}


def load(data: bytes) -> Order | EvaluationOrder:
    """What ``dump`` of an order gave, at a host. Only for bytes whose digest the coordinator has named."""
    order = pickle.loads(data)  # noqa: S301, TID251 - the coordinator's own words, by their digest
    if not isinstance(order, Order | EvaluationOrder):
        raise TypeError("not an order")
    return order


class Bringing:
    """Takes the data of jobs to the artefact store, once a day for each digest, so that they stay there; in the place of an engine, see :func:`mounts_of`."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts
        self._brought: dict[str, Tree] = {}
        self._since: dict[str, float] = {}

    def data_volume(self, digest: str, fill: Fill) -> Volume:
        """Bring the files of a volume."""
        now = time.monotonic()
        if now - self._since.get(digest, -BROUGHT) >= BROUGHT:
            files = ((str(name), self._artefacts.put(path)) for name, path in fill())
            self._brought[digest], self._since[digest] = tuple(files), now
        return Volume(digest)

    def data(self, *jobs: Job | None) -> dict[str, Tree]:
        """The data of jobs, which are in the store then. Raises E402, E306, E307 and E313."""
        return self._trees(mount for job in jobs if job is not None for mount in mounts_of(job, self))

    def shown(self, evaluator: Evaluator, dataset: Dataset) -> dict[str, Tree]:
        """What an evaluator is shown, truths too, which are in the store then. Raises as :meth:`data`."""
        return self._trees(shown(evaluator, dataset, self))

    def _trees(self, mounts: Iterable[Mount]) -> dict[str, Tree]:
        return {mount.volume.name: self._brought[mount.volume.name] for mount in mounts}


def _elsewhere(job: Job) -> Job:
    dataset = _dataset_elsewhere(job.dataset)
    task = _task_elsewhere(job.task, dataset)
    runs = tuple(replace(one, attempt=replace(one.attempt, path=NOWHERE)) for one in job.input_runs)
    return replace(
        job, task=task, dataset=dataset, input_runs=runs, services=_services_elsewhere(job.services)
    )


def _dataset_elsewhere(dataset: Dataset) -> Dataset:
    # Which optional files are missing is said to evaluators.
    absent = tuple(replace(one, path=NOWHERE) for one in missing_sources(dataset) if one.optional)
    return replace(dataset, inputs=NOWHERE, truths=NOWHERE, views=None, sources=absent)


def _task_elsewhere(task: Task, dataset: Dataset) -> Task:
    services, datasets = _services_elsewhere(task.services), {dataset.id: dataset}
    return replace(task, folder=NOWHERE, datasets=datasets, definition={}, services=services)


def _services_elsewhere(services: Mapping[str, Service]) -> dict[str, Service]:
    return {
        name: replace(one, data=one.data and NOWHERE, prompts=one.prompts and NOWHERE)
        for name, one in services.items()
    }
