"""Leaderboards: as tables, and as plots."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.cli.boards import print_table
from runner.model.errors import RunnerError, no_such
from runner.views.leaderboard.formats import FORMATS, TREC

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store
    from runner.views.audience import Audience
    from runner.views.leaderboard.rows import LeaderboardTable
    from runner.views.plots.base import Plot

PLOTS = "scores, topics, critical or run"
BINARY = ("pdf", "png")


@app.command(
    epilog="Examples:  runner leaderboard vaswani  |  runner leaderboard vaswani --method automatic --how executed  |  runner leaderboard vaswani --unit team --pick best --wide  |  runner leaderboard vaswani --against alpha/dense  |  runner leaderboard vaswani --format latex  |  runner leaderboard vaswani --as public  |  runner leaderboard vaswani --to local"
)
def leaderboard(
    task: options.TaskArgument,
    table: options.BoardOption = None,
    round_: options.RoundOption = None,
    method: options.MethodOption = None,
    how: options.HowOption = None,
    unit: options.UnitOption = None,
    pick: options.PickOption = None,
    topics: options.TopicsOption = None,
    against: options.AgainstOption = None,
    wide: options.WideOption = False,
    form: Annotated[
        str, typer.Option("--format", "-f", help=f"One of {', '.join((*FORMATS, *TREC))}.")
    ] = "table",
    excel: options.ExcelOption = False,
    as_: options.AsOption = "organiser",
    to: options.ServerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print a leaderboard: ranked runs, and below them what failed, with the reason."""
    from runner.views.leaderboard.rounds import board
    from runner.views.leaderboard.table import build, filtered

    form = output.choose_csv("json" if as_json else form, excel=excel) or "table"
    if form not in (*FORMATS, *TREC):
        known = (*FORMATS, *TREC)
        raise no_such("format", form, known, fix=f"use one of {', '.join(known)}", code="E101")
    if to is not None:
        if unit or pick or topics:
            fix = "leave --unit, --pick and --topics away"
            raise RunnerError("E101", "a server gives a table as its task says", fix=fix)
        from runner.cli.remote.looking import board_at

        shown = board_at(to, task, table, round_, against)
        print_table(filtered(shown, method=method, how=how), form, wide=wide, excel=excel)
        return
    where = context.config()
    loaded = context.load_task(where, task)
    with context.store(where) as store:
        choices: dict[str, Any] = {"unit": unit, "pick": pick, "topics": topics, "against": against}
        choices["running"] = list(store.archive.live())
        if round_ is None:
            built = build(store, loaded, table, context.audience(as_), **choices)
        else:
            built = board(store, loaded, round_, table, context.audience(as_), **choices)
        shown = filtered(built, method=method, how=how)
        if form != "table":
            _write_out(store, loaded, shown, form, topics, excel=excel)
            return
    print_table(shown, wide=wide)
    if table is None:
        _more(loaded, built)


def _write_out(
    store: Store, task: Task, table: LeaderboardTable, form: str, topics: str | None, *, excel: bool
) -> None:
    """Print a leaderboard in a format for others, which is an event; where that has no place for notes, what is stale is said."""
    from runner.records.commit import record_export
    from runner.views.leaderboard.export import export
    from runner.views.leaderboard.formats.trec import to_trec

    if form in TREC:
        # Scores by topic are not for everybody, a round has frozen none, and several cells may share topics.
        alone = table.audience == "organiser" and table.round is None and len(table.cells) == 1
        text = to_trec(table, form, _by_topic(store, task, table, topics) if alone else None)
    else:
        text = export(table, form)
    record_export(store, task, "leaderboard", table.table, form, table.audience, text)
    output.spreadsheet(text, excel=excel)
    for note in table.notes if form in TREC else ():
        if note.startswith("Stale: "):
            output.say(note)


def _by_topic(
    store: Store, task: Task, table: LeaderboardTable, topics: str | None
) -> dict[tuple[str, str], dict[str, float]]:
    """The scores by topic of the rows of the organiser's table with one cell."""
    from runner.records.store import queries, results
    from runner.views.audience import ORGANISER
    from runner.views.scores import board_split

    split = board_split(store, task, [cell.dataset for cell in table.cells], ORGANISER, topics)
    runs = {run.id: run for run in queries.runs(store, [task], task=task.id)}
    return {
        (row.submission, column.id): results.topic_scores(store, runs[name], column.id, split)
        for row in table.rows
        for name in row.runs
        for column in table.columns
    }


def _more(task: Task, shown: LeaderboardTable) -> None:
    """Say which other tables there are: the whole ones by name, those of single cells by an example."""
    more = [t.id for t in task.tables.values() if t.part_of is None and t.id != shown.table]
    single = next(
        (t.id for t in task.tables.values() if t.part_of == shown.table and t.cells[0] in shown.cells), ""
    )
    texts = [*more, f"one for each cell, such as {single}"] if single else more
    if texts:
        output.say(f"more tables with --table: {', '.join(texts)}")


