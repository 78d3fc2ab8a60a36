"""A run file that was handed in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.exchange.handing_in import Takes, check_fields
from runner.model.errors import RunnerError
from runner.model.run import run_id
from runner.submissions.bundle import Bundle
from runner.work.checks import Upload
from runner.work.handlers.wish import NotGood, Wish


def hand_in_run_file(wish: Wish) -> dict[str, Any]:
    """Register a run file as ``runner register`` does, received when it arrived, once it was checked and is valid."""
    from runner.records.store.queries import submission
    from runner.submissions.load import load_submissions
    from runner.submissions.pack import write
    from runner.submissions.register import register_all

    data, team = wish.data, wish.account.team
    if (task := wish.tasks.get(str(data.get("task")))) is not None:
        takes = Takes.of(task)
        takes.check("run files")
        check_fields("run-file", data, takes.run_file_problems(data))
    else:
        check_fields("run-file", data)
    if wish.payload is None or team is None:
        raise RunnerError("E201", "no file was sent", fix="choose a run file")
    folder = wish.scratch / "submissions" / team / data["software"]
    folder.mkdir(parents=True)
    file = "run.txt.gz" if data["file"].endswith(".gz") else "run.txt"
    wish.payload.rename(folder / file)
    entry = {"file": file, "name": data["software"]} | _named(data, "dataset", "scenario")
    said = _named(data, "tag", "description", "method", "paper", "affiliation")
    definition = {"task": data["task"], **said, "run": [entry]}
    (folder / "submission.yaml").write_text(_yaml(definition), "utf-8")
    there = replace(wish.config, root=wish.scratch, handing_in=True)
    (found,) = load_submissions(there, team, data["software"], wish.tasks)
    bundle = write(found, None, wish.scratch / "bundle", engine=None, check=None, with_archive=False)
    told = _looked_at(wish, bundle, folder / file)
    receipt = register_all(
        wish.config, wish.store, None, wish.tasks, [bundle.folder], actor=team, clock=wish.clock, team=team
    )[0]
    cells = submission(wish.store, receipt.submission).cells_of(wish.tasks[data["task"]])
    runs = [run_id(receipt.submission, cell.dataset, cell.scenario) for cell in cells]
    return {"submission": receipt.submission, "new": receipt.new, "runs": runs, **told}


def _looked_at(wish: Wish, bundle: Bundle, file: Path) -> dict[str, Any]:
    """What the check of a new run file says, for its answer; nothing where nobody checks, or it is registered already.

    Raises:
        RunnerError: Why it cannot be registered, before anything is looked at; E219 with all findings for one that is not
            valid.
        Later: It has to be looked at.
    """
    from runner.records.store.queries import submissions
    from runner.submissions.register import refusals

    if wish.checks is None or bundle.submission_id in {one.id for one in submissions(wish.store)}:
        return {}
    team, now = str(wish.account.team), wish.clock.now()
    (refusal,) = refusals(wish.config, wish.store, wish.tasks, [bundle], now, team)
    if refusal is not None:
        raise refusal
    task, (run,) = wish.tasks[bundle.data["task"]], bundle.data["runs"]
    upload = Upload(
        wish.request,
        team,
        task,
        task.datasets[run["dataset"]],
        run["scenario"],
        file,
        wish.data["file"],
        str(wish.sha256),
    )
    form = wish.checks.form(upload)
    told: dict[str, Any] = {"checked": form.how, "findings": form.rows()}
    if form.why:
        told["unchecked"] = form.why
    if form.valid:
        return told
    what, fix = (
        f"the run file {wish.data['file']} is not valid",
        "correct what is listed, and hand it in again",
    )
    raise NotGood(RunnerError("E219", what, fix=fix), told)


def _yaml(data: Mapping[str, Any]) -> str:
    """JSON that is YAML, too: in YAML a character beyond U+FFFF is written as one, and not as two halves."""
    text = json.dumps(data, ensure_ascii=False)
    return "".join(one if one.isascii() else f"\\U{ord(one):08x}" for one in text)


def _named(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: data[name] for name in names if data.get(name)}
