"""Which container engine this project uses, and a daemon of our own where a machine has none.

The order: the address that the configuration names (``DOCKER_HOST``, or the settings file); the docker client's current
context; the default socket; our own daemon, whose state lies under ``RUNNER_HOME/engine``. Only a Debian or Ubuntu machine where we are root gets a daemon of
ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.engines.registry import answers, engine_type
from runner.model.errors import PlatformError
from runner.provision import daemon
from runner.provision.steps import Steps

if TYPE_CHECKING:
    from runner.engines.base import Engine
    from runner.model.config import Config

DEFAULT_SOCKET = "unix:///var/run/docker.sock"
PACKAGES = ("docker.io", "iptables", "ca-certificates")


def docker_host(config: Config) -> str | None:
    """The engine's address for this invocation, None when there is none.

    What the configuration names wins, then the docker client's current context, then the default socket if it answers,
    then our own daemon, which is started again when it does not run (after a reboot) and we are root.
    Raises PlatformError E301 when our own daemon cannot be started again.
    """
    named = config.engine or _context_host()
    if named:
        return named
    if answers(DEFAULT_SOCKET):
        return DEFAULT_SOCKET
    own = daemon.OwnEngine(config.home)
    if not own.remembered.is_file():
        return None
    if not answers(own.host):
        if os.geteuid() != 0:
            return None
        with daemon.locked(own):
            daemon.start(own)
    return own.host


def engine_host(config: Config) -> str:
    """The engine's address for this invocation. Raises E301 when there is none."""
    host = docker_host(config)
    if host is None:
        raise _no_engine("None has been set up yet.", "run `make setup`")
    return host


def _no_engine(why: str, fix: str) -> PlatformError:
    """E301: nothing answers."""
    return PlatformError("no container engine answers", why=why, fix=fix, code="E301")


def open_engine(config: Config, tell: Callable[[str], None] = lambda _: None) -> Engine:
    """The engine of this invocation; ``tell`` is given what it waits for. Raises E301 when there is none."""
    host = engine_host(config)
    return engine_type(host)(host, locks=config.locks, engine_for=config.engine_for, tell=tell)


def uses_own(config: Config) -> bool:
    """Whether the engine in use is the daemon that this data directory owns."""
    return docker_host(config) == daemon.OwnEngine(config.home).host


def ensure_engine(config: Config, say: Callable[[str], None]) -> str:
    """The address of an engine that answers; sets one up on Debian as root. Raises E301 with what to do."""
    host = docker_host(config)
    if host is not None:
        if not answers(host, timeout=10.0):
            raise _no_engine(
                f"{host} was chosen by DOCKER_HOST, proctor.yaml or the docker client's context, and does not answer.",
                "start that engine, or unset DOCKER_HOST (docker context use default) to use another one",
            )
        return host
    found = obstacle(
        root=os.geteuid() == 0,
        dockerd=daemon.which("dockerd") is not None,
        installable=can_install(),
        cgroups=any(Path("/sys/fs/cgroup", name).exists() for name in ("cgroup.controllers", "memory")),
    )
    if found is not None:
        raise _no_engine(*found)
    own = daemon.OwnEngine(config.home)
    with daemon.locked(own):
        if answers(own.host):  # somebody else was faster
            return own.host
        if daemon.which("dockerd") is None:
            with Steps.of(say).step(
                "container engine", note=f"none answers: installing Debian's {', '.join(PACKAGES)}"
            ):
                install(*PACKAGES)
            if Path("/run/systemd/system").is_dir() and daemon.wait_for(DEFAULT_SOCKET, 15.0):
                say(f"The engine that the package started is used: {DEFAULT_SOCKET}")
                return DEFAULT_SOCKET
        say(f"No container engine answers: starting one of our own, with its state in {own.folder}.")
        daemon.start(own)
        say(f"Engine started: {own.host} (`make clean` or `python -m runner.provision stop` ends it).")
        return own.host


