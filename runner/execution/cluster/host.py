"""A host of a cluster: does what it is ordered to with its own engine, and delivers to the artefact store.

:func:`describe`, :func:`perform` and :func:`stop` are what the scheduler has it do. They take and give bytes and raise
nothing: whatever happened is said in JSON.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, cast

import schemas
from runner.engines.base import Engine, Fill, Volume, find_image
from runner.engines.sandbox import sandbox_digest
from runner.execution.attempt import perform as perform_job
from runner.execution.attempt import refuse_what_cannot_work
from runner.execution.cluster.artefacts import Artefacts, patiently
from runner.execution.cluster.cache import Cache
from runner.execution.cluster.order import Order, OrderedImage, Tree
from runner.model.errors import PlatformError, RunnerError
from runner.records.contents import Content
from runner.records.files import walk
from runner.submissions.bundle import MAX_IMAGE
from runner.submissions.origins import kept_as, resolve_expected

SCRATCH = "attempt-"  # how folders of attempts begin, below a worker's own
EARLY = 10_000  # stops that are remembered for orders that have not begun
PROTOCOL = 1  # of orders and answers: raised whenever one of them changes


@dataclass(frozen=True)
class Stopped:
    """Stops one order: a person ``ended`` the run, which is an attempt as any other, or it was ``dropped`` and nothing comes of it."""

    ended: threading.Event = field(default_factory=threading.Event)
    dropped: threading.Event = field(default_factory=threading.Event)

    def cancelled(self, run_id: str) -> bool:
        """Whether the order was stopped."""
        return self.ended.is_set() or self.dropped.is_set()

    def stopping(self) -> bool:
        """Whether nothing is to be delivered."""
        return self.dropped.is_set()


class Unavailable(Exception):
    """What a job needs cannot be had at this host; ``error`` says why. It says nothing about the software."""

    def __init__(self, error: PlatformError) -> None:
        super().__init__(error.what)
        self.error = error


class FetchingEngine:
    """The engine of a host, which fills volumes with what an order says they hold."""

    def __init__(self, engine: Engine, cache: Cache, data: Mapping[str, Tree]) -> None:
        self._engine, self._cache, self._data = engine, cache, data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def data_volume(self, digest: str, fill: Fill) -> Volume:
        """The volume with that digest; ``fill`` is of another machine and is not called. Raises :class:`Unavailable`."""
        with ExitStack() as used:

            def fetched() -> list[tuple[PurePosixPath, Path]]:
                return [
                    (PurePosixPath(name), used.enter_context(self._cache.using(content)))
                    for name, content in self._data[digest]
                ]

            try:
                return self._engine.data_volume(digest, fetched)
            except PlatformError as error:
                raise Unavailable(error) from error


@dataclass
class Station:
    """What a host works with. ``steps`` bounds how many orders it takes at once (None: as many as it has processors)."""

    name: str
    engine: Engine
    artefacts: Artefacts
    cache: Cache
    steps: int | None = None
    labels: tuple[str, ...] = ()
    at_work: dict[str, Stopped] = field(default_factory=dict)
    _early: dict[str, bool] = field(
        default_factory=dict
    )  # orders that were stopped before they began, and whether dropped
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def describe(self) -> dict[str, Any]:
        """What a coordinator has to know of it before it orders anything."""
        info = self.engine.info()
        return {
            "protocol": PROTOCOL,
            "version": version("proctor-ir"),
            "name": self.name,
            "sandbox": sandbox_digest(info.seccomp),
            "cpus": info.cpus,
            "memory": info.memory,
            "gpus": info.gpus,
            "platform": info.platform,
            "steps": self.steps,
            "labels": list(self.labels),
            "artefacts": self.artefacts.place,
            "cached": self.cache.size(),
            "at_work": sorted(name.partition("/")[2] for name in list(self.at_work)),
        }

    def perform(self, name: str, content: Content, key: bytes) -> dict[str, Any]:
        """Carry out the order with that content and deliver under ``name``, signed by ``key``."""
        stopped = Stopped()
        with self._lock:
            self.at_work[name] = stopped
            if (early := self._early.pop(name, None)) is not None:
                (stopped.dropped if early else stopped.ended).set()
        try:
            order = Order.load(patiently(lambda: self.artefacts.get_bytes(content), stopped.stopping))
            with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=self.cache.folder.parent) as scratch:
                folder = Path(scratch)
                facts = {"record": self._performed(order, folder, stopped)}
                files = dict(walk(folder))
                patiently(lambda: self.artefacts.deliver(name, files, facts, key), stopped.stopping)
            return {"delivered": name}
        except KeyboardInterrupt:
            return {"stopped": name}
        finally:
            with self._lock:
                del self.at_work[name]

    def _performed(self, order: Order, folder: Path, stop: Stopped) -> dict[str, Any]:
        engine = cast(Engine, FetchingEngine(self.engine, self.cache, order.data))
        self._take_image(order.image, order)
        refuse_what_cannot_work(order.job, engine)
        # One of its own: an attempt that was given up may still be going on here.
        name = f"{order.job.run_id[:150]}-{order.number}-{order.name.rpartition('~')[2]}"
        return perform_job(order.job, order.first, order.number, folder, engine, stop, name=name)

    def _take_image(self, image: OrderedImage, order: Order) -> None:
        found = find_image(self.engine, image.id)
        if found is None and image.repo_digest is not None:
            found = resolve_expected(self.engine, image.repo_digest, image.id)
        elif found is None and image.archive is not None:
            with self.cache.using(image.archive) as path:
                found = self.engine.load(path, max_bytes=MAX_IMAGE, expect=image.id)
        if found is None:
            raise RunnerError("E204", f"the image {image.id[:19]} cannot be had here", fix="submit it again")
        job = order.job
        self.engine.keep(found, kept_as(job.task.id, job.team, job.submission_id))

    def stop(self, names: list[str], *, drop: bool) -> None:
        """End the orders of those names, also those that have not begun yet; with ``drop`` they deliver nothing."""
        with self._lock:
            for name in names:
                if (stopped := self.at_work.get(name)) is not None:
                    (stopped.dropped if drop else stopped.ended).set()
                else:
                    self._early[name] = drop
            while len(self._early) > EARLY:
                del self._early[next(iter(self._early))]


_station: Station | None = None


def become(station: Station) -> None:
    """Have this process be that host."""
    global _station
    _station = station


def describe(home: str) -> bytes:
    """As JSON: what :meth:`Station.describe` says, or ``error``.

    What is going on of a coordinator before this one, of the same ``home``, is dropped.
    """

    def described(station: Station) -> dict[str, Any]:
        if home:
            station.stop([name for name in list(station.at_work) if name.startswith(f"{home}/")], drop=True)
        return station.describe()

    return _said(described)


def perform(message: bytes) -> bytes:
    """As JSON: ``delivered`` or ``stopped`` with the name of an order, or ``error``. ``message`` names the order and its content."""
    asked = json.loads(message)
    key = bytes.fromhex(asked["key"])
    return _said(lambda station: station.perform(asked["name"], Content(*asked["order"]), key))


def stop(message: bytes) -> None:
    """End the orders that ``message`` names, and drop them if it says so."""
    if _station is not None:
        asked = json.loads(message)
        _station.stop(asked["names"], drop=asked["drop"])


def _said(ask: Callable[[Station], dict[str, Any]]) -> bytes:
    try:
        if _station is None:
            raise RuntimeError("this process is no host: start it by runner worker")
        said = ask(_station)
    except Unavailable as caught:
        said = {"error": {key: getattr(caught.error, key) for key in ("code", "what", "why", "fix")}}
    except RunnerError as error:
        said = {"error": {key: getattr(error, key) for key in ("code", "what", "why", "fix")}}
    except Exception as error:  # noqa: BLE001 - the host's border: the coordinator decides
        what = f"{type(error).__name__}: {schemas.show(error, 300)}"
        said = {"error": {"code": "E308", "what": what, "why": "", "fix": ""}}
    return json.dumps(said).encode()
