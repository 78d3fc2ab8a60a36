"""Checking a file with the evaluator's checker, without a container: the same checks as in a graded run.

The evaluator is a program of its own and is never imported here; it is started as a process and gets the
same ``request.json`` that its container gets.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import schemas
from runner.model.errors import RunnerError, no_such
from runner.model.task import Dataset, Task
from runner.tasks.files import how_to_get, missing_sources
from runner.tasks.request import request

SECONDS = 600


def dataset_to_check(task: Task, wanted: str | None = None) -> Dataset:
    """The dataset by whose topics and documents a run file is checked; its truths are not read.

    Args:
        task: the task.
        wanted: its id; None takes the first public one, or else the only one whose files are here.

    Raises:
        RunnerError: E102 for a wrong name, or when it is not clear which; E402 when its topics or corpus were not fetched.
    """
    if wanted is not None and wanted not in task.datasets:
        raise no_such("dataset", wanted, task.datasets, of=task.id, fix="name one of them")
    dataset = task.datasets[wanted] if wanted is not None else _only_possible(task)
    needed = {f"inputs/{name}" for name in (dataset.topics, dataset.corpus) if name}
    missing = [s for s in missing_sources(dataset, "inputs", optional=False) if s.name in needed]
    if missing:
        names = ", ".join(source.name for source in missing)
        raise RunnerError(
            "E402",
            f"{dataset.id} of {task.id} cannot be checked against: files have not been fetched",
            why=f"Missing: {schemas.show(names, 300)}.",
            fix=how_to_get(missing[0], dataset.id, task.id),
        )
    return dataset


def _only_possible(task: Task) -> Dataset:
    here = [
        d
        for d in task.datasets.values()
        if d.stage is None and not missing_sources(d, "inputs", optional=False)
    ]
    public = [d for d in here if d.visibility == "public"]
    if not public and len(here) > 1:
        why = f"It has no public one, and {', '.join(d.id for d in here)} are here."
        raise RunnerError(
            "E102", f"which dataset of {task.id} is meant?", why=why, fix="name one with --dataset"
        )
    # With none here, the first one is taken, whose missing files are named.
    return (public or here or list(task.datasets.values()))[0]


def check_file(
    task: Task, dataset: Dataset, file: Path, *, scenario: str | None = None, as_json: bool = False
) -> int:
    """Check ``file`` by the rules of ``task`` on ``dataset``; the checker prints to stdout.

    ``scenario`` is the task's default or only one, unless it is given.
    Returns 0 for a valid run and 1 for an invalid one. Raises E102 when there is no such file or scenario, E404 when
    the checker itself fails, or the kind's runs cannot be checked without truths.
    """
    return _ask(task, dataset, file, scenario, ["--json"] if as_json else [], capture=False)[0]


def ask(task: Task, dataset: Dataset, file: Path, *, scenario: str | None = None) -> tuple[int, str]:
    """The same, and what the checker said instead of printing it. Raises as :func:`check_file`."""
    return _ask(task, dataset, file, scenario, [], capture=True)


def _ask(
    task: Task, dataset: Dataset, file: Path, scenario: str | None, options: list[str], *, capture: bool
) -> tuple[int, str]:
    if not file.is_file():
        raise no_such("file", file, fix="name a run file", limit=1000)
    if scenario is not None and scenario not in task.scenarios:
        raise no_such("scenario", scenario, of=task.id, why=f"It has {', '.join(task.scenarios)}.")
    content = request(task, dataset, scenario or task.default_scenario().id, file.name)
    content["paths"] = {
        "run": str(file.absolute().parent),
        "inputs": str(dataset.inputs.absolute()),
        "truths": str(dataset.truths.absolute()),
        "output": str(file.absolute().parent),
    }
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        path = Path(scratch) / "request.json"
        path.write_text(json.dumps(content))
        command = [sys.executable, "-m", "evaluator", "check", str(file), "--request", str(path), *options]
        sys.stdout.flush()
        try:
            done = subprocess.run(
                command,
                timeout=SECONDS,
                check=False,
                capture_output=capture,
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired as error:
            why, fix = f"It ran for {SECONDS} s.", "is the file very large?"
            raise RunnerError("E404", "the checker did not end", why=why, fix=fix) from error
    if done.returncode not in (0, 1):
        why = _first_lines(done.stderr) or f"It ended with exit code {done.returncode}."
        fix = "runner task check shows what is wrong with the task"
        raise RunnerError("E404", "the checker failed", why=why, fix=fix)
    return done.returncode, done.stdout or ""


def _first_lines(text: str | None) -> str:
    """The first lines of what the checker said before it gave up, if that was caught; nothing of a run is in it."""
    lines = [line.strip() for line in (text or "")[:600].splitlines()[:2]]
    return "".join(c if c.isprintable() else "?" for c in "; ".join(line for line in lines if line))