def stop(config: Config) -> bool:
    """End our own daemon with the containers in it; True if it ran. Never touches any other engine."""
    own = daemon.OwnEngine(config.home)
    if not own.folder.is_dir():
        return False
    with daemon.locked(own):
        return daemon.stop(own)


def remove(config: Config) -> None:
    """End our own daemon and delete its images, volumes and state."""
    stop(config)
    folder = daemon.OwnEngine(config.home).folder
    if folder.is_dir():
        shutil.rmtree(folder)


def can_install() -> bool:
    """Whether this is a Debian-like machine, with apt, on which we are root."""
    return os.geteuid() == 0 and _debian_like() and daemon.which("apt-get") is not None


def install(*packages: str) -> None:
    """Install Debian packages (root on Debian or Ubuntu only). Raises PlatformError E301, E303."""
    if not can_install():
        raise PlatformError(
            f"{', '.join(packages)} cannot be installed",
            why="It needs root on Debian or Ubuntu.",
            fix=f"install {' '.join(packages)} and repeat",
            code="E301",
        )
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]
    run_tool([*apt, "update", "-q"], timeout=300, env=env)
    run_tool([*apt, "install", "-y", "-q", "--no-install-recommends", *packages], timeout=900, env=env)


def run_tool(command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None) -> None:
    """Run a tool to its end.

    Args:
        command: the tool and its arguments.
        timeout: seconds after which it is killed.
        env: variables that it gets in addition to this process's own.

    Raises:
        PlatformError: E303, with its last lines.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **(env or {})},
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        why = " ".join(command)
        raise PlatformError(f"{command[0]} took longer than {timeout:.0f} seconds", why=why) from error
    except OSError as error:
        raise PlatformError(f"{command[0]} cannot be run", why=str(error)) from error
    if done.returncode:
        how = f"{' '.join(command)}: exit {done.returncode}"
        last = [line.strip() for line in done.stdout.splitlines()[-8:]]
        raise PlatformError(f"{command[0]} failed", why="\n".join([how, *filter(None, last)]))


def _context_host() -> str | None:
    """The address in the docker client's current context, None for the default context."""
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        settings = json.loads((folder / "config.json").read_bytes())
        name = os.environ.get("DOCKER_CONTEXT") or settings.get("currentContext") or "default"
        if name == "default":
            return None
        key = hashlib.sha256(name.encode()).hexdigest()
        meta = json.loads((folder / "contexts" / "meta" / key / "meta.json").read_bytes())
        host = meta["Endpoints"]["docker"]["Host"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return host if isinstance(host, str) and host else None


def obstacle(*, root: bool, dockerd: bool, installable: bool, cgroups: bool) -> tuple[str, str] | None:
    """Why no daemon of our own can run on a machine, and what to do about it; None where one can.

    ``root``: we are root; ``dockerd``: it is installed; ``installable``: it could be; ``cgroups``: control groups are mounted.
    """
    get = "install Docker Engine (https://docs.docker.com/engine/install/)"
    if not root:
        return (
            f"DOCKER_HOST is not set, and {DEFAULT_SOCKET} does not answer this user.",
            f"{get} and start it; if it is installed, let this user use it (sudo usermod -aG docker $USER, then log "
            "in again) or set DOCKER_HOST",
        )
    if not (dockerd or installable):
        return (
            "This machine has no Docker Engine, and it is no Debian or Ubuntu on which it could be installed.",
            f"{get}, start it, and repeat",
        )
    if not cgroups:
        return (
            "No control groups are mounted at /sys/fs/cgroup, so no engine could enforce limits here.",
            "mount them (in a container: start it with --privileged), or set DOCKER_HOST to an engine elsewhere",
        )
    return None


def _debian_like() -> bool:
    try:
        facts = platform.freedesktop_os_release()
    except OSError:
        return False
    return bool({"debian", "ubuntu"} & {facts["ID"], *facts.get("ID_LIKE", "").split()})
