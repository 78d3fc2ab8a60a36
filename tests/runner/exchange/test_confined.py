"""The front closes to itself what it does not need, as whatever user it runs."""

from __future__ import annotations

import json
import os
import pty
import secrets
import select
import socket
import subprocess
import sys
import tty
from contextlib import ExitStack
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, json, os, socket, sqlite3, subprocess, sys, tempfile
from pathlib import Path
from runner.exchange.confined import close_calls, confine
home, exchange = Path(sys.argv[1]), Path(sys.argv[2])
if not confine([exchange / "published"], [exchange / "front", exchange / "inbox"]):
    sys.exit(7)
had = []
def calls(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as one:
        one.connect(address)
calls(str(home / "engine.sock"))  # Landlock alone leaves it open
assert close_calls()
def had_if(name, do):
    try:
        do()
    except OSError:
        return
    had.append(name)
secret = home / "secret"
had_if("read", lambda: secret.read_text())
had_if("write", lambda: secret.write_text("x"))
had_if("list", lambda: list(home.iterdir()))
had_if("new", lambda: (home / "new").write_text("x"))
had_if("link", lambda: os.link(secret, exchange / "inbox/link"))
had_if("through", lambda: (exchange / "inbox/symlink").symlink_to(secret) or (exchange / "inbox/symlink").read_text())
had_if("publish", lambda: (exchange / "published/evil").write_text("x"))
had_if("parent's memory", lambda: open(f"/proc/{os.getppid()}/environ").read())
had_if("parent's end", lambda: os.kill(os.getppid(), 0))
had_if("engine", lambda: calls(str(home / "engine.sock")))
had_if("engine by a program", lambda: subprocess.run([sys.executable, "-c", "import socket, sys; socket.socket(socket.AF_UNIX)"],
       check=True, capture_output=True) if subprocess.run([sys.executable, "-c", "import socket; socket.socket(socket.AF_UNIX)"],
       capture_output=True).returncode == 0 else open("/nothing"))
had_if("socket without a file", lambda: calls("\\0" + sys.argv[3]))
had_if("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(str(home / "log.sock")))
had_if("kernel's messages", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
had_if("passwords", lambda: open("/etc/shadow").read())
had_if("temporary files", lambda: list(Path("/tmp").iterdir()))
had_if("a program's eyes", lambda: subprocess.run(["/bin/cat", secret], check=True, capture_output=True) if
       subprocess.run(["/bin/cat", secret], capture_output=True).returncode == 0 else open("/nothing"))
assert (exchange / "published/current.json").read_text() == "{}"
(exchange / "inbox/.x").mkdir(); (exchange / "inbox/.x/payload").write_text("x")
(exchange / "inbox/.x").rename(exchange / "inbox/x")
(exchange / "front/ready").write_text("x"); (exchange / "front/ready").rename(exchange / "inbox/x/moved")
sqlite3.connect(exchange / "front/front.sqlite").execute("CREATE TABLE a (b)")
tempfile.TemporaryFile().write(b"x")
import starlette.applications, uvicorn, runner.web.server, encodings.idna
asyncio.run(asyncio.sleep(0))
socket.create_server(("127.0.0.1", 0)).close()
print(json.dumps(had))
"""


def test_nothing_but_its_own_folders_is_open(tmp_path: Path) -> None:
    home = tmp_path / "home"
    exchange = home / "web"
    for folder in (exchange / "published", exchange / "inbox"):
        folder.mkdir(parents=True)
    (home / "secret").write_text("truths")
    (exchange / "published/current.json").write_text("{}")
    name = f"proctor-test-{secrets.token_hex(8)}"
    with ExitStack() as stack:
        for address, kind in (
            (str(home / "engine.sock"), socket.SOCK_STREAM),
            (f"\0{name}", socket.SOCK_STREAM),
            (str(home / "log.sock"), socket.SOCK_DGRAM),
        ):
            one = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            one.bind(address)
            if kind == socket.SOCK_STREAM:
                one.listen()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(home), str(exchange), name],
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
    if done.returncode == 7:
        pytest.fail(
            "this kernel has no Landlock of version 3: the second wall cannot be tested here", pytrace=False
        )
    assert done.returncode == 0, done.stderr
    kernel = tuple(int(one) for one in os.uname().release.split(".")[:2])
    open_ = [] if kernel >= (6, 12) else ["parent's end"]  # older ones do not close signals
    assert json.loads(done.stdout) == open_
    assert (home / "secret").read_text() == "truths"


TERMINAL = """
import ctypes, errno, fcntl, json, os, platform, sys, termios
from runner.exchange.confined import close_calls
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # as where the operator's shell starts it
assert close_calls()
raw = ctypes.CDLL(None, use_errno=True).syscall
ioctl = {"x86_64": 16, "aarch64": 29}[platform.machine()]
said = []
for number in (termios.TIOCSTI, 0x541C, termios.TIOCSTI | 1 << 32):  # the kernel looks at the low half alone
    failed = raw(ioctl, ctypes.c_long(0), ctypes.c_ulong(number), b"x")
    said.append([failed, errno.errorcode.get(ctypes.get_errno())])
os.get_terminal_size(0)
print(json.dumps(said))
"""


def test_nothing_is_typed_into_a_terminal_that_it_has() -> None:
    ours, its = pty.openpty()
    try:
        tty.setraw(its)
        done = subprocess.run(
            [sys.executable, "-c", TERMINAL],
            stdin=its,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [[-1, "EPERM"]] * 3
        assert select.select([its], [], [], 0)[0] == [], "a shell would read it"
    finally:
        os.close(ours)
        os.close(its)


OTHERS = """
import json, os, resource, subprocess, sys
from runner.exchange.confined import close_calls
path, parent = sys.argv[1], os.getppid()
calls = {
    "owner": lambda: os.chown(path, -1, os.getgid()),
    "owner of a link": lambda: os.lchown(path, -1, os.getgid()),
    "owner of what is open": lambda: os.fchown(own.fileno(), -1, os.getgid()),
    "owner in a folder": lambda: os.chown(os.path.basename(path), -1, os.getgid(), dir_fd=folder),
    "attribute": lambda: os.setxattr(path, "user.x", b"x"),
    "attribute of a link": lambda: os.setxattr(path, "user.x", b"x", follow_symlinks=False),
    "attribute of what is open": lambda: os.setxattr(own.fileno(), "user.x", b"x"),
    "no attribute": lambda: os.removexattr(path, "user.x"),
    "limits": lambda: resource.prlimit(parent, resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)),
    "limits, asked": lambda: resource.prlimit(parent, resource.RLIMIT_CORE),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)),
    "processors": lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
    "schedule": lambda: os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0)),
    "its parameters": lambda: os.sched_setparam(parent, os.sched_param(0)),
}
def done():
    had = []
    for name, do in calls.items():
        try:
            do()
        except PermissionError:
            continue
        had.append(name)
    return had
