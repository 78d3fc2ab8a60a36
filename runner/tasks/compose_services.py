"""A debate in the words of Compose: relay, argument index, simulated user, driver, the software, a transcript.

As in the graded run (:mod:`runner.execution.workflows.servers`): nobody has a network, and every hop is a Unix socket on a
volume that the software does not have. The software shares the relay's loopback. The volumes with the sockets are the
project's, in ``docker-compose.yml``; here is what depends on the task.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.model.limits import Limits
from runner.model.sidecars import SIDECARS, Interaction, Service, SidecarSpec, socket_path
from runner.model.task import Dataset, Task
from runner.tasks.services import driver_settings, service_env

NAMES = ("relay", "search", "user", "server", "driver", "transcript")
PROFILE = "debate"
UNUSED: dict[str, Any] = {"profiles": ["unused"], "network_mode": "none"}
# The software, and everything of ours, as in the graded run under different ids.
SERVER_USER, OUR_USER, READER = 20000, 20002, 20001
OUT = "/out"  # on the volume of the debates, for Compose as for the evaluator
HOME = "/tmp"  # noqa: S108
# docker-compose.yml puts SOFTWARE_HOME in the place of HOME, since Compose cannot read what an image sets.
USER_ENV = {"HOME": HOME, "USER": "sandbox", "LOGNAME": "sandbox"}
SETTINGS = f"{HOME}/driver.json"
EXTRA = {"search": ["--log", "/served/served.jsonl"]}

Sandbox = Callable[[Limits, int], dict[str, Any]]


def services(task: Task, dataset: Dataset, sandbox: Sandbox) -> dict[str, dict[str, Any]] | None:
    """The services of :data:`NAMES` for a task of debates; None for any other, and for runs that need more.

    More are an index in an image of the organiser's, a user that is a language model, which needs the gateway, and
    any sidecar that ``docker-compose.yml`` does not have. ``sandbox`` gives the keys that all containers share.
    """
    talk, search, user = task.interaction, task.services.get("search"), task.services.get("user")
    if talk is None or talk.mode != "debate" or search is None or user is None:
        return None
    if search.image is not None or search.data is None or user.data is None or "llm" in user.options:
        return None
    if not all(SIDECARS[name].compose or name == "gateway" for name in task.services):
        return None
    environment = {"HF_HUB_OFFLINE": "1", **service_env(talk, task.services), **USER_ENV}
    found = {
        **{name: _sidecar(task, talk, SIDECARS[name]) for name in ("relay", "search", "user")},
        "server": {"environment": environment},
        "driver": _driver(task, talk, user, _source(task, dataset.inputs)),
        "transcript": _transcript(task, talk, dataset, search.data),
    }
    for name in ("search", "user"):
        found[name]["volumes"] = [bind(_source(task, task.services[name].data), "/data")]
    limits = {
        **{name: (SIDECARS[name].limits, OUR_USER) for name in ("relay", "driver")},
        **{name: (task.services[name].limits, OUR_USER) for name in ("search", "user")},
        "server": (task.limits, SERVER_USER),
        "transcript": (task.evaluator_limits, READER),
    }
    made = {name: _shared(sandbox(*limits[name])) | found[name] for name in NAMES}
    for key in ("hostname", "extra_hosts"):
        del made["server"][key]  # they are the relay's
    return made


def _shared(service: dict[str, Any]) -> dict[str, Any]:
    """What a server needs: it ends at once when it is stopped, and others wait for its health."""
    for key in ("stop_signal", "network_mode", "healthcheck"):
        del service[key]
    return service | {"profiles": [PROFILE], "stop_grace_period": "3s"}


def _healthy(*test: str, seconds: float) -> dict[str, Any]:
    return {"test": ["CMD", "test", *test], "interval": "1s", "timeout": "5s", "retries": math.ceil(seconds)}


def _sidecar(task: Task, talk: Interaction, spec: SidecarSpec) -> dict[str, Any]:
    """A sidecar as its entry says, which is healthy as soon as its socket is there."""
    assert spec.socket is not None
    words = [*spec.arguments(talk, task.services), *EXTRA.get(spec.program, ())]
    return {
        "network_mode": "none",
        "command": ["python3", "-m", f"sidecars.{spec.program}", *words],
        "healthcheck": _healthy("-S", socket_path(spec.socket), seconds=spec.ready),
    }


def _driver(task: Task, talk: Interaction, user: Service, inputs: str) -> dict[str, Any]:
    settings = driver_settings(
        talk,
        user,
        seconds=task.limits.wall_clock,
        output_bytes=task.limits.output // 2,
        ended=f"{HOME}/software-ended",  # nobody writes it here: a server that ended refuses connections
        output=OUT,
    )
    # It stays when it is done: containers that end early would end the whole of "up --exit-code-from".
    script = f'printf %s "$DRIVER_JSON" > {SETTINGS} && python3 -m sidecars.driver --config {SETTINGS}'
    seconds = task.limits.wall_clock + talk.ready + 120
    return {
        "network_mode": "none",
        "command": ["sh", "-c", f"{script} && exec sleep infinity"],
        "environment": {"DRIVER_JSON": json.dumps(settings, sort_keys=True)},
        "volumes": [bind(inputs, "/inputs")],
        "healthcheck": _healthy("-f", f"{OUT}/driver.json", seconds=seconds),
    }


def _transcript(task: Task, talk: Interaction, dataset: Dataset, data: Path) -> dict[str, Any]:
    name = next(name for name in SIDECARS["search"].files if (data / name).is_file() or name.endswith(".gz"))
    options = f"--index /arguments/{name} --transcript --word-limit {talk.word_limit} --turns-per-debate {talk.turns}"
    return {
        "network_mode": "none",
        "environment": {"HOME": HOME, "RUN": task.output, "OPTIONS": options},
        "volumes": [bind(_source(task, dataset.inputs), "/inputs"), bind(_source(task, data), "/arguments")],
        "healthcheck": {"disable": True},
    }


def _source(task: Task, path: Path | None) -> str:
    assert path is not None
    return "./" + path.relative_to(task.folder).as_posix()


def bind(source: str, target: str) -> dict[str, Any]:
    """A folder of the task, read-only. A missing one is an error: Compose would create it, owned by root."""
    options = {"create_host_path": False}
    return {"type": "bind", "source": source, "target": target, "read_only": True, "bind": options}
