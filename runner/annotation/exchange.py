"""Forms out, labels in: writing forms for annotators, and putting labels of any form into the truths of a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.annotation import assign
from runner.annotation.sheets import MAX_SHEET, labels_of, page, read_answers, sheet_csv, sheet_jsonl
from runner.model.errors import Problem, RunnerError, disk_error
from runner.model.kinds import kind_spec
from runner.model.names import check_name
from runner.records.files import write_json
from runner.tasks.data_files import file_digest
from runner.tasks.transcripts import OWN, Transcripts, json_lines, refuse
from schemas.debates import CRITERIA, Debate, parse, transcript_digest
from schemas.file_sorts import find_wrong_sort
from schemas.files import atomic_file, make_private

if TYPE_CHECKING:
    from runner.model.config import Config
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


def write_forms(
    config: Config,
    store: Store,
    task: Task,
    dataset: Dataset,
    out: Path,
    *,
    annotators: int,
    per_annotator: int | None,
    overlap: float,
    seed: int,
    run: str | None,
) -> dict[str, Any]:
    """Write a page and two sheets for each annotator into the new folder ``out``, and their key into the data directory.

    Returns what was made, for people and ``--json``: ``form``, ``out``, ``key``, and the numbers of ``runs``, ``debates``,
    ``doubled`` debates and of debates by ``annotators``. Raises E101 for a folder that is not empty, E102 when there is nothing
    to judge.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunnerError("E101", f"{out} is there already", fix="name a new folder")
    transcripts = assign.sources(store, task, dataset, run)
    by_run = assign.items(transcripts, seed)
    every = assign.assign(by_run, annotators, overlap=overlap, per_annotator=per_annotator, seed=seed)
    lists = {name: items for name, items in every.items() if items}
    if not lists:
        raise RunnerError("E102", f"no debate on {dataset.id} has an answer", fix="look at the runs")
    key = assign.make_key(task, dataset, transcripts, lists)
    form = key["form"]
    path = assign.key_folder(config, task, dataset) / f"{form}.json"
    make_private(path.parent)
    write_json(path, key)
    path.chmod(0o600)
    out.mkdir(parents=True, exist_ok=True)
    for name, items in lists.items():
        for ending, make in (("html", page), ("csv", sheet_csv), ("jsonl", sheet_jsonl)):
            (out / f"{name}.{ending}").write_text(make(form, name, items), encoding="utf-8")
    ids = [item.id for items in lists.values() for item in items]
    return {
        "form": form,
        "out": str(out),
        "key": str(path),
        "runs": len(by_run),
        "debates": len(set(ids)),
        "doubled": len(ids) - len(set(ids)),
        "annotators": {name: len(items) for name, items in lists.items()},
    }


def import_files(
    config: Config,
    store: Store,
    task: Task,
    dataset: Dataset,
    paths: Iterable[Path],
    *,
    annotator: str,
    debates: Path | None,
    run: str | None,
    judge: str | None,
    key: Path | None,
) -> dict[str, Any]:
    """Put labels or a judge's scores into the truths of a dataset. All files are read before anything is written.

    Returns ``file``, ``new``, ``replaced``, ``labels`` and ``agreement`` when there were labels, ``judgments`` and ``judged`` when
    there were scores. Raises E101 for a file of scores without ``judge`` or one of positions without its debates, E102, E208,
    E402 for files that are missing or wrong.
    """
    rows: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    if judge is not None:
        check_name("judge", judge)
    for path in paths:
        form = _form(path)
        if form == "evaluations":
            if judge is None:
                raise RunnerError(
                    "E101", f"{path.name} holds a judge's scores", fix="name the judge: --judge"
                )
            about = _debates(store, task, dataset, debates, run) if debates or run else None
            scores += judgments(path, judge, about)
        elif form == "positional":
            rows += positional(path, _debates(store, task, dataset, debates, run), annotator)
        else:
            rows += read_own(path) if form == "own" else _answers(config, task, dataset, path, key)
    result: dict[str, Any] = {}
    if rows:
        labels = labels_file(task, dataset)
        result = {"file": str(labels), **merge(labels, rows)}
        note(store, task, dataset, labels, len(rows))
    if scores:
        target = dataset.truths / "judgments" / f"{judge}.jsonl"
        write_rows(target, scores)
        note(store, task, dataset, target, len(scores))
        result |= {"judgments": str(target), "judged": len(scores)}
    return {**result, "agreement": agreement(labels)} if rows else result


def _form(path: Path) -> str:
    """What a file holds, by its first line: evaluations, positional, own or answers."""
    if path.suffix.lower() in (".csv", ".json"):
        return "answers"
    problems: list[Problem] = []
    first = next((data for _, data in json_lines(path, problems, OWN)), None)
    if isinstance(first, list):
        return "positional"
    if isinstance(first, dict) and "userTurnsEvaluations" in first:
        return "evaluations"
    return "answers" if isinstance(first, dict) and "item" in first else "own"


def _debates(
    store: Store, task: Task, dataset: Dataset, debates: Path | None, run: str | None
) -> Transcripts:
    """The debates that a file without names is about: those given, of one run, or of a dataset of debates."""
    if debates is not None:
        return Transcripts.read(debates, debates.name, OWN)
    if run is None and kind_spec(task.kind).annotation != "inputs":
        raise RunnerError(
            "E101",
            "the file does not say which debates it is about",
            why="Its lines are matched by position.",
            fix="name the run with --run, or the file of the debates with --debates",
        )
    return assign.sources(store, task, dataset, run)[0]


def _answers(
    config: Config, task: Task, dataset: Dataset, path: Path, key: Path | None
) -> list[dict[str, Any]]:
    if not path.is_file():
        raise RunnerError("E102", f"there is no file {path}", fix="name a file")
    if path.stat().st_size > MAX_SHEET:
        raise RunnerError("E402", f"{path.name} is larger than {MAX_SHEET >> 20} MiB")
    data = path.read_bytes()
    sort = find_wrong_sort(data)
    if sort is not None:
        raise RunnerError("E402", f"{path.name} is {sort.name}", fix=sort.fix)
    form, rows = read_answers(path, data.decode("utf-8-sig", "replace"))
    return labels_of(path, rows, assign.find_key(config, task, dataset, form, key))
