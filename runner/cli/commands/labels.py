"""Judging debates by people: forms for annotators, their labels, and how far they agree."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import group
from runner.model.errors import RunnerError

labels = group("labels", "Debates judged by people: forms, labels, agreement.")


@labels.command(
    epilog="Examples:  runner labels export rad-2025-debate --dataset test --out forms --annotators 4"
)
def export(
    task: options.TaskArgument,
    dataset: options.NeededDataset,
    out: Annotated[Path, typer.Option("--out", help="A new folder for the forms.")],
    annotators: Annotated[int, typer.Option("--annotators", min=1, max=200, help="How many people.")] = 4,
    per_annotator: Annotated[
        int | None, typer.Option("--per-annotator", min=1, help="Debates for each at most; default: all.")
    ] = None,
    overlap: Annotated[
        float, typer.Option("--overlap", min=0.0, max=1.0, help="Share of the debates that two people judge.")
    ] = 0.2,
    seed: Annotated[int, typer.Option("--seed", help="Of who judges what, and in which order.")] = 1,
    run: options.RunOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Make forms for annotators: the transcripts of all scored runs, without names, shuffled, overlapping."""
    from runner.annotation.exchange import write_forms
    from runner.records.commit import record_export
    from runner.views.text import plural

    where, loaded, chosen = context.dataset(task, dataset)
    with context.store(where) as store:
        result = write_forms(
            where, store, loaded, chosen, out,
            annotators=annotators, per_annotator=per_annotator, overlap=overlap, seed=seed, run=run,
        )  # fmt: skip
        record_export(store, loaded, "forms", chosen.id, "html, csv, jsonl", "annotators", result["form"])
    people = plural(len(result["annotators"]), "annotator")
    output.say(
        f"{plural(result['debates'], 'debate')} of {plural(result['runs'], 'run')} for {people} in {out}, "
        f"{result['doubled']} of them for two"
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
    task: options.TaskArgument,
    files: Annotated[
        list[Path], typer.Argument(help="Answers, sheets, label files (any form) or evaluations.jsonl.")
    ],
    dataset: options.NeededDataset,
    annotator: Annotated[
        str, typer.Option("--annotator", help="Who made a positional label file.")
    ] = "official",
    debates: Annotated[
        Path | None, typer.Option("--debates", help="The debates that a positional file is about.")
    ] = None,
    run: options.RunOption = None,
    judge: Annotated[
        str | None, typer.Option("--judge", help="Name of the judge whose evaluations.jsonl this is.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The form's key, if it is not in this data directory.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Put people's labels, or a judge's scores, into the truths of a dataset. A newer label replaces an older one."""
    from runner.annotation.exchange import import_files
    from runner.views.text import plural

    where, loaded, chosen = context.dataset(task, dataset)
    with context.store(where) as store:  # opened first: what cannot be noted down is not done
        result = import_files(
            where, store, loaded, chosen, files,
            annotator=annotator, debates=debates, run=run, judge=judge, key=key,
        )  # fmt: skip
    if "file" in result:
        new, replaced = plural(result["new"], "new label"), result["replaced"]
        output.say(f"{result['file']}: {new}, {replaced} replaced, {result['labels']} in all")
        _say_agreement(result["agreement"])
    if "judgments" in result:
        output.say(f"{result['judgments']}: {plural(result['judged'], 'judged answer')}")
    output.say(f"next: runner reevaluate --task {loaded.id} --dataset {chosen.id}")
    if as_json:
        output.as_json(result)


@labels.command(epilog="Examples:  runner labels agreement rad-2025-debate --dataset test")
def agreement(
    task: options.TaskArgument, dataset: options.NeededDataset, as_json: options.JsonOption = False
) -> None:
    """How far annotators agree: Krippendorff's alpha for all, Cohen's kappa for every two."""
    from runner.annotation.exchange import agreement as compare
    from runner.annotation.exchange import labels_file

    _, loaded, chosen = context.dataset(task, dataset)
    path = labels_file(loaded, chosen)
    if not path.is_file():
        fix = f"runner labels export {loaded.id} --dataset {chosen.id} --out FOLDER"
        raise RunnerError("E102", f"there are no labels for {chosen.id}", fix=fix)
    figures = compare(path)
    if as_json:
        output.as_json(figures)
    else:
        _table(figures)


def _say_agreement(found: dict[str, Any]) -> None:
    from runner.views.text import plural

    for criterion, figures in found.items():
        if figures["doubled"]:
            alpha = output.figure(figures["alpha"], 3, none="not defined")
            answers = plural(figures["doubled"], "answer")
            output.say(f"{criterion}: alpha {alpha} over {answers} judged by two or more")


def _table(found: dict[str, Any]) -> None:
    figure = partial(output.figure, digits=3)
    rows = []
    for criterion, figures in found.items():
        rows.append((criterion, "all", "alpha", figure(figures["alpha"]), "", str(figures["doubled"])))
        for pair in figures["pairs"]:
            names, equal = ", ".join(pair["annotators"]), f"{pair['equal']:.0%}"
            rows.append((criterion, names, "kappa", figure(pair["kappa"]), equal, str(pair["items"])))
    columns = ("criterion", "annotators", "figure", "value", "equal", "answers")
    output.table(columns, rows, right=columns[3:])
