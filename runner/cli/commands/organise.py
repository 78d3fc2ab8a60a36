"""What only organisers decide: publishing scores, releasing single runs, extensions, and erasing accounts and texts."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli import accounts as show
from runner.cli import context, options, output
from runner.cli.app import accounts, app, teams
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store

ClearOption = Annotated[
    bool,
    typer.Option(
        "--clear-texts", help="Also remove the team's texts from boards, pages and exports, without asking."
    ),
]
STAYS = (
    "Still there, because hashes cover it: the registrations in events.jsonl, the bundles in submissions/, the files in snapshots/ and archive/, "
    "and the names of the team and its systems, which their runs have. Copies of earlier backups, exports and sites stay too: delete them."
)


@app.command(epilog="Examples:  runner publish vaswani test")
def publish(task: options.TaskArgument, dataset: options.DatasetArgument) -> None:
    """Open the mean scores on a blinded dataset to everybody. Per-topic scores and logs stay closed."""
    from runner.records import review

    where, loaded, chosen = context.dataset(task, dataset)
    with context.store(where) as store:
        new = review.publish(store, loaded, chosen.id)
    output.say(f"the scores on {task}/{dataset} {'are public' if new else 'were published already'}")


@app.command(epilog="Examples:  runner unpublish vaswani test --reason 'wrong judgments'")
def unpublish(
    task: options.TaskArgument, dataset: options.DatasetArgument, reason: options.ReasonOption = ""
) -> None:
    """Close the mean scores on a blinded dataset again, until the next publishing. What was seen was seen."""
    import schemas
    from runner.model.calendar import calendar
    from runner.records.store.queries import published
    from runner.views.audience import scores_open

    where, loaded, chosen = context.dataset(task, dataset)
    if scores_open(chosen, published=False) and chosen.public_topics is None:
        why = "Its data are public." if chosen.visibility == "public" else "task.yaml says scores: public."
        fix = "nothing to do" if chosen.visibility == "public" else "write scores: organiser (or team) there"
        raise RunnerError("E101", f"the scores on {task}/{dataset} are always open", why=why, fix=fix)
    with context.store(where) as store:
        if chosen.id not in published(store, loaded.id):
            output.say(f"the scores on {task}/{dataset} are not published")
            return
        data = {"task": loaded.id, "dataset": chosen.id, "reason": schemas.show(reason, 500)}
        event = store.commit("dataset-unpublished", data, actor="organiser")
    date = calendar(loaded).publish.get(chosen.id)
    again = date is not None and datetime.fromisoformat(event.time) < date.at
    until = (
        f"{date.says()} (publish_at)" if date is not None and again else f"runner publish {task} {dataset}"
    )
    output.say(f"the scores on {task}/{dataset} are closed until {until}")


@app.command(
    epilog="Examples:  runner release RUN --reason 'its log holds no topic'  |  runner release RUN --undo"
)
def release(
    run: options.RunArgument,
    reason: options.ReasonOption = "",
    undo: Annotated[bool, typer.Option("--undo", help="Close it again; what was seen was seen.")] = False,
) -> None:
    """Open one run on a blinded dataset to its team: its log, findings, exit code and exact figures.

    Read them first: a software can have written hidden topics there. Scores by topic and the run's files stay closed. It holds
    for the attempt that counts now, not for one that is made later.
    """
    from runner.records import review
    from runner.views.audience import ORGANISER
    from runner.views.listing import run_id

    where = context.config()
    tasks = context.all_tasks(where)
    with context.store(where) as store:
        found = review.closed_run(store, tasks, run_id(store, tasks, ORGANISER, run))
        if not review.release(store, found, reason, undo=undo):
            output.say(f"{found.id} was {'released' if found.released else 'closed'} already")
            return
    team = found.submission.team
    state = "closed again" if undo else f"open to {team}: runner show RUN --as team:{team}"
    output.say(f"{found.id} is {state}")


@app.command(
    epilog='Examples:  runner extend vaswani my-team --submissions 5  |  runner extend vaswani my-team --until "2026-05-18 23:59 AoE"'
)
def extend(
    task: options.TaskArgument,
    team: options.TeamArgument,
    submissions: options.MoreOption = None,
    until: options.UntilOption = None,
    dataset: options.DeadlineOfOption = None,
    time: options.TimeOption = None,
    memory: options.MemoryOption = None,
    reason: options.ReasonOption = "",
) -> None:
    """Give one team more submissions for a task than the quota, a later deadline, or other limits of time and memory.

    A dataset with a closing date of its own is extended with --dataset. More submissions count for the task and each dataset.
    Limits hold for what is executed from then on; of settled runs the next evaluate says that they have changed.
    """
    import schemas
    from runner.model.names import check_apart, check_name
    from runner.records.store.charges import quota
    from runner.records.store.queries import submissions as registered

    where = context.config()
    loaded = context.load_task(where, task)
    check_name("team", team)
    limits = _own_limits(loaded, time, memory)
    if submissions is None and until is None and not limits:
        fix = "add --submissions, --until, --time or --memory"
        raise RunnerError("E101", "nothing to extend was named", fix=fix)
    if dataset is not None and until is None:
        raise RunnerError("E101", "--dataset goes with --until", fix="add --until, or leave --dataset away")
    from runner.model.calendar import later

    place = "" if dataset is None else context.get_dataset(loaded, dataset).id
    moment = None if until is None else later(loaded, until, place)
    why = {"reason": schemas.show(reason, 500)} if reason else {}
    with context.store(where) as store:
        check_apart("team", team, (entry.team for entry in registered(store)))
        if moment is not None:
            facts = {"task": loaded.id, "team": team, "until": str(until).strip(), **why}
            facts |= {"dataset": place} if place else {}
            store.commit("deadline-extended", facts, actor="organiser")
            where_to = f"{task}/{place}" if place else task
            output.say(f"{team} may hand in for {where_to} until {moment.says()}")
        if limits:
            store.commit(
                "limits-extended", {"task": loaded.id, "team": team, **limits, **why}, actor="organiser"
            )
            output.say(
                f"{team} has other limits for {task}: {', '.join(f'{k} {v:g}' for k, v in limits.items())}"
            )
            if time is not None and loaded.limits.cpu_time is not None:
                stays = f"{loaded.limits.cpu_time:g} s of processor time (cpu_time in task.yaml)"
                output.say(f"its runs may still use {stays}, as those of everybody")
        if submissions is not None:
            data = {"task": loaded.id, "team": team, "submissions": submissions, **why}
            store.commit("quota-extended", data, actor="organiser")
            use = quota(store, loaded, team)
            output.say(f"{team} may now hand in {use.limit} submissions for {task}; left: {use.left}")


def _own_limits(task: Task, time: str | None, memory: str | None) -> dict[str, float]:
    """The limits that a team is given, in seconds and bytes. Raises E101 for what is no limit that a software can work under."""
    from runner.model.limits import absurd, parse_duration, parse_size

    try:
        found: dict[str, float] = {} if time is None else {"wall_clock": parse_duration(time)}
        found |= {} if memory is None else {"memory": parse_size(memory)}
        wrong = absurd(replace(task.limits, **found))  # type: ignore[arg-type]
    except (ValueError, OverflowError) as error:
        what = "that is no limit of time or memory"
        raise RunnerError("E101", what, why=f"{error}.", fix="write --time 2h, --memory 8GiB") from error
    for key, what, fix in wrong if found else ():
        raise RunnerError("E101", f"{key}: {what}", fix=fix)
    return found


@app.command(
    epilog="Examples:  runner name TeamA_v2.1 'Grünfeld & Söhne'  |  runner name TeamA_v2.1 'BM25, tuned' --software bm25  |  "
    "runner name TeamA_v2.1 ''"
)
def name(
    team: options.TeamArgument,
    text: Annotated[str, typer.Argument(help="The display name; an empty one takes it away.")],
    software: Annotated[
        str | None, typer.Option("--software", "-s", help="One of its softwares instead of the team.")
    ] = None,
) -> None:
    """Say how a team, or one of its softwares, is called on leaderboards, beside the name that it has. It costs nobody anything."""
    from runner.submissions.register import show_as

    where = context.config()
    with context.store(where) as store:
        show_as(where, store, team, software, text)
    whose = team if software is None else f"{team}/{software}"
    output.say(f'{whose} is shown as "{text}"' if text else f"{whose} has no display name")


@app.command(epilog="Examples:  runner choose mine.dense.1a2b3c4d")
def choose(submission: options.SubmissionArgument, to: options.ServerOption = None) -> None:
    """Name a team's submission that counts, where a table says pick: chosen. The last one named counts, until the deadline."""
    from runner.records.store.queries import submission as find
    from runner.submissions.register import choose as name_final

    if to is not None:
        from runner.cli.remote.asking import ask

        ask(to, submission, "choose", {})
        output.say(f"{submission} is what counts where a table says pick: chosen")
        return
    where = context.config()
    with context.store(where) as store:
        task = context.load_task(where, find(store, submission).task)
        entry = name_final(store, task, submission)
    tables = [table.id for table in task.tables.values() if table.pick == "chosen"]
    so = f"in {', '.join(tables)}" if tables else f"in no table: none of {task.id} says pick: chosen"
    output.say(f"{entry.id} is what {entry.team} chose; it counts {so}")


