"""Tasks: list, show, new, estimate. How one is checked is in :mod:`runner.cli.commands.task_check`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import context, options, output
from runner.cli.app import tasks
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.model.config import Config
    from runner.model.task import Task


@tasks.command(
    "list", epilog="Examples:  runner task list  |  runner task list --json  |  runner task list --to local"
)
def list_(to: options.ServerOption = None, as_json: options.JsonOption = False) -> None:
    """List the tasks."""
    if to is not None:
        from runner.cli.remote.tasks import tasks_at

        found = tasks_at(to)
    else:
        found = [
            {
                "task": t.id,
                "title": t.title,
                "kind": t.kind,
                "workflow": t.workflow,
                "workflows": list(t.workflows),
                "datasets": {d.id: d.visibility for d in t.datasets.values()},
            }
            for t in context.all_tasks(context.config()).values()
        ]
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            *(one[name] for name in ("task", "title", "kind")),
            ", ".join(one["workflows"]),
            ", ".join(f"{name} ({seen})" for name, seen in one["datasets"].items()),
        )
        for one in found
    ]
    output.table(("task", "title", "kind", "workflow", "datasets"), rows)


@tasks.command(
    epilog="Examples:  runner task show vaswani  |  runner task show vaswani --as team:mine  |  runner task show vaswani --to local"
)
def show(
    name: options.TaskArgument,
    as_: options.AsOption = "organiser",
    to: options.ServerOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show a task: limits, quota, dates, what the inputs hold, how to write the output, measures. With
    --as team:NAME, or --to, also what is left of that team's quota.
    """
    from runner.records.store.queries import published
    from runner.views.overview.facts import overview, standing
    from runner.views.overview.screen import printed

    if to is not None:
        from runner.cli.remote.tasks import task_at

        data, said = task_at(to, name)
        output.as_json(data) if as_json else _say(said)
        return
    where, audience = context.config(), context.audience(as_)
    task = context.load_task(where, name)
    of = overview(task)
    if audience.team or where.home.is_dir():  # participants have no data directory, and need none
        with context.store(where) as store:
            left = standing(store, task, audience.team) if audience.team else None
            of = replace(of, standing=left, published=published(store, task.id))
    if as_json:
        output.as_json(of.as_dict())
        return
    _say(printed(of))
    if audience.kind == "organiser" and task.budget_hours:
        _say_budget(where, task)


def _say(lines: Sequence[str]) -> None:
    """Print a task's overview (:func:`runner.views.overview.screen.printed`)."""
    for line in lines:
        output.data(output.printable(line))


def _say_budget(where: Config, task: Task) -> None:
    """How much of the budget is used, and a warning where it is much."""
    from runner.records.store.charges import spent
    from runner.views.estimate import HOUR, budget_warning

    with context.store(where) as store:
        hours = spent(store, task.id) / HOUR
    output.data(f"{'budget':<11}{hours:,.1f} of {task.budget_hours:,g} hours of processor time are used")
    if warning := budget_warning(task, hours):
        output.say(f"warning: {warning}")


@tasks.command(epilog="Examples:  runner task pause vaswani test --reason 'a topic is wrong'")
def pause(
    task: options.TaskArgument,
    dataset: options.OnlyDatasetArgument = None,
    reason: options.ReasonOption = "",
) -> None:
    """Take no submissions for a task or a dataset, and begin none of its runs, until it is resumed.

    What runs ends and is evaluated, also where a plan is worked on. Teams are told the reason.
    """
    _pause(task, dataset, reason, True)


@tasks.command(epilog="Examples:  runner task resume vaswani test")
def resume(
    task: options.TaskArgument,
    dataset: options.OnlyDatasetArgument = None,
    reason: options.ReasonOption = "",
) -> None:
    """Take submissions and begin runs again, where that was paused."""
    _pause(task, dataset, reason, False)


def _pause(name: str, dataset: str | None, reason: str, wanted: bool) -> None:
    import schemas
    from runner.records.store.queries import pauses

    where = context.config()
    task = context.load_task(where, name)
    place = "" if dataset is None else context.get_dataset(task, dataset).id
    shown = f"{task.id}/{place}" if place else task.id
    state = "paused" if wanted else "not paused"
    with context.store(where) as store:
        if ((task.id, place) in pauses(store)) is wanted:
            output.say(f"{shown} was {state} already")
            return
        facts = {"task": task.id, "dataset": place, "reason": schemas.show(reason, 500)}
        store.commit("dataset-paused" if wanted else "dataset-resumed", facts, actor="organiser")
    output.say(f"{shown} is {state}")


TopicText = Annotated[
    list[str] | None,
    typer.Option(
        "--topic-text",
        metavar="FIELD",
        help="The field, element or column of a topic that holds its text, such as EN-title; several are joined. Default: the "
        "first of query, title, text, question, content and description.",
    ),
]


