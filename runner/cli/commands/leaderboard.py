"""The leaderboard command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.cli.boards import print_table
from runner.model.errors import no_such
from runner.views.leaderboard.formats import FORMATS, TREC

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store
    from runner.views.leaderboard.rows import LeaderboardTable


@app.command(
    epilog="Examples:  runner leaderboard vaswani  |  runner leaderboard vaswani --method automatic --how executed  |  runner leaderboard vaswani --unit team --pick best --wide  |  runner leaderboard vaswani --format latex  |  runner leaderboard vaswani --as public"
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
    wide: options.WideOption = False,
    form: Annotated[
        str, typer.Option("--format", "-f", help=f"One of {', '.join((*FORMATS, *TREC))}.")
    ] = "table",
    as_: options.AsOption = "organiser",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print a leaderboard: ranked runs, and below them what failed, with the reason."""
    from runner.views.leaderboard.rounds import board
    from runner.views.leaderboard.table import build, filtered

    form = "json" if as_json else form
    if form not in (*FORMATS, *TREC):
        known = (*FORMATS, *TREC)
        raise no_such("format", form, known, fix=f"use one of {', '.join(known)}", code="E101")
    where = context.config()
    loaded = context.load_task(where, task)
    with context.store(where) as store:
        choices: dict[str, Any] = {"unit": unit, "pick": pick, "topics": topics}
        choices["running"] = list(store.archive.live())
        if round_ is None:
            built = build(store, loaded, table, context.audience(as_), **choices)
        else:
            built = board(store, loaded, round_, table, context.audience(as_), **choices)
        shown = filtered(built, method=method, how=how)
        if form != "table":
            _write_out(store, loaded, shown, form, topics)
            return
    print_table(shown, wide=wide)
    if table is None:
        _more(loaded, built)


def _write_out(store: Store, task: Task, table: LeaderboardTable, form: str, topics: str | None) -> None:
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
    output.data(text)
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
