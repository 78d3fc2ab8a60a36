"""Data volumes of a Docker engine: named after the digest of what is in them, filled once, mounted read-only."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from runner.engines import moving, sandbox, tarstream
from runner.engines.accounts import MAX_FOLDERS
from runner.engines.base import Fill, Mount, Volume
from runner.engines.docker.building.builds import DockerBuilds
from runner.engines.docker.client import ignoring
from runner.engines.docker.owner import me, private_folder
from runner.model.container import ImageRef
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import GIB, MIB

BASES = ("proctor/base:bookworm", "python:3.11-slim")  # the keeper's image where there is no evaluator image
# Limits for copies of an image's folders.
MAX_COPIED = 64 * GIB  # of all folders of an image together
ROOM_FOR_SMALL = 64 * MIB  # what small files take on a disk is not in the size of an image
COPY_RULES = 2  # another number has every folder of an image copied again
# Labels of volumes that are removed when nothing needs them: the image of a copy, and the day of account files.
COPY, ACCOUNTS = "proctor.copy", "proctor.accounts"
DAY = 24 * 3600
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
        digest = digest.removeprefix("sha256:")
        if not re.fullmatch(r"[0-9a-f]{32,128}", digest):
            raise ValueError(f"not a digest: {digest!r}")
        return self._data_volume(digest, lambda: tarstream.stream(sorted((str(p), s) for p, s in fill())))

    def image_mounts(self, image: ImageRef, folders: Sequence[str], occupied: Iterable[str]) -> list[Mount]:
        """Return read-only mounts of copies of an image's folders, which everybody can read.

        All copies lie in one volume, which is made once for each image. Folders at, above or below a path that is
        ``occupied`` are passed over.

        Raises:
            TooMuch: The folders are too large.
        """
        paths = (*sandbox.PROTECTED, "/etc", "/sbin", *occupied)
        free = [path for path in folders if not any(_below(path, p) or _below(p, path) for p in paths)]
        if not (free := free[:MAX_FOLDERS]):
            return []
        key = json.dumps([COPY_RULES, image.platform, image.id, free])
        digest = hashlib.sha256(key.encode()).hexdigest()
        volume = self._data_volume(digest, partial(self._read_folders, image, free), {COPY: image.id})
        source = self._path(volume)
        return [Mount(volume, folder, source=f"{source}/{number}") for number, folder in enumerate(free)]

    def _read_folders(self, image: ImageRef, folders: Sequence[str]) -> Iterator[bytes]:
        """Yield an archive of folders of an image, each under its number, as :func:`tarstream.readable` gives them."""
        name = f"proctor-copy-{secrets.token_hex(6)}"
        labels = {"proctor.owner": me(), "proctor.filling": name}
        bare = sandbox.keeper_options(image, (), labels=labels, own_profile=self.own_profile)
        left = min(2 * image.size + ROOM_FOR_SMALL, MAX_COPIED)
        try:
            with self.clients.streaming("copying folders of an image", FILL) as (api, _):
                container = api.create_container_from_config(bare, name=name)["Id"]
                for number, folder in enumerate(folders):
                    inner = [path for path in (*image.volumes, *folders) if path != folder]
                    # Something is mounted there: what is read-only needs a place for it.
                    needed = [
                        PurePosixPath(path).relative_to(folder) for path in inner if _below(path, folder)
                    ]
                    chunks, _stat = api.get_archive(container, f"{folder}/.", chunk_size=tarstream.CHUNK)
                    left = yield from tarstream.readable(chunks, str(number), needed, left)
            yield tarstream.END
        finally:
            self.clients.remove(filling=name)

    def file_mounts(self, files: Mapping[str, bytes]) -> list[dict[str, Any]]:
        """Return the options of read-only mounts of account files, by their path in the container.

        A volume can be mounted as a whole only (before API 1.45), so its files are named by their path on the engine's machine.
        """
        if not files:
            return []
        named = [(PurePosixPath(path).name, content) for path, content in sorted(files.items())]
        # Each day has separate volumes, so that older ones can be removed safely.
        day = str(int(time.time()) // DAY)
        digest = hashlib.sha256(b"".join((day.encode(), *tarstream.stream(named)))).hexdigest()
        folder = self._path(self._data_volume(digest, lambda: tarstream.stream(named), {ACCOUNTS: day}))
        return [
            {
                "Type": "bind",
                "Source": f"{folder}/{PurePosixPath(path).name}",
                "Target": path,
                "ReadOnly": True,
            }
            for path in files
        ]

    def _path(self, volume: Volume) -> str:
        """Return the path of a volume on the engine's machine."""
        with self.clients.calling("looking for a data volume") as api:
            return str(api.inspect_volume(volume.name)["Mountpoint"])

    def check_binds(self, container: str, binds: Sequence[Mapping[str, Any]]) -> None:
        """Check that a container has these files and folders of data volumes, read-only. Raises PlatformError."""
        if not binds:
            return
        with self.clients.calling("looking at mounts") as api:
            mounts = api.inspect_container(container)["Mounts"]
        pairs = {(mount["Source"], mount["Destination"]) for mount in mounts if mount["RW"] is False}
        if not pairs.issuperset((bind["Source"], bind["Target"]) for bind in binds):
            raise PlatformError(
                "the engine did not mount account files or copied folders",
                why="It made a container without them.",
            )
        for name in {PurePosixPath(bind["Source"]).parent.parent.name for bind in binds}:
            digest = ""
            with self.clients.calling("looking for a data volume") as api, ignoring(404):
                digest = (api.inspect_volume(name).get("Labels") or {}).get("proctor.data", "")
            if self._ready(digest) != Volume(name):
                raise PlatformError("a data volume is missing", why=f"{name} was removed in the meantime.")

    def _data_volume(
        self,
        digest: str,
        archive: Callable[[], Iterator[bytes]],
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> Volume:
        """Return the volume of ``digest``; if there is none yet, fill one with ``labels`` from a tar archive."""
        from filelock import FileLock, Timeout

        found = self._ready(digest)
        if found is not None:
            return found
        # The lock only saves work: correctness does not need it. Its holder may have been stopped in the middle.
        lock = FileLock(private_folder(self.locks) / f"data-{digest[:32]}.lock")
        with suppress(Timeout):
            lock.acquire(timeout=self.patience)
        try:
            return self._ready(digest) or self._fill(digest, archive, labels)
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

    def _fill(
        self, digest: str, archive: Callable[[], Iterator[bytes]], more_labels: Mapping[str, str]
    ) -> Volume:
        name = f"proctor-data-{digest[:32]}-{secrets.token_hex(4)}"
        labels = {**more_labels, "proctor.data": digest, "proctor.owner": me()}
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
            with self.clients.streaming("filling a data volume", FILL) as (api, _):
                sent = moving.moving(archive(), "filling a data volume", stall=self.stall, seconds=FILL)
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
            if dry_run or self._remove_unused(name, markers[name]):
                removed.append(name)
        return sorted(removed)

    def remove_outdated(self) -> None:
        """Remove copies from images that the engine no longer has, and account files of earlier days, if unused."""
        yesterday = int(time.time()) // DAY - 1
        accounts, copies = self.clients.volumes(accounts=None), self.clients.volumes(copy=None)
        outdated = [name for name, labels in accounts.items() if int(labels[ACCOUNTS]) < yesterday]
        outdated += [name for name, labels in copies.items() if not self._has_image(labels[COPY])]
        if outdated:
            markers, used = self.markers(), self.clients.mounted()
            for name in outdated:
                if name in markers and name not in used:
                    self._remove_unused(name, markers[name])

    def _remove_unused(self, name: str, marker: str) -> bool:
        """Remove a data volume, unless a container has it.

        The engine does not know of mounts by path. So the marker goes first, and :meth:`check_binds` looks for it.
        """
        self.clients.remove_volume(marker)
        if name not in self.clients.mounted() and self.clients.remove_volume(name):
            return True
        with self.clients.calling("keeping a data volume") as api:
            api.create_volume(marker, driver="local", labels={"proctor.ready": name})
        return False

    def _has_image(self, image_id: str) -> bool:
        with self.clients.calling("looking for an image") as api, ignoring(404):
            api.inspect_image(image_id)
            return True
        return False

    def markers(self) -> dict[str, str]:
        """Complete data volumes and the markers that say so."""
        found = self.clients.volumes(ready=None)
        return {labels["proctor.ready"]: name for name, labels in found.items()}


def _below(path: str, folder: str) -> bool:
    """True if an absolute path is a folder or lies below it."""
    return PurePosixPath(path).is_relative_to(folder)


def _marker(digest: str) -> str:
    return f"proctor-ready-{digest[:32]}-{hashlib.sha256(digest.encode()).hexdigest()[:8]}"