@accounts.command(
    "erase",
    epilog="Examples:  runner account erase a-0123456789abcdef  |  runner account erase alpha --clear-texts  |  "
    "runner account erase alpha --member m-0123456789abcdef",
)
def erase(
    account: options.AccountArgument, member: options.MemberIdOption = None, clear_texts: ClearOption = False
) -> None:
    """Erase what is known of the people behind an account, and close it. With --member, erase one member only.

    Lists the texts of the team that are still shown, such as descriptions. Without --member it offers to clear them. Frozen rounds
    no longer show them; their files keep them. The event log, bundles and earlier backups keep them, too.
    """
    from runner.work.managing import managing

    if member is not None and clear_texts:
        raise RunnerError(
            "E101",
            "--member and --clear-texts cannot be used together",
            why="The texts belong to the team, and other members may have written them.",
            fix="erase the member, then run: runner team texts TEAM --clear-texts",
        )
    with managing(context.config()) as office:
        owner = office.accounts.named(account)
        answers = office.erase(owner, member)
        output.say(f"erased: {member or 'everybody'} of {owner.id}")
        if answers:
            output.say(f"removed: {answers} published answers to its requests")
        if owner.team is not None:
            _offer_to_clear(office.store, owner.team, clear=clear_texts, ask=member is None)
    show.spread()


