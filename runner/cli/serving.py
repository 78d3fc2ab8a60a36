"""Starting the front, and keeping processes of ours running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from runner.cli import output
from runner.exchange.database import DatabaseError, at_server
from runner.exchange.link import Key, public_bytes
from runner.exchange.oidc import Provider
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError, disk_error
from schemas import show

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  (nothing is bound here)
PAUSE, LONGEST = 1.0, 60.0  # seconds before a process is started again: doubled each time
STEADY = 60.0  # seconds after which a process counts as running well
GRACE = 60.0  # seconds that processes have to end
APART = ("front",)  # what strangers talk to shall not type into our terminal
FRONT_DATABASE = "RUNNER_FRONT_DATABASE"  # where the front keeps its sessions
# Of the environment they get what Python, texts and times want: keys of models, passwords and where things are stay here.
PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "NO_COLOR"),
    FRONT_DATABASE,
    *("VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)
PROXIES = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)  # may hold a password: for asking a provider alone
WORDS = ("LC_", "PYTHON")  # how names of others begin that it gets
PAGE, TWO_USERS = "docs/how-to/serve.md", "On a server: two users"  # where to read on


def check_installed(*names: str) -> None:
    """Raise E101 when packages of the server are not there: those of the front, or only the ones that are named."""
    wanted = names or ("cryptography", "python_multipart", "starlette", "uvicorn")
    if missing := [name for name in wanted if find_spec(name) is None]:
        raise RunnerError(
            "E101",
            "the server needs packages that are not installed",
            why=f"Missing: {', '.join(missing)}. They belong to the extra web.",
            fix="pip install 'proctor-ir[web]' (in the project's own folder: make tools)",
        )


def address(bind: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``. Raises E101."""
    host, _, port = bind.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise RunnerError("E101", f"{bind!r} is no address with a port", fix="such as --bind 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def check_people(url: str) -> str:
    """The address by which people reach a front, without a slash at its end. Raises E101."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise RunnerError("E101", f"{url!r} is no address", fix="such as --url https://task.example.org")
    return url.rstrip("/")


def check_address(bind: str, url: str | None) -> tuple[str, int]:
    """Host and port to listen on. Raises E101 for what is no address, and where nobody can know how people reach it."""
    host, port = address(bind)
    if url is not None:
        check_people(url)
    if url is None and host in EVERYWHERE:
        why = f"{host} stands for every address of this machine, and another host's name is not answered."
        what = "by which address do people reach the front?"
        raise RunnerError("E101", what, why=why, fix="say it: --url https://task.example.org")
    return host, port


def check_proxies(given: Sequence[str]) -> list[str]:
    """The addresses of servers before the front, as connections have them. Raises E101 for what is none."""
    import ipaddress

    try:
        return [str(ipaddress.ip_address(one)) for one in given]
    except ValueError as error:
        fix = "the address from which it connects, such as --proxy 127.0.0.1"
        raise RunnerError("E101", "--proxy needs an IP address", why=f"{error}.", fix=fix) from error


def serve_front(
    exchange: Path,
    state: Path,
    bind: str,
    url: str | None,
    proxies: Sequence[str] = (),
    work_key: str | None = None,
    oidc: Path | None = None,
    database: str | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C. ``ready URL`` is printed once it listens. Raises E101 and E306."""
    check_installed()
    if database is not None and not at_server(database):
        fix = f"{FRONT_DATABASE}=postgresql://ROLE@HOST/NAME; without it they are in a file"
        raise RunnerError("E101", "that is no address of a database for sessions", fix=fix)
    from runner.web.server import serve

    def say(text: str) -> None:
        output.data(text)
        sys.stdout.flush()  # who started us waits for it

    host, port = check_address(bind, url)
    if work_key is not None:
        _check_key(work_key)
    provider = None if oidc is None else read_provider(oidc)
    try:
        serve(exchange, state, host, port, url, say, check_proxies(proxies), work_key, provider, database)
    except KeyboardInterrupt:  # uvicorn passes the signal on once it has ended in order
        output.say("the front has ended")
    except DatabaseError as error:
        fix = (
            f"start the server, or correct {FRONT_DATABASE}"
            if database
            else "have --state given to this user"
        )
        raise PlatformError(
            "sessions cannot be kept", why=f"{show(str(error), 400)}.", fix=fix, code="E306"
        ) from error
    except OSError as error:
        why = f"{bind}: {error.strerror or error}."
        fix = "choose another --bind, or have the folders given to this user"
        raise PlatformError("the front cannot be started", why=why, fix=fix, code="E306") from error


def work_key(config: Config) -> Key:
    """The key by which a front on another machine knows work; made when there is none. Raises E101 and E306."""
    check_installed()
    path = config.home / "link.key"
    try:
        return Key.at(path)
    except ValueError as error:
        what = "the key of work cannot be read"
        raise RunnerError(
            "E101", what, why=f"{path}: {error}.", fix="remove it: work makes another"
        ) from error
    except OSError as error:
        raise disk_error("the key of work cannot be used", error, path) from error


def read_provider(path: Path) -> Provider:
    """The provider that a file names. Raises E101 for one that is not right, or whose packages are not there."""
    if missing := [name for name in ("authlib", "joserfc") if find_spec(name) is None]:
        why = f"Missing: {', '.join(missing)}. They belong to the extra oidc."
        fix = "pip install 'proctor-ir[oidc]' (in the project's own folder: make tools)"
        raise RunnerError("E101", "signing in at a provider needs packages", why=why, fix=fix)
    try:
        return Provider.read(path)
    except (OSError, ValueError) as error:
        fix = "write issuer and client_id there, as docs/how-to/serve.md says"
        raise RunnerError("E101", f"{path} names no provider", why=f"{error}.", fix=fix) from error


def _check_key(text: str) -> None:
    try:
        public_bytes(text)
    except ValueError as error:
        raise RunnerError(
            "E101", f"{text!r} is {error}", fix="runner work --key prints it, beside work"
        ) from error


def supervise(commands: Mapping[str, Sequence[str]]) -> None:
    """Run ``runner`` with each of these arguments, and again when it ends, until Ctrl-C, SIGTERM or SIGQUIT; then end them all.

    SIGHUP ends all and starts them anew, which are the programs that are installed then. Those of :data:`APART` have no terminal,
    and signals from ours do not reach them: nothing here is broken off by one, so that none of them is left behind.
    """
    anew, over = threading.Event(), threading.Event()
    signal.signal(signal.SIGHUP, lambda *_: anew.set())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, lambda *_: over.set())
    running: dict[str, subprocess.Popen[bytes]] = {}
    began: dict[str, float] = {}
    pauses = dict.fromkeys(commands, PAUSE)
    due = dict.fromkeys(commands, 0.0)
    try:
        while not over.is_set():
            if anew.is_set():
                anew.clear()
                output.say("starting work and front anew")
                _end(running)
                running.clear()
            for name, arguments in commands.items():
                process, now = running.get(name), time.monotonic()
                if process is not None and process.poll() is not None:
                    pauses[name] = PAUSE if now - began[name] > STEADY else min(LONGEST, 2 * pauses[name])
                    output.say(f"{name} ended with {process.returncode}; again in {pauses[name]:g} s")
                    due[name] = now + pauses[name]
                    del running[name]
                elif process is None and now >= due[name] and not over.is_set():
                    running[name] = _started(name, arguments)
                    began[name] = now
            time.sleep(0.2)
        output.say("ending work and front")
    finally:
        _end(running)


def _started(name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "runner", *arguments]
    if name in APART:
        names = {*PASSED, *(PROXIES if "--oidc" in arguments else ())}
        passed = {
            key: value
            for key, value in os.environ.items()
            if key in names or key.lower() in names or key.startswith(WORDS)
        }
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, env=passed)
    return subprocess.Popen(command)


def _end(running: Mapping[str, subprocess.Popen[bytes]]) -> None:
    for process in running.values():
        process.terminate()
    last = time.monotonic() + GRACE
    for process in running.values():
        try:
            process.wait(max(0.1, last - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
