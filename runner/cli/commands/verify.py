"""``runner verify``: what counts is made once more, and compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from runner.cli import context, options, output
from runner.cli.app import app, group
from runner.model.errors import FAILED, Problem, RunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.trials.verify import Verified
    from runner.execution.trials.verify_row import RowChecked
    from runner.model.run import Run
    from runner.model.task import Task
    from runner.records.store.connect import Store
    from runner.views.audience import Audience

SHOWN_TOPICS = 20
receipts = group("receipt", "Receipts of what was handed in at a server.")


@app.command(
    epilog="Examples:  runner verify baselines.dense.1a2b3c4d.test  |  runner verify RUN --sample 5  |  runner verify RUN --on host2  |  "
    "runner verify RUN --as team:mine  |  runner verify --row vaswani/main/baselines/bm25"
)
def verify(
    run: options.OnlyRunArgument = None,
    sample: options.SampleOption = None,
    on: options.OnOption = None,
    row: options.RowOption = None,
    as_: options.AsOption = "organiser",
    dry_run: options.DryRunOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Execute a run's software again, apart from what counts, and compare: how far the scores move, and on which topics.

    The image, the lock, the data and the evaluator have to be what they were. Nothing of it is an attempt or costs quota; the
    event log keeps the result. How long it took the last time is said first. With --sample only some topics are executed, always
    the same ones, and only their scores are compared: that they are the same makes no row final. Exit code 1 when it ended
    otherwise, or a score of any topic differs. With --on the host of the cluster that is called so executes it
    (runner cluster show): whether another machine gives the same.

    With --row no software runs: the evaluator of the row's evaluations judges the archived output again, by the truths and
    definitions of then. Files are compared with manifests, these with the event log, every value to the last digit with the board.
    Exit code 1 when anything differs, or could not be computed again; both are named. For organisers.
    """
    if (run is None) == (row is None):
        raise RunnerError(
            "E101", "name either a run or a row", fix="runner verify RUN, or --row TASK/TABLE/TEAM/SOFTWARE"
        )
    if row is not None:
        if dry_run or sample is not None or on is not None:
            fix = "leave --dry-run, --sample and --on out"
            raise RunnerError("E101", "--row executes no software", fix=fix)
        _verify_row(row, context.audience(as_), as_json)
    elif run is not None:
        _verify_run(run, as_, sample, on, dry_run, as_json)


def _verify_row(row: str, audience: Audience, as_json: bool) -> None:
    from runner.execution.trials.verify_row import verify_row
    from runner.views.audience import not_for

    if audience.kind != "organiser":
        raise not_for(audience, "computing a row again, which needs the truths")
    where = context.config()
    with context.store(where) as store:
        made = verify_row(context.machine(where), store, context.all_tasks(where), row)
    if as_json:
        output.as_json({**asdict(made), "same": made.same})
    else:
        _print_row(made)
    if not made.same:
        raise typer.Exit(FAILED)


def _print_row(made: RowChecked) -> None:
    from runner.views.text import plural, wrapped

    board, again = made.rank
    output.facts({"row": made.row, "result": "the same, to the last digit" if made.same else "NOT the same"})
    output.data("")
    rows = [("rank", str(board), "–" if again is None else str(again))]
    rows += [(id, repr(old), "–" if new is None else repr(new)) for id, (old, new) in made.values.items()]
    output.table(("measure", "board", "computed again"), rows, right=("board", "computed again"))
    lines = [f"WRONG: {line}" for line in made.wrong]
    for run in made.runs:
        lines += [f"{run.run}: {plural(run.values, 'value')} computed again"] if run.values else []
        lines += [f"WRONG: {run.run}: {line}" for line in run.wrong]
        lines += [f"not computed again: {run.run}: {run.missing}"] if run.missing else []
    output.data("")
    for line in lines:
        for part in wrapped(output.printable(line), ""):
            output.data(part)


def _verify_run(run: str, as_: str, sample: int | None, on: str | None, dry_run: bool, as_json: bool) -> None:
    from runner.execution.trials.verify import ready
    from runner.execution.trials.verify import verify as execute_again
    from runner.views.listing import looked_up
    from runner.views.text import duration

    where, audience = context.config(), context.audience(as_)
    tasks = context.all_tasks(where)
    with context.store(where) as store:
        found, _, _ = looked_up(store, tasks, audience, run)
        machine, seconds = context.machine(where), _took(store, tasks, found.run, audience)
        takes = (
            ""
            if seconds is None
            else f"; it took {duration(seconds)} the last time{' on all topics' if sample else ''}"
        )
        if dry_run:
            ready(machine, store, tasks, found, sample=sample, host=on)
            if as_json:
                output.as_json({"run": found.run.id, "takes": seconds})
            else:
                output.data(f"{found.run.id} would be executed again{takes}")
            return
        where_to = "" if on is None else f" at {output.printable(on)}"
        output.say(f"executing {found.run.id} again{where_to}{takes} …")
        made = execute_again(machine, store, tasks, found, audience, sample=sample, host=on)
    if as_json:
        output.as_json({**asdict(made), "moved": made.moved})
    else:
        _print(made)
    if not made.same:
        raise typer.Exit(FAILED)


