"""Packing and registering one software, as several commands do it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.cli import context, output

if TYPE_CHECKING:
    from runner.execution.machine import Machine
    from runner.model.config import Config
    from runner.model.container import ImageRef
    from runner.model.task import Task
    from runner.submissions.bundle import Bundle
    from runner.submissions.definition import SubmissionFile
    from runner.submissions.register import Receipt


def built(machine: Machine, submission: SubmissionFile) -> ImageRef | None:
    from runner.submissions.pack import image_of

    if submission.build:
        output.say(f"building {submission.team}/{submission.software} …")
    return image_of(machine.config, machine.engine(), submission)


def pack_one(
    where: Config,
    submission: SubmissionFile,
    target: Path | None,
    check: bool,
    failures: list[dict[str, Any]] | None = None,
) -> Bundle | None:
    """Build, check and pack one submission; None when the check failed.

    What the check saw is printed; with ``failures`` (for JSON) nothing is, and a failed one is put there.
    """
    from runner.cli import render
    from runner.execution import trial as local
    from runner.submissions import pack as packing

    task = context.load_task(where, submission.task)
    machine = context.machine(where)
    engine = machine.engine([task.limits])
    image = built(machine, submission)
    summary: dict[str, Any] | None = None
    if check and submission.run:
        good, found = checked_uploads(machine, submission, task, show=failures is None)
        if not good:
            if failures is not None:
                name = f"{submission.team}/{submission.software}"
                failures.append(
                    {"software": name, "submission": None, "check": {"uploads": found["uploads"]}}
                )
            return None
        summary = found["summary"]
    if check and image is not None and (dataset := task.public_dataset()) is not None:
        output.say(f"running it on the public dataset {task.id}/{dataset.id} in the graded sandbox …")
        with local.check_submission(
            machine, submission, image, task, dataset, submission.scenarios[0]
        ) as checked:
            view = checked.view(context.audience(f"team:{submission.team}"))
            if failures is None:
                render.show(view)
            if not checked.good:
                if checked.our_failure:
                    output.say(f"our side failed: {checked.our_failure}")
                    output.say("this says nothing about the software; --no-check packs it as it is")
                if failures is not None:
                    name = f"{submission.team}/{submission.software}"
                    failures.append({"software": name, "submission": None, "check": dict(view)})
                return None
            summary = checked.summary()
    to = target or where.home / "bundles" / f"{submission.team}.{submission.software}"
    return packing.write(submission, image, to, engine=engine, check=summary, with_archive=target is not None)


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
    from runner.execution.trial_uploads import check_uploads

    name = f"{submission.team}/{submission.software}"
    results, good, summary = [], True, None
    machine.evaluator()  # missing: known before anything is checked
    for result in check_uploads(machine, submission, task, dataset=dataset, scenario=scenario):
        cell = result.dataset + ("" if result.scenario == "default" else f" in {result.scenario}")
        output.say(f"{name}: {output.printable(result.file)} for {cell}: {result.how}")
        if show and result.view is not None:
            render.show(result.view)
        elif show and result.text:
            output.data("\n".join(output.printable(line) for line in result.text.splitlines()))
        results.append(result.as_dict())
        good = good and result.good
        summary = summary or result.summary
    return good, {"software": name, "uploads": results, "summary": summary}


def register_one(where: Config, folder: Path, team: str | None = None) -> Receipt:
    from runner.submissions.bundle import read_bundle
    from runner.submissions.register import register

    read_bundle(folder, verify=False)  # what is no bundle at all needs no engine to be refused
    with context.store(where) as store:
        return register(where, store, context.engine(where), context.all_tasks(where), folder, team=team)
