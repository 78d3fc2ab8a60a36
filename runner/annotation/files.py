"""Labels and judgments of debates in the truths: reading every form of them, and merging new ones into the old."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.errors import Problem, RunnerError, disk_error
from runner.model.kinds import kind_spec
from runner.tasks.data_files import file_digest
from runner.tasks.transcripts import OWN, Transcripts, json_lines, refuse
from schemas.debates import CRITERIA, Debate, parse, transcript_digest
from schemas.files import atomic_file

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store


def labels_file(task: Task, dataset: Dataset) -> Path:
    """The file of the truths that labels are written to."""
    names = {m.truths for m in task.measures.values()}
    if kind_spec(task.kind).annotation == "inputs" and len(names) == 1:
        return dataset.truths / names.pop()
    return dataset.truths / "labels" / "labels.jsonl"


def read_own(path: Path) -> list[dict[str, Any]]:
    """Labels in our form, each checked against its schema. Raises E402 with every line that is none."""
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for number, data in json_lines(path, problems, OWN):
        found = schemas.validate(data, "debate-labels")
        where = f"{schemas.show(path.name, 200)}:{number}"
        problems += [Problem(where, p.what, p.fix) for p in found]
        if not found:
            rows.append(data)
    refuse(path, problems)
    return rows


def merge(path: Path, rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Put labels into a file of them; a newer label of the same annotator about the same answer replaces the old one.

    Returns how many are ``new``, ``replaced``, and there now (``labels``). Raises E402 when the file is there and not in our form.
    """

    def key(row: Mapping[str, Any]) -> tuple[str, int, int, str]:
        return row["run"], row["debate"], row["turn"], row["annotator"]

    if path.is_file() and isinstance(next((data for _, data in json_lines(path, [], OWN)), None), list):
        raise RunnerError(
            "E402",
            f"no labels can be added to {schemas.show(path.name, 200)}",
            why="It holds labels by position, without annotators.",
            fix="move it away, and import it with runner labels import",
        )
    known = {key(row): row for row in (read_own(path) if path.is_file() else ())}
    before = len(known)
    replaced = 0
    for row in rows:
        old = known.get(key(row))
        replaced += old is not None and old != row
        known[key(row)] = dict(row)
    write_rows(path, [known[k] for k in sorted(known)])
    return {"new": len(known) - before, "replaced": replaced, "labels": len(known)}


