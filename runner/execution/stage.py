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
from typing import Any, NamedTuple

import schemas
from runner.model.config import Config
from runner.model.errors import RunnerError, disk_error
from runner.model.limits import MIB
from runner.model.run import Run, cells
from runner.model.task import Dataset, Stage, Task
from runner.records.archive import Attempt
from runner.records.contents import KeptFile
from runner.records.store.connect import Store
from runner.records.store.queries import runs
from runner.tasks.data_files import files_digest, folder_files
from runner.tasks.folders import current_version, stage_folder
from schemas import jsonl
from schemas.debates import Debate, parse, transcript_digest
from schemas.files import atomic_file, make_private, scratch_folder

MAX_LINE = 64 * MIB
# Of a debate as judges are given it: a judge is asked many times about each, with all of it in every question, so that one
# debate of tens of megabytes would stop other teams' judges.
MAX_DEBATE = MIB
PROVENANCE = "provenance.json"


class Gathered(NamedTuple):
    """What a stage is made from now.

    ``sources`` are the attempts that count, in the order of the ids of their runs; ``left_out`` are the runs that are not
    taken, with the reason.
    """

    sources: tuple[Attempt, ...]
    left_out: Mapping[str, str]


class Built(NamedTuple):
    """A version of a stage's dataset: its name, where it lies, whether it is new, and how much is in it.

    ``skipped`` counts lines that hold no debate (failed ones, and what cannot be read), and debates beyond 1 MiB.
    """

    version: str
    folder: Path
    new: bool
    runs: int
    debates: int
    skipped: int


class StageStatus(NamedTuple):
    """How a stage's dataset stands: ``missing`` (never made), ``current`` or ``changed``; ``why`` it cannot be made."""

    task: Task
    dataset: Dataset
    name: str
    why: str = ""


@dataclass(frozen=True)
class Stages:
    """The datasets of ``tasks`` that are made from runs; ``among`` are all runs, where they were read already."""

    config: Config
    store: Store
    tasks: Mapping[str, Task]
    among: Sequence[Run] | None = None

    def gather(self, stage: Stage) -> Gathered:
        """The runs that ``stage`` takes now.

        Raises:
            RunnerError: E410 when they are not settled, or there are none.
        """
        source = self.tasks.get(stage.task)
        place = f"{stage.task}/{stage.dataset}"
        if source is None or stage.dataset not in source.datasets or stage.scenario not in source.scenarios:
            scenario = "" if stage.scenario == "default" else f" in the scenario {stage.scenario}"
            what = f"there is no {place}{scenario} to take runs from"
            why = "A stage names a task, a dataset and a scenario that are there."
            raise RunnerError("E410", what, why=why, fix="correct from: in task.yaml")
        archive, among = self.store.archive, self.among
        if among is None:
            among = runs(self.store, [source], task=stage.task, running=archive.live())
        wanted = (stage.task, stage.dataset, stage.scenario)
        candidates = [
            run
            for run in among
            if (run.submission.task, run.dataset, run.scenario) == wanted and run.outcome.name != "withdrawn"
        ]
        if unsettled := [run.id for run in candidates if run.outcome.name in ("pending", "running")]:
            what = f"{len(unsettled)} of the runs on {place} are not settled"
            why = f"Open: {schemas.show(', '.join(unsettled), 300)}."
            raise RunnerError("E410", what, why=why, fix=f"runner evaluate --task {stage.task}")
        latest: dict[tuple[str, str], Run] = {}
        left_out: dict[str, str] = {}
        for run in sorted(candidates, key=lambda r: (r.submission.registered, r.submission.seq)):
            key = (run.submission.team, run.submission.software)
            if run.outcome.ranked if stage.runs == "scored" else run.outcome.verdict == "ok":
                if key in latest:
                    left_out[latest[key].id] = "a later one counts"
                latest[key] = run
            else:
                left_out[run.id] = run.outcome.name
        if not latest:
            why = f"A run has to be {'scored' if stage.runs == 'scored' else 'executed'}."
            fix = "runner runs shows what became of them"
            raise RunnerError("E410", f"no run on {place} can be taken", why=why, fix=fix)
        attempts = [
            archive.attempt(stage.task, run.id, run.outcome.attempt)
            for run in sorted(latest.values(), key=lambda r: r.id)
            if run.outcome.attempt is not None
        ]
        return Gathered(tuple(attempts), left_out)

    def build(self, task: Task, dataset: Dataset) -> Built:
        """Make the inputs of a stage's dataset from the runs as they are now, and put that version in force.

        Making it again from the same runs changes nothing.

        Raises:
            RunnerError: E410 (see :meth:`gather`), also when a run lacks the file.
            PlatformError: E306 when the data directory cannot be written.
        """
        assert dataset.stage is not None
        stage = dataset.stage
        gathered = self.gather(stage)
        _stays_hidden(dataset, self.tasks[stage.task], stage)
        home = stage_folder(self.config, task.folder.name, dataset.id)
        try:
            make_private(home)
            with scratch_folder(home) as staging:
                return _write(home, staging, stage, gathered)
        except OSError as error:
            raise disk_error("the inputs of a stage cannot be written", error, home) from error

    def states(self, only: str | None = None) -> list[StageStatus]:
        """How every dataset stands that is made from runs, of all tasks or of one."""
        return [
            self._state(task, dataset, dataset.stage)
            for task in self.tasks.values()
            if only in (None, task.id)
            for dataset in task.datasets.values()
            if dataset.stage is not None
        ]

    def _state(self, task: Task, dataset: Dataset, stage: Stage) -> StageStatus:
        known = provenance(self.config, task, dataset)
        name, why = "missing" if known is None else "current", ""
        try:
            now = {(attempt.run_id, attempt.number) for attempt in self.gather(stage).sources}
            if known is not None and now != {(run["run"], run["attempt"]) for run in known["runs"]}:
                name = "changed"
        except RunnerError as error:
            why = f"{error.what}. {error.why}"
        return StageStatus(task, dataset, name, why)


