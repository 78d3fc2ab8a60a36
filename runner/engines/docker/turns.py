"""What the processes that share a Docker engine see of each other there; see :mod:`runner.engines.turns`.

It is kept in the engine, as labels on volumes and containers, so that processes of other users and other machines
see it too, and so that it lives as long as what it is about.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from runner.engines.docker.client import ignoring
from runner.engines.docker.evict import evict
from runner.engines.docker.owner import alive, boot_id, default_locks, me, private_folder
from runner.engines.docker.volumes import DockerVolumes
from runner.engines.turns import TURN, Board
from runner.model.errors import disk_error
from runner.model.task import Visibility

MARK = "proctor-blinded-since-eviction"
LOOPBACK = {"proctor.mark": "loopback"}
LOOPBACK_LABEL = "proctor.loopback"  # of a container that ran on blinded data and could open TCP sockets
LOOPBACK_RECORD_SECONDS = 60.0  # another machine may need a younger record
_running: set[str] = set()  # attempts of this process, whichever object of the engine they belong to


class DockerBoard(Board):
    """See :class:`runner.engines.turns.Board`."""

    def __init__(self, engine: DockerVolumes) -> None:
        super().__init__()
        self._engine = engine
        self._clients = engine.clients
        self._recording = threading.Lock()
        self._record = ""  # the last volume of this process that records a loopback

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
        # What lacks one of the labels was made by somebody else, from an image with such a label.
        listed = [
            labels
            for labels in self._clients.labelled(turn=visibility)
            if labels.keys() >= {"proctor.attempt", "proctor.owner"}
        ]
        dead = [labels for labels in listed if not _is_running(labels)]
        living = {labels["proctor.attempt"] for labels in listed if labels not in dead}
        with self.recording(dead):
            pairs = {(labels["proctor.attempt"], labels["proctor.owner"]) for labels in dead}
            in_use = self._clients.sweep([{"attempt": attempt, "owner": owner} for attempt, owner in pairs])
        # What still uses a volume may run: it is looked at again.
        return sorted(living.union(str(labels["attempt"]) for labels in in_use))

    def mark(self) -> None:
        """In the engine and, because unused volumes may be cleaned away by anybody, in a file here."""
        _touch(self._file())
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
        name = f"proctor-loopback-{secrets.token_hex(6)}"
        with self._recording:
            try:
                _touch(self._loopback_file())
            finally:
                with self._clients.calling("recording a blinded run with a loopback") as api:
                    api.create_volume(name, driver="local", labels=LOOPBACK)
            previous, self._record = self._record, name
        for older, age in self._loopback_ages().items():
            if older == previous or (older != name and age > LOOPBACK_RECORD_SECONDS):
                self._clients.remove_volume(older)

    @contextmanager
    def recording(self, removed: Iterable[Mapping[str, str]]) -> Iterator[None]:
        """Record a loopback after the removal of containers that may have run until now.

        Args:
            removed: the labels of everything that is removed in this context.
        """
        had_loopback = any(LOOPBACK_LABEL in labels for labels in removed)
        try:
            yield
        finally:
            if had_loopback:
                self.record_loopback()

    def seconds_since_loopback(self) -> float | None:
        """Return the shortest time that the engine's volumes and this machine's file prove."""
        ages = list(self._loopback_ages().values())
        with suppress(FileNotFoundError):
            ages.append(time.time() - self._loopback_file().stat().st_mtime)
        return min(ages, default=None)

    def _loopback_ages(self) -> dict[str, float]:
        """Return the least age in seconds of each volume that records a loopback, by its name."""
        with self._clients.calling("looking for blinded runs with a loopback") as api:
            listed = api.volumes(filters={"label": [f"{key}={value}" for key, value in LOOPBACK.items()]})
            if not (volumes := listed["Volumes"] or ()):
                return {}
            now = datetime.fromisoformat(api.info()["SystemTime"])
        return {
            volume["Name"]: (now - datetime.fromisoformat(volume["CreatedAt"])).total_seconds() - 1
            for volume in volumes
        }

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


def _is_running(labels: Mapping[str, str]) -> bool:
    """True if what has these labels may belong to an attempt that runs."""
    owner = labels["proctor.owner"]
    return alive(owner) and (owner != me() or labels["proctor.attempt"] in _running)


def _touch(file: Path) -> None:
    """Create a file or renew its time. Raises E306 if the system refuses."""
    try:
        file.touch()
    except OSError as error:
        raise disk_error("a blinded run cannot be recorded", error, file) from error
