"""Memory volumes that this process mounts itself, where it is root on the engine's machine.

An engine mounts a memory volume while a container that has it runs, so somebody has to run for as long as its content is
wanted, and starting such a keeper takes as long as starting a software. Here this process mounts the file system, and the
engine's volume binds a folder in it. An engine that does not see our mounts finds no such folder, and starts nothing: what
nobody bounds is never written to.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

from runner.engines import sandbox
from runner.engines.base import Space
from runner.engines.docker.owner import alive, me, private_folder
from runner.model.errors import PlatformError

_LOCK = threading.Lock()  # of the folder of this process
INODES = 1  # of the file system's own folder, beside the one that is bound
_CONTENT = "content"
_NOSUID, _NODEV, _NOEXEC, _DETACH = 2, 4, 8, 2  # Linux: MS_*, MNT_DETACH
_PEER = struct.Struct("3i")  # Linux: struct ucred
_SYSTEMD = 1  # who listens for a daemon that systemd starts; its pid is in this file
_DAEMON = Path("/run/docker.pid")


class MemoryVolume:
    """The file system of a volume with this ``name`` (no other process has one of that name), mounted until :meth:`close`.

    ``options`` are those of the engine's volume. Raises E303 where it cannot be mounted.
    """

    def __init__(self, name: str, space: Space, *, uid: int, mode: int) -> None:
        self._at = _ours() / name
        try:
            with _LOCK:
                private_folder(folder())
                private_folder(_ours())
                self._at.mkdir(mode=0o700)
            _mount(self._at, sandbox.tmpfs_size(space.bytes, space.inodes + INODES))
            content = self._at / _CONTENT
            content.mkdir(mode=0o700)
            os.chown(content, uid, uid)
            content.chmod(mode)
        except OSError as error:
            self.close()
            raise PlatformError("a memory volume cannot be mounted", why=str(error.strerror)) from error
        self.options = {"type": "none", "device": str(content), "o": "bind"}

    def left(self) -> tuple[int, int]:
        """Return how many bytes and files still fit into it. Raises PlatformError E303."""
        try:
            facts = os.statvfs(self._at)
        except OSError as error:
            raise PlatformError("a memory volume cannot be measured", why=str(error.strerror)) from error
        return facts.f_bavail * facts.f_frsize, facts.f_favail

    def close(self) -> None:
        """Give it up, also while a container still has it."""
        with _LOCK:
            give_up(self._at)
            with suppress(OSError):  # there are others
                _ours().rmdir()


def usable(address: str) -> bool:
    """Whether this process may mount, and the engine at this ``address``, which is on this machine, sees it."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address.partition("://")[2])
            pid, _, _ = _PEER.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        if pid == _SYSTEMD:
            pid = int(_DAEMON.read_text(encoding="ascii"))
        process = Path("/proc", str(pid))
        ours, theirs = (path.stat().st_ino for path in (Path("/proc/self/ns/mnt"), process / "ns" / "mnt"))
        if ours != theirs or (process / "comm").read_text(encoding="utf-8").strip() != "dockerd":
            return False
        MemoryVolume(f"tried-{secrets.token_hex(6)}", Space(4096, 8), uid=0, mode=0o700).close()
        return True
    except (OSError, ValueError, PlatformError):
        return False


def clean_up() -> None:
    """Give up what dead processes of this machine left behind."""
    host, boot, _, _ = me().split("|")
    for found in folder().glob("*x*"):
        pid, _, started = found.name.partition("x")
        if not alive(f"{host}|{boot}|{pid}|{started}"):
            with suppress(OSError):  # another runner does the same
                for left in found.iterdir():
                    give_up(left)
                found.rmdir()


def folder() -> Path:
    """Where they are mounted, whatever project: in a folder for each process, named by its id and start. Only root may enter it."""
    return Path("/run/proctor-memory")


def _ours() -> Path:
    _, _, pid, started = me().split("|")
    return folder() / f"{pid}x{started}"


def _mount(at: Path, options: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", bytes(at), b"tmpfs", _NOSUID | _NODEV | _NOEXEC, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def give_up(at: Path) -> None:
    """Take a file system from where it is mounted: it goes when the last container that has it is gone."""
    ctypes.CDLL(None).umount2(bytes(at), _DETACH)
    with suppress(OSError):
        at.rmdir()
