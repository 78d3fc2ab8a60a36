"""A run file that was handed in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import schemas
from runner.model.errors import RunnerError
from runner.model.names import check_name
from runner.model.run import run_id
from runner.work.handlers.wish import Wish


def hand_in_run_file(wish: Wish) -> dict[str, Any]:
    """Register a run file as ``runner register`` does, received when it arrived."""
    from runner.records.store.queries import submission
    from runner.submissions.load import load_submissions
    from runner.submissions.pack import write
    from runner.submissions.register import register_all

    data, team = wish.data, wish.account.team
    if problems := schemas.validate(dict(data), "inbox-run-file"):
        raise RunnerError("E201", "the form was not filled in as it should be", problems=problems)
    if wish.payload is None or team is None:
        raise RunnerError("E201", "no file was sent", fix="choose a run file")
    check_name("software", data["software"])
    folder = wish.scratch / "submissions" / team / data["software"]
    folder.mkdir(parents=True)
    file = "run.txt.gz" if data["file"].endswith(".gz") else "run.txt"
    wish.payload.rename(folder / file)
    entry = {"file": file, "name": data["software"]} | _named(data, "dataset", "scenario")
    said = _named(data, "description", "method", "paper", "affiliation")
    definition = {"task": data["task"], **said, "run": [entry]}
    (folder / "submission.yaml").write_text(json.dumps(definition), "utf-8")
    there = replace(wish.config, root=wish.scratch, handing_in=True)
    (found,) = load_submissions(there, team, data["software"], wish.tasks)
    bundle = write(found, None, wish.scratch / "bundle", engine=None, check=None, with_archive=False)
    receipt = register_all(
        wish.config, wish.store, None, wish.tasks, [bundle.folder], actor=team, clock=wish.clock, team=team
    )[0]
    cells = submission(wish.store, receipt.submission).cells_of(wish.tasks[data["task"]])
    runs = [run_id(receipt.submission, cell.dataset, cell.scenario) for cell in cells]
    return {"submission": receipt.submission, "new": receipt.new, "runs": runs}


def _named(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: data[name] for name in names if data.get(name)}
