"""The room of a debate in the words of Compose: relay, argument index, simulated user, driver, the software, a transcript.

As in the graded room (:mod:`runner.execution.workflows.servers`): nobody has a network, and every hop is a Unix socket on a
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
from runner.model.service import Interaction, Service
from runner.model.task import Dataset, Task
from runner.tasks.services import DRIVER_LIMITS, RELAY_LIMITS, driver_settings, search_port, service_env

NAMES = ("relay", "search", "user", "server", "driver", "transcript")
PROFILE = "debate"
UNUSED: dict[str, Any] = {"profiles": ["unused"], "network_mode": "none"}
# The software, and everything of ours, as in the graded room under different ids.
SERVER_USER, OUR_USER, READER = 20000, 20002, 20001
# On the volume "room", for Compose as for the evaluator.
OUT = "/out"
HOME = "/tmp"  # noqa: S108
SETTINGS = f"{HOME}/driver.json"

Sandbox = Callable[[Limits, int], dict[str, Any]]


def services(task: Task, dataset: Dataset, sandbox: Sandbox) -> dict[str, dict[str, Any]] | None:
    """The services of :data:`NAMES` for a task of debates; None for any other, and for rooms that need more.

    More are an index in an image of the organiser's, and a user that is a language model, which needs the gateway.
    ``sandbox`` gives the keys that all containers share.
    """
    talk, search, user = task.interaction, task.services.get("search"), task.services.get("user")
    if talk is None or talk.mode != "debate" or search is None or user is None:
        return None
    if search.image is not None or search.data is None or user.data is None or "llm" in user.options:
        return None
    found = {
        "relay": _relay(talk, search),
        "search": _search(search, _source(task, search.data)),
        "user": _user(talk, user, _source(task, user.data)),
        "server": {"environment": {"HF_HUB_OFFLINE": "1", **service_env(talk, task.services), "HOME": HOME}},
        "driver": _driver(task, talk, user, _source(task, dataset.inputs)),
        "transcript": _transcript(task, talk, dataset, search.data),
    }
    limits = {
        "relay": (RELAY_LIMITS, OUR_USER),
        "search": (search.limits, OUR_USER),
        "user": (user.limits, OUR_USER),
        "server": (task.limits, SERVER_USER),
        "driver": (DRIVER_LIMITS, OUR_USER),
        "transcript": (task.evaluator_limits, READER),
    }
    rooms = {name: _shared(sandbox(*limits[name])) | found[name] for name in NAMES}
    del rooms["server"]["hostname"]  # it is the relay's
    return rooms


def _shared(service: dict[str, Any]) -> dict[str, Any]:
    """What a server needs: it ends when it is told to, and others wait for its health."""
    for key in ("stop_signal", "network_mode", "healthcheck"):
        del service[key]
    return service | {"profiles": [PROFILE], "stop_grace_period": "3s"}


def _healthy(*test: str, seconds: float) -> dict[str, Any]:
    return {"test": ["CMD", "test", *test], "interval": "1s", "timeout": "5s", "retries": math.ceil(seconds)}


def _relay(talk: Interaction, search: Service) -> dict[str, Any]:
    command = ["python3", "-m", "sidecars.relay"]
    command += ["--listen-socket", "/software/software.sock", "--to-port", str(talk.port)]
    command += ["--listen-port", str(search_port(search)), "--to-socket", "/search/search.sock"]
    command += ["--max-children", str(max(32, 2 * talk.concurrency))]
    return {
        "network_mode": "none",
        "command": command,
        "healthcheck": _healthy("-S", "/software/software.sock", seconds=30),
    }


def _search(search: Service, data: str) -> dict[str, Any]:
    command = [
        "python3",
        "-m",
        "sidecars.search",
        "serve",
        "--data",
        "/data",
        "--socket",
        "/search/search.sock",
    ]
    command += ["--index", str(search.options.get("index", "claimrev"))]
    command += ["--prefix", str(search.options.get("prefix", "/arguments"))]
    command += ["--log", "/served/served.jsonl"]
    return {
        "network_mode": "none",
        "command": command,
        "volumes": [bind(data, "/data")],
        "healthcheck": _healthy("-S", "/search/search.sock", seconds=120),
    }


def _user(talk: Interaction, user: Service, data: str) -> dict[str, Any]:
    command = ["python3", "-m", "sidecars.user", "serve", "--data", "/data", "--socket", "/user/user.sock"]
    command += ["--seed", str(talk.seed), "--model", str(user.options.get("model", "base-user"))]
    return {
        "network_mode": "none",
        "command": command,
        "volumes": [bind(data, "/data")],
        "healthcheck": _healthy("-S", "/user/user.sock", seconds=60),
    }


def _driver(task: Task, talk: Interaction, user: Service, inputs: str) -> dict[str, Any]:
    settings = driver_settings(
        talk,
        user,
        seconds=task.limits.wall_clock,
        output_bytes=task.limits.output // 2,
        ended=f"{HOME}/software-ended",  # nobody tells it here: a server that ended refuses connections
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
    name = "arguments.jsonl" if (data / "arguments.jsonl").is_file() else "arguments.jsonl.gz"
    options = [
        "--index",
        f"/arguments/{name}",
        "--transcript",
        "--word-limit",
        str(talk.word_limit),
        "--turns-per-debate",
        str(talk.turns),
    ]
    return {
        "network_mode": "none",
        "environment": {"HOME": HOME, "RUN": task.output, "OPTIONS": " ".join(options)},
        "volumes": [
            bind(_source(task, dataset.inputs), "/inputs"),
            bind(_source(task, data), "/arguments"),
        ],
        "healthcheck": {"disable": True},
    }


def _source(task: Task, path: Path) -> str:
    return "./" + path.relative_to(task.folder).as_posix()


def bind(source: str, target: str) -> dict[str, Any]:
    """A folder of the task, read-only. A missing one is an error: Compose would create it, owned by root."""
    return {
        "type": "bind",
        "source": source,
        "target": target,
        "read_only": True,
        "bind": {"create_host_path": False},
    }