def _took(store: Store, tasks: Mapping[str, Task], run: Run, audience: Audience) -> float | None:
    """Seconds that executing and evaluating a run took the last time; None where it never was, or the audience may not know."""
    from runner.records.store.results import Took, took
    from runner.views.listing import known_dataset

    public = known_dataset(tasks, run.submission.task, run.dataset).visibility == "public"
    if audience.kind != "organiser" and not public:
        return None
    last = took(store).get(run.id, Took())
    return None if last.execution is None else last.execution + (last.evaluation or 0.0)


def _print(made: Verified) -> None:
    from runner.views.text import plural

    same = {True: "the same output", False: f"other bytes in {', '.join(made.files)}"}
    facts = {"run": made.run, "result": "the same scores" if made.same else "different"}
    if made.host is not None:
        facts["executed at"] = output.printable(made.host)
    if made.sample is not None:
        facts["topics"] = f"a sample of {made.sample:,}; values are means over them"
    if made.identical is not None:
        facts["output"] = same[made.identical]
    if made.ended[0] != made.ended[1]:
        facts["ended"] = f"{made.ended[0]}, now {made.ended[1]}"
    output.facts(facts)
    if made.values:
        output.data("")
        rows = [
            (name, output.figure(before), output.figure(after), output.difference(made.moved.get(name)))
            for name, (before, after) in made.values.items()
        ]
        output.table(("measure", "archived", "again", "moved"), rows, right=("archived", "again", "moved"))
    if made.topics:
        more = (
            f", the {SHOWN_TOPICS} that moved most; --json has all" if len(made.topics) > SHOWN_TOPICS else ""
        )
        output.data(f"\n{plural(len(made.topics), 'topic')} moved{more}:")
        rows = [
            (topic, name, output.difference(moved), "")
            for topic, by in list(made.topics.items())[:SHOWN_TOPICS]
            for name, moved in by.items()
        ]
        output.table(("topic", "measure", "moved"), [row[:3] for row in rows], right=("moved",))
    for line in _notes(made):
        output.data(line)


def _notes(made: Verified) -> list[str]:
    """What decides nothing, what a sample cannot tell, and what is not shown to this audience."""
    from runner.views.text import wrapped

    notes = [
        (made.times, "decide nothing, as no execution repeats times"),
        (made.uncompared, "not compared, as they have no value by topic"),
        (made.hidden, "not shown"),
    ]
    return [line for names, says in notes if names for line in wrapped(f"{says}: {', '.join(names)}", "")]


@receipts.command(
    "verify",
    epilog="Examples:  runner receipt verify receipt-1a2b3c4d.json  |  runner receipt verify receipt.json --key keys.json",
)
def verify_receipt(
    file: options.ReceiptArgument, key: options.KeyOption = None, as_json: options.JsonOption = False
) -> None:
    """Say whether a receipt was changed since the server signed it, without asking the server. No project is needed.

    With --key (a key, or the file that the server has at /keys) both signatures have to be by these keys; take them when you
    register, not with the receipt. Exit code 1 when anything does not hold.
    """
    from runner.cli.receipts import keys_of, lines, read
    from runner.cli.serving import check_installed
    from runner.exchange.receipts import examine

    check_installed("cryptography")
    data = read(file)
    wrong = examine(data, keys_of(key or ()))
    if as_json:
        output.as_json({"file": str(file), "good": not wrong, "problems": wrong, "keys_checked": bool(key)})
        raise typer.Exit(FAILED if wrong else 0)
    if wrong:
        problems = [Problem(str(file), one) for one in wrong]
        fix = "ask the organiser for what the event log says of the request"
        raise RunnerError("E220", "the receipt does not hold", fix=fix, problems=problems)
    for line in lines(data, keys_checked=bool(key)):
        output.data(line)


@receipts.command(
    "get",
    epilog="Examples:  runner receipt get 238b9327ea10dd22c8ae1bd7c7efc3e2 --to local > receipt.json",
)
def get_receipt(request: options.RequestArgument, to: options.ServerOption = None) -> None:
    """Print the receipt of something that was handed in at a server, to be kept in a file; take it again once it is decided."""
    from runner.cli.remote.looking import receipt_at

    output.as_json(receipt_at(to, request))
