"""``runner compare``: two runs topic by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.model.errors import no_such

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.views.comparison import Compared, Comparison

FORMATS = ("table", "json", "csv")
HEADS = ("measure", "first", "second", "difference", "w/l/t", "p", "effect")
LEGEND = (
    "w/l/t: topics on which the first run is better, worse, equal. p: {test}, two-sided, not corrected for several "
    "measures. effect: mean difference / standard deviation of the differences."
)


@app.command(
    epilog="Examples:  runner compare mine.dense.1a2b baselines.bm25.693f  |  runner compare RUN RUN --all  |  runner compare RUN RUN --measure ap --format csv"
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
    form: Annotated[str, typer.Option("--format", "-f", help="One of table, json, csv.")] = "table",
    as_: options.AsOption = "organiser",
    as_json: options.JsonOption = False,
) -> None:
    """Compare two runs topic by topic: wins, losses, ties, a paired test, the effect, the largest differences. Where the
    beginnings of ids fit several runs, the scored ones on the same dataset and scenario are meant.
    """
    from runner.records.commit import record_export
    from runner.views import comparison
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
        made = comparison.compare(views[0], views[1], task, measure or (), unlike)
        if form != "table":
            name = " ".join(view["run"] for view in views)
            record_export(store, task, "comparison", name, form, audience, made.as_csv())
    if form == "json":
        output.as_json(made.as_dict())
    elif form == "csv":
        output.data(made.as_csv())
    else:
        _print(made, task, everything)


def _print(made: Comparison, task: Task, everything: bool) -> None:
    from runner.views.comparison import LARGEST
    from runner.views.leaderboard.comparing import TEST_NAME
    from runner.views.show.topics import measure_names
    from runner.views.text import plural, wrapped

    output.facts({"first": made.first, "second": made.second})
    output.data("")
    rows = [one for one in made.measures if everything or one.id in made.shown] or list(made.measures)
    ranked = next(one for one in (*rows, *made.measures) if one.pairs)
    names = measure_names(task, [*dict.fromkeys(one.id for one in (*rows, ranked))])
    output.table(HEADS, [_row(one, names[one.id]) for one in rows], right=HEADS[1:])
    for name, why in made.left_out.items():
        if everything or name in made.shown:
            output.data(output.printable(f"no comparison on {name}: {why}"))
    pairs = ranked.pairs if everything else ranked.pairs[:LARGEST]
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
    for line in wrapped(LEGEND.format(test=TEST_NAME) + more, ""):
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
