"""Packing, checking and registering submissions, one after the other, as several commands do it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.cli import context, output
from runner.model.errors import RunnerError
from runner.model.names import id_part
from schemas.files import make_private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.machine import Machine
    from runner.model.config import Config
    from runner.model.container import ImageRef
    from runner.model.task import Task
    from runner.submissions.bundle import Bundle
    from runner.submissions.definition import SubmissionFile
    from runner.submissions.register import Receipt


def each(found: Iterable[SubmissionFile], action: Callable[[SubmissionFile], int], worst: int) -> int:
    """Do something with each submission; what is wrong with one is said, and stops no other.

    ``action`` returns an exit code. Returns the highest of these, those of errors, and ``worst``.
    """

    for submission in found:
        try:
            worst = max(worst, action(submission))
        except RunnerError as error:
            output.say(f"{submission.team}/{submission.software}:")
            output.show_error(error)
            worst = max(worst, error.exit_code)
    return worst


def built(machine: Machine, submission: SubmissionFile, task: Task) -> ImageRef | None:
    """The image of a submission, built where it has to be; None for run files.

    Raises E216 when it is too large for the task, E217 when it was built for other machines.
    """
    from runner.model.limits import in_units
    from runner.provision.steps import Steps
    from runner.submissions.origins import check_platform, check_size
    from runner.submissions.pack import image_of

    name = f"{submission.team}/{submission.software}"
    if submission.build:
        with Steps(output.say).step(f"building {name}"):
            image = image_of(machine.config, machine.engine(), submission)
    else:
        image = image_of(machine.config, machine.engine(), submission)
    if image is not None:
        output.say(f"{name}: image of {in_units(image.size)}, {in_units(task.image_limit)} are allowed")
        check_size(image.size, task, name)
        check_platform(image, machine.engine(), name)
    return image


def pack_one(
    where: Config,
    submission: SubmissionFile,
    target: Path | None,
    check: bool,
    refusal: str = "",
    failures: list[dict[str, Any]] | None = None,
) -> Bundle | None:
    """Build, check and pack one submission; None when the check failed: then ``refusal`` is said, if it is not empty.

    What the check saw is printed, a hint last of all; with ``failures`` (for JSON) nothing is, and a failed one is put there.
    """
    from runner.cli import render
    from runner.submissions import pack as packing

    task, machine = context.load_task(where, submission.task), context.machine(where)
    engine = machine.engine([task.limits])
    image = built(machine, submission, task)
    summary: dict[str, Any] | None = None
    if check:
        good, seen, summary = _checked(machine, submission, image, task, show=failures is None)
        if not good:
            if failures is not None:
                name = f"{submission.team}/{submission.software}"
                failures.append({"software": name, "submission": None, "check": seen})
            if refusal:
                output.say(refusal)
            if failures is None:
                render.hint(str(seen.get("hint", "")))
            return None
    name = f"{id_part(submission.team)}.{id_part(submission.software)}"
    if target is None:
        make_private(where.home)
    to = target or where.home / "bundles" / name
    return packing.write(submission, image, to, engine=engine, check=summary, with_archive=target is not None)


def _checked(
    machine: Machine, submission: SubmissionFile, image: ImageRef | None, task: Task, *, show: bool
) -> tuple[bool, dict[str, Any], dict[str, Any] | None]:
    """Check a submission on public data: whether it is good, what was seen, and what a bundle keeps of it."""
    from runner.cli import render
    from runner.execution.trials.software import check_submission
    from runner.views.hints import hint

    if submission.run:
        good, found = checked_uploads(machine, submission, task, show=show)
        return good, {"uploads": found["uploads"]}, found["summary"]
    dataset = task.public_dataset()
    if image is None or dataset is None:
        return True, {}, None
    output.say(f"running it on the public dataset {task.id}/{dataset.id} in the graded sandbox …")
    with check_submission(machine, submission, image, task, dataset, submission.scenarios[0]) as checked:
        view = checked.view(context.audience(f"team:{submission.team}"))
        if show:
            render.show(view)
        if checked.our_failure:
            output.say(f"our side failed: {checked.our_failure}")
            output.say("this says nothing about the software; --no-check packs it as it is")
        return checked.good, {**view, "hint": hint(view, task)}, checked.summary()


def checked_uploads(
    machine: Machine,
    submission: SubmissionFile,
    task: Task,
    dataset: str | None = None,
    scenario: str | None = None,
    *,
    show: bool,
) -> tuple[bool, dict[str, Any]]:
    """Check run files; whether all are good, and what was seen. ``show`` prints it now."""
    from runner.cli import render
    from runner.execution.trials.uploads import check_uploads

    name = f"{submission.team}/{submission.software}"
    results = []
    machine.evaluator()  # missing: known before anything is checked
    for result in check_uploads(machine, submission, task, dataset=dataset, scenario=scenario):
        cell = result.dataset + ("" if result.scenario == "default" else f" in {result.scenario}")
        output.say(f"{name}: {output.printable(result.file)} for {cell}: {result.how}")
        if show and result.view is not None:
            render.show(result.view)
        elif show and result.text:
            output.data("\n".join(output.printable(line) for line in result.text.splitlines()))
        results.append(result)
    summary = next((result.summary for result in results if result.summary), None)
    uploads = [result.as_dict() for result in results]
    return all(result.good for result in results), {"software": name, "uploads": uploads, "summary": summary}


def register_one(where: Config, tasks: Mapping[str, Task], folder: Path, team: str | None = None) -> Receipt:
    """Register a bundle. Raises as :func:`runner.submissions.register.register`."""
    from runner.submissions.bundle import read_bundle
    from runner.submissions.register import register

    read_bundle(folder, verify=False)  # what is no bundle at all needs no engine to be refused
    with context.store(where) as store:
        return register(where, store, context.engine(where), tasks, folder, team=team)


def register_packed(where: Config, tasks: Mapping[str, Task], bundle: Bundle) -> Receipt:
    """Register what :func:`pack_one` put into the data directory; run files are kept with the registration only from then on."""
    receipt = register_one(where, tasks, bundle.folder)
    if bundle.data["runs"]:
        shutil.rmtree(bundle.folder, ignore_errors=True)
    return receipt


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """Say what a registration gave; the same for ``--json``."""
    use = receipt.quota
    state = "registered" if receipt.new else "was registered already"
    if receipt.put_back:
        state += "; its image had vanished and is back"
    output.say(f"{receipt.submission} {state}; quota left: {use.left_in_all} of {use.limit}")
    if receipt.left_out:
        names = ", ".join(receipt.left_out)
        fix = f"datasets: [{names}]"
        output.say(
            f"not for {names}, which took nothing then; once it can be taken, hand it in with {fix} in submission.yaml"
        )
    for name, one in {"": use, **receipt.quotas}.items():
        if name or use.left != use.left_in_all:
            soon = f"; the next may come {one.next_free}" if one.next_free else ""
            output.say(f"quota{name and f' of {name}'}: {one.left} may be handed in now ({one.says}){soon}")
    output.say(f"receipt: event {receipt.head.seq}, head {receipt.head.hash}")
    return {
        "submission": receipt.submission,
        "team": receipt.team,
        "software": receipt.software,
        "new": receipt.new,
        "image": receipt.image,
        "head": {"event": receipt.head.seq, "hash": receipt.head.hash},
        "put_back": receipt.put_back,
        "quota": use.as_dict(),
        "left_out": list(receipt.left_out),
        "quotas": {name: one.as_dict() for name, one in receipt.quotas.items()},
    }
