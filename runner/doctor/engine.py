"""Checks of the container engine: whether it enforces the sandbox, its clock, our images, leftovers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from runner.doctor.checks import DRIFT, GIB, Check, guarded, one_line
from runner.doctor.home import disk_check
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.engines.base import EngineInfo
    from runner.model.config import Config

CONTAINER_LABEL, OWNER_LABEL = "proctor.attempt", "proctor.owner"


def engine_checks(config: Config, now: datetime) -> Iterator[Check]:
    from runner.provision import api
    from runner.provision.daemon import own_engine
    from runner.provision.engine import docker_host

    try:
        host = docker_host(config)
    except RunnerError as error:
        yield Check("FAIL", "container engine", one_line(f"{error.what}. {error.why}"), error.fix)
        return
    if host is None or not api.answers(host):
        where = (
            f"{host} does not answer."
            if host
            else "There is none: no DOCKER_HOST, no default socket, none of our own."
        )
        yield Check("FAIL", "container engine", where, "make setup")
        return
    whose = " (our own)" if host == own_engine(config.home).host else ""
    found = guarded("container engine", lambda: _facts(config, host, whose, now))
    yield from found
    yield from guarded("images", lambda: [image_check(config)])
    yield from guarded("left-over containers", lambda: [leftover_check(host)])


def _facts(config: Config, host: str, whose: str, now: datetime) -> list[Check]:
    """The checks that need the engine's own account of itself."""
    from runner.provision import api
    from runner.provision.images import open_engine

    raw = api.get(host, "/info") or {}
    info = open_engine(config).info()
    checks = [
        Check(
            "PASS",
            "container engine",
            f"{info.name} {info.version} at {host}{whose}, {info.cpus} processors, {info.memory / GIB:.1f} GiB",
        )
    ]
    checks += limit_checks(info, raw, local=host.startswith("unix://"))
    checks += guarded("blinded and public runs", lambda: [turns_check(config)])
    checks.append(engine_clock_check(str(raw.get("SystemTime", "")), now))
    folder = Path(str(raw.get("DockerRootDir") or "/nonexistent"))
    if host.startswith("unix://") and folder.is_dir():
        checks.append(
            disk_check("disk of the engine", folder, "docker image prune, or move the engine's data-root")
        )
    return checks


def limit_checks(info: EngineInfo, raw: dict[str, Any], *, local: bool) -> list[Check]:
    """What the engine can enforce, from its facts and its raw ``/info``; ``local`` when it is on this machine."""
    checks = []
    if info.missing:
        checks.append(
            Check(
                "FAIL",
                "limits",
                one_line("not enforced: " + ", ".join(info.missing)),
                "use Docker Engine as root on cgroup v2, or rootful on v1",
            )
        )
    else:
        checks.append(Check("PASS", "limits", "memory, processors and processes are enforced"))
    swap = raw.get("SwapLimit")
    checks.append(
        Check("PASS", "swap accounting", "swap is part of the memory limit")
        if swap
        else Check(
            "FAIL",
            "swap accounting",
            "the engine cannot limit swap",
            "boot with swapaccount=1 on cgroup v1, or use cgroup v2",
        )
    )
    groups = f"version {info.cgroup_version}, driver {info.cgroup_driver}"
    exact = local and (info.cgroup_version == "2" or Path("/sys/fs/cgroup/memory").is_dir())
    checks.append(
        Check("PASS", "control groups", f"{groups}; peak memory is read exactly")
        if exact
        else Check(
            "CAUTION",
            "control groups",
            f"{groups}; peak memory is sampled",
            "run on the engine's own machine to read it exactly",
        )
    )
    checks.append(
        Check("PASS", "memory of sockets", "what a software's sockets hold is bounded")
        if info.counts_sockets
        else Check(
            "CAUTION",
            "memory of sockets",
            "this engine cannot count it: a software can hold gigabytes in the buffers of its loopback",
            "use cgroup v2, or run as root on the engine's own machine; or write limits: {loopback: false}",
        )
    )
    options = " ".join(str(option) for option in raw.get("SecurityOptions") or ())
    if "name=seccomp" not in options:
        checks.append(
            Check(
                "FAIL",
                "seccomp",
                "the engine cannot filter system calls",
                "use a kernel and an engine with seccomp",
            )
        )
    elif info.seccomp:
        checks.append(Check("PASS", "seccomp", "our own profile is used"))
    else:
        checks.append(
            Check(
                "CAUTION",
                "seccomp",
                f"the engine's default profile is used on {info.platform}: ours is for x86-64",
            )
        )
    checks.append(
        Check("PASS", "user namespaces", "root inside a container is nobody outside")
        if "name=userns" in options or info.rootless
        else Check(
            "CAUTION",
            "user namespaces",
            "off: softwares that insist on root are refused",
            "start dockerd with --userns-remap=default to allow them",
        )
    )
    if info.storage_driver == "vfs":
        checks.append(
            Check(
                "CAUTION",
                "storage driver",
                "vfs copies whole images for every container",
                "put the engine's data-root on ext4 or xfs",
            )
        )
    return checks


