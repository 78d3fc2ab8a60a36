"""What teams do: pack, register, submit, try; and withdraw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, options, output
from runner.cli.app import app
from runner.cli.many import list_registered, register_table, submit_all
from runner.cli.packing import (
    built,
    checked_uploads,
    each,
    pack_one,
    receipt_json,
    register_one,
    register_packed,
)
from runner.model.errors import FAILED, FINE, RunnerError

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.submissions.definition import SubmissionFile


@app.command(
    epilog="Examples:  runner pack --team baselines  |  runner pack -t mine -s dense --to /media/stick/dense"
)
def pack(
    team: options.NeededTeam,
    software: options.SoftwareOption = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the bundle here, with the image in it.")
    ] = None,
    check: options.CheckOption = True,
    as_json: options.JsonOption = False,
) -> None:
    """Build a software, try it on the public dataset in the graded sandbox, and write a bundle."""

    where = context.config()
    found, worst = context.select_submissions(where, team, software)
    results: list[dict[str, Any]] = []

    def one(submission: SubmissionFile) -> int:
        name = f"{submission.team}/{submission.software}"
        target = to if to is None or len(found) == 1 else to / submission.software
        no = f"{name} was not packed: correct it and pack again"
        bundle = pack_one(where, submission, target, check, no, results if as_json else None)
        if bundle is None:
            return FAILED
        output.say(f"packed {bundle.submission_id}: {bundle.folder}")
        packed = {"software": name, "submission": bundle.submission_id, "bundle": str(bundle.folder)}
        results.append({**packed, "check": bundle.data["check"]})
        return FINE

    output.finish(each(found, one, worst), results if as_json else None)


@app.command(
    epilog="Examples:  runner register /media/stick/dense --team mine  |  runner register .runner/bundles/baselines.bm25  |  "
    "runner register --table runs.csv --task vaswani"
)
def register(
    folder: Annotated[
        list[Path] | None, typer.Argument(help="Bundle folders, as runner pack writes them.")
    ] = None,
    team: Annotated[
        str | None,
        typer.Option("--team", "-t", help="Whom they are from; bundles of another team are refused."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            help="Instead of bundles: a CSV or TSV file that names run files, with the columns team, run, file, and as you "
            "like dataset, scenario, method, description, display_name, team_display_name. Paths are relative to its folder.",
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="The task of the table.", autocompletion=options._tasks)
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="With --table: check the form of every file first, in a container."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --table: say what would be registered, and stop.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Register bundles: check their hashes, take in the image, apply the quota. Never builds anything.

    The same bundle again costs nothing, and puts its image back where the engine has lost it.

    With --table run files of many teams are registered, all or none: every problem is said with its line before anything
    is taken. The same table again takes only what is new.
    """

    where = context.receiving()
    if table is not None:
        if folder or team or task is None:
            fix = "runner register --table runs.csv --task TASK"
            raise RunnerError("E101", "--table goes with --task, and without bundles or --team", fix=fix)
        loaded = context.load_task(where, task)
        rows = register_table(where, loaded, table, check=check, dry_run=dry_run)
        list_registered(rows, as_json=as_json)
        return
    if not folder or task or check or dry_run:
        fix = "runner register FOLDER, or runner register --table runs.csv --task TASK"
        raise RunnerError("E101", "no bundle was named, or an option of --table without it", fix=fix)
    tasks = context.all_tasks(where)
    receipts, worst = [], 0
    for bundle in folder:
        try:
            receipts.append(receipt_json(register_one(where, tasks, bundle, team)))
        except RunnerError as error:
            output.show_error(error)
            worst = max(worst, error.exit_code)
    output.finish(worst, receipts if as_json else None)


