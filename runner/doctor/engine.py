"""Checks of the container engine: whether it enforces the sandbox, its clock, our images, leftovers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from runner.doctor.checks import DRIFT, GIB, Check, caution, failed, guarded, of_error, passed
from runner.doctor.home import disk_check
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.engines.base import Engine, EngineInfo
    from runner.model.config import Config


def reached(config: Config) -> Engine | None:
    """The engine of this invocation, None when none is chosen or it does not answer. Raises E301."""
    from runner.engines.registry import answers
    from runner.provision.engine import docker_host, open_engine

    host = docker_host(config)
    return open_engine(config) if host is not None and answers(host) else None


def engine_checks(config: Config, now: datetime) -> Iterator[Check]:
    """Every check that needs an engine; ``now`` is our time."""
    from runner.provision.daemon import OwnEngine
    from runner.provision.engine import docker_host

    try:
        host, engine = docker_host(config), reached(config)
    except RunnerError as error:
        yield of_error("container engine", error)
        return
    if host is None:
        nowhere = "There is none: no DOCKER_HOST, no default socket, none of our own."
        yield failed("container engine", nowhere, "make setup")
    elif engine is None:
        yield failed("container engine", f"{host} does not answer.", "make setup")
    else:
        where = f"{host} (our own)" if host == OwnEngine(config.home).host else host
        yield from guarded("container engine", lambda: _facts(config, engine, where, now))
        yield from guarded("images", lambda: [image_check(engine)])
        yield from guarded("left-over containers", lambda: [leftover_check(engine)])


def _facts(config: Config, engine: Engine, where: str, now: datetime) -> list[Check]:
    """The checks that need the engine's own account of itself."""
    info = engine.info()
    machine = f"{info.cpus} processors, {info.memory / GIB:.1f} GiB"
    checks = [passed("container engine", f"{info.name} {info.version} at {where}, {machine}")]
    checks += limit_checks(info)
    checks += guarded("blinded and public runs", lambda: [turns_check(config, engine)])
    checks.append(engine_clock_check(info.clock, now))
    if info.data_root is not None:
        fix = "docker image prune, or move the engine's data-root"
        checks.append(disk_check("disk of the engine", info.data_root, fix))
    return checks


def limit_checks(info: EngineInfo) -> list[Check]:
    """What the engine can enforce and measure, from its facts."""
    groups = f"version {info.cgroup_version}, driver {info.cgroup_driver}"
    missing = ", ".join(info.missing)
    table: tuple[tuple[bool, str, str, Callable[[str, str, str], Check], str, str], ...] = (
        (not missing, "limits", "memory, processors and processes are enforced",
         failed, f"not enforced: {missing}", "use Docker Engine as root on cgroup v2, or rootful on v1"),
        (info.swap, "swap accounting", "swap is part of the memory limit",
         failed, "the engine cannot limit swap", "boot with swapaccount=1 on cgroup v1, or use cgroup v2"),
        (info.exact_memory, "control groups", f"{groups}; peak memory is read exactly",
         caution, f"{groups}; peak memory is sampled", "run on the engine's own machine to read it exactly"),
        (info.counts_sockets, "memory of sockets", "what a software's sockets hold is bounded",
         caution, "this engine cannot count it: a software can hold gigabytes in the buffers of its loopback",
         "use cgroup v2, or run as root on the engine's own machine; or write limits: {loopback: false}"),
        (info.user_namespaces or info.rootless, "user namespaces", "root inside a container is nobody outside",
         caution, "off: softwares that insist on root are refused",
         "start dockerd with --userns-remap=default to allow them"),
    )  # fmt: skip
    checks = [
        passed(name, good) if fine else bad(name, wrong, fix) for fine, name, good, bad, wrong, fix in table
    ]
    checks.append(_seccomp_check(info))
    if info.storage_driver == "vfs":
        slow = "vfs copies whole images for every container"
        checks.append(caution("storage driver", slow, "put the engine's data-root on ext4 or xfs"))
    return checks


def _seccomp_check(info: EngineInfo) -> Check:
    if not info.filters_calls:
        wrong = "the engine cannot filter system calls"
        return failed("seccomp", wrong, "use a kernel and an engine with seccomp")
    if info.seccomp:
        return passed("seccomp", "our own profile is used")
    return caution("seccomp", f"the engine's default profile is used on {info.platform}: ours is for x86-64")


def turns_check(config: Config, engine: Engine) -> Check:
    """Whether what a blinded run read is kept from later public ones: by the setting, or seen to work.

    Caches are emptied for that, when nothing else is known. Raises E311 when it does not work.
    """
    name = "blinded and public runs"
    if config.engine_for == "both-without-eviction":
        return caution(
            name,
            "NOT kept apart (RUNNER_ENGINE_FOR): a public run can find out what a blinded one read",
            "use two engines, or RUNNER_ENGINE_FOR=both: docs/how-to/two-engines.md",
        )
    if config.engine_for != "both":
        return passed(name, f"the engine is for {config.engine_for} runs only (RUNNER_ENGINE_FOR)")
    seconds = engine.try_eviction()
    return passed(name, f"never at once, and caches are emptied in between ({seconds:.1f} s)")


def engine_clock_check(said: str, now: datetime) -> Check:
    """Whether the engine's clock agrees with ours; ``said`` is its time in ISO 8601."""
    try:
        theirs = datetime.fromisoformat(said)  # nanoseconds are cut to microseconds
        apart = abs(theirs.astimezone(UTC) - now) if theirs.tzinfo else timedelta.max
    except ValueError:
        return caution("engine's clock", "the engine does not say what time it is")
    if apart > DRIFT:
        return caution(
            "engine's clock",
            f"{apart.total_seconds():.0f} seconds away from ours",
            "let both machines keep time (timedatectl set-ntp true)",
        )
    return passed("engine's clock", "agrees with ours")


def image_check(engine: Engine) -> Check:
    """Whether our images are there and hold today's sources. Raises RunnerError without an engine."""
    from runner.provision.images import states

    known = states(engine)
    first, *later = known
    if problems := [state.problem for state in known if state.problem and (state is first or state.id)]:
        return failed("images", "; ".join(problems), "make setup")
    absent = [f"{state.tag} is made when it is first needed" for state in later if state.id is None]
    return passed("images", ", ".join([*(state.tag for state in known if state.id), *absent]))


def leftover_check(engine: Engine) -> Check:
    """Whether something of processes that have died is still there. Raises RunnerError without an engine."""
    name, left = "left-over containers", engine.reap(dry_run=True)
    if left:
        return caution(name, f"{len(left)} of processes that have died", "runner gc")
    return passed(name, "none")


def base_check(config: Config) -> Check:
    """What builds start from on this machine."""
    from runner.provision.base import LOCAL_IMAGE, REGISTRY_IMAGE, base_mode

    how = {
        "local": f"{LOCAL_IMAGE}, made on this machine",
        "registry": f"{REGISTRY_IMAGE}, from a registry",
    }.get(base_mode(config))
    if how is None:
        return caution("base image", "not chosen yet", "make setup")
    return passed("base image", f"{how} (RUNNER_BASE={config.base_image})")
