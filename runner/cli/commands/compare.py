"""``runner compare``: two to eight runs topic by topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import comparing, context, options, output
from runner.cli.app import app
from runner.model.errors import no_such

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail
    from runner.views.audience import Audience
    from runner.views.comparison.several import Comparisons
    from runner.views.comparison.topics import Comparison

FORMATS = ("table", "json", "csv")


@app.command(
    epilog="Examples:  runner compare mine.dense.1a2b baselines.bm25.693f  |  runner compare RUN RUN --all  |  runner compare RUN RUN --measure ap --format csv  |  runner compare RUN RUN RUN --html all.html"
)
def compare(
    runs: options.RunsArgument,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", help="Only this measure, by its id; may be given several times."),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="All measures and topics; default: the table's, and the largest differences."
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--html",
            help="Write it as one page, with what both retrieved and what is inside them; it needs no script and no network.",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", "-f", help="One of table, json, csv.")] = "table",
    excel: options.ExcelOption = False,
    as_: options.AsOption = "organiser",
    as_json: options.JsonOption = False,
) -> None:
    """Compare two to eight runs topic by topic: wins, losses, ties, paired tests, effects, the topics on which they are furthest apart. Of
    three and more all pairs are tested, with Holm's correction. Where the beginnings of ids fit several runs, the scored ones on the same
    dataset and scenario are meant.
    """
    from runner.records.commit import record_export
    from runner.views.comparison import several
    from runner.views.comparison import topics as comparison
    from runner.views.listing import listed_runs, looked_up

    form = output.choose_csv("json" if as_json else form, excel=excel) or "table"
    if form not in FORMATS:
        raise no_such("format", form, FORMATS, fix=f"use one of {', '.join(FORMATS)}", code="E101")
    several.how_many(len(runs))
    where, audience = context.config(), context.audience(as_)
    tasks = context.all_tasks(where)
    with context.store(where) as store:
        known = (one.run for one in listed_runs(store, tasks, audience))
        found = [looked_up(store, tasks, audience, run) for run in comparison.named(known, runs)]
        task = found[0][2] or context.load_task(where, found[0][0].run.submission.task)
        made = _compared([one[:2] for one in found], task, audience, measure or ())
        name = " ".join(one.run.id for one, _, _ in found)
        if page is not None:
            written = _write(page, made, [one[:2] for one in found], task, audience)
            record_export(store, task, "comparison", name, "html", audience, written)
        elif form != "table":
            record_export(store, task, "comparison", name, form, audience, made.as_csv())
    if page is not None:
        output.say(f"{page} has {'both' if len(found) == 2 else 'all'} runs as {audience} may see them")
    elif form == "json":
        output.as_json(made.as_dict())
    elif form == "csv":
        output.spreadsheet(made.as_csv(), excel=excel)
    else:
        comparing.show(made, task, everything)


def _compared(
    found: Sequence[tuple[RunDetail, Dataset]], task: Task, audience: Audience, wanted: Sequence[str]
) -> Comparison | Comparisons:
    """Two runs, or several, as an audience may see them."""
    from runner.views.comparison import several
    from runner.views.comparison import topics as comparison
    from runner.views.redact import redact_run

    if len(found) > 2:
        return several.compare_found(found, task, audience, wanted)
    first, second = (redact_run(one, audience, dataset) for one, dataset in found)
    unlike = comparison.unlike(*(one.run for one, _ in found))
    ours, theirs = (comparison.resamples_of(one, audience) for one, _ in found)
    return comparison.compare(first, second, task, wanted, unlike, (ours, theirs))


def _write(
    page: Path,
    made: Comparison | Comparisons,
    runs: Sequence[tuple[RunDetail, Dataset]],
    task: Task,
    audience: Audience,
) -> str:
    """Write the page of a comparison; returns it."""
    from runner.views.comparison import page as pages
    from runner.views.comparison.topics import Comparison
    from runner.views.pages import write_page

    if isinstance(made, Comparison):
        written = pages.page(made, task, audience, pages.within(runs, task, audience))
    else:
        written = pages.page_of_all(made, task, audience, runs[0][1])
    write_page(page, written)
    return written
