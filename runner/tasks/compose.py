"""``tasks/<task>/compose.yaml``: the task's limits in the words of Compose, for a participant's local test.

The file is generated from task.yaml and committed; the top-level ``docker-compose.yml`` takes its services by
``extends``, and their profiles: a task of batch runs has the two that always start, a task of debates the services of
:mod:`runner.tasks.compose_services` in the profile ``debate``. Compose cannot enforce the wall clock, the size of the output
directory, or our system call filter: ``runner try`` does. ``python -m runner.tasks.compose`` writes the files, ``--check``
only compares.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from runner.model import config as configuration
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import Limits
from runner.model.task import Dataset, Scenario, Task
from runner.tasks import compose_services, tira
from runner.tasks.compose_services import USER_ENV, bind
from runner.tasks.files import missing_sources, view_files
from runner.tasks.load import load_tasks
from runner.tasks.request import request
from schemas.files import atomic_file

# The users of the two containers. The software's folder for output belongs to the first.
SOFTWARE_USER = 20000
EVALUATOR_USER = 20001

_HEAD = """\
# Generated from task.yaml by "python -m runner.tasks.compose"; do not edit.
# The limits of this task in the words of Compose, used by ../../docker-compose.yml.
# Compose does not enforce the wall clock ({wall:g} s){processor} or the size of the output ({output} bytes): "runner try" does.
"""


_HIDING = """\
# Every scenario of this task hides fields of the files, which a mount cannot: there is no input here. Use "runner try".
"""
_SCENARIO = """\
# The input is that of the scenario "{scenario}"; for the others use "runner try".
"""
_ROOM = """\
# The software is a server: "docker compose --profile debate up" holds debates with it.
"""
_NO_ROOM = """\
# A software that is a server needs containers that Compose is not given here: use "runner try".
"""


def shown_scenario(task: Task) -> Scenario | None:
    """The scenario whose input Compose mounts: the first that takes no field out of a file; None when all do.

    Files whose fields are taken out exist in the data directory only, and this file has to work in a fresh clone.
    """
    dataset = task.public_dataset()
    usual = task.default_scenario()
    order = [usual, *(s for s in task.scenarios.values() if s.id != usual.id)]
    return next((s for s in order if dataset is None or s.whole_files(dataset.id)), None)


def render(task: Task) -> str:
    """The text of ``compose.yaml`` for a task: services ``software`` and ``evaluator``, or a debate's, with limits and data.

    Every file has all of them, because ``docker-compose.yml`` names them all; those that the task has no use for are in
    a profile that nobody asks for.
    Data are those of the first public dataset, by paths relative to the task's folder; a task without one gets
    the limits only. The text depends on task.yaml alone, except for scenarios that see a part of the inputs.
    A scenario that hides fields cannot be mounted: then the first one that does not is shown, and the head says so.
    """
    dataset = task.public_dataset()
    if dataset is not None and missing_sources(dataset):
        dataset = None
    batch = {"software": _software(task, dataset), "evaluator": _evaluator(task, dataset)}
    room = compose_services.services(task, dataset, _sandbox) if dataset is not None else None
    batch = {"prepare": {"network_mode": "none"}, **batch}
    if "interactive" in task.workflows and "batch" not in task.workflows:
        batch = dict.fromkeys(batch, compose_services.UNUSED)
    services = batch | (room or dict.fromkeys(compose_services.NAMES, compose_services.UNUSED))
    limits = task.limits
    processor = f", the processor time ({limits.cpu_time:g} s)" if limits.cpu_time else ""
    head = _HEAD.format(wall=limits.wall_clock, processor=processor, output=limits.output)
    scenario = shown_scenario(task)
    if "interactive" in task.workflows:
        head += _NO_ROOM if room is None else _ROOM
    if dataset is not None and scenario is None:
        head += _HIDING
    elif dataset is not None and scenario is not None and len(task.scenarios) > 1:
        head += _SCENARIO.format(scenario=scenario.id)
    return head + to_yaml({"services": services})


def _software(task: Task, dataset: Dataset | None) -> dict[str, Any]:
    service = _sandbox(task.limits, SOFTWARE_USER)
    service["environment"] = tira.container_env(dataset.id if dataset else "none") | USER_ENV
    scenario = shown_scenario(task)
    if dataset is not None and scenario is not None:
        service["volumes"] = _view(task, dataset, scenario)
    return service


def _evaluator(task: Task, dataset: Dataset | None) -> dict[str, Any]:
    service = _sandbox(task.evaluator_limits, EVALUATOR_USER)
    service["environment"] = {"HOME": "/tmp"}  # noqa: S108
    if dataset is not None:
        scenario = shown_scenario(task) or task.default_scenario()
        wanted = request(task, dataset, scenario.id, task.output)
        for key in ("services", "gateway"):
            del wanted["paths"][key]  # neither is there in Compose
        service["environment"]["EVALUATOR_REQUEST_JSON"] = json.dumps(wanted, sort_keys=True)
        service["volumes"] = [
            bind(_relative(task, dataset.inputs), "/inputs"),
            bind(_relative(task, dataset.truths), "/truths"),
        ]
    return service


def _sandbox(limits: Limits, user: int) -> dict[str, Any]:
    """What both containers share; as much of the graded sandbox as Compose can say."""
    flags = "rw,nosuid,nodev" + ("" if limits.tmp_exec else ",noexec")
    kept = {"max-size": str(limits.log), "max-file": "1", "compress": "false"}
    service: dict[str, Any] = {
        "network_mode": "none",
        "ipc": "none",
        "read_only": True,
        "user": f"{user}:{user}",
        "init": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "mem_limit": limits.memory,
        "memswap_limit": limits.memory,
        "cpus": limits.cpus,
        "pids_limit": limits.pids,
        "oom_score_adj": 500,
        "ulimits": {"nofile": limits.open_files, "core": 0, "fsize": limits.output},
        "tmpfs": [
            f"/tmp:{flags},size={limits.tmp},mode=1777",  # noqa: S108
            f"/dev/shm:rw,nosuid,nodev,noexec,size={limits.shm},mode=1777",  # noqa: S108
        ],
        "healthcheck": {"disable": True},
        "hostname": "sandbox",
        "extra_hosts": ["sandbox:127.0.0.1"],
        # With --exit-code-from, Compose stops every container as soon as the first one has ended, also those that
        # it starts after that. So a stop is a signal that does nothing, and then a wait as long as the time limit.
        "stop_signal": "SIGCONT",
        "stop_grace_period": f"{math.ceil(limits.wall_clock)}s",
        "restart": "no",
        "logging": {"driver": "local", "options": kept},
    }
    if limits.gpus:
        devices = [{"driver": "nvidia", "count": limits.gpus, "capabilities": ["gpu"]}]
        service["deploy"] = {"resources": {"reservations": {"devices": devices}}}
    return service


def _view(task: Task, dataset: Dataset, scenario: Scenario) -> list[dict[str, Any]]:
    if scenario.rules is None:
        return [bind(_relative(task, dataset.inputs), tira.INPUT)]
    return [
        bind(_relative(task, path), f"{tira.INPUT}/{name}") for name, path in view_files(dataset, scenario)
    ]


def _relative(task: Task, path: Path) -> str:
    return "./" + path.relative_to(task.folder).as_posix()


def to_yaml(data: Any) -> str:
    """``data`` as YAML in the order of its keys; ``$`` is doubled, because Compose fills in variables."""
    import yaml

    plain = json.loads(json.dumps(data))  # what occurs twice is written twice, not as an alias
    return str(yaml.safe_dump(plain, sort_keys=False, width=math.inf)).replace("$", "$$")


def path(task: Task) -> Path:
    """Where a task's file lies."""
    return task.folder / "compose.yaml"


