"""A host of a cluster: does what it is ordered to with its own engine, and delivers to the artefact store.

:func:`describe`, :func:`perform` and :func:`stop` are what the scheduler has it do. They take and give bytes and raise
nothing: whatever happened is said in JSON.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from runner.engines.base import Engine
from runner.engines.lending import Rooms
from runner.engines.sandbox import sandbox_digest
from runner.execution.cluster.carrying import SCRATCH, Hands, Unavailable, containers_of
from runner.execution.cluster.order import EvaluationOrder, Order, load
from runner.execution.cluster.roles import Role
from runner.execution.cluster.storage.artefacts import patiently
from runner.execution.cluster.storage.cache import Cache
from runner.execution.cluster.storage.grants import Granted, Grants, Store
from runner.execution.cluster.storage.stores import places_of
from runner.execution.cluster.tails import Tail, may_leave
from runner.execution.hardware import runner_version
from runner.execution.stop import Stop
from runner.model.clock import STAMP, SystemClock, stamp
from runner.model.errors import PlatformError, RunnerError, disk_error, kind_and_place
from runner.records.contents import Content
from runner.records.files import walk

SKEW = timedelta(
    seconds=5
)  # clocks that differ by less are right: that much may lie between sending and hearing
EARLY = 10_000  # stops that are remembered for orders that have not begun
PROTOCOL = 5  # of orders and answers: raised whenever one of them changes


class CoordinatorsTime:
    """The time of the coordinator, as a host knows it that heard at this moment that it was ``sent`` (seconds since 1970)."""

    def __init__(self, sent: float) -> None:
        self._sent, self._heard = datetime.fromtimestamp(sent, UTC), time.monotonic()
        ahead = SystemClock().now() - self._sent
        self._ahead = ahead if abs(ahead) > SKEW else timedelta(0)

    def dated(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What is said of what was done since; where a part has ``started`` and ``finished``, these are by that time.

        Also a clock that was set meanwhile puts nothing before the order, after this moment, or an end before its start.
        """
        return {
            name: self._dated(part) if isinstance(part, dict) and part.get("started") else part
            for name, part in facts.items()
        }

    def _dated(self, record: dict[str, Any]) -> dict[str, Any]:
        least = self._sent - SKEW
        most = self._sent + timedelta(seconds=time.monotonic() - self._heard) + SKEW
        times = {}
        for key in ("started", "finished"):
            said = datetime.strptime(record[key], STAMP).replace(tzinfo=UTC) - self._ahead
            least = times[key] = min(max(said, least), most)
        return {**record, **{key: stamp(at) for key, at in times.items()}}


@dataclass(frozen=True)
class Stopped(Stop):
    """Stops one order: a person ``ended`` the run, which is an attempt as any other, or it was ``dropped`` and nothing comes of it."""

    ended: threading.Event = field(default_factory=threading.Event)
    dropped: threading.Event = field(default_factory=threading.Event)

    def called_off(self, run_ids: Collection[str]) -> set[str]:
        """All, or none: there is one order."""
        return {*run_ids} if self.ended.is_set() or self.dropped.is_set() else set()

    def stopping(self) -> bool:
        """Whether nothing is to be delivered."""
        return self.dropped.is_set()


