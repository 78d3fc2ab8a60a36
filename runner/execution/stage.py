"""Stages: a dataset whose inputs are made from archived runs of another task, blinded and shuffled.

``RUNNER_HOME/stages/<task>/<dataset>/<version>/`` holds ``inputs/`` (what judges are given) and, next to it and never
shown to anybody but the organiser, ``provenance.json``: which line is which debate of which run. A version is
named by its content and written once; ``current`` names the one in force. Lines are written anew from what was
said in them, so that nothing of a software's name, address or speed is left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import schemas
from runner.model.config import Config
from runner.model.errors import PlatformError, RunnerError
from runner.model.limits import MIB
from runner.model.run import Run, cells
from runner.model.task import Dataset, Stage, Task
from runner.records.archive import Attempt
from runner.records.files import file_sha256
from runner.records.store.connect import Store
from runner.records.store.queries import runs
from runner.tasks.check import current_version, stage_folder
from runner.tasks.data_files import files_digest, folder_files
from schemas import jsonl
from schemas.debates import Debate, parse, transcript_digest
from schemas.files import atomic_file, scratch_folder

MAX_LINE = 64 * MIB
# Of a debate as judges are given it: a judge is asked many times about each, with all of it in every question, so that one
# debate of tens of megabytes would stop other teams' judges.
MAX_DEBATE = MIB
PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class SourceRun:
    """A run whose debates are taken: the run, and the attempt that counts."""

    run: Run
    attempt: Attempt


@dataclass(frozen=True)
class Gathered:
    """What a stage is made from now: the runs, in the order of their ids, and those that are left out with the reason."""

    sources: tuple[SourceRun, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class Built:
    """A version of a stage's dataset: its name, where it lies, whether it is new, and how much is in it.

    ``skipped`` counts lines that hold no debate (failed ones, and what cannot be read), and debates beyond 1 MiB.
    """

    version: str
    folder: Path
    new: bool
    runs: int
    debates: int
    skipped: int


def gather(
    store: Store, tasks: Mapping[str, Task], stage: Stage, among: Sequence[Run] | None = None
) -> Gathered:
    """The runs that ``stage`` takes now; ``among`` are all runs, where they were read already.

    Raises E410 when they are not settled, or there are none.
    """
    source = tasks.get(stage.task)
    if source is None or stage.dataset not in source.datasets or stage.scenario not in source.scenarios:
        place = f"{stage.task}/{stage.dataset}" + (
            "" if stage.scenario == "default" else f" in the scenario {stage.scenario}"
        )
        raise RunnerError(
            "E410",
            f"there is no {place} to take runs from",
            why="A stage names a task, a dataset and a scenario that are there.",
            fix="correct from: in task.yaml",
        )
    if among is None:
        among = runs(store, [source], task=stage.task, running=store.archive.live())
    wanted = (stage.task, stage.dataset, stage.scenario)
    candidates = [
        run
        for run in among
        if (run.submission.task, run.dataset, run.scenario) == wanted and run.outcome.name != "withdrawn"
    ]
    open_ = [run.id for run in candidates if run.outcome.name in ("pending", "running")]
    if open_:
        raise RunnerError(
            "E410",
            f"{len(open_)} of the runs on {stage.task}/{stage.dataset} are not settled",
            why=f"Open: {schemas.show(', '.join(open_), 300)}.",
            fix=f"runner evaluate --task {stage.task}",
        )
    latest: dict[tuple[str, str], Run] = {}
    left_out: dict[str, str] = {}
    for run in sorted(candidates, key=lambda r: (r.submission.registered, r.submission.seq)):
        key = (run.submission.team, run.submission.software)
        if _takes(stage, run):
            if key in latest:
                left_out[latest[key].id] = "a later one counts"
            latest[key] = run
        else:
            left_out[run.id] = run.outcome.name
    if not latest:
        raise RunnerError(
            "E410",
            f"no run on {stage.task}/{stage.dataset} can be taken",
            why=f"A run has to be {'scored' if stage.runs == 'scored' else 'executed'}.",
            fix="runner runs shows what became of them",
        )
    found = [
        SourceRun(run, store.archive.attempt(stage.task, run.id, run.outcome.attempt))
        for run in sorted(latest.values(), key=lambda r: r.id)
        if run.outcome.attempt is not None
    ]
    return Gathered(tuple(found), left_out)


def why_no_runs(task: Task, dataset: Dataset) -> str:
    """Why no software runs on a dataset although it was made: no table has it. Empty when one does."""
    if any(cell.dataset == dataset.id for cell in cells(task)):
        return ""
    return (
        f"no table of {task.id} has {dataset.id} in its cells, so no software runs on it: "
        f"add cells: [{{dataset: {dataset.id}}}] to one in task.yaml"
    )


def _takes(stage: Stage, run: Run) -> bool:
    if stage.runs == "scored":
        return run.outcome.ranked
    return run.outcome.verdict == "ok"


def build(
    config: Config,
    store: Store,
    tasks: Mapping[str, Task],
    task: Task,
    dataset: Dataset,
    among: Sequence[Run] | None = None,
) -> Built:
    """Make the inputs of a stage's dataset from the runs as they are now, and put that version in force.

    ``among`` are all runs, where they were read already. Making it again from the same runs changes nothing. Raises E410 (see :func:`gather`), also when a run lacks
    the file, and E306 when the data directory cannot be written.
    """
    assert dataset.stage is not None
    stage = dataset.stage
    gathered = gather(store, tasks, stage, among)
    _stays_hidden(dataset, tasks[stage.task], stage)
    home = stage_folder(config, task.folder.name, dataset.id)
    try:
        home.mkdir(parents=True, exist_ok=True)
        with scratch_folder(home) as staging:
            return _write(home, staging, stage, gathered)
    except OSError as error:
        raise PlatformError(
            "the inputs of a stage cannot be written",
            why=f"{home}: {error.strerror or error}.",
            fix="make the data directory writable",
            code="E306",
        ) from error


def _stays_hidden(dataset: Dataset, source: Task, stage: Stage) -> None:
    """Runs on hidden inputs repeat them: what is made of such runs must not be open to those who may not see these."""
    if source.datasets[stage.dataset].visibility == "blinded" and dataset.visibility != "blinded":
        raise RunnerError(
            "E410",
            f"{dataset.id} is public, and would be made from the blinded {stage.task}/{stage.dataset}",
            why="Its debates repeat the hidden claims, and hold answers that no other team may see.",
            fix=f"write visibility: blinded for {dataset.id} in task.yaml, or take runs on a public dataset",
        )


def _write(home: Path, staging: Path, stage: Stage, gathered: Gathered) -> Built:
    entries: list[tuple[str, dict[str, Any], bytes]] = []
    described, skipped = [], 0
    for source in gathered.sources:
        lines, facts, lost = _taken(stage, source)
        entries += lines
        described.append(facts)
        skipped += lost
    if not entries:
        raise RunnerError(
            "E410", "none of the runs holds a debate", fix=f"look at {stage.file} with runner show RUN"
        )
    entries.sort(key=lambda entry: entry[0])
    (staging / "inputs").mkdir()
    with (staging / "inputs" / stage.name).open("wb") as out:
        out.writelines(line for _, _, line in entries)
    provenance = {
        "schema_version": 1,
        "from": {"task": stage.task, "dataset": stage.dataset, "scenario": stage.scenario},
        "file": stage.file,
        "sample": {"debates": stage.debates, "seed": stage.seed},
        "runs": described,
        "lines": [{"line": n, **where} for n, (_, where, _) in enumerate(entries, 1)],
    }
    inputs = files_digest(folder_files(staging / "inputs"))
    version = schemas.digest({"inputs": inputs, "provenance": provenance})
    (staging / PROVENANCE).write_text(json.dumps(provenance, indent=1, sort_keys=True) + "\n")
    target = home / version
    new = not target.is_dir()
    if new:
        for path in (staging / "inputs" / stage.name, staging / PROVENANCE):
            path.chmod(0o444)
        staging.chmod(0o755)
        staging.rename(target)
    _point(home, version)
    return Built(version, target, new, len(described), len(entries), skipped)


def _taken(
    stage: Stage, source: SourceRun
) -> tuple[list[tuple[str, dict[str, Any], bytes]], dict[str, Any], int]:
    """The lines of one run that are taken, each with its place in the order and where it comes from."""
    path = source.attempt.output / stage.file
    if not path.is_file():
        raise RunnerError(
            "E410",
            f"{source.run.id} left no {stage.file}",
            why="The file that the stage takes is not among its output.",
            fix="correct from.file in task.yaml, or take scored runs only",
        )
    # Two passes, so that a long file of arguments needs no more memory than what is taken of it.
    count = sum(1 for _ in _lines(path))
    wanted = _sample(stage, count)
    taken, lost = [], 0
    for number, debate in _debates(path):
        if number not in wanted:
            continue
        if debate is None or debate.failed:
            lost += 1
            continue
        where = {"run": source.run.id, "debate": number, "transcript": transcript_digest([debate])}
        line = json.dumps(blinded(debate), ensure_ascii=False).encode() + b"\n"
        if len(line) > MAX_DEBATE:
            lost += 1
            continue
        taken.append((_draw(stage.seed, "order", source.run.id, number), where, line))
    facts = {
        "run": source.run.id,
        "attempt": source.attempt.number,
        "sha256": file_sha256(path),
        "lines": count,
        "taken": len(taken),
    }
    return taken, facts, lost


def _sample(stage: Stage, count: int) -> set[int]:
    """The numbers of the lines that are taken of a file: the same of every run, as far as it has them."""
    numbers = range(1, count + 1)
    if stage.debates is None:
        return set(numbers)
    return set(sorted(numbers, key=lambda n: _draw(stage.seed, "sample", "", n))[: stage.debates])


def _draw(seed: int, what: str, run: str, number: int) -> str:
    """A sort key that shuffles: SHA-256 (hex) of seed, purpose, run and number. The same on every machine and version of Python."""
    return hashlib.sha256(f"{seed}\0{what}\0{run}\0{number}".encode()).hexdigest()


def blinded(debate: Debate) -> dict[str, Any]:
    """A debate as judges are given it (a line in GenIRSim's form): what was said, and the arguments that were cited.

    Its transcript digest is that of the original.
    """
    topic = {"description": debate.claim, **({"id": debate.id} if debate.id else {})}
    configuration: dict[str, Any] = {"topic": topic}
    if debate.planned is not None:
        configuration["maxTurns"] = debate.planned
    turns = []
    for turn in debate.turns:
        arguments = [
            {**({"id": a.id} if a.id else {}), **({} if a.text is None else {"text": a.text})}
            for a in turn.arguments
        ]
        response = {"content": turn.answer, "arguments": arguments}
        turns.append(
            {
                "utterance": turn.user,
                "systemResponse": {"utterance": turn.answer, "response": response},
            }
        )
    return {"simulation": {"configuration": configuration, "userTurns": turns}}


def _lines(path: Path) -> Iterator[bytes | None]:
    """The lines of a file that are not blank; None for one that is too long."""
    with path.open("rb") as stream:
        for _, _, line in jsonl.split(stream.read, MAX_LINE):
            if line is None or line.strip():
                yield line


def _debates(path: Path) -> Iterator[tuple[int, Debate | None]]:
    """Every debate of a file with its number; None for what cannot be read."""
    for number, line in enumerate(_lines(path), 1):
        data = None if line is None else jsonl.parse(line, jsonl.LENIENT)
        yield number, parse(data)[0] if isinstance(data, dict) else None


def _point(home: Path, version: str) -> None:
    """Put a version in force, as a whole or not at all."""
    with atomic_file(home / "current") as file:
        file.write(f"{version}\n".encode())


def provenance(config: Config, task: Task, dataset: Dataset) -> dict[str, Any] | None:
    """Where the lines of the version in force come from; None when none was made. For the organiser's eyes."""
    home = stage_folder(config, task.folder.name, dataset.id)
    version = current_version(home)
    if version is None or not (home / version / PROVENANCE).is_file():
        return None
    found: dict[str, Any] = json.loads((home / version / PROVENANCE).read_bytes())
    return found


def changed(known: Mapping[str, Any], gathered: Gathered) -> bool:
    """Whether a stage would be made from other runs or attempts now than its version in force was."""
    before = {(one["run"], one["attempt"]) for one in known["runs"]}
    return before != {(one.run.id, one.attempt.number) for one in gathered.sources}


@dataclass(frozen=True)
class StageStatus:
    """How a stage's dataset stands: ``missing`` (never made), ``current`` or ``changed``; ``why`` it cannot be made."""

    task: Task
    dataset: Dataset
    name: str
    why: str = ""


def states(
    config: Config,
    store: Store,
    tasks: Mapping[str, Task],
    only: Sequence[str] | None = None,
    among: Sequence[Run] | None = None,
) -> list[StageStatus]:
    """How every dataset stands that is made from runs, of all tasks or of some.

    ``among`` are all runs, where they were read already.
    """
    return [
        _state(config, store, tasks, task, dataset, dataset.stage, among)
        for task in tasks.values()
        if only is None or task.id in only
        for dataset in task.datasets.values()
        if dataset.stage is not None
    ]


def _state(
    config: Config,
    store: Store,
    tasks: Mapping[str, Task],
    task: Task,
    dataset: Dataset,
    stage: Stage,
    among: Sequence[Run] | None,
) -> StageStatus:
    known = provenance(config, task, dataset)
    try:
        gathered = gather(store, tasks, stage, among)
    except RunnerError as error:
        return StageStatus(
            task, dataset, "missing" if known is None else "current", f"{error.what}. {error.why}"
        )
    if known is None:
        return StageStatus(task, dataset, "missing")
    return StageStatus(task, dataset, "changed" if changed(known, gathered) else "current")