def write(task: Task) -> bool:
    """Write a task's file if it is missing or out of date; True when something changed."""
    text = render(task)
    target = path(task)
    if target.is_file() and target.read_text("utf-8") == text:
        return False
    with atomic_file(target) as file:
        file.write(text.encode())
    return True


def outdated(tasks: dict[str, Task]) -> list[str]:
    """The tasks whose committed file is not what would be generated."""
    return [t.id for t in tasks.values() if not path(t).is_file() or path(t).read_text("utf-8") != render(t)]


def main(arguments: list[str]) -> int:
    """Write the files of all tasks (of those named), or with ``--check`` say which are out of date (exit 1)."""
    names = [a for a in arguments if not a.startswith("-")]
    if set(arguments) - set(names) - {"--check"}:
        print("usage: python -m runner.tasks.compose [--check] [TASK...]", file=sys.stderr)
        return 2
    try:
        tasks, errors = load_tasks(configuration.load())
        chosen = {k: t for k, t in tasks.items() if not names or k in names}
        for error in errors:
            print(f"{error.code}: {error.what}", *error.problems, sep="\n  ", file=sys.stderr)
        if "--check" in arguments:
            old, fix = outdated(chosen), "is out of date; write it with: python -m runner.tasks.compose"
            for name in old:
                print(f"tasks/{name}/compose.yaml {fix}", file=sys.stderr)
            return 1 if old or errors else 0
        for task in filter(write, chosen.values()):
            print(f"tasks/{task.id}/compose.yaml")
        return 4 if errors else 0
    except (RunnerError, OSError) as error:
        shown = error if isinstance(error, RunnerError) else PlatformError(str(error))
        print(f"{shown.code}: {shown.what}", file=sys.stderr)
        return shown.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
