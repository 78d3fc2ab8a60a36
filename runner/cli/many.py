"""Submissions of many teams at once: all that is wrong is said before anything is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.cli import context, output
from runner.cli.packing import each, pack_one, register_packed
from runner.cli.terminal import counting
from runner.model.errors import FAILED, FINE
from runner.views.text import plural

if TYPE_CHECKING:
    from runner.model.config import Config
    from runner.model.task import Task
    from runner.submissions.bundle import Bundle
    from runner.submissions.definition import SubmissionFile
    from runner.submissions.table import RunTable

ALREADY = "registered already"


def register_table(
    where: Config, task: Task, path: Path, *, check: bool, dry_run: bool
) -> list[dict[str, Any]]:
    """Register every run file that a table names, all or none; returns what became of each, for ``--json``.

    With ``check`` the form of every file is checked first. With ``dry_run`` nothing is registered. Raises E214 with every
    problem, and as :func:`runner.submissions.register.register_all`.
    """
    from runner.model.clock import SystemClock
    from runner.records.store.queries import submissions
    from runner.submissions.bundle import provisional
    from runner.submissions.pack import run_entries, write
    from runner.submissions.register import refusals, register_all
    from runner.submissions.table import read_table
    from schemas.files import make_private, scratch_folder

    bundles = where.home / "bundles"
    make_private(bundles)
    with scratch_folder(bundles, "table") as scratch, context.store(where) as store:
        table = read_table(path, task, scratch / "files")
        if check:
            _check(where, table, task)
        planned = [
            provisional(one, None, scratch, [entry for entry, _ in run_entries(one)])
            for one in table.submissions
        ]
        for n, error in enumerate(refusals(where, store, {task.id: task}, planned, SystemClock().now())):
            if error is not None:
                table.refused(n, f"{error.what}. {error.why}", error.fix)
        table.refuse()
        if dry_run:
            known = {entry.id for entry in submissions(store, task=task.id)}
            return [
                _row(s, b.submission_id, ALREADY if b.submission_id in known else "would be registered")
                for s, b in zip(table.submissions, planned, strict=True)
            ]
        packed = [
            write(s, None, scratch / str(n), engine=None, check=None, with_archive=False)
            for n, s in enumerate(table.submissions)
        ]
        receipts = register_all(where, store, None, {task.id: task}, [bundle.folder for bundle in packed])
    head = receipts[-1].head
    output.say(f"receipt: event {head.seq}, head {head.hash}")
    return [
        _row(s, r.submission, "registered" if r.new else ALREADY)
        for s, r in zip(table.submissions, receipts, strict=True)
    ]


def _check(where: Config, table: RunTable, task: Task) -> None:
    """Note what is wrong with run files of a table that do not have the form that the task wants.

    They are of strangers, so the checker runs in a container.
    """
    from runner.execution.trials.uploads import check_form

    machine = context.machine(where)
    machine.evaluator()  # missing: known before anything is checked
    with counting(sum(len(submission.run) for submission in table.submissions)) as tally:
        for n, submission in enumerate(table.submissions):
            for run in submission.run:
                tally.started(run.path.name, "check")
                found = check_form(machine, task, task.datasets[run.dataset], run.scenario, run.path)
                said = "not checked" if found.how == "unchecked" else "fine" if found.good else "not valid"
                tally.ended(run.path.name, said)
                if not found.good:
                    for line in found.text.splitlines():
                        table.refused(n, line)


def submit_all(where: Config, *, check: bool, dry_run: bool) -> tuple[list[dict[str, Any]], int]:
    """Pack and check the submissions of all teams, say what is wrong with any, then register the good ones.

    Returns what became of each, for ``--json``, and the exit code: that of the worst problem.
    """
    from runner.model.clock import SystemClock
    from runner.submissions.load import find_submissions
    from runner.submissions.register import refusals

    tasks = context.all_tasks(where)
    found, errors = find_submissions(where, tasks=tasks)
    for error in errors:
        output.show_error(error)
    worst = max((error.exit_code for error in errors), default=0)
    packed: list[tuple[SubmissionFile, Bundle]] = []
    bad: list[dict[str, Any]] = []

    def pack(submission: SubmissionFile) -> int:
        failures: list[dict[str, Any]] = []
        bundle = pack_one(where, submission, None, check, "", failures)
        if bundle is not None:
            packed.append((submission, bundle))
            return FINE
        team, software = submission.team, submission.software
        why, more = _why_failed(failures[0]["check"]), f"runner try -t {team} -s {software} shows it in full"
        output.say(f"{team}/{software}: {why}; {more}")
        bad.append({**_row(submission, "", "refused"), "check": failures[0]["check"]})
        return FAILED

    worst = each(found, pack, worst)
    with context.store(where) as store:
        refused = refusals(where, store, tasks, [bundle for _, bundle in packed], SystemClock().now())
    good = [pair for pair, error in zip(packed, refused, strict=True) if error is None]
    for (submission, _), refusal in zip(packed, refused, strict=True):
        if refusal is not None:
            output.say(f"{submission.team}/{submission.software}:")
            output.show_error(refusal)
            worst = max(worst, refusal.exit_code)
    rows: list[dict[str, Any]] = []

    def take(submission: SubmissionFile) -> int:
        bundle = next(b for s, b in good if s is submission)
        receipt = None if dry_run else register_packed(where, tasks, bundle)
        state = "fine" if receipt is None else "registered" if receipt.new else ALREADY
        rows.append(_row(submission, bundle.submission_id, state))
        return FINE

    worst = each([submission for submission, _ in good], take, worst)
    told = {(row["team"], row["software"]) for row in rows + bad}
    bad += [_row(s, "", "not taken") for s in found if (s.team, s.software) not in told]
    return rows + bad, worst


def _why_failed(seen: Mapping[str, Any]) -> str:
    """Why a local check refused a software or its run files, in a few words."""
    if "uploads" in seen:
        wrong = [upload for upload in seen["uploads"] if not upload["good"]]
        return f"not a valid run: {', '.join(output.printable(upload['file']) for upload in wrong)}"
    outcome = seen["outcome"]
    return str(output.printable(outcome["reason"] or outcome["says"]))


def _row(submission: SubmissionFile, identity: str, state: str) -> dict[str, Any]:
    return {"team": submission.team, "software": submission.software, "submission": identity, "state": state}


def list_registered(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print what became of many submissions, and how many there are of each kind."""
    states = Counter(row["state"] for row in rows)
    teams = len({row["team"] for row in rows})
    counts = ", ".join(f"{n} {state}" for state, n in states.items())
    output.say(f"{plural(len(rows), 'submission')} of {plural(teams, 'team')}: {counts or 'none'}")
    if as_json:
        output.as_json(list(rows))
    elif rows:
        columns = ("team", "software", "submission", "state")
        output.table(columns, [[row[column] for column in columns] for row in rows])
