"""Interactive runs and the containers of ours beside a software: what task.yaml says about them, as data.

A *service* is a sidecar that a task asks for: the argument index (``search``), the simulated user (``user``) and
the way to models (``gateway``). Where each of them runs and who can reach whom is the workflow's business
(:mod:`runner.execution.workflows`); here is only what is wanted, and what identifies it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import schemas
from runner.model.limits import Limits, parse_duration, parse_limits, parse_size
from runner.model.sidecars import (
    SIDECARS,
    Interaction,
    Service,
    limits_of_run,
    services_of_tasks,
    socket_path,
)
from runner.tasks.data_files import files_digest, folder_files


def parse_interaction(row: Mapping[str, Any] | None) -> Interaction | None:
    """The interaction of a definition that was found to be right; None when it has none."""
    if row is None:
        return None
    answer = row.get("answer", {})
    plain = {k: row[k] for k in ("port", "concurrency", "turns", "word_limit", "seed") if k in row}
    return Interaction(
        mode=row["mode"],
        ready=parse_duration(row.get("ready", Interaction.ready)),
        answer_time=parse_duration(answer.get("time", Interaction.answer_time)),
        answer_bytes=parse_size(answer.get("bytes", Interaction.answer_bytes)),
        **plain,
    )


def parse_services(folder: Path, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Service]:
    """The services of a definition that was found to be right, in the order of :data:`SIDECARS`."""
    return {name: _service(folder, name, rows[name]) for name in services_of_tasks() if name in rows}


def _service(folder: Path, name: str, row: Mapping[str, Any]) -> Service:
    apart = ("data", "image", "limits")
    prompts = (row.get("llm") or {}).get("prompts")
    return Service(
        name=name,
        data=folder / row["data"] if "data" in row else None,
        image=row.get("image"),
        options={key: value for key, value in row.items() if key not in apart},
        limits=parse_limits(row.get("limits", {}), SIDECARS[name].limits),
        prompts=folder / prompts if prompts else None,
    )


def service_env(interaction: Interaction, services: Mapping[str, Service]) -> dict[str, str]:
    """What the environment of a software that is a server says: its port, and where it finds the services."""
    env = {"PORT": str(interaction.port)}
    for name, service in services.items():
        env |= SIDECARS[name].env(service)
    return env


def room_limits(limits: Limits, services: Mapping[str, Service], *, interactive: bool) -> Limits:
    """What all containers of a run need at once: ``limits`` of the main one, with the sidecars' memory added.

    ``interactive`` counts those that every interactive run has, too. Processors stay those of the main container: while it
    computes, the others wait for it.
    """
    others = limits_of_run(services) if interactive else [service.limits for service in services.values()]
    return replace(limits, memory=limits.memory + sum(other.memory for other in others))


def services_of_run(services: Mapping[str, Service]) -> dict[str, Service]:
    """The services that are started for an interactive run: the gateway only when the user is a language model."""
    user = services.get("user")
    llm = user is not None and "llm" in user.options
    return {name: one for name, one in services.items() if name != "gateway" or llm}


def gateway_key(gateway: Service) -> str | None:
    """The key that the gateway asks with: the content of the environment variable that task.yaml names.

    None when the task names none or the variable is empty. It is looked up where the work is done and is never
    kept: not in jobs, locks, labels, environments or logs.
    """
    name = gateway.options.get("key")
    return os.environ.get(name) or None if name else None


def gateway_ready(gateway: Service) -> bool:
    """Whether the gateway can ask a model at all: no key is wanted, or it is there."""
    return not gateway.options.get("key") or gateway_key(gateway) is not None


def driver_settings(
    talk: Interaction, user: Service | None, *, seconds: float, output_bytes: int, ended: str, output: str
) -> dict[str, Any]:
    """What the driver is to do (schema ``driver``): the interaction, where everybody's socket is, and its own bounds.

    ``seconds`` is the time for the whole run, ``ended`` the file that appears when the software's container has ended.
    """
    model = str(user.options.get("model", "base-user")) if user else ""
    return {
        "schema_version": 1,
        "mode": talk.mode,
        "input": f"/inputs/{talk.input}",
        "software": {"socket": socket_path("software"), "port": talk.port},
        "user": {"socket": socket_path("user"), "model": model} if user and talk.mode == "debate" else None,
        "turns": talk.turns,
        "concurrency": talk.concurrency,
        "seed": talk.seed,
        "word_limit": talk.word_limit,
        "ready_seconds": talk.ready,
        "answer_seconds": talk.answer_time,
        "answer_bytes": talk.answer_bytes,
        "deadline_seconds": seconds,
        "output_bytes": output_bytes,
        "ended": ended,
        "output": output,
    }


def service_digest(service: Service) -> str:
    """SHA-256 (hex) over what a service answers with: options, image and files. Raises E402 when files are missing.

    Of the gateway only the models count: neither address, budget nor price changes what a model answers, and
    a reply is known by its content.
    """
    if service.name == "gateway":
        return schemas.digest({"models": sorted(service.options.get("models", ()))})
    return schemas.digest(
        {
            "image": service.image,
            "options": dict(service.options),
            "data": data_digest(service),
            "prompts": files_digest(folder_files(service.prompts)) if service.prompts else None,
        }
    )


def data_digest(service: Service) -> str | None:
    """SHA-256 (hex) of a service's data, which names the volume that holds them; None without data. Raises E402."""
    return files_digest(folder_files(service.data)) if service.data is not None else None
