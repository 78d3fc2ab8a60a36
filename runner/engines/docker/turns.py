"""What the processes that share a Docker engine see of each other there; see :mod:`runner.engines.turns`.

It is kept in the engine, as labels on volumes and containers, so that processes of other users and other machines
see it too, and so that it lives as long as what it is about.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from runner.engines.docker.client import Labels, ignoring
from runner.engines.docker.evict import evict
from runner.engines.docker.owner import alive, boot_id, default_locks, me, private_folder
from runner.engines.docker.volumes import DockerVolumes
from runner.engines.turns import TURN, Board
from runner.model.task import Visibility

MARK = "proctor-blinded-since-eviction"
LOOPBACK = {"proctor.mark": "loopback"}
_running: set[str] = set()  # attempts of this process, whichever object of the engine they belong to


class DockerBoard(Board):
    """See :class:`runner.engines.turns.Board`."""

    def __init__(self, engine: DockerVolumes) -> None:
        super().__init__()
        self._engine = engine
        self._clients = engine.clients

    def announce(self, visibility: Visibility, attempt_id: str) -> None:
        """A volume with the label of the turn; what the session makes carries that label as well."""
        labels = {"proctor.attempt": attempt_id, "proctor.owner": me(), TURN: visibility}
        name = hashlib.sha256(f"{attempt_id}|{me()}".encode()).hexdigest()[:24]
        _running.add(attempt_id)
        with self._clients.calling("announcing a run") as api:
            api.create_volume(f"proctor-turn-{name}", driver="local", labels=labels)

    def withdraw(self, attempt_id: str) -> None:
        """Remove everything of the attempt, containers first."""
        _running.discard(attempt_id)
        self._clients.remove(attempt=attempt_id, owner=me())

    def present(self, visibility: Visibility) -> list[str]:
        """Attempts with a container or a volume of that turn. Those of dead processes are removed."""
        living: set[str] = set()
        dead: list[Labels] = []
        # What lacks one of the labels was made by somebody else, from an image with such a label.
        for attempt, owner in {
            (found["proctor.attempt"], found["proctor.owner"])
            for found in self._clients.labelled(turn=visibility)
            if found.keys() >= {"proctor.attempt", "proctor.owner"}
        }:
            if alive(owner) and (owner != me() or attempt in _running):
                living.add(attempt)
            else:
                dead.append({"attempt": attempt, "owner": owner})
        # What still uses a volume may run: it is looked at again.
        living.update(str(found["attempt"]) for found in self._clients.sweep(dead))
        if dead and visibility == "blinded" and self.seconds_since_loopback() is not None:
            self.record_loopback()  # a container of a dead process may have run until now
        return sorted(living)

    def mark(self) -> None:
        """In the engine and, because unused volumes may be cleaned away by anybody, in a file here."""
        self._file().touch()
        with self._clients.calling("marking the engine") as api:
            api.create_volume(MARK, driver="local", labels={"proctor.mark": "blinded"})

    def marked(self) -> bool:
        """Whether either says so."""
        with self._clients.calling("looking for the mark of blinded runs") as api, ignoring(404):
            api.inspect_volume(MARK)
            return True
        return self._file().exists()

    def unmark(self) -> None:
        """Remove both."""
        with self._clients.calling("removing the mark of blinded runs") as api, ignoring(404):
            api.remove_volume(MARK)
        self._file().unlink(missing_ok=True)

    def record_loopback(self) -> None:
        """Record it in the engine, by the time at which a volume was made, and in a file for this kernel's other engines."""
        self._loopback_file().touch()
        with self._clients.calling("recording a blinded run with a loopback") as api:
            name = f"proctor-loopback-{secrets.token_hex(6)}"
            api.create_volume(name, driver="local", labels=LOOPBACK)
        for older in self._clients.volumes(mark=LOOPBACK["proctor.mark"]).keys() - {name}:
            self._clients.remove_volume(older)

    def seconds_since_loopback(self) -> float | None:
        """Return the shortest time that the engine's volumes and this machine's file prove."""
        ages = []
        with suppress(FileNotFoundError):
            ages.append(time.time() - self._loopback_file().stat().st_mtime)
        with self._clients.calling("looking for blinded runs with a loopback") as api:
            listed = api.volumes(filters={"label": [f"{key}={value}" for key, value in LOOPBACK.items()]})
            if times := [volume["CreatedAt"] for volume in listed["Volumes"] or ()]:
                now = datetime.fromisoformat(api.info()["SystemTime"])
                ages += [(now - datetime.fromisoformat(created)).total_seconds() - 1 for created in times]
        return min(ages, default=None)

    def evict(self) -> None:
        """See :func:`runner.engines.docker.evict.evict`."""
        evict(self._engine)

    def gate(self) -> Path:
        """The lock file for this engine, the same for all data directories of this user."""
        return private_folder(default_locks()) / f"turn-{self._engine.identity}.lock"

    def _loopback_file(self) -> Path:
        kernel = boot_id() if self._engine.local else self._engine.identity
        return private_folder(default_locks()) / f"loopback-{kernel}"

    def _file(self) -> Path:
        return private_folder(default_locks()) / f"blinded-{self._engine.identity}"
