"""Corrected truths, damaged ones, another measure, another limit: what is said, what is shown, how the command ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.worlds.mini import GOOD, TASK, Project, cli

pytestmark = pytest.mark.engine
FORMATS = ("html", "json")  # the others: tests/runner/records/test_stale.py


@pytest.fixture
def scored(live: Project) -> tuple[Project, Path]:
    """A project with two scored softwares, and its hidden qrels; every receipt names a head that is on the chain."""
    live.write_task()
    live.software("good", GOOD)
    live.software("worse", command=["python3", "-c", GOOD, "reversed"], team="beta")
    heads = []
    for team in ("alpha", "beta"):
        said = cli(live, "submit", "-t", team, "--no-check", "--json")
        heads += [row["head"]["hash"] for row in said.json]
        assert heads[-1] in said.err
    cli(live, "evaluate", "--all")
    cli(live, "store", "verify", *(word for head in heads for word in ("--head", head)))
    return live, live.truths / "mini" / "test" / "qrels.txt"


def board(project: Project, form: str = "json") -> str:
    return cli(project, "leaderboard", "mini", "--format", form).out


def test_what_evaluating_again_changes_and_how_it_fails(scored: tuple[Project, Path]) -> None:
    project, qrels = scored
    before = {r["software"]: r["scores"]["ndcg_10"]["mean"] for r in json.loads(board(project))["rows"]}
    assert before["good"] > before["worse"]
    lines = [line.split() for line in qrels.read_text().splitlines()]
    # Corrected: what was relevant is not, and the last document of the collection is.
    topics = sorted({line[0] for line in lines})
    qrels.write_text("".join(f"{t} 0 doc-01 0\n{t} 0 doc-12 1\n" for t in topics))
    dry = cli(project, "evaluate", "--all", "--dry-run")
    assert dry.out.count("reevaluate --run") == 1 and "2 runs" in dry.out, "one line for both runs"
    said = cli(project, "reevaluate", "--all", "--json").json["changes"]
    software = {r["run"]: r["software"] for r in cli(project, "runs", "--json").json}
    values = {(software[v["run"]], v["measure"]): v for v in said["values"]}
    assert values["good", "ndcg_10"]["old"] == before["good"] and values["good", "ndcg_10"]["new"] == 0
    assert values["worse", "ndcg_10"]["new"] == 1 and values["worse", "ndcg_10"]["difference"] > 0
    ranks = {(r["software"], r["old"], r["new"]) for r in said["ranks"]}
    assert ranks == {("alpha/good", 1, 2), ("beta/worse", 2, 1)}
    assert json.loads(board(project))["rows"][0]["software"] == "good"
    assert "(stale)" in board(project, "table")
    cli(project, "reevaluate", "--all", "--accept", "--reason", "corrected")
    assert json.loads(board(project))["rows"][0]["software"] == "worse"
    again = cli(project, "reevaluate", "--all", "--json").json["changes"]
    assert {v["difference"] for v in again["values"]} == {0} and again["ranks"] == []
    _damaged(project, qrels)
    _another_fault(project)
    _mended(project)


def _damaged(project: Project, qrels: Path) -> None:
    """The truths are at fault: 4, loudly; the old scores stay and say so everywhere."""
    good = qrels.read_text()
    qrels.unlink()
    run = _run(project)
    cli(project, "reevaluate", "--run", run, expect=4)
    qrels.write_text("one two\n")
    assert ": scored" not in cli(project, "reevaluate", "--run", run, expect=4).err
    qrels.write_text(good)
    evaluations = project.home / "archive/mini" / run / "attempts/1/evaluations"
    newest = max(evaluations.iterdir(), key=lambda path: int(path.name))
    record = json.loads((newest / "evaluation.json").read_text())
    assert (record["status"], record["fault"]) == ("error", "organiser")
    _stale(project)


def _run(project: Project) -> str:
    return str(next(r["run"] for r in cli(project, "runs", "--json").json if r["software"] == "good"))


def _stale(project: Project) -> None:
    assert board(project, "table").count("alpha/good (stale)") == 1
    for form in FORMATS:
        assert "tale" in board(project, form), form
    assert "qrels.txt" in cli(project, "logs", _run(project), "--evaluator").all


def _another_fault(project: Project) -> None:
    """Killed at its limit: nobody's files are wrong, 3."""
    limits = {"limits": {"memory": "512MiB", "wall_clock": "0.01s"}}
    project.write_task_only(evaluator=limits)
    cli(project, "reevaluate", "--run", _run(project), expect=3)
    assert board(project, "table").count("alpha/good (stale)") == 1


def _mended(project: Project) -> None:
    project.write_task_only()
    cli(project, "reevaluate", "--all")
    assert "(stale)" not in board(project, "table")
    cli(project, "store", "verify")


def test_another_measure_under_the_same_id(scored: tuple[Project, Path]) -> None:
    project, _ = scored
    old = json.loads(board(project))["rows"][0]["scores"]["ndcg_10"]["mean"]
    measures = [{"id": "ndcg_10", "measure": "P@5", "truths": "qrels.txt"}, TASK["measures"][1]]
    project.write_task_only(measures=measures)
    dry = cli(project, "evaluate", "--all", "--dry-run").out
    assert all(name in dry for name in ("ndcg_10", "nDCG@10", "P@5"))
    for form in FORMATS:
        shown = board(project, form)
        assert f"{old:.4f}" not in shown and repr(old) not in shown, form
        assert "nDCG@10" in shown.replace("\\", ""), form
    assert "nDCG@10" in cli(project, "show", _run(project)).out
    said = cli(project, "reevaluate", "--all", "--accept", "--json").json["changes"]
    assert {v["old_measure"] for v in said["values"] if v["measure"] == "ndcg_10"} == {"nDCG@10"}
    assert {v["difference"] for v in said["values"] if v["measure"] == "ndcg_10"} == {None}
    assert len(json.loads(board(project))["rows"]) == 2


@pytest.mark.slow
def test_settled_runs_are_executed_again_only_when_that_was_said(scored: tuple[Project, Path]) -> None:
    project, _ = scored
    project.write_task_only(limits={**TASK["limits"], "memory": "65MiB"})
    said = cli(project, "evaluate", "--all", expect=2)
    assert "E104" in said.err and "limits.memory" in said.err
    dry = cli(project, "evaluate", "--all", "--dry-run", "--json")
    assert [one["changed"] for one in dry.json["again"]] == ["limits.memory"] * 2
    kept = cli(project, "evaluate", "--all", "--changed", "keep", "--json")
    assert kept.json["work"] == [] and len(kept.json["skipped"]) == 2
    assert {r["attempts"] for r in cli(project, "runs", "--json").json} == {1}
    # What is new is done beside them.
    project.software("third", GOOD + "\n# third")
    cli(project, "submit", "-t", "alpha", "-s", "third", "--no-check")
    assert "E104" in cli(project, "evaluate", "--all", expect=2).err
    done = cli(project, "evaluate", "--all", "--changed", "keep", "--json").json["done"]
    assert [r["software"] for r in done] == ["third"]
    cli(project, "evaluate", "--all", "--changed", "again")
    assert sorted(r["attempts"] for r in cli(project, "runs", "--json").json) == [1, 2, 2]
    assert "E101" in cli(project, "evaluate", "--all", "--changed", "perhaps", expect=2).err
