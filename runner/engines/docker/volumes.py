"""Data volumes of a Docker engine: named after the digest of what is in them, filled once, mounted read-only."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path

from runner.engines import moving, sandbox, tarstream
from runner.engines.base import Fill, Mount, Volume
from runner.engines.docker.builds import DockerBuilds
from runner.engines.docker.client import ignoring
from runner.engines.docker.owner import me, private_folder
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError

BASES = ("proctor/base:bookworm", "python:3.11-slim")  # the keeper's image where there is no evaluator image
FILL = 6 * 3600.0  # seconds for filling a data volume


class DockerVolumes(DockerBuilds):
    """Data volumes, and the image of the containers of ours that fill them and keep others alive.

    ``locks`` is a folder for locks, ``stall`` the seconds after which a source that gives nothing is given up,
    ``patience`` the seconds that one process waits for another one that fills the same volume.
    """

    locks: Path
    stall: float
    patience: float
    keeper_image: str | None
    _keeper: ImageRef | None = None

    def keeper(self) -> ImageRef:
        """The image of our own helper containers, which needs ``sleep`` and ``stat``. Raises E304."""
        if self._keeper is None:
            ours = (
                (self.keeper_image,)
                if self.keeper_image
                else (f"proctor/evaluator:{version('proctor-ir')}", *BASES)
            )
            for name in ours:
                with suppress(RunnerError):
                    self._keeper = self.resolve(name)
                    break
            else:
                raise PlatformError(
                    "our own image is missing",
                    why=f"The engine at {self.clients.address} has none of: {', '.join(ours)}.",
                    fix="run 'make setup'",
                    code="E304",
                )
        return self._keeper

    def data_volume(self, digest: str, fill: Fill) -> Volume:
        """A volume with the files of ``fill``, made once for ``digest``; also under concurrency and kills.

        Content goes into a volume of a new name. When it is complete, a second, empty volume is made whose
        name follows from the digest and whose label names the first: that call is atomic in the engine, so a
        half-filled volume is never found, and of two that were filled at once one wins.
        """
        from filelock import FileLock, Timeout

        digest = digest.removeprefix("sha256:")
        if not re.fullmatch(r"[0-9a-f]{32,128}", digest):
            raise ValueError(f"not a digest: {digest!r}")
        found = self._ready(digest)
        if found is not None:
            return found
        # The lock only saves work: correctness does not need it. Its holder may have been stopped in the middle.
        lock = FileLock(private_folder(self.locks) / f"data-{digest[:32]}.lock")
        with suppress(Timeout):
            lock.acquire(timeout=self.patience)
        try:
            return self._ready(digest) or self._fill(digest, fill)
        finally:
            lock.release()

    def _ready(self, digest: str) -> Volume | None:
        with self.clients.calling("looking for a data volume") as api:
            with ignoring(404):
                name = (api.inspect_volume(_marker(digest)).get("Labels") or {}).get("proctor.ready", "")
                if name and (api.inspect_volume(name).get("Labels") or {}).get("proctor.data") == digest:
                    return Volume(name)
            with ignoring(404):  # a marker whose volume is gone
                api.remove_volume(_marker(digest))
        return None

    def _fill(self, digest: str, fill: Fill) -> Volume:
        name = f"proctor-data-{digest[:32]}-{secrets.token_hex(4)}"
        labels = {"proctor.data": digest, "proctor.owner": me()}
        done = False
        try:
            with self.clients.calling("making a data volume") as api:
                api.create_volume(name, driver="local", labels=labels)
                body = sandbox.keeper_options(
                    self.keeper(),
                    [Mount(Volume(name), "/data", read_only=False)],
                    labels=labels | {"proctor.filling": name},
                    own_profile=self.own_profile,
                )
                helper = api.create_container_from_config(body, name=f"proctor-fill-{secrets.token_hex(6)}")
            files = sorted((str(path), source) for path, source in fill())
            with self.clients.streaming("filling a data volume", FILL) as (api, _):
                chunks = tarstream.stream(files)
                sent = moving.moving(chunks, "filling a data volume", stall=self.stall, seconds=FILL)
                with closing(sent):
                    api.put_archive(helper["Id"], "/data", sent)
            self.clients.remove(filling=name)
            with self.clients.calling("finishing a data volume") as api:
                marker = api.create_volume(_marker(digest), driver="local", labels={"proctor.ready": name})
                winner = (marker.get("Labels") or {}).get("proctor.ready")
            done = winner == name
            if not winner:
                raise PlatformError("a data volume could not be finished", why="Its marker has no label.")
            return Volume(winner)
        finally:
            self.clients.remove(filling=name)
            if not done:
                self.clients.remove_volume(name)

    def gc(self, *, keep_digests: Iterable[str], dry_run: bool = False) -> list[str]:
        """Remove complete data volumes of other digests that nothing uses; returns their names."""
        keep = {digest.removeprefix("sha256:")[:32] for digest in keep_digests}
        markers, used = self.markers(), self.clients.mounted()
        removed = []
        for name, labels in self.clients.volumes(data=None).items():
            if labels["proctor.data"][:32] in keep or name not in markers or name in used:
                continue
            if not dry_run:
                if not self.clients.remove_volume(name):
                    continue
                self.clients.remove_volume(markers[name])
            removed.append(name)
        return sorted(removed)

    def markers(self) -> dict[str, str]:
        """Complete data volumes and the markers that say so."""
        found = self.clients.volumes(ready=None)
        return {labels["proctor.ready"]: name for name, labels in found.items()}


def _marker(digest: str) -> str:
    return f"proctor-ready-{digest[:32]}-{hashlib.sha256(digest.encode()).hexdigest()[:8]}"
