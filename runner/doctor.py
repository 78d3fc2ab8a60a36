"""What is wrong with this machine, and the command that mends it: ``runner doctor``.

Every check looks at one thing and never changes anything. PASS is fine; CAUTION works, but a person should
know; FAIL means that runs will be refused or cannot be trusted.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from runner.errors import RunnerError

if TYPE_CHECKING:
    from runner.clock import Clock
    from runner.config import Config
    from runner.engines.base import EngineInfo
    from runner.tasks import Task

Status = Literal["PASS", "CAUTION", "FAIL"]

GIB = 1024**3
ROOM_FAIL, ROOM_CAUTION = (
    1 * GIB,
    5 * GIB,
)  # free bytes: what one image and its layers take; what a task takes
DRIFT = timedelta(seconds=60)  # clocks further apart than this make deadlines a matter of dispute
CONTAINER_LABEL, OWNER_LABEL = "proctor.attempt", "proctor.owner"


@dataclass(frozen=True)
class Check:
    """One line of the report: what was looked at, what was seen, and how to mend it (empty when fine)."""

    status: Status
    name: str
    detail: str
    fix: str = ""

    def as_dict(self) -> dict[str, str]:
        """The check as ``runner doctor --json`` prints it."""
        return {"status": self.status, "name": self.name, "detail": self.detail, "fix": self.fix}


def diagnose(config: Config, clock: Clock | None = None) -> list[Check]:
    """Every check of this machine, in the order in which faults build on one another. Never raises RunnerError.

    ``clock`` is the clock that deadlines are judged by (default: this machine's).
    """
    from runner.clock import SystemClock

    now = (clock or SystemClock()).now()
    checks = [*_engine_checks(config, now)]
    checks += _guarded("base image", lambda: [base_check(config)])
    checks += [
        disk_check(
            "disk of the data directory",
            config.home,
            "delete what is not needed (runner gc), or set RUNNER_HOME",
        ),
        database_check(config),
        clock_check(config, now),
    ]
    checks += _guarded("records", lambda: [records_check(config)])
    checks += _guarded("tasks", lambda: list(_task_checks(config)))
    return checks


def worst(checks: Sequence[Check]) -> Status:
    """The worst status among ``checks``; PASS for none."""
    order: tuple[Status, ...] = ("FAIL", "CAUTION", "PASS")
    return next((status for status in order if any(check.status == status for check in checks)), "PASS")


def _guarded(name: str, look: Callable[[], list[Check]]) -> list[Check]:
    """What ``look`` found, or its error as a failed check: one broken part must not hide the others."""
    try:
        return look()
    except RunnerError as error:
        return [Check("FAIL", name, _line(f"{error.what}. {error.why}"), error.fix)]
    except OSError as error:
        return [Check("FAIL", name, _line(str(error)), "see that the file system works and may be read")]


def _line(text: str) -> str:
    """``text`` on one line, without control characters, of bearable length."""
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in flat)[:400]


# The engine


def _engine_checks(config: Config, now: datetime) -> Iterator[Check]:
    from runner.setup import api
    from runner.setup.daemon import own_engine
    from runner.setup.engine import docker_host

    try:
        host = docker_host(config)
    except RunnerError as error:
        yield Check("FAIL", "container engine", _line(f"{error.what}. {error.why}"), error.fix)
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
    found = _guarded("container engine", lambda: _facts(config, host, whose, now))
    yield from found
    yield from _guarded("images", lambda: [image_check(config)])
    yield from _guarded("left-over containers", lambda: [leftover_check(host)])


def _facts(config: Config, host: str, whose: str, now: datetime) -> list[Check]:
    """The checks that need the engine's own account of itself."""
    from runner.setup import api
    from runner.setup.images import open_engine

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
                _line("not enforced: " + ", ".join(info.missing)),
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
    from runner.setup.images import states

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
    from runner.engines.owner import alive
    from runner.setup import api

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
    from runner.setup.base import LOCAL_IMAGE, REGISTRY_IMAGE, base_mode

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


# The machine


def disk_check(name: str, folder: Path, fix: str) -> Check:
    """The room left where ``folder`` lies (or will lie)."""
    try:
        free = shutil.disk_usage(next(p for p in (folder, *folder.parents) if p.exists())).free
    except OSError as error:
        return Check("FAIL", name, _line(str(error)), fix)
    status: Status = "FAIL" if free < ROOM_FAIL else "CAUTION" if free < ROOM_CAUTION else "PASS"
    return Check(status, name, f"{free / GIB:.1f} GiB free", "" if status == "PASS" else fix)


def database_check(config: Config) -> Check:
    """Whether the data directory's file system can hold the database: SQLite's WAL needs working locks."""
    import sqlite3

    name = "database"
    if os.environ.get("RUNNER_DATABASE"):
        return Check("PASS", name, "RUNNER_DATABASE names one")
    folder = next(p for p in (config.home, *config.home.parents) if p.exists())
    if not os.access(folder, os.W_OK):
        return Check(
            "FAIL",
            name,
            f"{folder} cannot be written",
            "make it writable, or set RUNNER_HOME to another folder",
        )
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as scratch:
            path = Path(scratch) / "check.sqlite"
            first, second = sqlite3.connect(path, timeout=2), sqlite3.connect(path, timeout=2)
            try:
                mode = first.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                first.execute("CREATE TABLE t (x)")
                first.execute("INSERT INTO t VALUES (1)")
                first.commit()
                rows = second.execute("SELECT count(*) FROM t").fetchone()[0]
            finally:
                first.close()
                second.close()
    except (OSError, sqlite3.Error) as error:
        return Check("FAIL", name, _line(str(error)), "set RUNNER_HOME to a folder on a local disk")
    if mode != "wal" or rows != 1:
        return Check(
            "FAIL",
            name,
            f"SQLite falls back to journal mode {mode}",
            "set RUNNER_HOME to a folder on a local disk, not a network share",
        )
    return Check("PASS", name, "SQLite with a write-ahead log works in the data directory")


def records_check(config: Config) -> Check:
    """Whether the chain of the event log is whole and the database, if there is one, can be used.

    Files of the archive are not read: that takes long, and ``runner store verify`` does it. Raises E306 or E307.
    """
    from runner.events import EventLog
    from runner.store.connect import open_store

    events = EventLog(config.events).end().seq
    if config.database.exists():
        with open_store(config):
            pass
    return Check("PASS", "records", f"{events} events, unbroken; runner store verify also reads the archive")


def clock_check(config: Config, now: datetime) -> Check:
    """Whether time has gone forward since the last recorded event: deadlines hang on it."""
    last = _last_event_time(config.events)
    if last is not None and now < last - DRIFT:
        return Check(
            "FAIL",
            "clock",
            f"it is {now:%Y-%m-%d %H:%M} UTC here, before the last event ({last:%Y-%m-%d %H:%M})",
            "set the clock (timedatectl set-ntp true)",
        )
    if now.year < 2025:
        return Check(
            "FAIL", "clock", f"it is {now:%Y-%m-%d} here", "set the clock (timedatectl set-ntp true)"
        )
    return Check("PASS", "clock", f"{now:%Y-%m-%d %H:%M} UTC" + (", after the last event" if last else ""))


def _last_event_time(path: Path) -> datetime | None:
    """The time in the last whole line of the event log, None when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 256 * 1024))
            lines = log.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            return datetime.fromisoformat(json.loads(line)["time"]).astimezone(UTC)
        except (ValueError, KeyError, TypeError):
            continue
    return None


# Tasks and truths


def _task_checks(config: Config) -> Iterator[Check]:
    from runner.tasks import load_tasks

    tasks, errors = load_tasks(config)
    for error in errors:
        yield Check("FAIL", "tasks", _line(f"{error.what}. {error.why}"), error.fix or "runner task check")
    if not errors:
        yield Check("PASS", "tasks", ", ".join(sorted(tasks)) or "none yet")
    yield from _guarded("gateways", lambda: gateway_checks(config, tasks.values()))
    yield sources_check(tasks.values())
    hidden = sorted(
        f"{task.id}/{dataset.id}"
        for task in tasks.values()
        for dataset in task.datasets.values()
        if dataset.visibility == "blinded" and not task.demo
    )
    yield truths_check(config, hidden)


def sources_check(tasks: Iterable[Task]) -> Check:
    """Whether the files that have to be fetched or brought (``sources`` in task.yaml) are all there."""
    from runner.tasks import missing_sources

    missing = {
        (task.id, dataset.id): missing_sources(dataset)
        for task in tasks
        for dataset in task.datasets.values()
        if missing_sources(dataset)
    }
    if not missing:
        return Check("PASS", "remote files", "nothing has to be fetched")
    words = [
        f"{'/'.join(at)} lacks {', '.join(source.name for source in sources)}"
        for at, sources in missing.items()
    ]
    fetch = list(dict.fromkeys(f"runner data pull {task}" for task, _ in missing))
    return Check("CAUTION", "remote files", _line("; ".join(words)), "; ".join(fetch))


def gateway_checks(config: Config, tasks: Iterable[Task]) -> list[Check]:
    """Whether the tasks that ask models can: the engine's network and the key. Nothing when no task has a gateway."""
    from runner.services import gateway_key
    from runner.setup import api
    from runner.setup.engine import docker_host

    gateways = {task.id: task.services["gateway"] for task in tasks if "gateway" in task.services}
    host = docker_host(config) if gateways else None
    if host is None or not api.answers(host):
        return []
    forwards = bool((api.get(host, "/info") or {}).get("IPv4Forwarding", True))
    networks = {str(one.get("Name")) for one in api.get_list(host, "/networks")}
    return [
        gateway_check(name, gateway.options, networks, forwards, key=gateway_key(gateway) is not None)
        for name, gateway in sorted(gateways.items())
    ]


def gateway_check(
    task: str, options: Mapping[str, Any], networks: Collection[str], forwards: bool, *, key: bool
) -> Check:
    """Whether the gateway of a task can reach its endpoint. ``forwards``: the engine lets containers leave the machine."""
    name, network, wanted = f"gateway of {task}", str(options.get("network", "bridge")), options.get("key")
    if network not in networks:
        return Check(
            "CAUTION",
            name,
            _line(f"the engine has no network {network}"),
            "name one that it has under services.gateway.network in task.yaml: "
            + _line(", ".join(sorted(set(networks) - {"none"}))),
        )
    if network != "host" and not forwards:
        return Check(
            "CAUTION",
            name,
            _line(f"the engine forwards nothing: its network {network} reaches this machine only"),
            "write network: host under services.gateway in task.yaml, unless the endpoint is on this machine",
        )
    if wanted and not key:
        return Check(
            "CAUTION",
            name,
            _line(f"{wanted} is not set: only known replies can be used"),
            _line(f"export {wanted}=…"),
        )
    return Check("PASS", name, _line(f"{options.get('base_url')} through the network {network}"))


def truths_check(config: Config, hidden: Sequence[str]) -> Check:
    """Where the truths of blinded datasets (``task/dataset``) lie, and who may read them."""
    name = "truths"
    if config.truths is None:
        if hidden:
            return Check(
                "CAUTION",
                name,
                f"RUNNER_TRUTHS is not set; needed to evaluate {', '.join(hidden)}",
                "export RUNNER_TRUTHS=/a/private/folder",
            )
        return Check("PASS", name, "no dataset needs a private folder")
    folder = config.truths
    if not folder.is_dir():
        return Check(
            "FAIL", name, "the folder that RUNNER_TRUTHS names is not there", f"mkdir -m 700 {folder}"
        )
    real, root = folder.resolve(), config.root.resolve()
    if real == root or root in real.parents or real in root.parents:
        return Check(
            "FAIL",
            name,
            "RUNNER_TRUTHS and the project's tree lie in one another",
            "move the truths outside the tree that participants get",
        )
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        return Check(
            "CAUTION",
            name,
            f"other users of this machine may enter the folder (mode {mode:04o})",
            f"chmod 700 {folder}",
        )
    missing = [pair for pair in hidden if not (folder / pair).is_dir()]
    if missing:
        return Check(
            "CAUTION", name, f"not there: {', '.join(missing)}", "put them at RUNNER_TRUTHS/<task>/<dataset>/"
        )
    return Check("PASS", name, "outside the tree, and private")
