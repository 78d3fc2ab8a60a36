"""Judging debates by people: forms for annotators, their labels, and how far they agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, output
from runner.cli.app import app

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Dataset, Task
    from runner.tasks.transcripts import Transcripts

labels = typer.Typer(
    help="Debates judged by people: forms, labels, agreement.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(labels, name="labels")

Dataset_ = Annotated[str, typer.Option("--dataset", help="A dataset of the task.")]


@labels.command(
    epilog="Examples:  runner labels export rad-2025-debate --dataset test --out forms --annotators 4"
)
def export(
    task: context.TaskArgument,
    dataset: Dataset_,
    out: Annotated[Path, typer.Option("--out", help="A new folder for the forms.")],
    annotators: Annotated[int, typer.Option("--annotators", min=1, max=200, help="How many people.")] = 4,
    per_annotator: Annotated[
        int | None, typer.Option("--per-annotator", min=1, help="Debates for each at most; default: all.")
    ] = None,
    overlap: Annotated[
        float, typer.Option("--overlap", min=0.0, max=1.0, help="Share of the debates that two people judge.")
    ] = 0.2,
    seed: Annotated[int, typer.Option("--seed", help="Of who judges what, and in which order.")] = 1,
    run: context.RunOption = None,
    as_json: context.JsonOption = False,
) -> None:
    """Make forms for annotators: the transcripts of all scored runs, without names, shuffled, overlapping."""
    from runner.annotation import assign as made_of
    from runner.annotation.sheets import page, sheet_csv, sheet_jsonl
    from runner.model.errors import RunnerError
    from runner.records.files import write_json
    from runner.views.text import plural

    where = context.config()
    loaded = context.load_task(where, task)
    chosen = context.get_dataset(loaded, dataset)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunnerError("E101", f"{out} is there already", fix="name a new folder")
    with context.store(where) as store:
        transcripts = made_of.sources(store, loaded, chosen, run)
    by_run = made_of.items(transcripts, seed)
    lists = made_of.assign(by_run, annotators, overlap=overlap, per_annotator=per_annotator, seed=seed)
    lists = {name: mine for name, mine in lists.items() if mine}
    if not lists:
        raise RunnerError("E102", f"no debate on {chosen.id} has an answer", fix="look at the runs")
    key = made_of.make_key(loaded, chosen, transcripts, lists)
    form = key["form"]
    keys = made_of.key_folder(where, loaded, chosen)
    keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_json(keys / f"{form}.json", key)
    (keys / f"{form}.json").chmod(0o600)
    out.mkdir(parents=True, exist_ok=True)
    for name, mine in lists.items():
        (out / f"{name}.html").write_text(page(form, name, mine), encoding="utf-8")
        (out / f"{name}.csv").write_text(sheet_csv(form, name, mine), encoding="utf-8")
        (out / f"{name}.jsonl").write_text(sheet_jsonl(form, name, mine), encoding="utf-8")
    several = [item.id for mine in lists.values() for item in mine]
    result: dict[str, Any] = {
        "form": form,
        "out": str(out),
        "key": str(keys / f"{form}.json"),
        "runs": len(by_run),
        "debates": len(set(several)),
        "doubled": len(several) - len(set(several)),
        "annotators": {name: len(mine) for name, mine in lists.items()},
    }
    output.say(
        f"{plural(result['debates'], 'debate')} of {plural(len(by_run), 'run')} for "
        f"{plural(len(lists), 'annotator')} in {out}, {result['doubled']} of them for two"
    )
    output.say(f"the key stays here: {result['key']}")
    output.say(f"next: runner labels import {loaded.id} --dataset {chosen.id} answers-*.json")
    if as_json:
        output.as_json(result)


@labels.command(
    "import",
    epilog="Examples:  runner labels import rad-2025-debate --dataset test answers-a1.json answers-a2.json  |  "
    "runner labels import rad-2025-debate --dataset test official-labels.jsonl --debates debates.jsonl  |  "
    "runner labels import rad-2025-debate --dataset test evaluations.jsonl --judge my-judge",
)
def import_(
    task: context.TaskArgument,
    files: Annotated[
        list[Path], typer.Argument(help="Answers, sheets, label files (any form) or evaluations.jsonl.")
    ],
    dataset: Dataset_,
    annotator: Annotated[
        str, typer.Option("--annotator", help="Who made a positional label file.")
    ] = "official",
    debates: Annotated[
        Path | None, typer.Option("--debates", help="The debates that a positional file is about.")
    ] = None,
    run: context.RunOption = None,
    judge: Annotated[
        str | None, typer.Option("--judge", help="Name of the judge whose evaluations.jsonl this is.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The form's key, if it is not in this data directory.")
    ] = None,
    as_json: context.JsonOption = False,
) -> None:
    """Put people's labels, or a judge's scores, into the truths of a dataset. A newer label replaces an older one."""
    from runner.annotation import files as labelfiles
    from runner.model.errors import RunnerError
    from runner.model.names import check_name
    from runner.views.text import plural

    where = context.config()
    loaded = context.load_task(where, task)
    chosen = context.get_dataset(loaded, dataset)
    rows: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    if judge is not None:
        check_name("judge", judge)
    for file in files:  # all are read before anything is written
        form = _form(file)
        if form == "evaluations":
            if judge is None:
                raise RunnerError(
                    "E101", f"{file.name} holds a judge's scores", fix="name the judge: --judge"
                )
            about = _debates(where, loaded, chosen, debates, run) if debates or run else None
            scores += labelfiles.judgments(file, judge, about)
        elif form == "positional":
            about = _debates(where, loaded, chosen, debates, run)
            rows += labelfiles.positional(file, about, annotator)
        elif form == "own":
            rows += labelfiles.read_own(file)
        else:
            rows += _answers(where, loaded, chosen, file, key)
    result: dict[str, Any] = {}
    with context.store(where) as store:  # opened first: what cannot be noted down is not done
        if rows:
            merged = labelfiles.merge(labelfiles.labels_file(loaded, chosen), rows)
            labelfiles.note(store, loaded, chosen, merged.path, len(rows))
        if scores:
            target = chosen.truths / "judgments" / f"{judge}.jsonl"
            labelfiles.write_rows(target, scores)
            labelfiles.note(store, loaded, chosen, target, len(scores))
    if rows:
        output.say(
            f"{merged.path}: {plural(merged.new, 'new label')}, {merged.replaced} replaced, {merged.labels} in all"
        )
        result |= {
            "file": str(merged.path),
            "new": merged.new,
            "replaced": merged.replaced,
            "labels": merged.labels,
        }
        result["agreement"] = labelfiles.agreement(merged.path)
        _tell(result["agreement"])
    if scores:
        output.say(f"{target}: {plural(len(scores), 'judged answer')}")
        result |= {"judgments": str(target), "judged": len(scores)}
    output.say(f"next: runner reevaluate --task {loaded.id} --dataset {chosen.id}")
    if as_json:
        output.as_json(result)


@labels.command(epilog="Examples:  runner labels agreement rad-2025-debate --dataset test")
def agreement(task: context.TaskArgument, dataset: Dataset_, as_json: context.JsonOption = False) -> None:
    """How far annotators agree: Krippendorff's alpha for all, Cohen's kappa for every two."""
    from runner.annotation.files import agreement as compare
    from runner.annotation.files import labels_file
    from runner.model.errors import RunnerError

    loaded = context.load_task(context.config(), task)
    chosen = context.get_dataset(loaded, dataset)
    path = labels_file(loaded, chosen)
    if not path.is_file():
        raise RunnerError(
            "E102",
            f"there are no labels for {chosen.id}",
            fix=f"runner labels export {loaded.id} --dataset {chosen.id} --out FOLDER",
        )
    found = compare(path)
    if as_json:
        output.as_json(found)
    else:
        _table(found)


def _form(file: Path) -> str:
    """What a file holds, by its first lines: evaluations, positional, own or answers."""
    from runner.model.errors import Problem
    from runner.tasks.transcripts import json_lines

    if file.suffix.lower() in (".csv", ".json"):
        return "answers"
    problems: list[Problem] = []
    first = next((data for _, data in json_lines(file, problems)), None)
    if isinstance(first, list):
        return "positional"
    if isinstance(first, dict) and "userTurnsEvaluations" in first:
        return "evaluations"
    return "answers" if isinstance(first, dict) and "item" in first else "own"


def _debates(
    where: Config, task: Task, dataset: Dataset, debates: Path | None, run: str | None
) -> Transcripts:
    """The debates that a file without names is about: those given, of one run, or of a dataset of debates."""
    from runner.annotation.assign import sources
    from runner.model.errors import RunnerError
    from runner.model.kinds import kind_spec
    from runner.tasks.transcripts import Transcripts

    if debates is not None:
        return Transcripts.read(debates, debates.name)
    if run is None and kind_spec(task.kind).annotation != "inputs":
        raise RunnerError(
            "E101",
            "the file does not say which debates it is about",
            why="Its lines are matched by position.",
            fix="name the run with --run, or the file of the debates with --debates",
        )
    with context.store(where) as store:
        return sources(store, task, dataset, run)[0]


def _answers(
    where: Config, task: Task, dataset: Dataset, file: Path, key: Path | None
) -> list[dict[str, Any]]:
    from runner.annotation.assign import find_key
    from runner.annotation.sheets import MAX_SHEET, read_answers
    from runner.model.errors import RunnerError, no_such

    if not file.is_file():
        raise no_such("file", file, fix="name a file", limit=1000)
    if file.stat().st_size > MAX_SHEET:
        raise RunnerError("E402", f"{file.name} is larger than {MAX_SHEET >> 20} MiB")
    text = file.read_bytes().decode("utf-8-sig", "replace")
    answers = read_answers(file, text)
    return answers.labels(file, find_key(where, task, dataset, answers.form, key))


def _tell(found: dict[str, Any]) -> None:
    from runner.views.text import plural

    for criterion, one in found.items():
        if one["doubled"]:
            alpha = "not defined" if one["alpha"] is None else f"{one['alpha']:.3f}"
            output.say(
                f"{criterion}: alpha {alpha} over {plural(one['doubled'], 'answer')} judged by two or more"
            )


def _table(found: dict[str, Any]) -> None:
    rows = []
    for criterion, one in found.items():
        alpha = "–" if one["alpha"] is None else f"{one['alpha']:.3f}"
        rows.append((criterion, "all", "alpha", alpha, "", str(one["doubled"])))
        for pair in one["pairs"]:
            value = "–" if pair["kappa"] is None else f"{pair['kappa']:.3f}"
            rows.append(
                (
                    criterion,
                    ", ".join(pair["annotators"]),
                    "kappa",
                    value,
                    f"{pair['equal']:.0%}",
                    str(pair["items"]),
                )
            )
    output.table(
        ("criterion", "annotators", "figure", "value", "equal", "answers"),
        rows,
        right=("value", "equal", "answers"),
    )