@app.command(
    epilog="Examples:  runner plot vaswani scores --out scores.pdf  |  runner plot vaswani topics --dataset dev --run alpha.dense --run baselines.bm25 --out topics.png  |  runner plot vaswani run --run alpha.dense --as team:alpha --out run.svg  |  runner plot vaswani critical --format csv"
)
def plot(
    task: options.TaskArgument,
    kind: Annotated[str, typer.Argument(help=f"What is shown: {PLOTS}.")],
    table: options.BoardOption = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="The first of the task's tables with this dataset alone.")
    ] = None,
    round_: options.RoundOption = None,
    measure: Annotated[
        str | None,
        typer.Option("--measure", help="A measure of the table by its id; default: the one that ranks."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", help="Only these runs, or the beginnings of their ids, for what is by topic."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="One of svg, pdf, png, json (Vega-Lite), csv; default as the file is named, or svg.",
        ),
    ] = None,
    excel: options.ExcelOption = False,
    out: Annotated[Path | None, typer.Option("--out", help="The file to write to; default: printed.")] = None,
    as_: options.AsOption = "organiser",
) -> None:
    """Plot a leaderboard or a run. What is plotted is what the same audience may read as a table, which --format csv prints;
    what the plot says is told in two sentences. Pictures need the extra packages proctor-ir[plots].
    """
    from runner.records.commit import record_export
    from runner.views.plots.drawing import drawn
    from runner.views.plots.making import KINDS as KNOWN

    if kind not in KNOWN:
        raise no_such("kind of plot", kind, KNOWN, fix=f"use one of {', '.join(KNOWN)}", code="E101")
    form, of = (
        _format(form, out, excel=excel),
        (*filter(None, (table, dataset, round_)), *(run or ())),
    )
    where, audience = context.config(), context.audience(as_)
    loaded = context.load_task(where, task)
    with context.store(where) as store:
        if kind == "run":
            made = _of_run(store, loaded, audience, run or [])
        else:
            name = table if dataset is None else _table_of(loaded, table, dataset)
            made = _of_board(store, loaded, audience, kind, name, round_, measure, run or [])
        content = (b"\xef\xbb\xbf" if excel else b"") + drawn(made, form)
        record_export(store, loaded, "plot", " ".join((kind, *of)), form, audience, made.as_csv())
    _write(content, form, out)
    output.say(made.says)


def _format(form: str | None, out: Path | None, *, excel: bool) -> str:
    """Return the format that was asked for, or that the name of the file says. Raises E101 for another."""
    from runner.views.plots.drawing import FORMATS

    wanted = form or (out.suffix.removeprefix(".").lower() if out is not None else "")
    wanted = output.choose_csv(wanted or None, excel=excel) or "svg"
    if wanted not in FORMATS:
        raise no_such("format", wanted, FORMATS, fix=f"use one of {', '.join(FORMATS)}", code="E101")
    if out is None and wanted in BINARY and sys.stdout.isatty():
        raise RunnerError(
            "E101", f"{wanted} is nothing for a terminal", fix=f"name a file: --out plot.{wanted}"
        )
    return wanted


def _write(content: bytes, form: str, out: Path | None) -> None:
    from schemas.files import atomic_file

    if out is not None:
        with atomic_file(out) as file:
            file.write(content)
        output.say(f"{out} has the plot")
    elif form in BINARY:
        sys.stdout.buffer.write(content)
    else:
        output.data(content.decode())


def _table_of(task: Task, table: str | None, dataset: str) -> str:
    """The first table that has cells on this dataset alone. Raises E101 beside ``--table``, E102 where there is none."""
    if table is not None:
        raise RunnerError("E101", "--table and --dataset both say which table", fix="leave one away")
    fitting = [one.id for one in task.tables.values() if {cell.dataset for cell in one.cells} == {dataset}]
    if not fitting:
        known = sorted({cell.dataset for one in task.tables.values() for cell in one.cells})
        raise no_such("table of the dataset", dataset, known, of=task.id, fix="name a --table")
    return fitting[0]


def _of_board(
    store: Store,
    task: Task,
    audience: Audience,
    kind: str,
    table: str | None,
    round_: str | None,
    measure: str | None,
    runs: list[str],
) -> Plot:
    from runner.views.leaderboard.rounds import board
    from runner.views.leaderboard.table import build
    from runner.views.plots.making import Board

    if round_ is None:
        shown = build(store, task, table, audience, running=list(store.archive.live()))
    else:
        shown = board(store, task, round_, table, audience)
    return Board(store, task, shown, audience).plot(kind, measure, runs)


def _of_run(store: Store, task: Task, audience: Audience, runs: list[str]) -> Plot:
    """The plot of one run. Raises E101 unless one run was named."""
    from runner.views.listing import looked_up
    from runner.views.plots.making import plot_of_run
    from runner.views.redact import redact_run
    from runner.views.show.topics import medians_for, topics_of

    if len(runs) != 1:
        raise RunnerError(
            "E101", f"{len(runs) or 'no'} runs were named", fix="name one with --run, as runner runs lists it"
        )
    found, dataset, _ = looked_up(store, {task.id: task}, audience, runs[0])
    view = redact_run(found, audience, dataset)
    return plot_of_run(view, topics_of(view, task, medians_for(store, task, view, dataset)))
