"""The containers of ours beside a software or an evaluator: what a task asks of them, and one entry for each, which everything reads.

What task.yaml may say about a service is in ``schemas/services/<name>.schema.json``; what is started, joined, limited, blamed
and documented is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runner.model.limits import GIB, MIB, Limits

Mode = Literal["debate", "judge"]


# The file of the inputs that the driver reads, by mode.
INPUT_OF: Mapping[str, str] = {"debate": "claims.jsonl", "judge": "debates.jsonl"}


# What the driver leaves, by mode; the task's ``output`` names it.
OUTPUT_OF: Mapping[str, str] = {"debate": "simulations.jsonl", "judge": "evaluations.jsonl"}


@dataclass(frozen=True)
class Interaction:
    """How the driver talks to a software that is a server.

    ``mode``: ``debate`` or ``judge``. Times in seconds, ``answer_bytes`` in bytes. ``concurrency`` is how many
    debates run at the same time.
    """

    mode: Mode
    port: int = 8080
    ready: float = 60.0
    answer_time: float = 60.0
    answer_bytes: int = 262144
    concurrency: int = 4
    turns: int = 5
    word_limit: int = 60
    seed: int = 0

    @property
    def input(self) -> str:
        """The file of the inputs that the driver reads."""
        return INPUT_OF[self.mode]


@dataclass(frozen=True)
class Service:
    """A sidecar that a task asks for. ``data`` is a folder of the task; ``image`` a foreign server's, by digest.

    ``options`` are the other keys of its block in task.yaml, durations and sizes as they were written.
    ``prompts`` is the folder with the prompts of a user that is a language model.
    """

    name: str
    data: Path | None = None
    image: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prompts: Path | None = None


Services = Mapping[str, Service]
RELAY_CHILDREN = 32


def _no_words(talk: Interaction, services: Services) -> list[str]:
    return []


def _no_env(service: Service) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class SidecarSpec:
    """One sidecar.

    Attributes:
        title: What people read in messages: "the <title> did not start".
        about: One line for the reference pages.
        program: Its module is ``sidecars.<program>``.
        limits: What its container may use unless task.yaml says otherwise. Processors are no reservation: it mostly waits.
        arguments: The words after the module, for an interaction and the services of its run.
        service: Whether task.yaml asks for it, as ``services.<name>``.
        files: A service's data folder holds at least one of these; empty for one without data.
        socket: The name of the socket that it listens on: ``/<socket>/<socket>.sock``, alone on a volume.
        asks: The sockets that it connects to. (The relay: those of all services with a port.)
        port: Where the software finds it on its loopback unless task.yaml says otherwise; None: it cannot reach it.
        env: What the software's environment says about it.
        watch: The name of the container that watches its health during a run, if any.
        ready: Seconds that it may take to start.
        refuses: The exit code by which it says that the task's own files or options are no use to it.
        disputed: Whether the software can reach it, so that either side may have broken it when it fails; the
            platform is to blame otherwise.
        network: Whether its container may have a network.
        compose: Whether the room that Compose is given has it.
    """

    title: str
    about: str
    program: str
    limits: Limits
    arguments: Callable[[Interaction, Services], list[str]] = _no_words
    service: bool = False
    files: tuple[str, ...] = ()
    socket: str | None = None
    asks: tuple[str, ...] = ()
    port: int | None = None
    env: Callable[[Service], dict[str, str]] = field(default=_no_env)
    watch: str | None = None
    ready: float = 30.0
    refuses: int | None = None
    disputed: bool = False
    network: bool = False
    compose: bool = False


def socket_path(name: str) -> str:
    """Where the socket of that name is, in each container that has it."""
    return f"/{name}/{name}.sock"


def port_of(service: Service) -> int:
    """The port of the loopback address at which the software finds a service."""
    return int(service.options.get("port", SIDECARS[service.name].port))


def services_with_port(services: Services) -> Iterator[Service]:
    """Those that the software can reach."""
    return (service for name, service in services.items() if SIDECARS[name].port is not None)


def _search(talk: Interaction, services: Services) -> list[str]:
    options = services["search"].options
    names = [
        "--index",
        str(options.get("index", "claimrev")),
        "--prefix",
        str(options.get("prefix", "/arguments")),
    ]
    return ["serve", "--data", "/data", "--socket", socket_path("search"), *names]


def _search_env(service: Service) -> dict[str, str]:
    """The names that clients of Elasticsearch and of the shared task look for."""
    address = f"http://127.0.0.1:{port_of(service)}{service.options.get('prefix', '/arguments')}"
    index = str(service.options.get("index", "claimrev"))
    return {"ARGUMENTS_URL": address, "ELASTICSEARCH_URL": address, "ARGUMENTS_INDEX": index}


def _user(talk: Interaction, services: Services) -> list[str]:
    user = services["user"]
    words = ["serve", "--socket", socket_path("user"), "--seed", str(talk.seed)]
    words += ["--model", str(user.options.get("model", "base-user"))]
    words += ["--data", "/data"] if user.data is not None else []
    if "llm" in user.options:
        words += ["--llm-socket", socket_path("gateway"), "--llm-model", str(user.options["llm"]["model"])]
    return words + (["--prompts", "/prompts"] if user.prompts is not None else [])


def _relay(talk: Interaction, services: Services) -> list[str]:
    words = ["--listen-socket", socket_path("software"), "--to-port", str(talk.port)]
    words += ["--max-children", str(max(RELAY_CHILDREN, 2 * talk.concurrency))]
    for service in services_with_port(services):
        words += ["--listen-port", str(port_of(service)), "--to-socket", socket_path(service.name)]
    return words


def _driver(talk: Interaction, services: Services) -> list[str]:
    return ["--config", "/in/driver.json"]


_RELAY_LIMITS = Limits(memory=128 * MIB, pids=256, open_files=4096, loopback=True)

SIDECARS: dict[str, SidecarSpec] = {
    "search": SidecarSpec(
        "argument index",
        "answers searches over the arguments of a task, in a part of Elasticsearch's interface",
        program="search",
        limits=Limits(memory=GIB, tmp=512 * MIB, open_files=4096, loopback=True),
        arguments=_search,
        service=True,
        files=("arguments.jsonl", "arguments.jsonl.gz"),
        socket="search",
        port=9200,
        env=_search_env,
        watch="watch",
        ready=120.0,  # an index of hundreds of thousands of arguments is prepared, or takes some of them
        refuses=4,
        disputed=True,
        compose=True,
    ),
    "user": SidecarSpec(
        "simulated user",
        "says what a user says in a debate, from arguments or with a language model's words",
        program="user",
        limits=Limits(memory=512 * MIB),
        arguments=_user,
        service=True,
        files=("arguments.jsonl", "arguments.jsonl.gz"),
        socket="user",
        asks=("gateway",),
        ready=60.0,
        refuses=2,
        compose=True,
    ),
    "gateway": SidecarSpec(
        "gateway",
        "asks the models of a task; the only container with a network, and with the key",
        program="gateway",
        limits=Limits(memory=512 * MIB, open_files=4096, loopback=True),
        service=True,
        refuses=2,
        network=True,
    ),
    "relay": SidecarSpec(
        "relay",
        "carries connections between the software's loopback and the sockets of the others",
        program="relay",
        limits=_RELAY_LIMITS,
        arguments=_relay,
        socket="software",
        disputed=True,
        compose=True,
    ),
    "search-relay": SidecarSpec(
        "relay of the argument index",
        "the same for an argument index that is another server",
        program="relay",
        limits=_RELAY_LIMITS,
        socket="search",
        disputed=True,
    ),
    "watch": SidecarSpec(
        "watch",
        "asks a service again and again whether it is well",
        program="watch",
        limits=Limits(memory=64 * MIB, pids=16),
        ready=130.0,  # longer than what it watches may take
        disputed=True,
    ),
    "driver": SidecarSpec(
        "driver",
        "holds the debates, or has them judged, and writes down what was said",
        program="driver",
        limits=Limits(memory=512 * MIB, open_files=4096),
        arguments=_driver,
        asks=("software", "user"),
        compose=True,
    ),
}


def services_of_tasks() -> tuple[str, ...]:
    """The sidecars that a task.yaml may ask for."""
    return tuple(name for name, spec in SIDECARS.items() if spec.service)


def limits_of_run(services: Services) -> list[Limits]:
    """What the containers of ours may use that an interactive run with these services has."""
    found = [service.limits for service in services.values()] + [
        SIDECARS[name].limits for name in ("driver", "relay")
    ]
    for name, service in services.items():
        watch = SIDECARS[name].watch
        found += [SIDECARS[watch].limits] if watch else []
        found += [_RELAY_LIMITS] if service.image is not None else []
    return found