def note(store: Store, task: Task, dataset: Dataset, path: Path, count: int) -> None:
    """Record that ``count`` labels or judged answers were put into ``path``, a file of the dataset's truths."""
    data = {"task": task.id, "dataset": dataset.id, "file": path.relative_to(dataset.truths).as_posix()}
    store.commit("labels-imported", {**data, "sha256": file_digest(path), "count": count}, actor="organiser")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines as a whole or not at all, for the owner only where the file is new. Raises E306."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        # Half of a surrogate pair, in a comment say, is written as the escape that JSON has for it.
        with atomic_file(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise disk_error(f"{path.name} cannot be written", error, path.parent) from error


def positional(path: Path, debates: Transcripts, annotator: str) -> list[dict[str, Any]]:
    """Labels of a file in the shared task's form: line n is debate n, an array with one object per turn.

    As its own evaluator, 1, 1.0, true and "1" are taken for 1, and so on. Raises E402 with every problem.
    """
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    count = 0
    for count, (number, data) in enumerate(json_lines(path, problems, OWN), 1):
        if count > len(debates.debates):
            continue
        debate = debates.debates[count - 1]
        label = {"run": debates.digest, "transcript": transcript_digest([debate]), "debate": count}
        where = f"{schemas.show(path.name, 200)}:{number}"
        for turn, values in _labels(where, count, debate, data, problems):
            rows.append({**label, "turn": turn, "annotator": annotator, **values})
    if count != len(debates.debates):
        what = f"it has labels of {count} debates, and {debates.name} has {len(debates.debates)}"
        fix = "name the debates that the labels are about"
        problems.append(Problem(schemas.show(path.name, 200), what, fix))
    refuse(path, problems)
    return rows


def _labels(
    where: str, number: int, debate: Debate, data: Any, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The turns of one line of positional labels that somebody judged, with the labels by criterion."""
    if not isinstance(data, list):
        problems.append(Problem(where, "the line is not an array of turns"))
    elif len(data) != len(debate.turns):
        what = f"debate {number} has {len(debate.turns)} turns, and labels of {len(data)}"
        problems.append(Problem(where, what))
    else:
        for turn, values in enumerate(data, 1):
            if values is None:
                continue
            if not isinstance(values, dict):
                problems.append(Problem(where, f"turn {turn} is not an object"))
                continue
            labels = {c: _official(values[c]) for c in CRITERIA if c in values}
            bad = [c for c, label in labels.items() if label == "?"]
            if bad:
                problems.append(Problem(where, f"{bad[0]} of turn {turn} is none of 0, 1 and null"))
            else:
                yield turn, labels


def _official(value: Any) -> Any:
    """A label as the shared task's evaluator understands it: 0, 1 or None; "?" for anything else."""
    if value is None:
        return None
    if isinstance(value, str):
        return {"0": 0, "1": 1}.get(value, "?")
    return int(value) if isinstance(value, int | float) and value in (0, 1) else "?"


def judgments(path: Path, judge: str, debates: Transcripts | None) -> list[dict[str, Any]]:
    """A judge's scores (``evaluations.jsonl``) by the transcripts they are about.

    ``debates`` are needed where a line does not repeat its debate. Raises E402 with every problem.
    """
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for count, (number, data) in enumerate(json_lines(path, problems, OWN), 1):
        where = f"{schemas.show(path.name, 200)}:{number}"
        turns = data.get("userTurnsEvaluations") if isinstance(data, dict) else None
        if not isinstance(turns, list):
            problems.append(Problem(where, "the line has no list userTurnsEvaluations"))
            continue
        debate: Debate | None = None
        if "simulation" in data:
            debate, _ = parse({"simulation": data["simulation"]})
        elif debates is not None and count <= len(debates.debates):
            debate = debates.debates[count - 1]
        if debate is None:
            fix = "name the debates with --debates"
            problems.append(Problem(where, "nothing says which debate is judged", fix))
        elif len(turns) != len(debate.turns):
            what = f"the debate has {len(debate.turns)} turns, and judgments of {len(turns)}"
            problems.append(Problem(where, what))
        else:
            about = {"transcript": transcript_digest([debate])}
            for turn, values in _scores(where, turns, problems):
                rows.append({**about, "turn": turn, "judge": judge, **values})
    refuse(path, problems)
    return rows


def _scores(
    where: str, turns: Sequence[Any], problems: list[Problem]
) -> Iterator[tuple[int, dict[str, float]]]:
    """The turns of one line of a judge's file that have scores, with these by criterion."""
    for turn, one in enumerate(turns, 1):
        values: dict[str, float] = {}
        for criterion in CRITERIA:
            said = one.get(criterion.capitalize()) if isinstance(one, dict) else None
            score = said.get("score") if isinstance(said, dict) else None
            if (
                isinstance(score, bool)
                or not isinstance(score, int | float | None)
                or not 0 <= (score or 0) <= 1
            ):
                what = f"the score of {criterion} in turn {turn} is not a number from 0 to 1"
                problems.append(Problem(where, what))
            elif score is not None:
                values[criterion] = score
        if values:
            yield turn, values


def agreement(path: Path) -> dict[str, Any]:
    """How far the annotators of a file of labels agree, by criterion.

    The figures are the evaluator's, which is a program of its own and is started as one. Raises E404.
    """
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "evaluator", "agreement", str(path), "--json"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise RunnerError("E404", "agreement cannot be computed", why=schemas.show(done.stderr.strip(), 300))
    found: dict[str, Any] = json.loads(done.stdout)["criteria"]
    return found