own, folder = open(path), os.open(os.path.dirname(path), os.O_RDONLY)
before = done()
assert close_calls()
resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
print(json.dumps([len(before) == len(calls), done()]))
"""


def test_owners_attributes_and_other_processes_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = subprocess.run(
        [sys.executable, "-c", OTHERS, str(tmp_path / "file")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, []], "all of it could be done before, and nothing after"


KERNELS = """
import sys
from pathlib import Path
from runner.exchange.confined import confine
shown = [Path("/proc/meminfo"), Path("/proc/self").resolve()]
if not confine(shown, [Path(sys.argv[1])]):
    sys.exit(7)
for _ in sys.stdin:
    print(len(shown[0].read_text()) > 0 and len((shown[1] / "statm").read_text()) > 0, flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can empty the kernel's caches")
def test_what_is_open_stays_so_when_the_kernel_is_short_of_memory(tmp_path: Path) -> None:
    """A cold cache for another run, or a shortage, makes the kernel forget files of ``/proc`` and make them anew."""
    command = [sys.executable, "-c", KERNELS, str(tmp_path / "own")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(2):
            process.stdin.write("look\n")
            process.stdin.flush()
            assert process.stdout.readline() == "True\n"
            Path("/proc/sys/vm/drop_caches").write_text("2")
