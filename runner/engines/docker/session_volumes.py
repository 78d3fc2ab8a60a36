"""The memory volumes of one session: made, kept alive, filled and read, and given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from runner.engines import collect, moving, sandbox, tarstream
from runner.engines.base import Mount, Space, Volume
from runner.engines.docker.own_mounts import MemoryVolume
from runner.engines.docker.room import TRANSFER
from runner.engines.docker.volumes import DockerVolumes
from runner.model.container import Collected
from runner.model.errors import PlatformError


@dataclass
class _Made:
    """A volume for so many bytes and files of the user ``uid``.

    ``keeper`` is the container of ours that has it, at ``path``; None where there is none yet, empty where none is needed.
    ``memory`` is set where this process mounted it: its keeper, if it ever needs one, is not started.
    """

    bytes: int
    inodes: int
    uid: int
    keeper: str | None = None
    path: str = ""
    memory: MemoryVolume | None = None


class SessionVolumes:
    """The volumes whose names begin with ``prefix``, labelled with ``labels``."""

    def __init__(self, engine: DockerVolumes, prefix: str, labels: Mapping[str, str]) -> None:
        self._engine, self._clients = engine, engine.clients
        self._prefix, self._labels = prefix, labels
        self._made: dict[str, _Made] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._made

    def make(
        self, name: str, space: Space, uid: int, *, mode: str = "0700", keeps_itself: bool = False
    ) -> Volume:
        """A volume of user ``uid``; one that ``keeps_itself`` is wanted only while the container that is given it runs."""
        volume, mapped = f"{self._prefix}-{name}", self._engine.uid_base + uid
        options = sandbox.tmpfs_volume_options(size=space.bytes, inodes=space.inodes, uid=mapped, mode=mode)
        made = self._made[volume] = _Made(*space, uid, keeper="" if keeps_itself else None)
        if self._engine.mounts_memory and not keeps_itself:
            made.memory = MemoryVolume(volume, space, uid=mapped, mode=int(mode, 8))
            options = made.memory.options
        with self._clients.calling("making a volume of a session") as api:
            api.create_volume(volume, driver="local", driver_opts=options, labels=self._labels)
        return Volume(volume)

    def keep(self) -> None:
        """Start a keeper for the volumes that need one and have none yet."""
        new = {name: made for name, made in self._made.items() if made.keeper is None and made.memory is None}
        if new:
            keeper = self._make_keeper(new)
            with self._clients.calling("starting the keeper of the volumes") as api:
                api.start(keeper)

    def copy_out(
        self,
        volume: str,
        dest: Path,
        *,
        allowed: Callable[[str], bool],
        max_bytes: int,
        max_files: int,
    ) -> Collected:
        """See :func:`runner.engines.collect.collect`; ``dest`` is made if it is missing."""
        made = self._made[volume]
        dest.mkdir(parents=True, exist_ok=True)
        # Ordinary files fit into the volume; only sparse ones can read as more.
        cap = max(max_bytes, made.bytes) + (made.inodes + 16) * 2048
        keeper = self._keeper(volume)
        free, files = made.memory.left() if made.memory is not None else self._left(keeper, made.path)
        with self._clients.streaming("fetching the output", TRANSFER) as (api, _):
            chunks, _stat = api.get_archive(keeper, made.path, chunk_size=collect.CHUNK)
            return collect.collect(
                chunks,
                dest,
                allowed=allowed,
                max_bytes=max_bytes,
                max_files=max_files,
                max_stream=cap,
                full=not free or not files,
            )

    def copy_in(self, volume: str, files: Mapping[str, Path | bytes]) -> None:
        """Write read-only files, owned by the volume's user, into a volume."""
        keeper, made = self._keeper(volume), self._made[volume]
        with self._clients.streaming("copying files in", TRANSFER) as (api, _):
            chunks = tarstream.stream(sorted(files.items()), uid=made.uid)
            with closing(moving.moving(chunks, "copying files in", seconds=TRANSFER)) as sent:
                api.put_archive(keeper, made.path, sent)

    def close(self) -> None:
        """Give up what this process mounted; the volumes themselves are removed with their label."""
        for made in self._made.values():
            if made.memory is not None:
                made.memory.close()

    def _keeper(self, volume: str) -> str:
        """The container of ours through which the engine packs and unpacks files of a volume."""
        self.keep()
        made = self._made[volume]
        return self._make_keeper({volume: made}) if made.keeper is None else made.keeper

    def _make_keeper(self, volumes: Mapping[str, _Made]) -> str:
        """A container of ours with these volumes, not started."""
        mounts = [Mount(Volume(name), f"/kept/{i}", read_only=False) for i, name in enumerate(volumes)]
        body = sandbox.keeper_options(
            self._engine.keeper(),
            mounts,
            labels={**self._labels, "proctor.role": "keeper"},
            own_profile=self._engine.own_profile,
        )
        number = sum(made.keeper is not None for made in self._made.values())
        with self._clients.calling("making the keeper of the volumes") as api:
            keeper = str(api.create_container_from_config(body, name=f"{self._prefix}-keeper-{number}")["Id"])
        for made, mount in zip(volumes.values(), mounts, strict=True):
            made.keeper, made.path = keeper, mount.target
        return keeper

    def _left(self, keeper: str, path: str) -> tuple[int, int]:
        """How many bytes and files still fit into a volume, from its keeper, which runs."""
        with self._clients.calling("looking at the output volume") as api:
            for _ in range(3):  # a busy engine may lose what so short a command says
                run = api.exec_create(keeper, ["stat", "-f", "-c", "%a %d %S", path])
                words = bytes(api.exec_start(run["Id"])).split()
                if words:
                    break
        if len(words) != 3 or not all(w.isdigit() for w in words):
            raise PlatformError(
                "the fill of the output volume cannot be read", why="The keeper's stat failed."
            )
        blocks, files, size = map(int, words)
        return blocks * size, files
