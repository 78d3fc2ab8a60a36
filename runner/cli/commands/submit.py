"""The teams' door: pack, register, submit, try; and withdraw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import context, output
from runner.cli.app import app
from runner.cli.packing import built, checked_uploads, pack_one, register_one

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.submissions.definition import SubmissionFile
    from runner.submissions.register import Receipt

TeamNeeded = Annotated[
    str,
    typer.Option(
        "--team", "-t", help="The team: a folder of submissions/.", autocompletion=context.complete_team
    ),
]
SoftwareOption = Annotated[
    str | None, typer.Option("--software", "-s", help="One software; default all of the team.")
]


def _tell(receipt: Receipt) -> dict[str, Any]:
    use = receipt.quota
    state = "registered" if receipt.new else "was registered already"
    if receipt.put_back:
        state += "; its image had vanished and is back"
    output.say(f"{receipt.submission} {state}; quota left: {use.left} of {use.limit}")
    output.say(f"receipt: event {receipt.head.seq}, head {receipt.head.hash}")
    return {
        "submission": receipt.submission,
        "new": receipt.new,
        "image": receipt.image,
        "head": {"event": receipt.head.seq, "hash": receipt.head.hash},
        "put_back": receipt.put_back,
        "quota": {"limit": use.limit, "used": use.used, "open": use.open, "left": use.left},
    }


@app.command(
    epilog="Examples:  runner pack --team baselines  |  runner pack -t mine -s dense --to /media/stick/dense"
)
def pack(
    team: TeamNeeded,
    software: SoftwareOption = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the bundle here, with the image in it.")
    ] = None,
    check: Annotated[bool, typer.Option(help="Run it on the public dataset first.")] = True,
    as_json: context.JsonOption = False,
) -> None:
    """Build a software, try it on the public dataset in the graded sandbox, and write a bundle."""
    from runner.model.errors import FAILED, RunnerError

    where = context.config()
    found, worst = context.select_submissions(where, team, software)
    results: list[dict[str, Any]] = []
    for submission in found:
        name = f"{submission.team}/{submission.software}"
        target = to if to is None or len(found) == 1 else to / submission.software
        try:
            bundle = pack_one(where, submission, target, check, results if as_json else None)
        except RunnerError as error:
            output.say(f"{name}:")
            output.show_error(error)
            worst = max(worst, error.exit_code)
            continue
        if bundle is None:
            output.say(f"{name} was not packed: correct it and pack again")
            worst = max(worst, FAILED)
            continue
        output.say(f"packed {bundle.submission_id}: {bundle.folder}")
        results.append(
            {
                "software": name,
                "submission": bundle.submission_id,
                "bundle": str(bundle.folder),
                "check": bundle.data["check"],
            }
        )
    if as_json:
        output.as_json(results)
    if worst:
        raise typer.Exit(worst)


@app.command(
    epilog="Examples:  runner register /media/stick/dense --team mine  |  runner register .runner/bundles/baselines.bm25"
)
def register(
    folder: Annotated[list[Path], typer.Argument(help="Bundle folders, as runner pack writes them.")],
    team: Annotated[
        str | None,
        typer.Option("--team", "-t", help="Whom they are from; bundles of another team are refused."),
    ] = None,
    as_json: context.JsonOption = False,
) -> None:
    """Register bundles: check their hashes, take in the image, apply the quota. Never builds anything.

    The same bundle again costs nothing, and puts its image back where the engine has lost it.
    """
    from runner.model.errors import RunnerError

    where = context.receiving()
    receipts, worst = [], 0
    for one in folder:
        try:
            receipts.append(_tell(register_one(where, one, team)))
        except RunnerError as error:
            output.show_error(error)
            worst = max(worst, error.exit_code)
    if as_json:
        output.as_json(receipts)
    if worst:
        raise typer.Exit(worst)


@app.command(epilog="Examples:  runner submit --team baselines  |  runner submit -t mine -s dense --dry-run")
def submit(
    team: TeamNeeded,
    software: SoftwareOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Pack and check, but do not register.")] = False,
    check: Annotated[bool, typer.Option(help="Run it on the public dataset first.")] = True,
    as_json: context.JsonOption = False,
) -> None:
    """Pack and register all softwares of a team on this machine (what make submit does)."""
    from runner.model.errors import RunnerError

    where = context.receiving()
    receipts: list[dict[str, Any]] = []
    found, worst = context.select_submissions(where, team, software)
    for submission in found:
        name = f"{submission.team}/{submission.software}"
        try:
            bundle = pack_one(where, submission, None, check, receipts if as_json else None)
            if bundle is None:
                output.say(f"{name} was not submitted: correct it and submit again")
                worst = max(worst, 1)
            elif dry_run:
                output.say(f"{name} is fine; --dry-run: not registered")
            else:
                receipts.append(_tell(register_one(where, bundle.folder)))
        except RunnerError as error:
            output.say(f"{name}:")
            output.show_error(error)
            worst = max(worst, error.exit_code)
    if as_json:
        output.as_json(receipts)
    if worst:
        raise typer.Exit(worst)


@app.command(
    "try",
    epilog="Examples:  runner try --team mine --software dense  |  runner try -t mine -s dense --dataset dev",
)
def try_(
    team: TeamNeeded,
    software: SoftwareOption = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Default: the task's first public dataset.")
    ] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", help="Default: the submission's first.")
    ] = None,
    debate: Annotated[
        str | None,
        typer.Option("--debate", help="These debates in full: 3, 2-5, 1,4 or all. Default: the first."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--html", help="Write it as one page: all, or what was chosen.")
    ] = None,
    as_json: context.JsonOption = False,
) -> None:
    """Run a software once, here, in the graded sandbox; nothing is recorded. Exit code 1 when it would not be scored."""
    from runner.model.errors import FAILED, RunnerError

    where = context.config()
    views: list[dict[str, Any]] = []
    found, worst = context.select_submissions(where, team, software)
    if page is not None and len(found) > 1:
        raise RunnerError("E101", "a page shows one software", fix="choose one with --software")
    for submission in found:
        try:
            good, view = _tried(where, submission, dataset, scenario, (debate, page), show=not as_json)
            views.append(view)
            worst = max(worst, 0 if good else FAILED)
        except RunnerError as error:  # the team's other softwares still get their try
            output.say(f"{team}/{submission.software}:")
            output.show_error(error)
            worst = max(worst, error.exit_code)
    if as_json:
        output.as_json(views if len(views) != 1 else views[0])
    if worst:
        raise typer.Exit(worst)


def _tried(
    where: Config,
    submission: SubmissionFile,
    dataset: str | None,
    scenario: str | None,
    inner: tuple[str | None, Path | None],
    *,
    show: bool,
) -> tuple[bool, dict[str, Any]]:
    """Run one submission once; whether it would be scored, and what ``--json`` prints. ``show`` prints it now.

    ``inner`` chooses what of its inside is shown, and the page to write it to.
    """
    from runner.cli import render
    from runner.execution import trial as local
    from runner.tasks.check_data import check_task
    from runner.views.show.contents import inside

    task = context.load_task(where, submission.task)
    if submission.run:
        machine = context.machine(where)
        machine.engine()
        return checked_uploads(machine, submission, task, dataset, scenario, show=show)
    if dataset is None and submission.datasets:
        dataset = next((d for d in submission.datasets if task.datasets[d].visibility == "public"), None)
    chosen = local.public_dataset(task, dataset)
    check_task(task, where, [chosen.id])
    machine = context.machine(where)
    machine.engine([task.limits])
    image = built(machine, submission)
    machine.evaluator()  # missing: known before anything is said to run
    wanted = scenario or submission.scenarios[0]
    output.say(f"running {submission.team}/{submission.software} on {task.id}/{chosen.id} …")
    with local.check_submission(machine, submission, image, task, chosen, wanted) as checked:
        audience = context.audience(f"team:{submission.team}")
        view = checked.view(audience)
        if checked.our_failure:
            output.say(f"our side failed: {checked.our_failure}")
        line = local.command_line(checked.job)
        # Here or never: nothing of this run is kept for `runner show`.
        within = inside(checked.detail, task, audience, chosen).choose(inner[0], None)
        if inner[1] is not None:
            within.write_page(inner[1], view)
            output.say(f"{inner[1]} has the run")
        if show:
            render.show(view)
            for text in within.lines():
                output.data(text)
            if line:
                output.data(
                    f"\nequivalent command line (without quotas, time limit and seccomp profile):\n  {line}"
                )
        return checked.good, {**view, **within.data(), "command_line": line}


@app.command(
    epilog="Examples:  runner withdraw mine.dense.1a2b3c4d --reason 'wrong image'  |  "
    "runner withdraw mine.dense.1a2b3c4d --uncharged --reason 'its image was lost here'"
)
def withdraw(
    submission: Annotated[
        str, typer.Argument(help="A submission id.", autocompletion=context.complete_submission)
    ],
    reason: Annotated[str, typer.Option("--reason", help="Kept in the event log.")] = "",
    uncharged: Annotated[
        bool,
        typer.Option(
            "--uncharged",
            help="Give its place in the quota back, though it has run; for what was lost on your side. Needs a reason.",
        ),
    ] = False,
) -> None:
    """Take a submission off the leaderboard. Nothing is deleted.

    One that has run has used its place in the quota: its scores were seen. Only --uncharged gives that back, also after
    an ordinary withdrawal.
    """
    from runner.submissions.register import withdraw as take_back

    with context.store(context.config()) as store:
        done = take_back(store, submission, reason, uncharged=uncharged)
    free = " and costs no quota" if uncharged else ""
    output.say(f"{submission} {'is withdrawn' if done else 'was withdrawn already'}{free}")