@tasks.command(
    epilog="Examples:  runner task new my-task  |  runner task new my-task --from collection  |  "
    "runner task new my-task --from irds:vaswani  |  runner task new my-task --from codabench:bundle.zip  |  "
    "runner task new my-task --kind records --like qa"
)
def new(
    name: Annotated[str, typer.Argument(help="The new task's id.")],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", help="What the output means. Default: as --from says, else adhoc.", show_default=False
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            help="Which of the kind's skeletons; records has classification, qa, generation and spans.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="A folder or archive with topics, documents and judgments, or irds:ID for what ir_datasets has; of other "
            "platforms tira:FOLDER or codabench:BUNDLE. Default: synthetic data.",
        ),
    ] = None,
    topic_text: TopicText = None,
) -> None:
    """Make a small task that works, to be changed into yours; with --from one on your collection.

    What the files of a collection are, their content says: topics as TREC, XML, JSON, CSV or TSV, documents as TREC, JSON, CSV
    or TSV, judgments as qrels, each also packed with gzip. What was taken as what is said, and what was left. Judgments in
    several files with train, dev or test in their names make a dataset for each of these: train (or dev) public, test blinded.
    A dataset folder of TIRA or a bundle of Codabench becomes a task of records, as far as their files say it.
    """
    from runner.model.kinds import kind_of_source
    from runner.tasks.scaffold import new_task, new_task_from

    where = context.config()
    if source is None:
        if topic_text:
            fix = "name a collection with --from, or leave --topic-text out"
            raise RunnerError("E101", "--topic-text is for a collection", fix=fix)
        folder = new_task(where, name, kind or "adhoc", like)
    elif like is not None:
        raise RunnerError(
            "E101", "--like is for a skeleton, not for a collection", fix="leave --like or --from out"
        )
    else:
        chosen = kind or kind_of_source(source)
        folder, hidden = new_task_from(
            where, name, source, kind=chosen, text_fields=topic_text or (), say=output.say
        )
        if hidden is not None:
            output.say(f"inputs and truths of what is blinded are in {hidden}")
    output.say(f"{folder} is there, not on the web (announced: never); next: runner task check {name}")


@tasks.command(epilog="Examples:  runner task hide my-task")
def hide(name: options.TaskArgument) -> None:
    """Move inputs and truths of blinded datasets out of the tree that participants clone, to RUNNER_PRIVATE.

    Their keys go out of task.yaml. Called again after an interruption, it goes on.
    """
    from runner.tasks.folders import tree
    from runner.tasks.scaffold import hide as move

    where = context.config()
    moved = move(where, name)
    for one in moved:
        output.say(f"{one.side} of {one.dataset} are in {one.target}")
    if not moved:
        output.say(f"nothing that is hidden lies in the tree of {name}")
    elif (tree(where) / ".git").exists():
        output.say("note: what was committed before is still in the history of the repository")


@tasks.command(epilog="Examples:  runner task kit vaswani --out kits")
def kit(name: options.TaskArgument, out: options.OutOption, as_json: options.JsonOption = False) -> None:
    """Write what participants get as one archive: rules, public data, the checker of runs, baselines with the recipes of their
    images, licences and checksums.

    The same files give the same bytes. Nothing that is hidden goes in: nothing is written while task check fails, or a text of
    hidden topics or truths stands in what would go in.
    """
    from runner.model.limits import in_units
    from runner.views.kit.package import write_kit

    where = context.config()
    task = context.load_task(where, name)
    made = write_kit(where, task, out, context.registered_baselines(where, task))
    if as_json:
        output.as_json(made.as_dict())
        return
    output.data(made.archive)
    output.say(f"{made.files:,} files, {in_units(made.size)}")
    output.say(f"SHA-256 {made.sha256}")
    for line in made.without:
        output.say(f"not in it: {output.printable(line)}")


@tasks.command(
    epilog="Examples:  runner task estimate vaswani --teams 20  |  runner task estimate vaswani --json"
)
def estimate(
    name: options.TaskArgument,
    teams: Annotated[int, typer.Option("--teams", min=1, help="How many teams are expected.")] = 10,
    submissions: Annotated[
        int | None, typer.Option("--submissions", min=1, help="Of each team; default: the quota.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Say what a campaign would cost in hours of processor and GPU and in disk, by what the baselines used; and what is used of
    the budget.
    """
    from runner.model.limits import in_units
    from runner.views.estimate import budget_warning
    from runner.views.estimate import estimate as estimated

    where = context.config()
    task = context.load_task(where, name)
    with context.store(where) as store:
        found = estimated(store, task, teams=teams, submissions=submissions)
    if as_json:
        output.as_json(found.as_dict())
    else:
        rows = [
            (one.dataset, one.scenario, str(one.runs), output.figure(one.processor), output.figure(one.gpu), in_units(round(one.disk or 0)))
            for one in found.cells
        ]  # fmt: skip
        output.table(("dataset", "scenario", "runs", "processor h", "GPU h", "disk"), rows)
        output.data(
            f"{found.teams:,} teams with {found.submissions:,} submissions each: {found.processor:,.1f} hours of processor, "
            f"{found.gpu:,.1f} of GPU, {in_units(round(found.disk))} of disk"
        )
        output.data(f"used so far: {found.used:,.1f} hours of processor")
    if found.unmeasured:
        output.say(f"not in it, since no baseline is scored there: {', '.join(found.unmeasured)}")
    if warning := budget_warning(task, found.used):
        output.say(f"warning: {warning}")
