"""What the hosts of a cluster are for: to execute software, or to evaluate what it wrote.

One cluster does one of them. Those that evaluate see truths, so they have a scheduler, an authority and a store of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from runner.engines.base import Engine
from runner.execution.attempt import discard_on_error
from runner.execution.cluster.keys import home_of, key_for, key_of
from runner.execution.cluster.order import Bringing, EvaluationOrder, Order, OrderedImage, laid_down
from runner.execution.cluster.roles import Role
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.stores import Stores
from runner.execution.executors.base import Host
from runner.execution.executors.local import LocalExecutor
from runner.execution.plan import Planned
from runner.model.container import ImageRef
from runner.records.archive import Attempt, Evaluation
from runner.records.contents import Content
from runner.records.staging import Staging
from schemas.files import scratch_folder


@dataclass(frozen=True)
class Prepared:
    """A step that can be ordered: its ``name``, the folder that was begun for what comes of it, and its order, which lies in ``store`` with
    everything that it needs (``needs``, by digests). It takes ``seconds`` at most. ``take`` takes in what was delivered under a name, by
    a host (empty: as the delivery says), as :mod:`runner.execution.cluster.storage.taking` does. ``url`` grants the order to a host that
    works by grants.
    """

    name: str
    staging: Staging
    order: Content
    store: Artefacts
    needs: frozenset[str]
    seconds: float
    take: Callable[[str, str], Attempt | Evaluation]
    url: str = field(default="", repr=False)


class Archives:
    """Archives of images in a store, made once each, by way of ``folder``. Used by several threads."""

    def __init__(self, engine: Engine, store: Artefacts, folder: Path) -> None:
        self._engine, self._store, self._folder = engine, store, folder
        self._known: dict[str, Content] = {}

    def ordered(self, id_: str, here: Callable[[], ImageRef]) -> OrderedImage:
        """The image of that identity, which ``here`` has this machine's engine have; its archive is in the store then. Raises E306, E313."""
        if (known := self._known.get(id_)) is None or not self._store.stays(known):
            with scratch_folder(self._folder) as folder:
                self._engine.save(here(), folder / "image.tar")
                known = self._known[id_] = self._store.put(folder / "image.tar")
        return OrderedImage(id_, archive=known)

    def ours(self, image: ImageRef, host: Host) -> OrderedImage:
        """One of our own images or of the task's: a host said that it has it, as most have ours, or an archive is brought with each order,
        since what an earlier order brought may not have come, or be gone. Raises as :meth:`ordered`.
        """
        return OrderedImage(image.id) if image.id in host.images else self.ordered(image.id, lambda: image)


class Duty:
    """What one cluster does: its ``role``, and the stores by which its hosts are brought what they need."""

    role: Role

    def __init__(self, local: LocalExecutor, stores: Stores) -> None:
        self._workspace, self._engine, self.stores = local.workspace, local.engine, stores
        self._bringing = {store: Bringing(store) for store in stores.all()}
        archive = self._workspace.store.archive
        self._archives = Archives(local.engine, stores.open, archive.root.parent)
        self.key = key_of(archive)
        self.home = home_of(self.key)

    def prepare(self, planned: Planned, host: Host) -> Prepared:
        """Begin a step here, and lay down its order for a host. Raises RunnerError; nothing is begun then."""
        raise NotImplementedError

    def failed(self, result: Attempt | Evaluation) -> bool:
        """Whether what came of a step says that the platform failed, so that another host should be tried."""
        raise NotImplementedError

    def _prepared(
        self,
        staging: Staging,
        order: Callable[[str], Order | EvaluationOrder],
        store: Artefacts,
        seconds: float,
        take: Callable[[str, bytes, str], Attempt | Evaluation],
        host: Host,
    ) -> Prepared:
        """The step that was begun as ``staging``; ``order`` is made by its name, ``take`` is given the key of what was delivered, too."""
        name = f"{self.home}/{staging.path.name}"
        with discard_on_error(self._workspace.store.archive, staging):
            made = order(name)
            content, url = laid_down(made, self.stores, store, seconds, granted=host.granted)
        needs = frozenset({*(one.id for one in made.images), *made.data})

        def taken(delivered: str, by: str) -> Attempt | Evaluation:
            return take(delivered, key_for(self.key, delivered), by)

        return Prepared(name, staging, content, store, needs, seconds, taken, url)
