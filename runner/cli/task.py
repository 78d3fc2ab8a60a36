"""Tasks: list, new, check."""

from __future__ import annotations

from typing import Annotated

import typer

from runner.cli import context, output
from runner.cli.app import app

tasks = typer.Typer(
    help="Tasks of this project: list, start a new one, check one.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(tasks, name="task")


@tasks.command("list", epilog="Examples:  runner task list  |  runner task list --json")
def list_(as_json: context.JsonOption = False) -> None:
    """List the tasks."""
    found = context.all_tasks(context.config()).values()
    if as_json:
        output.as_json(
            [
                {
                    "task": t.id,
                    "title": t.title,
                    "kind": t.kind,
                    "workflow": t.workflow,
                    "datasets": {d.id: d.visibility for d in t.datasets.values()},
                }
                for t in found
            ]
        )
        return
    output.table(
        ("task", "title", "kind", "workflow", "datasets"),
        [
            (
                t.id,
                t.title,
                t.kind,
                t.workflow,
                ", ".join(f"{d.id} ({d.visibility})" for d in t.datasets.values()),
            )
            for t in found
        ],
    )


@tasks.command(epilog="Examples:  runner task new my-task  |  runner task new my-task --kind adhoc")
def new(
    name: Annotated[str, typer.Argument(help="The new task's id.")],
    kind: Annotated[str, typer.Option("--kind", help="What the output means.")] = "adhoc",
) -> None:
    """Make a small task that works, to be changed into yours."""
    from runner.scaffold import new_task

    folder = new_task(context.config(), name, kind)
    output.say(f"{folder} is there; next: runner task check {name}")


@tasks.command(epilog="Examples:  runner task check vaswani  |  runner task check vaswani --run")
def check(
    name: context.TaskArgument,
    run: Annotated[
        bool, typer.Option("--run", help="Also run its baseline on every dataset, and prove that it scores.")
    ] = False,
    as_json: context.JsonOption = False,
) -> None:
    """Check task.yaml and every file it names; with --run prove the task with its baseline."""
    from runner import compose
    from runner.tasks import check_task

    where = context.config()
    task = context.one_task(where, name)
    check_task(task, where)
    if compose.write(task):
        output.say(f"tasks/{name}/compose.yaml was written anew from task.yaml")
    output.say(f"{name}: task.yaml and its files are fine")
    results = []
    if run:
        from runner.prove import prove

        results = prove(where, task, output.say)
        good = all(result["good"] for result in results)
        if not as_json:
            output.table(
                ("software", "dataset", "scenario", "outcome", "scores"),
                [
                    (r["software"], r["dataset"], r["scenario"], r["outcome"], ", ".join(f"{k} {v:.4f}" for k, v in r["scores"].items()))
                    for r in results
                ],
            )  # fmt: skip
        if not good:
            raise typer.Exit(1)
    if as_json:
        output.as_json({"task": name, "good": True, "runs": results})
