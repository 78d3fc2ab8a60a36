"""A board that a gullible judge may decide is named before the task opens."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runner.model.task import Ranking, Task
from runner.tasks.load import load_tasks
from runner.tasks.tables import doubts
from tests.worlds.mini import TASK, Project


def task(folder: Path, kind: str, judge: Any, **measures: str) -> Task:
    """A task with a table for each measure."""
    made = SimpleNamespace(
        kind=kind,
        options={} if judge is None else {"judge": judge},
        datasets={"test": SimpleNamespace(id="test", truths=folder, public_topics=None, visibility="public")},
        measures={name: SimpleNamespace(measure=text) for name, text in measures.items()},
        tables={
            f"by-{name}": SimpleNamespace(id=f"by-{name}", rank_by=Ranking((name,))) for name in measures
        },
    )
    return cast("Task", made)


MODEL = {"type": "openai", "model": "m"}


def test_reports_whose_judge_nobody_has_tried(tmp_path: Path) -> None:
    [one] = doubts(task(tmp_path, "report", MODEL, f1="f1@macro"))
    assert "table by-f1" in one and "--reliability" in one
    for judge in (None, {"type": "lexical"}, {"type": "human"}):
        assert doubts(task(tmp_path, "report", judge, f1="f1@macro")) == []


@pytest.mark.parametrize(("share", "says"), [(0.03, ""), (0.5, "50%"), (1, "100%"), ("x", "--reliability")])
def test_reports_whose_judge_was_tried(tmp_path: Path, share: Any, says: str) -> None:
    (tmp_path / "judge.json").write_text(
        json.dumps({"judge": {}, "figures": {"susceptibility to canaries": share}})
    )
    found = doubts(task(tmp_path, "report", {**MODEL, "reliability": "judge.json"}, f1="f1@macro"))
    assert [says in one for one in found] == ([True] if says else [])
    (tmp_path / "judge.json").write_text("[" * 5000)
    [one] = doubts(task(tmp_path, "report", {**MODEL, "reliability": "judge.json"}, f1="f1"))
    assert "--reliability" in one


def test_debates_whose_judge_is_not_asked_about_echoes(tmp_path: Path) -> None:
    measures = {"score": "score@llm", "people": "score@labels", "answered": "answered"}
    [one] = doubts(task(tmp_path, "debate", {"model": "m", "canaries": 0}, **measures))
    assert one.startswith("table by-score") and "canaries is 0" in one
    assert doubts(task(tmp_path, "debate", {"model": "m"}, **measures)) == []
    assert doubts(task(tmp_path, "debate", None, **measures)) == []


@pytest.mark.parametrize(
    ("share", "topics", "says"),
    [
        ("30%", 50, ""),
        ("10%", 50, ""),
        ("90%", 50, ""),
        ("8%", 50, "4 of its 50 "),
        ("1%", 40, "0 of its 40 "),
        ("95%", 40, "2 of its 40 "),
    ],
)  # fmt: skip
def test_a_tiny_part_of_split_topics(share: str, topics: int, says: str, project: Project) -> None:
    test = {**TASK["datasets"][1], "scores": "public", "public_topics": share}
    project.write_task(datasets=[TASK["datasets"][0], test])
    lines = (json.dumps({"qid": f"t{n}", "query": "x"}) for n in range(topics))
    file = project.private / "mini/test/inputs/queries.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    task = load_tasks(project.config)[0]["mini"]
    found = doubts(task)
    assert [says in one for one in found] == ([True] if says else [])
    file.unlink()
    assert doubts(task) == [], "it is elsewhere"
