"""What stands in a task's data, read against one another: topics, corpus and judgments of each dataset, and its statistics.

Formats are the evaluator's matter. It is a program of its own and never imported here: it is started as a process on this
machine, and gets the same request as its container. The files are the organiser's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import schemas
from runner.model.config import Config
from runner.model.errors import Problem, RunnerError
from runner.model.task import Dataset, Task
from runner.tasks.files import missing_sources, why_stage_missing
from runner.tasks.load import with_files
from runner.tasks.request import request


@dataclass(frozen=True)
class Contents:
    """What was found in the data of one dataset. ``unchecked`` says why nothing was looked for, or is empty.

    ``problems`` make scores wrong, ``warnings`` may be meant. ``statistics``: ``topics`` and ``documents`` (None where the
    task names no such file) and ``truths``, for each file its judgments, judged topics and documents, and ``grades``
    with their counts.
    """

    dataset: str
    problems: Sequence[Problem] = ()
    warnings: Sequence[Problem] = ()
    statistics: Mapping[str, Any] | None = None
    unchecked: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "dataset": self.dataset,
            "statistics": self.statistics,
            "warnings": [str(problem) for problem in self.warnings],
            "unchecked": self.unchecked,
        }

    def lines(self) -> list[str]:
        """The statistics for people: one line for the dataset, and one for each file of judgments."""
        if self.statistics is None:
            return []
        nouns = {noun: noun for noun in ("topic", "document", "judgment", "grade")} | self.statistics["nouns"]
        named = ((nouns[noun], self.statistics[f"{noun}s"]) for noun in ("topic", "document"))
        counts = [_count(noun, n) for noun, n in named if n is not None]
        found = [f"{self.dataset}: {', '.join(counts) or 'no topics and no corpus are named'}"]
        for one in self.statistics["truths"]:
            judged, of = (
                _count(nouns["judgment"], one["judgments"]),
                _count(nouns["document"], one["documents"]),
            )
            grades = _grades(nouns["grade"], one["grades"]) if nouns["grade"] else ""
            found.append(
                f"  {schemas.show(one['file'])}: {judged} of {of} for {_count(nouns['topic'], one['topics'])}"
                + (f"; {grades}" if grades else "")
            )
        return found


def _count(noun: str, n: int) -> str:
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Several of a noun: queries, documents."""
    return f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"


def _grades(noun: str, counts: Mapping[str, int]) -> str:
    """Counts by grade; the first and last where there are many grades."""
    pairs = [f"{noun} {grade}: {n:,}" for grade, n in counts.items()]
    return ", ".join(pairs if len(pairs) <= 6 else [*pairs[:3], "…", *pairs[-2:]]) or f"no {noun}"


def read_contents(task: Task, config: Config, tell: Callable[[str], None]) -> list[Contents]:
    """Read the data of every dataset of ``task`` and say what is wrong.

    Args:
        task: the task.
        config: names files as people know them.
        tell: told in one line how far the reading of a large file is.

    Raises:
        RunnerError: E404 when the evaluator fails.
    """
    unchecked, requests = {}, {}
    for dataset in task.datasets.values():
        if task.evaluator_image is not None:
            why = "its evaluator is an image of its own, which alone knows the formats"
        elif missing_sources(dataset, optional=False) or why_stage_missing(dataset):
            why = "files are still to come"
        else:
            why = "" if dataset.inputs.is_dir() and dataset.truths.is_dir() else "its folders are not there"
        if why:
            unchecked[dataset.id] = Contents(dataset.id, unchecked=why)
        else:
            requests[dataset.id] = _request(task, dataset)
    answers = _ask(requests, tell) if requests else {}
    said: list[Any] = []  # of the task's own files, which all datasets share
    for answer in answers.values():
        answer["problems"] = [one for one in answer["problems"] if one not in said]
        said += [one for one in answer["problems"] if one["file"].startswith("task/")]
    return [
        unchecked.get(name) or _contents(task, dataset, config, answers[name])
        for name, dataset in task.datasets.items()
    ]


def _contents(task: Task, dataset: Dataset, config: Config, said: Mapping[str, Any]) -> Contents:
    if not said["checked"]:
        return Contents(dataset.id, unchecked=f"the kind {task.kind} has no such check")
    problems: dict[bool, list[Problem]] = {True: [], False: []}
    for one in said["problems"]:
        side, _, name = one["file"].partition("/")
        folders = {"inputs": dataset.inputs, "truths": dataset.truths, "task": task.folder}
        path = folders[side] / name
        where = str(path.relative_to(config.root)) if path.is_relative_to(config.root) else str(path)
        line = one["line"]
        place = schemas.show(where, 300) + (f":{line}" if line else "")
        problems[one["grave"]].append(Problem(place, one["what"], one["fix"], line=line, code="E402"))
    return Contents(dataset.id, problems[True], problems[False], said["statistics"])


def _request(task: Task, dataset: Dataset) -> dict[str, Any]:
    """The request, without files that are not there: that they are not is said elsewhere."""
    content = request(task, dataset, task.default_scenario().id, task.output)
    folders = {"inputs": dataset.inputs.absolute(), "truths": dataset.truths.absolute()}
    content["paths"] = {"run": str(folders["inputs"]), "output": str(folders["inputs"])}
    content["paths"] |= {side: str(folder) for side, folder in folders.items()}
    for key in ("topics", "corpus"):
        if content[key] and not (folders["inputs"] / content[key]).is_file():
            content[key] = None
    content["options"] = with_files(task.folder, task.kind, task.options, "text")
    content["measures"] = [m for m in content["measures"] if (folders["truths"] / m["truths"]).exists()]
    return content


def _ask(requests: Mapping[str, Mapping[str, Any]], tell: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """What one process of the evaluator answers to each dataset's request."""
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        answer = Path(scratch) / "answers.jsonl"
        options = []
        for number, content in enumerate(requests.values()):
            path = Path(scratch) / f"request-{number}.json"
            path.write_text(json.dumps(content))
            options += ["--request", str(path)]
        last = ""
        with (
            answer.open("wb") as out,
            subprocess.Popen(
                [sys.executable, "-m", "evaluator", "data", *options],
                stdout=out,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            ) as process,
        ):
            assert process.stderr is not None
            for line in process.stderr:
                last = line.strip() or last
                tell(schemas.show(last, 200))
        if process.returncode:
            why = f"It ended with exit code {process.returncode}: {schemas.show(last, 300)}"
            raise RunnerError(
                "E404", "the evaluator could not read the data", why=why, fix="see what it says"
            )
        answers = map(json.loads, answer.read_bytes().splitlines())
        return dict(zip(requests, answers, strict=True))
