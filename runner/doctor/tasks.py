"""Checks of what the organiser brings: tasks, remote files, ways to models, and where hidden data lie."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runner.doctor.checks import Check, caution, failed, guarded, of_error, passed
from runner.doctor.engine import reached

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Task
    from runner.records.store.connect import Store


def task_checks(config: Config) -> Iterator[Check]:
    """Checks that every task loads, and that the gateways, data and images which tasks name are there."""
    from runner.tasks.load import load_tasks

    tasks, errors = load_tasks(config)
    for error in errors:
        yield of_error("tasks", error, "runner task check")
    if not errors:
        yield passed("tasks", ", ".join(sorted(tasks)) or "none yet")
    yield from guarded("gateways", lambda: gateway_checks(config, tasks.values()))
    yield from guarded("budgets", lambda: budget_checks(config, tasks.values()))
    yield sources_check(tasks.values())
    yield hidden_check(config, tasks.values())
    yield kernel_check(config, tasks.values())


def kernel_check(config: Config, tasks: Iterable[Task]) -> Check:
    """Check that public and blinded runs of the same task do not share a kernel, which carries some bits between them."""
    name = "shared kernel"
    if config.engine_for in ("public", "blinded"):
        return passed(name, f"this engine is for {config.engine_for} runs only (RUNNER_ENGINE_FOR)")
    mixed = sorted(task.id for task in tasks if not task.demo and _executes_both(task))
    if not mixed:
        return passed(name, "no task has both public and blinded runs here")
    return caution(
        name,
        f"public and blinded runs of {', '.join(mixed)} share this machine's kernel, which can pass some bits of hidden "
        "data to public runs",
        "use two machines or virtual machines: docs/how-to/two-engines.md",
    )


def _executes_both(task: Task) -> bool:
    kinds = {dataset.visibility for dataset in task.datasets.values()}
    return kinds == {"public", "blinded"} and bool({"batch", "interactive"} & set(task.workflows))


def sources_check(tasks: Iterable[Task]) -> Check:
    """Whether the files that have to be fetched or brought (``sources`` in task.yaml) are all there."""
    from runner.tasks.files import missing_sources

    missing = {
        (task.id, dataset.id): missing_sources(dataset)
        for task in tasks
        for dataset in task.datasets.values()
        if missing_sources(dataset)
    }
    if not missing:
        return passed("remote files", "nothing has to be fetched")
    words = [
        f"{'/'.join(at)} lacks {', '.join(source.name for source in sources)}"
        for at, sources in missing.items()
    ]
    fetch = list(dict.fromkeys(f"runner data pull {task}" for task, _ in missing))
    return caution("remote files", "; ".join(words), "; ".join(fetch))


def gateway_checks(config: Config, tasks: Iterable[Task]) -> list[Check]:
    """Whether the tasks that ask models can: the engine's network and the key. Nothing when no task has a gateway."""
    from runner.tasks.services import gateway_key

    gateways = {task.id: task.services["gateway"] for task in tasks if "gateway" in task.services}
    engine = reached(config) if gateways else None
    if engine is None:
        return []
    info = engine.info()
    return [
        gateway_check(
            name, gateway.options, info.networks, info.forwards, key=gateway_key(gateway) is not None
        )
        for name, gateway in sorted(gateways.items())
    ]


def gateway_check(
    task: str, options: Mapping[str, Any], networks: Collection[str], forwards: bool, *, key: bool
) -> Check:
    """Whether the gateway of a task can reach its endpoint. ``forwards``: the engine lets containers leave the machine."""
    name, network, wanted = f"gateway of {task}", str(options.get("network", "bridge")), options.get("key")
    if network not in networks:
        known = ", ".join(sorted(set(networks) - {"none"}))
        fix = f"name one that it has under services.gateway.network in task.yaml: {known}"
        return caution(name, f"the engine has no network {network}", fix)
    if network != "host" and not forwards:
        return caution(
            name,
            f"the engine forwards nothing: its network {network} reaches this machine only",
            "write network: host under services.gateway in task.yaml, unless the endpoint is on this machine",
        )
    if wanted and not key:
        return caution(name, f"{wanted} is not set: only known replies can be used", f"export {wanted}=…")
    return passed(name, f"{options.get('base_url')} through the network {network}")


def budget_check(task: Task, store: Store) -> Check:
    """How much of its budget the runs of a task have used; it warns from 70 % on, as everywhere."""
    from runner.records.store.charges import spent
    from runner.views.estimate import HOUR, budget_warning

    name, hours = "budget", spent(store, task.id) / HOUR
    if task.budget_hours is None:
        none = f"none is set; {hours:,.1f} hours of processor time are used"
        return caution(
            name, none, f"runner task estimate {task.id}; write budget: {{hours: …}} into task.yaml"
        )
    used = f"{hours:,.1f} of {task.budget_hours:,g} hours of processor time are used ({hours / task.budget_hours:.0%})"
    if budget_warning(task, hours):
        return caution(name, f"{used}; nothing is closed because of it", f"runner task estimate {task.id}")
    return passed(name, used)


def budget_checks(config: Config, tasks: Iterable[Task]) -> list[Check]:
    """The same for every task that has a budget. Raises E306 or E307."""
    from runner.records.store.connect import open_store
    from runner.records.store.database import is_there

    some = [task for task in tasks if task.budget_hours is not None]
    if not some or not is_there(config):
        return []
    with open_store(config) as store:
        return [replace(budget_check(task, store), name=f"budget of {task.id}") for task in some]


def hidden_check(config: Config, tasks: Iterable[Task]) -> Check:
    """Where inputs and truths of the blinded datasets of ``tasks`` lie, and who may read them; demos hide nothing."""
    from runner.tasks.folders import exposed, holds_files, private_root, tree

    name, tasks = "hidden data", [task for task in tasks if not task.demo]
    hidden = [(t, d) for t in tasks for d in t.datasets.values() if d.visibility == "blinded"]
    roots = [("RUNNER_PRIVATE", config.private), ("RUNNER_TRUTHS", config.truths)]
    given = [(variable, folder) for variable, folder in roots if folder is not None]
    if hidden and not given:
        names = ", ".join(sorted(f"{task.id}/{dataset.id}" for task, dataset in hidden))
        unset = f"RUNNER_PRIVATE is not set; needed to evaluate {names}"
        return caution(name, unset, "export RUNNER_PRIVATE=/a/private/folder")
    base = tree(config).resolve()
    for variable, folder in given:
        if not folder.is_dir():
            return failed(name, f"the folder that {variable} names is not there", f"mkdir -m 700 {folder}")
        real = folder.resolve()
        if real == base or base in real.parents or real in base.parents:
            inside = f"{variable} and the project's tree lie in one another"
            return failed(name, inside, "move it outside the tree that participants clone")
    for task in tasks:
        if found := [f"{one.side} of {one.dataset}" for one in exposed(config, task.folder, task.definition)]:
            what = f"{', '.join(found)} ({task.id}) lie in the tree that participants clone"
            return failed(name, what, f"runner task hide {task.id}")
    for _, folder in given:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & 0o077:
            seen = f"other users of this machine may enter the folder (mode {mode:04o})"
            return caution(name, seen, f"chmod 700 {folder}")
    missing = ", ".join(f"{task.id}/{d.id}" for task, d in hidden if not holds_files(d.truths))
    if missing:
        fix = f"put them at {private_root(config)}/TASK/DATASET/inputs and truths"
        return caution(name, f"no truths for {missing}", fix)
    return passed(name, "outside the tree, and private" if given else "no dataset needs a private folder")