def turns_check(config: Config) -> Check:
    """Whether what a blinded run read is kept from later public ones: by the setting, or seen to work (caches are
    emptied for that, when nothing else is known). Raises E311 when it does not work.
    """
    from runner.provision.images import open_engine

    name = "blinded and public runs"
    if config.engine_for == "both-without-eviction":
        return Check(
            "CAUTION",
            name,
            "NOT kept apart (RUNNER_ENGINE_FOR): a public run can find out what a blinded one read",
            "use two engines, or RUNNER_ENGINE_FOR=both: docs/how-to/two-engines.md",
        )
    if config.engine_for != "both":
        return Check("PASS", name, f"the engine is for {config.engine_for} runs only (RUNNER_ENGINE_FOR)")
    seconds = open_engine(config).try_eviction()
    return Check("PASS", name, f"never at once, and caches are emptied in between ({seconds:.1f} s)")


def engine_clock_check(said: str, now: datetime) -> Check:
    """Whether the engine's clock agrees with ours; ``said`` is its time in ISO 8601."""
    try:
        theirs = datetime.fromisoformat(said[:19]).replace(tzinfo=UTC) - _offset(said)
    except ValueError:
        return Check("CAUTION", "engine's clock", "the engine does not say what time it is")
    apart = abs(theirs - now)
    if apart > DRIFT:
        return Check(
            "CAUTION",
            "engine's clock",
            f"{apart.total_seconds():.0f} seconds away from ours",
            "let both machines keep time (timedatectl set-ntp true)",
        )
    return Check("PASS", "engine's clock", "agrees with ours")


def _offset(said: str) -> timedelta:
    """The zone's offset at the end of a time like ``2026-01-01T10:00:00.123456789+01:00``."""
    tail = said[19:].lstrip(".0123456789")
    if len(tail) == 6 and tail[0] in "+-":
        offset = timedelta(hours=int(tail[1:3]), minutes=int(tail[4:6]))
        return offset if tail[0] == "+" else -offset
    return timedelta()


def image_check(config: Config) -> Check:
    """Whether our images are there and hold today's sources. Raises RunnerError without an engine."""
    from runner.provision.images import states

    bad = [
        f"{s.tag} is {'missing' if s.id is None else 'older than its sources'}"
        for s in states(config)
        if s.id is None or s.stale
    ]
    if bad:
        return Check("FAIL", "images", "; ".join(bad), "make setup")
    return Check("PASS", "images", ", ".join(s.tag for s in states(config)))


def leftover_check(host: str) -> Check:
    """Whether containers of processes that have died are still there. Raises RunnerError without an engine."""
    from runner.engines.docker.owner import alive
    from runner.provision import api

    filters = quote(json.dumps({"label": [CONTAINER_LABEL]}))
    listed = api.get_list(host, f"/containers/json?all=1&filters={filters}")
    count = sum(not alive(str((entry.get("Labels") or {}).get(OWNER_LABEL, ""))) for entry in listed)
    if count:
        return Check(
            "CAUTION",
            "left-over containers",
            f"{count} of processes that have died",
            "runner gc",
        )
    return Check("PASS", "left-over containers", "none")


def base_check(config: Config) -> Check:
    """What builds start from on this machine."""
    from runner.provision.base import LOCAL_IMAGE, REGISTRY_IMAGE, base_mode

    mode = base_mode(config)
    if mode == "local":
        return Check(
            "PASS", "base image", f"{LOCAL_IMAGE}, made on this machine (RUNNER_BASE={config.base_image})"
        )
    if mode == "registry":
        return Check(
            "PASS", "base image", f"{REGISTRY_IMAGE}, from a registry (RUNNER_BASE={config.base_image})"
        )
    return Check("CAUTION", "base image", "not chosen yet", "make setup")
