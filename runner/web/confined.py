"""The front keeps itself out of everything but its own folders, where the kernel offers that (Landlock, Linux 6.2 or newer).

It is a second wall: the first is another user. Files that are not named here cannot be opened any more, by nothing that this
process becomes; nor can processes of others be traced or ended. What Landlock does not close are sockets, such as an engine's.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_NO_NEW_PRIVILEGES = 38
_READ = 1 << 2 | 1 << 3  # files, folders
_RUN = 1 << 0
_ALL = (1 << 15) - 1  # up to truncating, which is version 3
_OF_FILES = _RUN | 1 << 1 | 1 << 2 | 1 << 14
_VERSION = 3
_SCOPED = 1 << 0 | 1 << 1  # abstract sockets and signals, version 6
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ssl", "/etc/ca-certificates", "/dev/null", "/dev/urandom")


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confine(readable: Iterable[Path], writable: Iterable[Path]) -> bool:
    """Close all files to this process but these folders, programs, and what of ``/etc`` everybody may read.

    Folders that are not there are made; temporary files go to the first of ``writable``. To be called before there are threads.

    Returns:
        Whether it was done; False where the kernel does not offer it.

    Raises:
        OSError: The kernel offers it, and refused a rule; nothing is closed.
    """
    version = _call(_CREATE, None, 0, 1, fails=False)
    if version < _VERSION:
        return False
    shown, own = list(readable), list(writable)
    for folder in (*shown, *own):  # a rule is of a folder that there is
        folder.mkdir(parents=True, exist_ok=True)
    rules = _Rules(_ALL, 0, _SCOPED if version >= 6 else 0)
    size = ctypes.sizeof(rules) if version >= 6 else ctypes.sizeof(ctypes.c_uint64)
    made = _call(_CREATE, ctypes.byref(rules), size, 0)
    try:
        for path in (*_programs(), *(Path(one) for one in _SYSTEM), *_public(Path("/etc"))):
            _allow(made, path, _READ | _RUN)
        for path in shown:
            _allow(made, path, _READ)
        for path in own:
            _allow(made, path, _ALL & ~_RUN)
        tempfile.tempdir = str(own[0])
        if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no new privileges")
        _call(_RESTRICT, made, 0)
    finally:
        os.close(made)
    return True


def _programs() -> Iterable[Path]:
    """Where Python and the packages are; of a checkout our packages alone."""
    yield from {Path(sys.prefix), Path(sys.base_prefix)}
    yield from (Path(one) for one in sys.path if Path(one).name in ("site-packages", "dist-packages"))
    for name in ("runner", "schemas"):
        found = find_spec(name)
        if found is not None and found.origin is not None:
            yield Path(found.origin).parent


def _public(folder: Path) -> Iterable[Path]:
    """The files of a folder that everybody may read."""
    return [one for one in folder.iterdir() if one.is_file() and one.stat().st_mode & 0o004]


def _allow(rules: int, path: Path, what: int) -> None:
    if not path.exists():
        return
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = what if path.is_dir() else what & _OF_FILES
        _call(_ADD, rules, 1, ctypes.byref(_Beneath(allowed, parent)), 0)
    finally:
        os.close(parent)


def _call(number: int, *arguments: object, fails: bool = True) -> int:
    """What a system call returns. Raises OSError where it ``fails``."""
    found = int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
    if found < 0 and fails:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
