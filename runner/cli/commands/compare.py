"""``runner compare``: two runs topic by topic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from runner.cli import comparing, context, options, output
from runner.cli.app import app
from runner.model.errors import no_such

FORMATS = ("table", "json", "csv")


@app.command(
    epilog="Examples:  runner compare mine.dense.1a2b baselines.bm25.693f  |  runner compare RUN RUN --all  |  runner compare RUN RUN --measure ap --format csv  |  runner compare RUN RUN --html both.html"
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
            help="Write it as one page, with what is inside them; it needs no script and no network.",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", "-f", help="One of table, json, csv.")] = "table",
    excel: options.ExcelOption = False,
    as_: options.AsOption = "organiser",
    as_json: options.JsonOption = False,
) -> None:
    """Compare two runs topic by topic: wins, losses, ties, paired tests, effects, the topics on which they are furthest apart. Where the
    beginnings of ids fit several runs, the scored ones on the same dataset and scenario are meant.
    """
    from runner.records.commit import record_export
    from runner.views.comparison import page as pages
    from runner.views.comparison import topics as comparison
    from runner.views.listing import listed_runs, looked_up
    from runner.views.pages import write_page

    form = output.choose_csv("json" if as_json else form, excel=excel) or "table"
    if form not in FORMATS:
        raise no_such("format", form, FORMATS, fix=f"use one of {', '.join(FORMATS)}", code="E101")
    comparison.check_count(runs)
    where, audience = context.config(), context.audience(as_)
    tasks = context.all_tasks(where)
    with context.store(where) as store:
        known = (one.run for one in listed_runs(store, tasks, audience))
        found = [looked_up(store, tasks, audience, run) for run in comparison.named(known, runs)]
        task = found[0][2] or context.load_task(where, found[0][0].run.submission.task)
        both = [one[:2] for one in found]
        made = comparison.compare_found(both, task, audience, measure or ())
        name = " ".join(one.run.id for one, _, _ in found)
        if page is not None:
            written = pages.page(made, task, audience, pages.within(both, task, audience))
            write_page(page, written)
            record_export(store, task, "comparison", name, "html", audience, written)
        elif form != "table":
            record_export(store, task, "comparison", name, form, audience, made.as_csv())
    if page is not None:
        output.say(f"{page} has both runs as {audience} may see them")
    elif form == "json":
        output.as_json(made.as_dict())
    elif form == "csv":
        output.spreadsheet(made.as_csv(), excel=excel)
    else:
        comparing.show(made, task, everything)