@dataclass
class Station:
    """What a host works with. ``steps`` bounds how many orders it takes at once (None: as many as it has processors); ``role`` says
    which, ``blinded`` is the store of those on hidden data, where they have one, and ``images`` are the identities of our own images here.
    """

    name: str
    engine: Engine
    artefacts: Store
    cache: Cache
    steps: int | None = None
    labels: tuple[str, ...] = ()
    role: Role = "software"
    blinded: Store | None = None
    images: tuple[str, ...] = ()
    at_work: dict[str, Stopped] = field(default_factory=dict)
    full: str = ""  # what had no room on its disk the last time; empty once an order was carried out
    _early: dict[str, bool] = field(
        default_factory=dict
    )  # orders that were stopped before they began, and whether dropped
    _tails: dict[str, Tail] = field(default_factory=dict)  # by order, of those on public data
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._rooms = Rooms(self.engine)
        for left in self.folder.glob(f"{SCRATCH}*"):  # of an earlier worker that was killed
            shutil.rmtree(left, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """Its own folder, for the cache and for attempts under way."""
        return self.cache.folder.parent

    def describe(self) -> dict[str, Any]:
        """What a coordinator has to know of it before it orders anything."""
        info = self.engine.info()
        return {
            "protocol": PROTOCOL,
            "version": runner_version(),
            "name": self.name,
            "sandbox": sandbox_digest(info.seccomp),
            "cpus": info.cpus,
            "memory": info.memory,
            "gpus": info.gpus,
            "platform": info.platform,
            "steps": self.steps,
            "labels": sorted({*self.labels, *info.gpu_kinds}),
            **places_of(self.artefacts, self.blinded),
            "granted": isinstance(self.artefacts, Granted),
            "role": self.role,
            "images": list(self.images),
            "cached": self.cache.size(),
            "room": shutil.disk_usage(self.folder).free,
            "full": self.full,
            "at_work": sorted(name.partition("/")[2] for name in list(self.at_work)),
        }

    def perform(
        self, name: str, content: Content, key: bytes, *, sent: float, hidden: bool = False, url: str = ""
    ) -> dict[str, Any]:
        """Carry out the order with that content, ``sent`` at that time, and deliver under ``name``, signed by ``key``; ``hidden``: by the
        store for hidden data; ``url`` grants the order where this host works by grants.

        Raises E306 where the disk of this host fails.
        """
        stopped, clock = Stopped(), CoordinatorsTime(sent)
        with self._lock:
            self.at_work[name] = stopped
            if (early := self._early.pop(name, None)) is not None:
                (stopped.dropped if early else stopped.ended).set()
        try:
            order = self._order(
                _granting(self._store(hidden), Grants({content.sha256: url})), content, stopped
            )
            if order.role != self.role:
                what = f"this host is for {self.role}, not for {order.role}"
                raise PlatformError(what, fix="see which cluster the settings name", code="E304")
            store, images = (
                _granting(self._store(hidden), order.grants),
                _granting(self.artefacts, order.grants),
            )
            with self._scratch() as folder, self._followed(name, order):
                done = Hands(self.engine, self.cache, store, images, self._rooms).carry_out(
                    order, folder, stopped
                )
                facts = {**clock.dated(done), "host": self.name}
                files = dict(walk(folder))
                patiently(lambda: store.deliver(name, files, facts, key), stopped)
            self.full = ""
            return {"delivered": name}
        except KeyboardInterrupt:
            return {"stopped": name}
        except (Unavailable, PlatformError) as caught:
            error = caught.error if isinstance(caught, Unavailable) else caught
            if error.code == "E306":
                self.full = f"{error.what}. {error.why}"
            raise
        finally:
            with self._lock:
                del self.at_work[name]

    def _order(self, store: Store, content: Content, stop: Stop) -> Order | EvaluationOrder:
        with self._scratch() as folder:
            patiently(lambda: store.fetch(content, folder / "order"), stop)
            return load((folder / "order").read_bytes())

    def _store(self, hidden: bool) -> Store:
        if hidden and self.blinded is None:
            raise PlatformError("this host has no store for hidden data", code="E304")
        return self.blinded if hidden and self.blinded is not None else self.artefacts

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder for an attempt. What the disk refuses is E306."""
        options: Any = {"prefix": SCRATCH, "dir": self.folder, "ignore_cleanup_errors": True}
        try:
            with tempfile.TemporaryDirectory(**options) as made:
                yield Path(made)
        except OSError as error:
            raise disk_error("the disk of this host cannot be used", error, self.folder) from error

    @contextmanager
    def _followed(self, name: str, order: Order | EvaluationOrder) -> Iterator[None]:
        """What the software of an order writes can be asked for while the block lasts, on public data alone."""
        if not isinstance(order, Order) or not may_leave(order.job.dataset):
            yield
            return
        self._tails[name] = tail = Tail(lambda may_cut: self.engine.follow(containers_of(order), may_cut))
        try:
            yield
        finally:
            del self._tails[name]
            tail.close()

    def tail(self, name: str, start: int) -> dict[str, Any]:
        """What the software of an order has written after its first ``start`` bytes, see :meth:`Tail.since`; nothing of blinded data."""
        found = self._tails.get(name)
        return found.since(start) if found is not None else {}

    def close(self) -> None:
        """Close what evaluators ran in."""
        self._rooms.__exit__()

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

    def drop_all(self) -> None:
        """End all orders; nothing of them is delivered."""
        self.stop(list(self.at_work), drop=True)


def _granting(store: Store, grants: Grants | None) -> Store:
    """A store by what was granted, where a host has it so."""
    return store.by(grants or Grants()) if isinstance(store, Granted) else store


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
    key, content = bytes.fromhex(asked["key"]), Content(*asked["order"])
    facts: dict[str, Any] = {
        "sent": float(asked["sent"]),
        "hidden": asked["hidden"] is True,
        "url": str(asked["url"]),
    }
    return _said(lambda station: station.perform(asked["name"], content, key, **facts))


def tail(message: bytes) -> bytes:
    """As JSON: what :meth:`Station.tail` says of the order that ``message`` names."""
    asked = json.loads(message)
    return _said(lambda station: station.tail(asked["name"], asked["start"]))


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
    except (Unavailable, RunnerError) as caught:
        error = caught.error if isinstance(caught, Unavailable) else caught
        said = {"error": {key: getattr(error, key) for key in ("code", "what", "why", "fix")}}
    except Exception as defect:  # noqa: BLE001 - the host's border: the coordinator decides
        what, why = "a defect of runner itself", kind_and_place(defect)
        said = {"error": {"code": "E308", "what": what, "why": why, "fix": "report it"}}
    return json.dumps(said).encode()