@app.command(
    epilog="Examples:  runner submit --team baselines  |  runner submit -t mine -s dense --dry-run  |  runner submit --all-teams"
)
def submit(
    team: options.OneTeamOption = None,
    all_teams: Annotated[
        bool,
        typer.Option(
            "--all-teams", help="Every team of submissions/: first all are checked, then the good ones taken."
        ),
    ] = False,
    software: options.SoftwareOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Pack and check, but do not register.")] = False,
    check: options.CheckOption = True,
    to: options.ServerOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --to: wait for the decision of the server.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Pack and register all softwares of a team, or of all teams, on this machine (make submit does it for one team).

    With --to they are handed in at a server instead, after the same local check of their form.
    """

    if to is not None:
        from runner.cli.remote.handing_in import submit_to

        if all_teams or team is None:
            raise RunnerError("E101", "a server takes what one team hands in", fix="name your --team")
        submit_to(to, team, software, check=check, dry_run=dry_run, wait=wait, as_json=as_json)
        return
    where = context.receiving()
    if all_teams == (team is not None) or (all_teams and software is not None):
        what = "either one team is submitted, or all teams with all their softwares"
        raise RunnerError("E101", what, fix="name a --team, or say --all-teams")
    if all_teams:
        rows, worst = submit_all(where, check=check, dry_run=dry_run)
        list_registered(rows, as_json=as_json)
        output.finish(worst, None)
        return
    receipts: list[dict[str, Any]] = []
    found, worst = context.select_submissions(where, team, software)

    def one(submission: SubmissionFile) -> int:
        name = f"{submission.team}/{submission.software}"
        no = f"{name} was not submitted: correct it and submit again"
        bundle = pack_one(where, submission, None, check, no, receipts if as_json else None)
        if bundle is None:
            return FAILED
        if dry_run:
            output.say(f"{name} is fine; --dry-run: not registered")
        else:
            receipts.append(receipt_json(register_packed(where, tasks, bundle)))
        return FINE

    tasks = context.all_tasks(where)
    output.finish(each(found, one, worst), receipts if as_json else None)


@app.command(
    "try",
    epilog="Examples:  runner try --team mine --software dense  |  runner try -t mine -s dense --dataset dev",
)
def try_(
    team: options.NeededTeam,
    software: options.SoftwareOption = None,
    dataset: options.PublicDatasetOption = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", help="Default: the submission's first.")
    ] = None,
    topic: options.InsideOption = None,
    page: Annotated[
        Path | None, typer.Option("--html", help="Write it as one page: all, or what was chosen.")
    ] = None,
    command_line: Annotated[
        bool, typer.Option("--command-line", help="Print the docker run line that comes closest, too.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Run a software once, here, in the graded sandbox; nothing is recorded. Exit code 1 when it would not be scored."""

    where = context.config()
    views: list[dict[str, Any]] = []
    found, worst = context.select_submissions(where, team, software)
    if page is not None and len(found) > 1:
        raise RunnerError("E101", "a page shows one software", fix="choose one with --software")

    def one(submission: SubmissionFile) -> int:
        good, view = try_on_public_data(
            where, submission, dataset, scenario, (topic, page, command_line), show=not as_json
        )
        views.append(view)
        return FINE if good else FAILED

    worst = each(found, one, worst)
    shown = views if len(views) != 1 else views[0]
    output.finish(worst, shown if as_json else None)


def try_on_public_data(
    where: Config,
    submission: SubmissionFile,
    dataset: str | None,
    scenario: str | None,
    inner: tuple[str | None, Path | None, bool],
    *,
    show: bool,
) -> tuple[bool, dict[str, Any]]:
    """Run one submission once; whether it would be scored, and what ``--json`` prints. ``show`` prints it now.

    ``inner`` chooses what of its inside is shown, the page to write it to, and whether the command line is printed.
    """
    from runner.cli import render
    from runner.execution.trials import software as trial
    from runner.model.limits import inner_amounts
    from runner.tasks.check_data import check_task
    from runner.views.hints import hint
    from runner.views.show.contents import inside

    task, machine = context.load_task(where, submission.task), context.machine(where)
    if submission.run:
        machine.engine()
        return checked_uploads(machine, submission, task, dataset, scenario, show=show)
    if dataset is None and submission.datasets:
        dataset = next((d for d in submission.datasets if task.datasets[d].visibility == "public"), None)
    chosen = trial.public_dataset(task, dataset)
    check_task(task, where, [chosen.id])
    machine.engine([task.limits])
    image = built(machine, submission, task)
    machine.evaluator()  # missing: known before anything is said to run
    wanted = scenario or submission.scenarios[0]
    output.say(f"running {submission.team}/{submission.software} on {task.id}/{chosen.id} …")
    output.say(f"limits inside: {', '.join(inner_amounts(task.limits))}")
    with trial.check_submission(machine, submission, image, task, chosen, wanted) as checked:
        audience = context.audience(f"team:{submission.team}")
        view = checked.view(audience)
        if checked.our_failure:
            output.say(f"our side failed: {checked.our_failure}")
        line, helps = trial.command_line(checked.job), hint(view, task)
        # Here or never: nothing of this run is kept for `runner show`.
        within = inside(checked.detail, task, audience, chosen).choose(inner[0])
        if inner[1] is not None:
            within.write_page(inner[1], view)
            output.say(f"{inner[1]} has the run")
        if show:
            render.show(view)
            for text in within.lines():
                output.data(text)
            if line and inner[2]:
                unlike = "without quotas, time limit and seccomp profile"
                output.data(f"\nequivalent command line ({unlike}):\n  {line}")
            render.hint(helps)
        image_bytes = image.size if image else None
        return checked.good, {
            **view, **within.data(), "command_line": line, "hint": helps, "image_bytes": image_bytes
        }  # fmt: skip


@app.command(
    epilog="Examples:  runner withdraw mine.dense.1a2b3c4d --reason 'wrong image'  |  "
    "runner withdraw mine.dense.1a2b3c4d --uncharged --reason 'its image was lost here'"
)
def withdraw(
    submission: options.SubmissionArgument,
    reason: options.ReasonOption = "",
    uncharged: Annotated[
        bool,
        typer.Option(
            "--uncharged",
            help="Give its place in the quota back, though it has run; for what was lost on your side. Needs a reason.",
        ),
    ] = False,
    to: options.ServerOption = None,
) -> None:
    """Take a submission off the leaderboard. Nothing is deleted.

    One that has run has used its place in the quota: its scores were seen. Only --uncharged gives that back, also after
    an ordinary withdrawal.
    """
    from runner.submissions.register import withdraw as take_back

    if to is not None:
        from runner.cli.remote.asking import ask

        if uncharged:
            raise RunnerError("E103", "only the organiser gives places of a quota back", fix="write to them")
        ask(to, submission, "withdraw", {"reason": reason})
        output.say(f"{submission} is withdrawn")
        return
    with context.store(context.config()) as store:
        done = take_back(store, submission, reason, uncharged=uncharged)
    free = " and costs no quota" if uncharged else ""
    output.say(f"{submission} {'is withdrawn' if done else 'was withdrawn already'}{free}")
