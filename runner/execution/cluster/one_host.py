"""One host of a cluster that somebody names: whether it can be given work, and one run executed there."""

from __future__ import annotations

from dataclasses import replace

import schemas
from runner.engines.sandbox import sandbox_digest
from runner.execution.cluster.joining import Wanted, named, unfit
from runner.execution.cluster.line import hosts_now
from runner.execution.cluster.places import over_hosts, places
from runner.execution.cluster.roles import check_travels
from runner.execution.executors.local import LocalExecutor
from runner.execution.job import Job
from runner.execution.machine import Machine
from runner.execution.plan import Plan, Planned
from runner.execution.pool import Control, Pool
from runner.execution.workspace import Workspace
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError, no_such
from runner.model.run import Run


def check_host(machine: Machine, name: str, job: Job) -> str:
    """The address of the host that is called ``name`` (or has that address), which can be given this job now.

    Raises E101 where no cluster is set, the job stays on this machine or several hosts have that name, E102 where none has it,
    E305 where it is given no work, and E301 where the scheduler does not answer.
    """
    config = machine.config
    place = next((one for one in places(config) if one.role == "software"), None)
    if place is None:
        why = "Hosts are those of a cluster."
        fix = "RUNNER_CLUSTER=tls://HOST:8786 and what else docs/how-to/cluster.md names, or leave --on out"
        raise RunnerError("E101", "RUNNER_CLUSTER is not set", why=why, fix=fix)
    check_travels(job, fix="leave --on out")
    found, problems = hosts_now(place.address, place.certificates)
    if not found and problems:
        fix = "see that the scheduler runs: runner cluster show"
        raise PlatformError(problems[0], fix=fix, code="E301")
    wanted = named(found, name)
    if not wanted:
        there = [str(said.get("name")) for said in found.values() if isinstance(said, dict)]
        fix = "runner cluster show" if there else "runner worker on each machine"
        why = "" if there else "No host is there."
        raise no_such("host", name, sorted(there), of="the cluster", why=why, fix=fix)
    if len(wanted) > 1:
        fix = f"name its address: --on {min(wanted)}"
        raise RunnerError("E101", f"{len(wanted)} hosts are called {schemas.show(name, 100)}", fix=fix)
    ((address, said),) = wanted.items()
    stores = place.stores(config.store_credentials)
    if why := unfit(said, Wanted("software", sandbox_digest(machine.own_profile()), stores)):
        what = f"the host {schemas.show(name, 100)} is given no work"
        raise PlatformError(what, why=f"{why[:1].upper()}{why[1:]}.", fix="runner cluster show", code="E305")
    return address


def work_at(address: str, config: Config, machine: Machine, desk: Workspace, run: Run, job: Job) -> None:
    """Execute ``job`` of ``run`` at the host with that address and evaluate what it left here, committing both.

    ``desk`` has its bundle and its evaluator. Raises E308 when nothing came of it.
    """
    task = replace(job.task, datasets={**job.task.datasets, job.dataset.id: job.dataset})
    desk = replace(desk, tasks={task.id: task})
    control, problems = Control.of(config), list[str]()
    local = LocalExecutor(machine.engine(), desk, control, jobs=1)
    executor = over_hosts(replace(config, evaluation_cluster=None), local, problems.append, only=address)
    pool = Pool(executor, desk, control)
    with control.interruptible():
        pool.run(Plan((Planned(run, "execute", "", job=job, pausable=False),), ()))
    if undone := pool.failed.get(run.id):
        what = f"{run.id} could not be executed at {schemas.show(address, 100)}"
        why = " ".join(f"{one[:1].upper()}{one[1:]}." for one in (undone.why, *problems))
        raise PlatformError(what, why=why, fix="look at that host: runner cluster show")
