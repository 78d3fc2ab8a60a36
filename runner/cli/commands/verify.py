"""``runner verify``: what counts is made once more, and compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.model.errors import FAILED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.trials.verify import Verified
    from runner.model.run import Run
    from runner.model.task import Task
    from runner.records.store.connect import Store
    from runner.views.audience import Audience

SHOWN_TOPICS = 20


@app.command(
    epilog="Examples:  runner verify baselines.dense.1a2b3c4d.test  |  runner verify RUN --sample 5  |  runner verify RUN --as team:mine  |  runner verify RUN --json"
)
def verify(
    run: options.RunArgument,
    sample: options.SampleOption = None,
    as_: options.AsOption = "organiser",
    dry_run: options.DryRunOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Execute a run's software again, apart from what counts, and compare: how far the scores move, and on which topics.

    The image, the lock, the data and the evaluator have to be what they were. Nothing of it is an attempt or costs quota; the
    event log keeps the result. How long it took the last time is said first. With --sample only some topics are executed, always
    the same ones, and only their scores are compared: that they are the same makes no row final. Exit code 1 when it ended
    otherwise, or a score of any topic differs.
    """
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
            ready(machine, store, tasks, found)
            if as_json:
                output.as_json({"run": found.run.id, "takes": seconds})
            else:
                output.data(f"{found.run.id} would be executed again{takes}")
            return
        output.say(f"executing {found.run.id} again{takes} …")
        made = execute_again(machine, store, tasks, found, audience, sample=sample)
    if as_json:
        output.as_json({**asdict(made), "moved": made.moved})
    else:
        _print(made)
    if not made.same:
        raise typer.Exit(FAILED)


def _took(store: Store, tasks: Mapping[str, Task], run: Run, audience: Audience) -> float | None:
    """Seconds that executing and evaluating a run took the last time; None where the audience may not know."""
    from runner.records.store.results import Took, took

    public = tasks[run.submission.task].datasets[run.dataset].visibility == "public"
    if audience.kind != "organiser" and not public:
        return None
    last = took(store).get(run.id, Took())
    return (last.execution or 0.0) + (last.evaluation or 0.0)


def _print(made: Verified) -> None:
    from runner.views.text import plural, wrapped

    same = {True: "the same output", False: f"other bytes in {', '.join(made.files)}"}
    facts = {"run": made.run, "result": "the same scores" if made.same else "different"}
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
            (name, output.figure(before), output.figure(after), _signed(made.moved.get(name)))
            for name, (before, after) in made.values.items()
        ]
        output.table(("measure", "archived", "again", "moved"), rows, right=("archived", "again", "moved"))
    if made.topics:
        more = (
            f", the {SHOWN_TOPICS} that moved most; --json has all" if len(made.topics) > SHOWN_TOPICS else ""
        )
        output.data(f"\n{plural(len(made.topics), 'topic')} moved{more}:")
        rows = [
            (topic, name, _signed(moved), "")
            for topic, by in list(made.topics.items())[:SHOWN_TOPICS]
            for name, moved in by.items()
        ]
        output.table(("topic", "measure", "moved"), [row[:3] for row in rows], right=("moved",))
    if made.uncompared:
        for line in wrapped(
            f"not compared, as they have no value by topic: {', '.join(made.uncompared)}", ""
        ):
            output.data(line)
    for name in made.hidden:
        for line in wrapped(f"not shown: {name}", ""):
            output.data(line)


def _signed(moved: float | None) -> str:
    return "–" if moved is None else f"{moved:+.4f}"
