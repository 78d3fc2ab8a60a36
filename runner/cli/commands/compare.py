"""``runner compare``: two runs topic by topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.model.errors import no_such

if TYPE_CHECKING:
    from runner.model.comparing.topics import Compared
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail
    from runner.views.audience import Audience
    from runner.views.comparison.topics import Comparison

FORMATS = ("table", "json", "csv")
HEADS = ("measure", "first", "second", "difference", "w/l/t", "p", "effect")
LEGEND = (
    "w/l/t: topics on which the first run is better, worse, equal. p: {test}, two-sided, not corrected for several "
    "measures. effect: mean difference / standard deviation of the differences."
)


@app.command(
    epilog="Examples:  runner compare mine.dense.1a2b baselines.bm25.693f  |  runner compare RUN RUN --all  |  runner compare RUN RUN --measure ap --format csv  |  runner compare RUN RUN --html both.html"
)
def compare(
    first: options.RunArgument,
    second: options.RunArgument,
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
    as_: options.AsOption = "organiser",
    as_json: options.JsonOption = False,
) -> None:
    """Compare two runs topic by topic: wins, losses, ties, a paired test, the effect, the largest differences. Where the
    beginnings of ids fit several runs, the scored ones on the same dataset and scenario are meant.
    """
    from runner.records.commit import record_export
    from runner.views.comparison import topics as comparison
    from runner.views.listing import listed_runs, looked_up
    from runner.views.redact import redact_run

    form = "json" if as_json else form
    if form not in FORMATS:
        raise no_such("format", form, FORMATS, fix=f"use one of {', '.join(FORMATS)}", code="E101")
    where, audience = context.config(), context.audience(as_)
    tasks = context.all_tasks(where)
    with context.store(where) as store:
        known = (one.run for one in listed_runs(store, tasks, audience))
        found = [looked_up(store, tasks, audience, run) for run in comparison.pair(known, first, second)]
        views = [redact_run(one, audience, dataset) for one, dataset, _ in found]
        task = found[0][2] or context.load_task(where, views[0]["task"])
        unlike = comparison.unlike(found[0][0].run, found[1][0].run)
        drawn = comparison.resamples_of(found[0][0], audience), comparison.resamples_of(found[1][0], audience)
        made = comparison.compare(views[0], views[1], task, measure or (), unlike, drawn)
        name = " ".join(view["run"] for view in views)
        if page is not None:
            written = _write(page, made, [one[:2] for one in found], task, audience)
            record_export(store, task, "comparison", name, "html", audience, written)
        elif form != "table":
            record_export(store, task, "comparison", name, form, audience, made.as_csv())
    if page is not None:
        output.say(f"{page} has both runs as {audience} may see them")
    elif form == "json":
        output.as_json(made.as_dict())
    elif form == "csv":
        output.data(made.as_csv())
    else:
        _print(made, task, everything)


def _write(
    page: Path, made: Comparison, both: Sequence[tuple[RunDetail, Dataset]], task: Task, audience: Audience
) -> str:
    """Write the page of a comparison; returns it."""
    from runner.views.comparison import page as pages
    from runner.views.pages import write_page

    written = pages.page(made, task, audience, pages.within(both, task, audience))
    write_page(page, written)
    return written


def _print(made: Comparison, task: Task, everything: bool) -> None:
    from runner.views.comparison.topics import LARGEST
    from runner.views.show.topics import measure_names
    from runner.views.text import plural, wrapped

    output.facts({"first": made.first, "second": made.second})
    output.data("")
    rows = [one for one in made.measures if everything or one.id in made.shown] or list(made.measures)
    ranked = next((one for one in (*rows, *made.measures) if one.pairs), rows[0])
    names = measure_names(task, [*dict.fromkeys(one.id for one in (*rows, ranked))])
    output.table(HEADS, [_row(one, names[one.id]) for one in rows], right=HEADS[1:])
    for name, why in made.left_out.items():
        if everything or name in made.shown:
            output.data(output.printable(f"no comparison on {name}: {why}"))
    pairs = ranked.pairs if everything else ranked.pairs[:LARGEST]
    if pairs:
        more = "" if len(pairs) == len(ranked.pairs) else ", the largest differences; --all shows all"
        output.data(f"\n{plural(len(ranked.pairs), 'topic')} by {names[ranked.id]}{more}:")
        output.table(
            ("topic", "first", "second", "difference"),
            [(p.topic, f"{p.first:.4f}", f"{p.second:.4f}", _signed(p.difference)) for p in pairs],
            right=("first", "second", "difference"),
        )
    output.data("")
    left = len(made.measures) - len(rows)
    more = f" {plural(left, 'more measure')} with --all." if left else ""
    tests = "; ".join(dict.fromkeys(one.test for one in rows if one.p is not None))
    for line in wrapped(LEGEND.format(test=tests) + more, ""):
        output.data(line)
    for note in made.notes:
        for line in wrapped(note, "note: "):
            output.data(line)


def _row(one: Compared, name: str) -> tuple[str, ...]:
    counts = f"{one.wins}/{one.losses}/{one.ties}" if one.pairs else "–"
    p = "<0.001" if one.p is not None and one.p < 0.001 else output.figure(one.p, 3)
    name = f"{name} ↓" if one.direction == "lower" else name
    effect = "–" if one.effect is None else f"{one.effect:+.2f}"
    return name, f"{one.first:.4f}", f"{one.second:.4f}", _signed(one.difference), counts, p, effect


def _signed(value: float) -> str:
    return f"{value:+.4f}"
