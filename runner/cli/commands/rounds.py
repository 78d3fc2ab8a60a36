"""Rounds: which there are, freezing one, and what a frozen one holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import group

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.views.leaderboard.rounds import RoundStatus

rounds = group("round", "Official evaluations: dates, and snapshots that nothing changes.")

RoundArgument = Annotated[str, typer.Argument(metavar="ROUND", help="A round of the task.")]


def _facts(task: Task, state: RoundStatus) -> dict[str, Any]:
    return {
        "task": task.id,
        "round": state.round.id,
        "title": state.round.title,
        "at": state.round.at.own,
        "at_utc": state.round.at.utc,
        "last_utc": state.ends.utc,
        "datasets": list(state.round.datasets),
        "state": state.name,
        "frozen": state.frozen,
        "sha256": state.digest,
    }


@rounds.command("list", epilog="Examples:  runner round list  |  runner round list perspective-2024 --json")
def list_(
    task: Annotated[str | None, typer.Argument(help="Only this task.", autocompletion=options._tasks)] = None,
    as_json: options.JsonOption = False,
) -> None:
    """List rounds with their dates, and whether they are open, due or frozen."""
    from runner.views.leaderboard.rounds import states

    where = context.config()
    loaded = context.all_tasks(where) if task is None else {task: context.load_task(where, task)}
    with context.store(where) as store:
        found = [(one, state) for one in loaded.values() for state in states(one, store)]
    if as_json:
        output.as_json([_facts(*pair) for pair in found])
    elif found:
        columns = ("task", "round", "until", "UTC", "here", "datasets", "state")
        rounds_ = [(task.id, s.round, s.name) for task, s in found]
        output.table(
            columns,
            [(t, r.id, r.at.own, r.at.utc, r.at.local(), ", ".join(r.datasets), s) for t, r, s in rounds_],
        )
    else:
        output.say("there are no rounds")


@rounds.command(epilog="Examples:  runner round freeze perspective-2024 first")
def freeze(
    task: options.TaskArgument,
    name: RoundArgument,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also while runs that were handed in in time are not settled.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Freeze a round after its date: the latest valid submissions that were received in time, for good."""
    from runner.records.commit import coordinator
    from runner.views.leaderboard.rounds import freeze as freeze_round

    where = context.config()
    loaded = context.load_task(where, task)
    with context.store(where) as store, coordinator(where, store):
        state, new = freeze_round(where, store, loaded, name, anyway=anyway)
        head = store.head()
    if as_json:
        output.as_json({**_facts(loaded, state), "new": new, "head": {"event": head.seq, "hash": head.hash}})
    else:
        output.say(
            f"{task} {name} {'is frozen' if new else 'was frozen already'}: {state.frozen}, SHA-256 {state.digest}"
        )
        output.say(f"receipt: event {head.seq}, head {head.hash}")
        output.say(f"runner leaderboard {task} --round {name} shows it")


@rounds.command(
    epilog="Examples:  runner round show perspective-2024 first  |  runner round show perspective-2024 first --json"
)
def show(task: options.TaskArgument, name: RoundArgument, as_json: options.JsonOption = False) -> None:
    """Show a round: its dates, and once it is frozen which evaluations counted. For organisers."""
    from runner.model.calendar import get_round
    from runner.records.snapshot import read_snapshot
    from runner.views.leaderboard.rounds import states

    where = context.config()
    loaded = context.load_task(where, task)
    wanted = get_round(loaded, name)
    with context.store(where) as store:
        state = next(s for s in states(loaded, store) if s.round.id == wanted.id)
    frozen = read_snapshot(where.home, loaded.id, wanted.id, state.digest) if state.digest else None
    if as_json:
        output.as_json({**_facts(loaded, state), "snapshot": frozen})
        return
    output.facts(
        {
            "round": f"{task} {name}: {state.round.title}",
            "until": state.round.at.says(),
            "last extension": state.ends.says() if state.ends != state.round.at else "",
            "datasets": ", ".join(state.round.datasets),
            "state": state.name + (f" at {state.frozen}" if state.frozen else ""),
            "SHA-256": state.digest or "",
            "head before": frozen["events"]["hash"] if frozen else "",
            "tables": ", ".join(frozen["tables"]) if frozen else "",
            "frozen without": ", ".join(frozen["unsettled"]) if frozen else "",
        }
    )
    if frozen:
        rows = ((e["run"], str(e["attempt"]), str(e["evaluation"])) for e in frozen["evaluations"])
        output.table(("run", "attempt", "evaluation"), rows, right=("attempt", "evaluation"))
