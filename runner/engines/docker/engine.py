"""The Docker Engine API behind :class:`runner.engines.base.Engine`.

Works with a local or a remote engine: nothing is bind-mounted, every file goes through the engine's API.
The SDK is imported on the first call, never with this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from runner.engines import moving
from runner.engines.accounts import Accounts
from runner.engines.base import MayCut
from runner.engines.docker import meter, own_mounts
from runner.engines.docker.client import Clients, ignoring, labels_filter
from runner.engines.docker.evict import evict
from runner.engines.docker.handle import CANCELLED
from runner.engines.docker.owner import alive, default_locks, private_folder
from runner.engines.docker.session import DockerSession
from runner.engines.docker.turns import DockerBoard
from runner.engines.docker.volumes import DockerVolumes
from runner.engines.turns import Turns
from runner.model.config import EngineFor
from runner.model.errors import PlatformError
from runner.model.task import Visibility

PATIENCE = 900.0
FOLLOW = 24 * 3600.0

ATTEMPT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


class DockerEngine(DockerVolumes):
    """An engine of the Docker API.

    Args:
        docker_host: its address (default: ``DOCKER_HOST``, else the usual socket).
        locks: a folder on this machine for locks on data volumes (default: one for this user).
        keeper_image: the image of the keeper, which needs ``sleep`` and ``stat`` (default: the evaluator's, else the
            base image).
        local: False keeps it from reading this machine's control groups.
        engine_for: see :class:`runner.engines.turns.Turns`, as for ``tell``, which is given what it waits for.
        tell: see there.
        stall: see :class:`runner.engines.docker.volumes.DockerVolumes`, as for ``patience``. Seconds.
        patience: see there.
    """

    def __init__(
        self,
        docker_host: str | None = None,
        *,
        locks: Path | None = None,
        keeper_image: str | None = None,
        local: bool | None = None,
        engine_for: EngineFor = "both",
        tell: Callable[[str], None] = lambda _: None,
        stall: float = moving.STALL,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(docker_host, local)
        self.locks, self.keeper_image = locks or default_locks(), keeper_image
        self.stall, self.patience = stall, patience
        self._board = DockerBoard(self)
        self.turns = Turns(self._board, self._board.gate, engine_for, tell)
        self._accounts = Accounts(lambda: private_folder(self.locks), lambda: self.identity)

    @staticmethod
    def answers(address: str, timeout: float) -> bool:
        """Whether an engine answers at ``address`` within ``timeout`` seconds. Never raises."""
        clients = Clients(address)
        try:
            return bool(clients.new(max(1, round(timeout))).ping())
        except (PlatformError, OSError):
            return False
        finally:
            clients.close()

    def close(self) -> None:
        """Close the connections to the engine."""
        self.clients.close()

    def try_eviction(self) -> float:
        """See :func:`runner.engines.docker.evict.evict`."""
        return evict(self)

    @contextmanager
    def session(
        self,
        attempt_id: str,
        *,
        labels: Mapping[str, str] | None = None,
        visibility: Visibility | None = "public",
        cancelled: Callable[[], bool] | None = None,
        stays: bool = False,
    ) -> Iterator[DockerSession]:
        """The containers of one attempt; everything is removed at the end, also after Ctrl-C."""
        if not ATTEMPT_ID.fullmatch(attempt_id):
            raise ValueError(f"not an attempt's id: {attempt_id!r}")
        with ExitStack() as turns:
            if visibility:
                turns.enter_context(self.turns.take(visibility, attempt_id, cancelled, stays=stays))
            session = DockerSession(
                self,
                attempt_id,
                dict(labels or {}) | (self.turns.labels(visibility) if visibility else {}),
                self._accounts,
                cancelled,
                self._board.record_loopback if visibility == "blinded" else None,
            )
            try:
                yield session
            except BaseException as error:
                try:
                    session.close()
                except PlatformError as second:  # the first error is the one to report
                    error.add_note(f"cleaning up failed too: {second}")
                raise
            session.close()

    def reap(self, *, prefix: str = "", dry_run: bool = False) -> list[str]:
        """Remove what dead processes of this machine left; never what a live process owns.

        Unless ``prefix`` is given, it also removes cached volumes and files that nothing needs.

        Returns the ids of attempts and, without ``prefix``, the names of data volumes that were never filled to the end.
        """
        dead = [
            labels
            for labels in self.clients.labelled(owner=None)
            if not alive(labels["proctor.owner"]) and labels.get("proctor.attempt", "").startswith(prefix)
        ]
        left = {(labels.get("proctor.attempt", ""), labels["proctor.owner"]) for labels in dead}
        unfinished = [] if prefix else self._unfinished()
        if not dry_run:
            with ExitStack() as steps:  # the last one first; each is done whatever another one raises
                for name in unfinished:
                    steps.callback(self.clients.remove_volume, name)
                if not prefix:
                    steps.callback(self._accounts.remove_old)
                    steps.callback(self.remove_outdated)
                if self.local:
                    steps.callback(own_mounts.clean_up)
                    steps.callback(meter.clean_up, self.raw)
                steps.enter_context(self._board.recording(dead))
                # Another process may be removing the same things.
                self.clients.sweep(
                    [
                        {"attempt": attempt, "owner": owner} if attempt else {"filling": None, "owner": owner}
                        for attempt, owner in left
                        if attempt or not prefix
                    ]
                )
        return sorted({attempt for attempt, _ in left if attempt}) + unfinished

    def _unfinished(self) -> list[str]:
        """Data volumes that dead processes began to fill."""
        complete = self.markers()
        return sorted(
            name
            for name, labels in self.clients.volumes(owner=None).items()
            if "proctor.data" in labels and name not in complete and not alive(labels["proctor.owner"])
        )

    def follow(self, attempt_id: str, may_cut: MayCut = lambda _: None) -> Iterator[bytes]:
        """What the software (or the evaluator) of an attempt writes, as it comes, until it ends; raw and hostile. See the protocol for the rest."""
        with self.clients.calling("looking for a running container") as api:
            listed = api.containers(filters=labels_filter(attempt=attempt_id))
        roles = {c["Labels"].get("proctor.role"): c["Id"] for c in listed}
        for container in [roles[role] for role in ("software", "evaluator") if role in roles][:1]:
            # Removed between the list and now: it is over.
            with self.clients.streaming("following a log", FOLLOW) as (api, deadline), ignoring(404, 409):
                may_cut(deadline.cut)
                yield from api.logs(container, stdout=True, stderr=True, stream=True, follow=True)

    def kill(self, attempt_id: str) -> bool:
        """Kill the running containers of an attempt; its own process then reads ``cancel``."""
        killed = False
        with self.clients.calling("cancelling an attempt") as api:
            running = [
                c
                for c in api.containers(filters=labels_filter(attempt=attempt_id))
                if c["Labels"].get("proctor.role") != "keeper"
            ]
            for found in running:
                # The name says to the process that waits for it, wherever that runs, that this was a person.
                # All are renamed before the first ends: else one would be seen to die without a reason.
                with ignoring(*range(400, 600)):
                    api.rename(found["Id"], found["Names"][0].strip("/") + CANCELLED)
            for found in running:
                with ignoring(404, 409):
                    api.kill(found["Id"], "SIGKILL")
                    killed = True
        return killed
