"""The form of a run file of anybody, looked at in a container beside whatever runs.

The checker of ``runner check``, in the platform's evaluator image: no network, no truths. Of a blinded dataset a team's hand-in
meets no inputs either: what is found is told at once and costs nothing, so it could be used to ask about them as often as one likes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from runner.engines.base import ContainerSpec, Mount
from runner.execution.machine import Machine
from runner.model.container import Exit
from runner.model.limits import MIB
from runner.model.task import Dataset, Task
from runner.tasks.files import inputs_digest, missing_sources, view_files
from runner.tasks.request import request
from runner.views.audience import escape
from schemas.findings import group_warnings, list_findings

SECONDS = 60.0
LOG = 4 * MIB
MAX_FINDINGS = 1000
LISTED = 20  # errors in the lines for people
SHOWN = {"code": 20, "severity": 20, "file": 200, "message": 500, "fix": 500}


@dataclass(frozen=True)
class Form:
    """What a check gave. ``how``: ``inputs`` (topics and documents were looked up), ``form`` (the file alone was looked at) or
    ``unchecked`` (``why`` says why; it counts as valid). ``findings`` are rows with file, line, code, severity, message, fix."""

    how: Literal["inputs", "form", "unchecked"]
    valid: bool = True
    findings: tuple[Mapping[str, Any], ...] = ()
    why: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)  # findings by code, including those without a row

    def rows(self) -> list[dict[str, Any]]:
        """Return the findings, errors first; all warnings of a code are one row, with their number as ``times``."""
        return group_warnings(self.findings, self.counts)

    def lines(self) -> list[str]:
        """Return lines for people: the first errors of every code, then one line for the warnings of each code."""
        note = {"inputs": [], "form": ["topics and documents were not looked up"], "unchecked": [self.why]}[
            self.how
        ]
        return [*list_findings(self.findings, self.counts, most=LISTED), *note]


def check_handed_in(
    machine: Machine,
    task: Task,
    dataset: Dataset,
    scenario: str,
    file: Path,
    stop: Callable[[], bool],
    *,
    hidden: bool = False,
) -> Form:
    """Check a run file of any origin.

    It waits for no turn of blinded or public runs where only a program of ours runs, on what everybody may have.

    Args:
        machine: The engine, and our evaluator image.
        task: Its rules.
        dataset: What the file is for.
        scenario: Id of the scenario.
        file: The file; findings call it by its name.
        stop: Asked while it runs; when it becomes true, the container is ended.
        hidden: Look hidden inputs up, too: for organisers alone.

    Raises:
        PlatformError: The engine fails, or our image is not there.
    """
    engine = machine.engine()
    image = engine.resolve(machine.evaluator())
    here = dataset.inputs.is_dir() and not missing_sources(dataset, "inputs", optional=False)
    whole = here and (hidden or dataset.visibility == "public")
    asked = request(task, dataset, scenario, file.name)
    if not whole:
        asked = {**asked, "topics": None, "corpus": None}
        asked.pop("absent", None)
    asked = {**asked, "limits": {**asked["limits"], "max_findings": MAX_FINDINGS}}
    files: dict[str, Path | bytes] = {"request.json": json.dumps(asked).encode(), f"run/{file.name}": file}
    limits = task.evaluator_limits
    limits = replace(limits, cpus=1.0, gpus=0, wall_clock=min(limits.wall_clock, SECONDS), log=LOG)
    with engine.session(
        f"handed-in-{secrets.token_hex(8)}",
        labels={"role": "evaluator"},
        visibility="blinded" if whole and dataset.visibility == "blinded" else None,
        cancelled=stop,
    ) as session:
        box = session.output_volume("in", bytes=file.stat().st_size + 4 * MIB, inodes=16)
        session.copy_in(box, files)
        mounts = [Mount(box, "/in")]
        if whole:
            inputs = engine.data_volume(inputs_digest(dataset), lambda: view_files(dataset))
            mounts.append(Mount(inputs, "/inputs"))
        command = ("evaluator", "check", "--request", "/in/request.json", "--json", "--", file.name)
        spec = ContainerSpec("evaluator", image, command, limits, tuple(mounts), workdir="/in/run")
        handle = session.start(spec)
        exit_ = handle.wait(limits.wall_clock, stop)
        said = handle.logs("stdout", LOG)
    return _read(exit_, said, whole=whole)


def _read(exit_: Exit, said: bytes, *, whole: bool) -> Form:
    """What the checker said; hostile, since a hostile file was read."""
    if exit_.killed == "cancel":
        raise KeyboardInterrupt
    try:
        data = json.loads(said) if exit_.killed is None and exit_.code in (0, 1) else None
        kept = data["findings"]["kept"][:MAX_FINDINGS] if isinstance(data, dict) else None
        findings = None if kept is None else tuple(_finding(one) for one in kept)
        counts = _counts(data["findings"]["codes"]) if isinstance(data, dict) else {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        findings = None
    if findings is None:
        ended = f"within {SECONDS:g} s" if exit_.killed == "time" else "well"
        why = (
            f"the checker did not end {ended}" if exit_.code not in (0, 4) else "this kind has no such check"
        )
        return Form("unchecked", why=why)
    return Form("inputs" if whole else "form", exit_.code == 0, findings, counts=counts)


def _counts(codes: Mapping[str, Any]) -> dict[str, int]:
    counts = {escape(code, SHOWN["code"]): one["count"] for code, one in codes.items()}
    if not all(isinstance(count, int) for count in counts.values()):
        raise ValueError(counts)
    return counts


def _finding(one: Mapping[str, Any]) -> dict[str, Any]:
    line = one["line"]
    if line is not None and not isinstance(line, int):
        raise ValueError(line)
    return {"line": line, **{name: escape(one[name], most) for name, most in SHOWN.items()}}
