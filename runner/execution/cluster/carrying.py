"""How a host carries out an order: data and image are had from the store by their digests, and nothing else of the order is looked up."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, cast

import schemas
from runner.engines.base import Engine, Fill, Volume, find_image
from runner.engines.lending import Rooms
from runner.execution.attempt import ended_evaluation, engine_attempt, perform, refuse_what_cannot_work
from runner.execution.cluster.order import EvaluationOrder, Order, OrderedImage, Tree
from runner.execution.cluster.storage.cache import Cache
from runner.execution.cluster.storage.grants import Store
from runner.execution.contract import RunFiles
from runner.execution.evaluation import EvaluationJob
from runner.execution.job import Job
from runner.execution.stop import Stop
from runner.model.container import ImageRef
from runner.model.errors import PlatformError
from runner.records.files import is_name
from runner.submissions.bundle import MAX_IMAGE
from runner.submissions.origins import kept_as, resolve_expected

SCRATCH = "attempt-"  # how folders of attempts begin, below a worker's own


class Unavailable(Exception):
    """What a job needs cannot be had at this host; ``error`` says why. It says nothing about the software."""

    def __init__(self, error: PlatformError) -> None:
        super().__init__(error.what)
        self.error = error


class FetchingEngine:
    """The engine of a host, which fills volumes with what an order says they hold."""

    def __init__(self, engine: Engine, cache: Cache, store: Store, data: Mapping[str, Tree]) -> None:
        self._engine, self._cache, self._store, self._data = engine, cache, store, data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def data_volume(self, digest: str, fill: Fill) -> Volume:
        """The volume with that digest; ``fill`` is of another machine and is not called. Raises :class:`Unavailable`."""
        with ExitStack() as used:

            def fetched() -> list[tuple[PurePosixPath, Path]]:
                return [
                    (PurePosixPath(name), used.enter_context(self._cache.using(content, self._store)))
                    for name, content in self._data[digest]
                ]

            try:
                return self._engine.data_volume(digest, fetched)
            except PlatformError as error:
                raise Unavailable(error) from error


def containers_of(order: Order) -> str:
    """The name under which the engine knows the containers of an attempt: one of its own, as one that was given up may still be going on."""
    return f"{order.job.run_id[:150]}-{order.number}-{order.name.rpartition('~')[2]}"


def _part(job: Job, image: OrderedImage) -> str:
    """What an image beside a software is kept as: the name leads to the newest, so that those of other versions lose theirs."""
    return f"beside {next((name for name, one in job.services.items() if one.image == image.id), '')}"


@dataclass(frozen=True)
class Hands:
    """What orders are carried out with: ``store`` has their data, ``images`` the images that no registry has; ``rooms`` are for evaluators."""

    engine: Engine
    cache: Cache
    store: Store
    images: Store
    rooms: Rooms

    def carry_out(self, order: Order | EvaluationOrder, folder: Path, stop: Stop) -> dict[str, Any]:
        """Do what an order says and leave its files in ``folder``; returns what its manifest says beside them.

        Raises :class:`Unavailable`, RunnerError where it cannot be done here, KeyboardInterrupt where it was dropped.
        """
        engine = cast(Engine, FetchingEngine(self.engine, self.cache, self.store, order.data))
        if isinstance(order, EvaluationOrder):
            return self._evaluate(order, engine, folder, stop)
        job = order.job
        self._image(order.image, kept_as(job.task.id, job.team, job.submission_id))
        for one in order.beside:
            self._image(one, kept_as(job.task.id, "", _part(job, one)))
        refuse_what_cannot_work(job, engine)
        name = containers_of(order)
        return {"record": perform(job, order.first, order.number, folder, engine, stop, name=name)}

    def _evaluate(self, order: EvaluationOrder, engine: Engine, folder: Path, stop: Stop) -> dict[str, Any]:
        image = self._image(order.image, kept_as(order.evaluator.task.id, "", "evaluator"))
        evaluator = replace(order.evaluator, image=image)
        engine.require([evaluator.task.evaluator_limits])
        name = engine_attempt(
            order.run_id[:150], order.attempt, f"evaluation-{order.name.rpartition('~')[2]}"
        )
        with TemporaryDirectory(prefix=SCRATCH, dir=folder.parent) as scratch:
            for file, content in order.output:
                if not is_name(file):
                    raise PlatformError(
                        "the order names a file that is none of an output",
                        why=schemas.show(file, 100),
                        code="E307",
                    )
                with self.cache.using(content, self.store) as path:
                    shutil.copyfile(path, Path(scratch) / file)
            files = RunFiles(Path(scratch), order.run, order.records)
            work = (evaluator, order.dataset, order.scenario, files, engine, name, folder, stop)
            done = EvaluationJob(*work, rooms=self.rooms).assess()
        return {"asked": order.asked, "attempt": order.attempt, "ended": ended_evaluation(done)}

    def _image(self, image: OrderedImage, name: str) -> ImageRef:
        """The image in this host's engine, where it is kept under ``name`` if it was brought here. Raises E204, E205, E304, E313."""
        found = find_image(self.engine, image.id)
        if found is None and image.repo_digest is not None:
            found = resolve_expected(self.engine, image.repo_digest, image.id)
        elif found is None and image.archive is not None:
            with self.cache.using(image.archive, self.images) as path:
                found = self.engine.load(path, max_bytes=MAX_IMAGE, expect=image.id)
        if found is None:  # it was here when this host joined
            raise PlatformError(f"the image {image.id[:19]} has gone from this host", code="E304")
        self.engine.keep(found, name)
        return found
