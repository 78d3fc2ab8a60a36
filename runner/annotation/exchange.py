"""Forms out, labels in: writing forms for annotators, and putting labels of any form into the truths of a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.annotation import assign, files
from runner.annotation.sheets import MAX_SHEET, labels_of, page, read_answers, sheet_csv, sheet_jsonl
from runner.model.errors import Problem, RunnerError
from runner.model.kinds import kind_spec
from runner.model.names import check_name
from runner.records.files import write_json
from runner.tasks.transcripts import OWN, Transcripts, json_lines
from schemas.file_sorts import find_wrong_sort
from schemas.files import make_private

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Dataset, Task
    from runner.records.store.connect import Store


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
            scores += files.judgments(path, judge, about)
        elif form == "positional":
            rows += files.positional(path, _debates(store, task, dataset, debates, run), annotator)
        else:
            rows += files.read_own(path) if form == "own" else _answers(config, task, dataset, path, key)
    result: dict[str, Any] = {}
    if rows:
        labels = files.labels_file(task, dataset)
        result = {"file": str(labels), **files.merge(labels, rows)}
        files.note(store, task, dataset, labels, len(rows))
    if scores:
        target = dataset.truths / "judgments" / f"{judge}.jsonl"
        files.write_rows(target, scores)
        files.note(store, task, dataset, target, len(scores))
        result |= {"judgments": str(target), "judged": len(scores)}
    return {**result, "agreement": files.agreement(labels)} if rows else result


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