@teams.command(
    "texts",
    epilog="Examples:  runner team texts alpha  |  runner team texts alpha --clear-texts  |  runner team texts alpha --json",
)
def texts(
    team: options.TeamArgument, clear_texts: ClearOption = False, as_json: options.JsonOption = False
) -> None:
    """List the texts of a team that are shown, such as descriptions and display names; with --clear-texts remove them.

    The team needs no account.
    """
    from runner.views.team_texts import clear_texts as clear
    from runner.views.team_texts import remaining_texts

    where = context.config()
    with context.store(where) as store:
        if not as_json:
            _offer_to_clear(store, team, clear=clear_texts, ask=True)
            return
        if clear_texts:
            clear(store, team)
        output.as_json([vars(text) for text in remaining_texts(store, team)])


def _offer_to_clear(store: Store, team: str, *, clear: bool, ask: bool) -> None:
    """List the texts of a team, and clear them.

    Args:
        store: The store.
        team: The team.
        clear: Clear the texts without a question.
        ask: Otherwise ask at a terminal if the texts are to be cleared.
    """
    from runner.records.store.queries import submissions
    from runner.views.team_texts import clear_texts, remaining_texts

    remaining = remaining_texts(store, team)
    if remaining:
        output.say(f"Texts of {team} on boards, pages and exports:")
        output.table(
            ("submission", "field", "text"),
            [(text.submission or "(the team)", text.field, text.text) for text in remaining],
        )
        if clear or (ask and sys.stdin.isatty() and typer.confirm("Clear them?", default=False, err=True)):
            count = clear_texts(store, team)
            output.say(f"cleared the texts of {count} submissions; runner work publishes without them")
        else:
            output.say(f"To clear them: runner team texts {team} --clear-texts")
    elif not submissions(store, team=team):
        output.say(f"no submission of {team} has texts")
        return
    else:
        output.say(f"no text of {team} is shown")
    output.say(STAYS)
