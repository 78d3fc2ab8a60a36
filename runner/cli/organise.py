"""What only organisers decide: publishing scores, and quota extensions. Each is an event."""

from __future__ import annotations

from typing import Annotated

import typer

from runner.cli import context, output
from runner.cli.app import app


@app.command(epilog="Examples:  runner publish vaswani test")
def publish(
    task: context.TaskArgument, dataset: Annotated[str, typer.Argument(help="A dataset of the task.")]
) -> None:
    """Open the mean scores on a blinded dataset to everybody. Per-topic scores and logs stay closed."""
    from runner.store.queries import published

    where = context.config()
    loaded = context.one_task(where, task)
    chosen = context.the_dataset(loaded, dataset)
    with context.store(where) as store:
        if chosen.id in published(store, loaded.id):
            output.say(f"the scores on {task}/{dataset} were published already")
            return
        store.commit("dataset-published", {"task": loaded.id, "dataset": chosen.id}, actor="organiser")
    output.say(f"the scores on {task}/{dataset} are public")


@app.command(epilog="Examples:  runner extend vaswani my-team --submissions 5")
def extend(
    task: context.TaskArgument,
    team: Annotated[str, typer.Argument(help="A team.", autocompletion=context.complete_team)],
    submissions: Annotated[int, typer.Option("--submissions", "-n", min=1, max=1000, help="How many more.")],
) -> None:
    """Give one team more submissions for a task than the quota."""
    from runner.errors import RunnerError
    from runner.store.queries import quota
    from runner.tasks import NAME

    where = context.config()
    loaded = context.one_task(where, task)
    if not NAME.fullmatch(team):
        raise RunnerError("E208", "that is not a team's name", fix="lower-case letters, digits and hyphens")
    with context.store(where) as store:
        data = {"task": loaded.id, "team": team, "submissions": submissions}
        store.commit("quota-extended", data, actor="organiser")
        use = quota(store, loaded, team)
    output.say(f"{team} may now hand in {use.limit} submissions for {task}; left: {use.left}")
