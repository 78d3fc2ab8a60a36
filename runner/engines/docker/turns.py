"""What the processes that share a Docker engine see of each other there; see :mod:`runner.engines.turns`.

It is kept in the engine, as labels on volumes and containers, so that processes of other users and other machines
see it too, and so that it lives as long as what it is about.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from runner.engines.docker.evict import evict
from runner.engines.docker.host import Host
from runner.engines.docker.owner import alive, default_locks, me, private_folder
from runner.engines.docker.session import owner_tag, remove
from runner.engines.turns import TURN
from runner.model.task import Visibility

MARK = "proctor-blinded-since-eviction"
_running: set[str] = set()  # attempts of this process, whichever object of the engine they belong to


class DockerBoard:
    """See :class:`runner.engines.turns.Board`."""

    def __init__(self, engine: Host) -> None:
        self._engine = engine

    def announce(self, visibility: Visibility, attempt_id: str) -> None:
        """A volume with the label of the turn; what the session makes carries that label as well."""
        labels = self._labels(attempt_id) | {TURN: visibility}
        name = hashlib.sha256(f"{attempt_id}|{me()}".encode()).hexdigest()[:24]
        _running.add(attempt_id)
        with self._engine.clients.calling("announcing a run") as api:
            api.create_volume(f"proctor-turn-{name}", driver="local", labels=labels)

    def withdraw(self, attempt_id: str) -> None:
        """Remove everything of the attempt, containers first."""
        _running.discard(attempt_id)
        remove(self._engine.clients, owner_tag(self._labels(attempt_id)))

    def present(self, visibility: Visibility) -> list[str]:
        """Attempts with a container or a volume of that turn. Those of dead processes are removed."""
        filters = {"label": [f"{TURN}={visibility}"]}
        with self._engine.clients.calling("looking who else is running") as api:
            found = [c["Labels"] for c in api.containers(all=True, filters=filters)]
            found += [v["Labels"] for v in api.volumes(filters=filters).get("Volumes") or []]
        living = set()
        ours = (
            "proctor.attempt",
            "proctor.owner",
        )  # what lacks one was made by somebody else, from such an image
        for attempt, owner in {(one[ours[0]], one[ours[1]]) for one in found if one.keys() >= {*ours}}:
            if alive(owner) and (owner != me() or attempt in _running):
                living.add(attempt)
            else:
                remove(
                    self._engine.clients,
                    owner_tag({"proctor.attempt": attempt, "proctor.owner": owner}),
                )
        return sorted(living)

    def mark(self) -> None:
        """In the engine and, because unused volumes may be cleaned away by anybody, in a file here."""
        self._file().touch()
        with self._engine.clients.calling("marking the engine") as api:
            api.create_volume(MARK, driver="local", labels={"proctor.mark": "blinded"})

    def marked(self) -> bool:
        """Whether either says so."""
        import docker.errors

        with self._engine.clients.calling("looking for the mark of blinded runs") as api:
            try:
                api.inspect_volume(MARK)
            except docker.errors.NotFound:
                return self._file().exists()
        return True

    def unmark(self) -> None:
        """Remove both."""
        import docker.errors

        with (
            self._engine.clients.calling("removing the mark of blinded runs") as api,
            suppress(docker.errors.NotFound),
        ):
            api.remove_volume(MARK)
        self._file().unlink(missing_ok=True)

    def evict(self) -> None:
        """See :func:`runner.engines.docker.evict.evict`."""
        evict(self._engine)

    def gate(self) -> Path:
        """The lock file for this engine, the same for all data directories of this user."""
        return private_folder(default_locks()) / f"turn-{self._engine.identity}.lock"

    def _file(self) -> Path:
        return private_folder(default_locks()) / f"blinded-{self._engine.identity}"

    @staticmethod
    def _labels(attempt_id: str) -> dict[str, str]:
        return {"proctor.attempt": attempt_id, "proctor.owner": me()}