def why_no_runs(task: Task, dataset: Dataset) -> str:
    """Why no software runs on a dataset although it was made: no table has it. Empty when one does."""
    if any(cell.dataset == dataset.id for cell in cells(task)):
        return ""
    return (
        f"no table of {task.id} has {dataset.id} in its cells, so no software runs on it: "
        f"add cells: [{{dataset: {dataset.id}}}] to one in task.yaml"
    )


def _stays_hidden(dataset: Dataset, source: Task, stage: Stage) -> None:
    """Runs on hidden inputs repeat them: what is made of such runs must not be open to those who may not see these."""
    if source.datasets[stage.dataset].visibility == "blinded" and dataset.visibility != "blinded":
        what = f"{dataset.id} is public, and would be made from the blinded {stage.task}/{stage.dataset}"
        why = "Its debates repeat the hidden claims, and hold answers that no other team may see."
        fix = f"write visibility: blinded for {dataset.id} in task.yaml, or take runs on a public dataset"
        raise RunnerError("E410", what, why=why, fix=fix)


def _write(home: Path, staging: Path, stage: Stage, gathered: Gathered) -> Built:
    entries: list[tuple[str, dict[str, Any], bytes]] = []
    described, skipped = [], 0
    for source in gathered.sources:
        lines, facts, lost = _taken(stage, source)
        entries += lines
        described.append(facts)
        skipped += lost
    if not entries:
        fix = f"look at {stage.file} with runner show RUN"
        raise RunnerError("E410", "none of the runs holds a debate", fix=fix)
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
    with atomic_file(home / "current") as current:
        current.write(f"{version}\n".encode())
    return Built(version, target, new, len(described), len(entries), skipped)


def _taken(
    stage: Stage, source: Attempt
) -> tuple[list[tuple[str, dict[str, Any], bytes]], dict[str, Any], int]:
    """The lines of one run that are taken, each with its place in the order and where it comes from."""
    run, file = source.run_id, source.file(f"output/{stage.file}")
    if file is None:
        why = "The file that the stage takes is not among its output."
        fix = "correct from.file in task.yaml, or take scored runs only"
        raise RunnerError("E410", f"{run} left no {stage.file}", why=why, fix=fix)
    # Two passes, so that a long file of arguments needs no more memory than what is taken of it.
    count = sum(1 for _ in _lines(file))
    wanted = _sample(stage, count)
    taken = []
    for number, debate in _debates(file):
        if number not in wanted or debate is None or debate.failed:
            continue
        where = {"run": run, "debate": number, "transcript": transcript_digest([debate])}
        line = json.dumps(blinded(debate), ensure_ascii=False).encode() + b"\n"
        if len(line) <= MAX_DEBATE:
            taken.append((_draw(stage.seed, "order", run, number), where, line))
    facts = {"run": run, "attempt": source.number, "sha256": file.sha256(), "lines": count}
    return taken, {**facts, "taken": len(taken)}, len(wanted) - len(taken)


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
        system = {"utterance": turn.answer, "response": response}
        turns.append({"utterance": turn.user, "systemResponse": system})
    return {"simulation": {"configuration": configuration, "userTurns": turns}}


def _lines(file: KeptFile) -> Iterator[bytes | None]:
    """The lines of a file that are not blank; None for one that is too long."""
    with file.open() as stream:
        for _, _, line in jsonl.split(stream.read, MAX_LINE):
            if line is None or line.strip():
                yield line


def _debates(file: KeptFile) -> Iterator[tuple[int, Debate | None]]:
    """Every debate of a file with its number; None for what cannot be read."""
    for number, line in enumerate(_lines(file), 1):
        data = None if line is None else jsonl.parse(line, jsonl.LENIENT)
        yield number, parse(data)[0] if isinstance(data, dict) else None


def provenance(config: Config, task: Task, dataset: Dataset) -> dict[str, Any] | None:
    """Where the lines of the version in force come from; None when none was made. For the organiser's eyes."""
    home = stage_folder(config, task.folder.name, dataset.id)
    version = current_version(home)
    if version is None or not (home / version / PROVENANCE).is_file():
        return None
    return dict(json.loads((home / version / PROVENANCE).read_bytes()))
