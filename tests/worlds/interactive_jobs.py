"""Jobs of the workflow interactive, and the room of one on the fake engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import schemas
from runner.engines.fake import FakeEngine, Mounts, identity
from runner.execution.job import Executed, Job
from runner.execution.workflows import interactive
from runner.model.container import Exit
from runner.model.limits import MIB, Limits
from runner.model.sidecars import Interaction, Service
from runner.model.task import Dataset, Scenario, Task
from runner.tasks.data_files import files_digest, folder_files
from runner.tasks.services import service_env

OURS, THEIRS = "proctor/sidecars", "team/server"


def make_job(
    folder: Path,
    *,
    services: Mapping[str, Service] | None = None,
    image: str = identity(THEIRS),
    sidecars: str = identity(OURS),
    command: tuple[str, ...] | None = None,
    limits: Limits | None = None,
    claims: int = 2,
    debates: str | None = None,
    **talk: Any,
) -> Job:
    """A job with ``claims`` claims (mode debate), or with the lines ``debates`` (mode judge)."""
    mode = "debate" if debates is None else "judge"
    interaction = Interaction(**{"mode": mode, "turns": 3, "ready": 10.0, "answer_time": 5.0, **talk})
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    rows = [{"id": f"c{n}", "claim": f"Claim number {n} is right"} for n in range(1, claims + 1)]
    text = debates if debates is not None else "".join(json.dumps(row) + "\n" for row in rows)
    (inputs / interaction.input).write_text(text)
    limits = limits or Limits(loopback=True, memory=256 * MIB, wall_clock=60, output=8 * MIB)
    dataset = Dataset("dev", "public", inputs, folder / "truths")
    if services is None:
        services = {"search": search(folder / "arguments"), "user": user(folder / "arguments")}
    task = Task(
        id="talk",
        title="Talk",
        kind="debate",
        workflow="interactive",
        folder=folder,
        datasets={"dev": dataset},
        scenarios={"default": Scenario()},
        measures={},
        tables={},
        limits=limits,
        evaluator_limits=Limits(),
        output="simulations.jsonl" if mode == "debate" else "evaluations.jsonl",
        interaction=interaction,
        services=services,
    )
    view = files_digest(folder_files(inputs))
    return Job(
        run_id="team.one.00000000.dev",
        submission_id="team.one.00000000",
        team="team",
        software="one",
        task=task,
        dataset=dataset,
        scenario="default",
        workflow="interactive",
        image=image,
        command=command,
        env=service_env(interaction, services),
        limits=limits,
        sidecars=sidecars,
        services=services,
        lock={"digests": {"view": view}},
        lock_digest="0" * 64,
    )


def arguments(folder: Path, count: int = 12) -> Path:
    """A folder with a small argument index."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "id": f"7.{n}",
            "topic": "Claims",
            "tags": ["Logic"],
            "attacks": f"Claim number {n % 4 + 1} is right, for this and every other reason",
            "supports": f"Claim number {n % 4 + 1} is wrong",
            "text": f"Reason {n} against it: the numbers do not add up in case {n}.",
            "references": [],
            "original": "attacks",
        }
        for n in range(count)
    ]
    (folder / "arguments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def search(folder: Path, **changes: Any) -> Service:
    """The argument index over a small folder."""
    options = {"index": "claimrev", "prefix": "/arguments", "port": 9200, **changes.pop("options", {})}
    limits = Limits(loopback=True, memory=512 * MIB)
    return Service("search", **{"data": arguments(folder), "options": options, "limits": limits, **changes})


def user(folder: Path, **changes: Any) -> Service:
    """The simulated user over the same folder."""
    limits = Limits(loopback=True, memory=512 * MIB)
    return Service(
        "user", **{"data": arguments(folder), "options": {"model": "base-user"}, "limits": limits, **changes}
    )


Part = Callable[[Mounts], Any]


def stays(mounts: Mounts) -> None:
    """A server of ours that says it is ready and runs until it is stopped."""
    mounts.say("ready")
    mounts.stopped.wait(100)


def waits(mounts: Mounts) -> None:
    """A software that serves until it is stopped."""
    mounts.stopped.wait(100)


def writes(report: Mapping[str, Any] | None = None, **fields: Any) -> Part:
    """A driver that leaves this report and an output."""

    def driver(mounts: Mounts) -> None:
        out = mounts["/out"]
        (out / "simulations.jsonl").write_text("{}\n")
        (out / "turns.jsonl").write_text(
            '{"failure": {"class": "timeout"}}\n{"failure": {"class": "status"}}\n{"failure": null}\n'
        )
        data = report if report is not None else said(**fields)
        (out / "driver.json").write_text(json.dumps(data))

    return driver


def said(**changes: Any) -> dict[str, Any]:
    """A driver's report of a run that went well."""
    good = {"schema_version": 1, "ready": True, "ready_ms": 12.5, "failure": None}
    data = {**good, "debates": 2, "turns": 6, "failed": 0, **changes}
    assert schemas.validate(data, "driver-report") == []
    return data


def serves(mounts: Mounts) -> None:
    """An argument index that notes down one question."""
    (mounts["/log"] / "served.jsonl").write_text('{"n": 1}\n')
    stays(mounts)


def engine(software: Part = waits, **parts: Part | Exit) -> FakeEngine:
    """A fake engine whose containers of ours do what ``parts`` say, by the name of their module."""
    scripts: dict[str, Part | Exit] = {
        "relay": stays,
        "watch": stays,
        "search": serves,
        "user": stays,
        "gateway": stays,
        "driver": writes(),
        **parts,
    }

    def ours(mounts: Mounts, _: Path) -> Any:
        command = mounts.spec.command or ()
        assert command[:2] == ("python3", "-m")
        part = scripts[command[2].removeprefix("sidecars.")]
        return part if isinstance(part, Exit) else part(mounts)

    return FakeEngine({OURS: ours, THEIRS: lambda mounts, _: software(mounts)})


def execute(
    job: Job, made: Any, staging: Path, cancelled: Callable[[], bool] = lambda: False, attempt: str = "a-1"
) -> Executed:
    """Run the workflow."""
    staging.mkdir(parents=True, exist_ok=True)
    return interactive.run(job, made, attempt, staging, cancelled)


def logs(staging: Path) -> str:
    """Everything that was said, for the message of a failing test."""
    files = sorted(staging.glob("logs/*"))
    return "\n".join(f"--- {f.name}\n{f.read_text(errors='replace')[-1500:]}" for f in files)
