"""The daemon of our own: a Docker Engine that belongs to one data directory, and nothing else does.

It gives containers no network and makes no firewall rules: no container of ours has a network, and two
daemons that both make rules cut each other off.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from runner.engines.registry import answers
from runner.model.errors import PlatformError
from schemas.files import atomic_file, make_private

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_LINKS = Path("/sys/class/net")
OTHERS_LINK = "docker0"  # a daemon with "--bridge none" deletes this link, also when it is another daemon's
_ADD_BRIDGE, _DELETE_BRIDGE, _SET_FLAGS = 0x89A0, 0x89A1, 0x8914  # SIOCBRADDBR, SIOCBRDELBR, SIOCSIFFLAGS
_DETACH = 2  # Linux: MNT_DETACH
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class OwnEngine:
    """Where the daemon that belongs to the data directory ``home`` keeps its things, whether or not there is one.

    The socket and run-time state lie in a short folder under ``/run``: a Unix socket's path may have 107 bytes, a data
    directory's path may be longer. ``helper`` is the folder of containerd, which our daemon starts and which may
    outlive it for a while; ``bridge`` the network link where it must have one (its name may have 15 bytes);
    ``remembered`` the file that says an own daemon was set up here, and holds its address.
    """

    def __init__(self, home: Path) -> None:
        real = home.resolve()
        token = hashlib.sha256(bytes(real)).hexdigest()[:10]
        self.folder, self.runtime = real / "engine", Path("/run") / f"proctor-{token}"
        self.host, self.bridge = f"unix://{self.runtime / 'docker.sock'}", f"pr-{token}"
        self.helper = self.runtime / "exec" / "containerd"
        self.pidfile, self.log, self.data = (self.folder / name for name in ("pid", "log", "data"))
        self.remembered = self.folder / "host"


def start(own: OwnEngine) -> None:
    """Start the daemon, or wait for the one that is starting. Raises E301 with the end of its log."""
    if answers(own.host):
        return
    if _running(own) is None:
        _clear_remains(own)
        own.runtime.mkdir(mode=0o711, parents=True, exist_ok=True)
        make_private(own.data)
        dockerd = which("dockerd")
        if dockerd is None:
            raise PlatformError(
                "our own container engine cannot be started",
                why="dockerd is not installed any more.",
                fix="run `make setup`",
                code="E301",
            )
        command = [dockerd, "--data-root", str(own.data), "--exec-root", str(own.runtime / "exec")]
        command += ["--pidfile", str(own.pidfile), "--host", own.host, "--bridge", _bridge(own)]
        command += ["--iptables=false", "--ip-forward=false", "--ip-masq=false"]
        environment = {"PATH": _PATH}
        environment.update({k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")})
        with own.log.open("ab") as log:
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment,
                start_new_session=True,  # it must outlive this process and its terminal
            )
    if not wait_for(own.host, _START_SECONDS):
        lines = own.log.read_bytes()[-4000:].decode("utf-8", "replace").splitlines()[-5:]
        raise PlatformError(
            "our own container engine does not start",
            why=f"{own.log} ends with:\n" + "\n".join(lines),
            fix="run `runner doctor`, or set DOCKER_HOST to another engine",
            code="E301",
        )
    with atomic_file(own.remembered) as file:
        file.write(f"{own.host}\n".encode())


def stop(own: OwnEngine) -> bool:
    """End the daemon with the containers in it, and put away what it leaves; True if it ran.

    Raises PlatformError when it does not end.
    """
    pid = _running(own)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        if not until(lambda: _running(own) is None, _STOP_SECONDS):
            raise PlatformError(
                "our own container engine does not stop", why=f"process {pid}, log: {own.log}"
            )
    _clear_remains(own)
    shutil.rmtree(own.runtime, ignore_errors=True)
    _remove_bridge(own)
    return pid is not None


@contextlib.contextmanager
def locked(own: OwnEngine) -> Iterator[None]:
    """One process at a time sets up, starts or stops this daemon. Raises PlatformError E306."""
    from filelock import FileLock, Timeout

    folder = own.folder
    try:
        make_private(folder)
        with FileLock(folder / "lock", timeout=900):
            yield
    except Timeout as error:
        raise PlatformError(
            "another process is busy with the container engine", why=f"{folder / 'lock'} is held", code="E306"
        ) from error
    except PermissionError as error:
        raise PlatformError(
            "the data directory cannot be used", why=str(error), fix="make RUNNER_HOME writable", code="E306"
        ) from error


def which(tool: str) -> str | None:
    """Where a program is, also in the folders of the system's programs that a user's PATH leaves out."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:{_PATH}")


def wait_for(host: str, seconds: float) -> bool:
    """Whether an engine answers at ``host`` within ``seconds``."""
    return until(lambda: answers(host, timeout=2.0), seconds)


def until(true: Callable[[], bool], seconds: float) -> bool:
    """Ask ten times a second until ``true`` or ``seconds`` are over; whether it became true."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _running(own: OwnEngine) -> int | None:
    """The pid of our daemon if it lives."""
    return _alive(own.pidfile, own.data)


def _alive(pidfile: Path, argument: Path) -> int | None:
    """The pid in ``pidfile`` if that process lives and was started with ``argument`` on its command line.

    A pidfile may be stale and its number taken by another process; a dead process that nobody has collected
    yet has no command line.
    """
    try:
        pid = int(pidfile.read_text(encoding="ascii"))
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # when this process started it, its end must be collected
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(argument) in arguments else None


def _clear_remains(own: OwnEngine) -> None:
    """Put away what a killed daemon left: its pidfile, and a containerd that a new one would wait for in vain."""
    own.pidfile.unlink(missing_ok=True)
    pidfile = own.helper / "containerd.pid"
    for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        pid = _alive(pidfile, own.helper / "containerd.toml")
        if pid is None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        until(lambda: _alive(pidfile, own.helper / "containerd.toml") is None, patience)
    pidfile.unlink(missing_ok=True)
    _unmount(own)


def _unmount(own: OwnEngine) -> None:
    """Detach what a killed daemon left mounted in its folders; without this they cannot be deleted."""
    places = [
        line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    ]
    libc = ctypes.CDLL(None, use_errno=True)
    for place in reversed(places):
        path = Path(place.encode().decode("unicode_escape"))  # blanks are written as \\040
        if own.data in (path, *path.parents) or own.runtime in path.parents:
            libc.umount2(os.fsencode(path), _DETACH)


def _bridge(own: OwnEngine) -> str:
    """What the daemon gets as its bridge: none, or an idle link of its own where none would harm another daemon."""
    if not (_LINKS / OTHERS_LINK).exists():
        return "none"
    if not (_LINKS / own.bridge).exists():
        _network_call(_ADD_BRIDGE, own.bridge.encode() + b"\0")
    return own.bridge


def _remove_bridge(own: OwnEngine) -> None:
    if (_LINKS / own.bridge).exists():
        with contextlib.suppress(PlatformError):  # a link without a daemon does no harm
            _network_call(_SET_FLAGS, struct.pack("16sh22x", own.bridge.encode(), 0))
            _network_call(_DELETE_BRIDGE, own.bridge.encode() + b"\0")


def _network_call(number: int, argument: bytes) -> None:
    """One ioctl on the machine's network links: a minimal Debian has no ``ip`` command."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as call:
            fcntl.ioctl(call, number, argument)
    except OSError as error:
        raise PlatformError(
            "our own container engine cannot be given a network link", why=str(error), code="E301"
        ) from error
