"""A process keeps itself out of everything but its own folders, where the kernel offers that.

What faces strangers does: the front, and the process that holds the line to a cluster. It is a second wall: the first is another user. By Landlock (Linux 6.2) files that are not named here cannot be opened any more, by
nothing that this process becomes, and processes of others cannot be traced or (Linux 6.12) ended. By a filter of system calls it
makes no sockets but those of the internet, so that those of an engine, a message bus or a log on this machine are closed to it;
types nothing into a terminal; and changes neither owners nor attributes of files, nor how other processes run.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from schemas.files import make_private

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_NO_NEW_PRIVILEGES = 38
_READ = 1 << 2 | 1 << 3  # files, folders
_RUN = 1 << 0
_ALL = (1 << 15) - 1  # up to truncating, which is version 3
_OF_FILES = _RUN | 1 << 1 | 1 << 2 | 1 << 14
_VERSION = 3
_SCOPED = 1 << 0 | 1 << 1  # abstract sockets and signals, version 6
_SECCOMP, _FILTER = 22, 2
# By machine: how the kernel names it, and its calls socket, socketpair, ioctl and prlimit64.
_MACHINES = {"x86_64": (0xC000003E, 41, 53, 16, 302), "aarch64": (0xC00000B7, 198, 199, 29, 261)}
# By machine: calls that nothing here needs. They change owners of files (chown), attributes (setxattr, removexattr), and how processes
# run (setpriority; sched_ setparam, setscheduler, setaffinity, setattr; ioprio_set). Landlock has no rule for any of them.
_NEEDLESS = {
    "x86_64": (92, 93, 94, 260, 188, 189, 190, 197, 198, 199, 141, 142, 144, 203, 314, 251),
    "aarch64": (54, 55, 5, 6, 7, 14, 15, 16, 140, 118, 119, 122, 274, 30),
}
# The same everywhere: io_uring, which makes sockets without the call socket; setxattrat, removexattrat, file_setattr.
_NEEDLESS_EVERYWHERE = (425, 426, 427, 463, 466, 469)
_TYPING = (0x5412, 0x541C)  # ioctls that type into a terminal, or paste: TIOCSTI, TIOCLINUX
_OTHER_NUMBERS = 1 << 30  # from here on those of x32
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06  # instructions of a filter
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.EPERM
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ssl", "/etc/ca-certificates", "/dev/null", "/dev/urandom")


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confine(readable: Iterable[Path], writable: Iterable[Path]) -> bool:
    """Close all files to this process but these folders and files, programs, and what of ``/etc`` everybody may read.

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
    for folder in (*shown, *own):  # a rule is of what there is
        if not folder.is_file():
            make_private(folder.parent)
            folder.mkdir(exist_ok=True)
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
        _control(_NO_NEW_PRIVILEGES, 1)
        _call(_RESTRICT, made, 0)
    finally:
        os.close(made)
    return True


def offered() -> bool:
    """Whether this kernel keeps such a process from all that others of the same user have: files, processes and sockets."""
    return _call(_CREATE, None, 0, 1, fails=False) >= 6 and platform.machine() in _MACHINES


def close_calls() -> bool:
    """Refuse this process, and what it becomes, all sockets but those of the internet (and pairs of its own), and what else is needless.

    To be called before there are threads. Returns whether it was done; False on a machine whose calls are not known here. Raises
    OSError where the kernel has no such filters.
    """
    if platform.machine() not in _MACHINES:
        return False
    made = _filter(platform.machine())
    _control(_NO_NEW_PRIVILEGES, 1)
    _control(_SECCOMP, _FILTER, ctypes.byref(_Program(len(made) // 8, made)))
    return True


def _filter(name: str) -> bytes:
    """The filter of system calls for a machine of this name."""
    machine, plain, pair, control, limits = _MACHINES[name]
    first, second = 16, 24  # where a call's arguments stand: their low 32 bits
    yes, no = "allowed", "refused"
    steps: list[tuple[int, int, int | str, int | str]] = [
        # An instruction, its number, and how many of the next are left out (or what is answered) when it holds and when it does not.
        *((_LOAD, 4, 0, 0), (_EQUAL, machine, 0, no)),
        *((_LOAD, 0, 0, 0), (_AT_LEAST, _OTHER_NUMBERS, no, 0)),
        *((_EQUAL, number, no, 0) for number in (*_NEEDLESS[name], *_NEEDLESS_EVERYWHERE)),
        *((_EQUAL, plain, 0, 3), (_LOAD, first, 0, 0)),
        *((_EQUAL, socket.AF_INET, yes, 0), (_EQUAL, socket.AF_INET6, yes, no)),
        # Of a pair of datagrams one end could be turned elsewhere.
        *(
            (_EQUAL, pair, 0, 3),
            (_LOAD, second, 0, 0),
            (_AND, 0xF, 0, 0),
            (_EQUAL, socket.SOCK_STREAM, yes, no),
        ),
        *(
            (_EQUAL, control, 0, 3),
            (_LOAD, second, 0, 0),
            (_EQUAL, _TYPING[0], no, 0),
            (_EQUAL, _TYPING[1], no, yes),
        ),
        # Limits are its own where no other process is named.
        *((_EQUAL, limits, 0, 2), (_LOAD, first, 0, 0), (_EQUAL, 0, yes, no)),
        *((_RETURN, _ALLOWED, 0, 0), (_RETURN, _REFUSED, 0, 0)),
    ]
    ends = {yes: len(steps) - 2, no: len(steps) - 1}
    made = b""
    for at, (code, number, *jumps) in enumerate(steps):
        left = [ends[one] - at - 1 if isinstance(one, str) else one for one in jumps]
        made += struct.pack("HBBI", code, *left, number)
    return made


def _control(what: int, *arguments: object) -> None:
    """Set something of this process. Raises OSError."""
    rest = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in (*arguments, 0, 0, 0, 0)[:4]]
    if ctypes.CDLL(None, use_errno=True).prctl(what, *rest) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _programs() -> Iterable[Path]:
    """Where Python and the packages are; of a checkout our packages alone."""
    yield from {Path(sys.prefix), Path(sys.base_prefix)}
    yield from (Path(one) for one in sys.path if Path(one).name in ("site-packages", "dist-packages"))
    for name, up in (
        ("runner", 1),
        ("schemas", 1),
        ("starlette", 2),
    ):  # what lies beside that one are packages, too
        found = find_spec(name)
        if found is not None and found.origin is not None:
            yield Path(found.origin).parents[up - 1]


def _public(folder: Path) -> Iterable[Path]:
    """The files of a folder that everybody may read."""
    return [one for one in folder.iterdir() if one.is_file() and one.stat().st_mode & 0o004]


def _allow(rules: int, path: Path, what: int) -> None:
    if not path.exists():
        return
    # It stays open: a rule is of an inode, and ``/proc`` makes another one of the same name when nobody has the first open and memory
    # is short or caches are emptied. Then what was allowed is refused.
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    allowed = what if path.is_dir() else what & _OF_FILES
    _call(_ADD, rules, 1, ctypes.byref(_Beneath(allowed, parent)), 0)


def _call(number: int, *arguments: object, fails: bool = True) -> int:
    """What a system call returns. Raises OSError where it ``fails``."""
    found = int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
    if found < 0 and fails:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
