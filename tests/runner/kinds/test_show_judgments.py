"""The judgments of a run next to the judged debates, and the comparison of two judges."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.kinds.meta.presenter import MAX_DEBATES, read
from runner.model.errors import RunnerError
from runner.model.task import Task
from runner.records.store import run_detail
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.comparison.page import page, within
from runner.views.comparison.topics import compare
from runner.views.pages import macros
from runner.views.redact import redact_run
from tests.runner.views.test_show_page import Read
from tests.worlds import records
from tests.worlds.records import World
from tests.worlds.shown import HOSTILE, taken_out

ALPHA = Audience("team", "alpha")
TURNS = [("Why?", f"Because {HOSTILE}"), ("And then?", "Nothing.")]


def made(root: Path) -> Task:
    """A task of judging, with two debates in each dataset."""
    task = records.task()
    said = [{"utterance": user, "systemResponse": {"utterance": answer}} for user, answer in TURNS]
    line = json.dumps({"simulation": {"userTurns": said}}) + "\n"
    (root / "debates.jsonl").write_text(line * 2)
    datasets = {name: replace(one, inputs=root) for name, one in task.datasets.items()}
    return replace(task, kind="meta", datasets=datasets)


def judged(world: World, software: str, rows: list[Any], dataset: str = "dev") -> run_detail.RunDetail:
    submission = world.register("alpha", software)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    attempt = world.attempt(submission, dataset=dataset, output={"run.txt": lines})
    world.evaluation(attempt, {"ndcg": {"1.1": 1.0, "1.2": 0.0}, "rr": {"1.1": 1.0, "1.2": 0.0}})
    return run_detail.detail(world.store, attempt.run_id)


def says(*scores: Any) -> dict[str, Any]:
    names = ("Quantity", "quality", "Relation", "Manner")
    return {"userTurnsEvaluations": [{key: {"score": one} for key in names} for one in scores]}


def test_verdicts_stand_below_the_answers(tmp_path: Path) -> None:
    task, world = made(tmp_path), World.make(tmp_path)
    broken = {"userTurnsEvaluations": ["x", {"Quantity": {"score": "0.9"}, "Manner": {"score": 0.5}}]}
    found = judged(world, "x", [says(0.9, 0.1), broken])
    shown = read(found, task, ORGANISER, task.datasets["dev"])
    assert shown is not None and shown.pieces is not None and [one.name for one in shown.pieces] == ["1", "2"]
    first, second = shown.pieces[0].turns
    assert (first.user, second.answer) == ("Why?", "Nothing.")
    assert {one.says for one in first.verdicts} == {"yes (0.90)"}
    assert {one.says for one in second.verdicts} == {"no (0.10)"}
    assert [one.says for one in shown.pieces[1].turns[1].verdicts] == ["none", "none", "none", "yes (0.50)"]
    lines = "\n".join(shown.lines({1}))
    assert "quantity yes (0.90)" in lines and "\x1b" not in lines
    html = str(macros(shown.template).piece(shown, shown.pieces[0]))
    assert not {"script", "img"} & {*Read(html).tags} and "Nothing." in html
    assert read(judged(world, "y", [{"no": "judgment"}]), task, ORGANISER, task.datasets["dev"]) is None


def test_of_a_packed_file_no_more_is_read_than_a_page_shows(tmp_path: Path) -> None:
    task, world = made(tmp_path), World.make(tmp_path)
    found = judged(world, "x", [says(0.9)])
    path = taken_out(found, "run.txt")
    path.unlink()  # it is read-only
    row = json.dumps(says(0.9)).encode() + b"\n"
    with gzip.open(path, "wb", 1) as file:
        file.write(row + b"\n" * MAX_DEBATES + row)
    shown = read(found, task, ORGANISER, task.datasets["dev"])
    assert shown is not None and shown.pieces is not None and len(shown.pieces) == 1


def test_who_sees_judgments(tmp_path: Path) -> None:
    task, world = made(tmp_path), World.make(tmp_path)
    open_, hidden = (judged(world, name, [says(0.9, 0.1)], name) for name in ("dev", "test"))
    for found, dataset, audience, pieces in (
        (open_, "dev", ALPHA, 1),
        (hidden, "test", ALPHA, 0),
        (hidden, "test", ORGANISER, 1),
    ):
        shown = read(found, task, audience, task.datasets[dataset])
        assert shown is not None and len(shown.pieces or ()) == pieces
        assert ("Nothing." in json.dumps(shown.data())) is bool(pieces)
    for audience in (PUBLIC, Audience("team", "beta")):
        with pytest.raises(RunnerError):
            read(open_, task, audience, task.datasets["dev"])


def test_two_judges_stand_side_by_side_where_they_differ(tmp_path: Path) -> None:
    task, world = made(tmp_path), World.make(tmp_path)
    both = [judged(world, "x", [says(0.9, 0.1)]), judged(world, "y", [says(0.9, 0.8)])]
    dev = task.datasets["dev"]
    views = [redact_run(one, ALPHA, dev) for one in both]
    beside = within([(one, dev) for one in both], task, ALPHA)
    text = page(compare(views[0], views[1], task), task, ALPHA, beside)
    assert "1 of 2" in text and "no (0.10)" in text and "yes (0.80)" in text and "(0.90)" not in text
