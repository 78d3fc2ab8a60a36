"""What is evaluated again with another result counts when the organiser has accepted it, and not before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.cli import context
from runner.engines.fake import Mounts
from runner.execution.machine import Machine
from runner.model.errors import PlatformError
from runner.model.outcome import AGAIN_FAILED, WAITING
from runner.records.commit import commit_orphans, settle
from runner.records.store.connect import open_store, rebuild
from runner.records.store.run_detail import detail
from runner.views.audience import ORGANISER, PUBLIC, Audience
from runner.views.leaderboard.table import build
from runner.views.redact import redact_run
from tests.runner.execution.test_pool import EVALUATOR, RESULT, World
from tests.worlds.mini import Project, Said, call_here

Again = Callable[..., Said]


def judging(*order: str) -> Any:
    """An evaluator that values a run by the place of its one word in ``order``: the last one is best."""

    def script(mounts: Mounts, out: Path) -> None:
        word = (mounts["/in"] / "run/run.txt").read_text()
        value = (1 + order.index(word)) / len(order)
        measure = {"value": value, "topics": 1, "covered": 1, "interval": None}
        result = {**RESULT, "measures": {"ndcg_10": measure, "p_10": measure}}
        out.joinpath("result.json").write_text(json.dumps(result))
        lines = [{"measure": m, "topic": "t", "value": value} for m in ("ndcg_10", "p_10")]
        out.joinpath("scores.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        out.joinpath("findings.jsonl").touch()

    return script


def writing(word: str) -> Any:
    return lambda mounts, out: out.joinpath("run.txt").write_text(word) and None


@pytest.fixture
def world(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Two softwares, of which beta's is the better one."""
    made = World(project)
    made.engine.script[EVALUATOR] = judging("alpha", "beta")
    for team in ("alpha", "beta"):
        made.hand_in(team, script=writing(team))
    made.work()
    machine = Machine(project.config, engine=made.engine, images={"evaluator": EVALUATOR})
    monkeypatch.setattr(context, "machine", lambda *_: machine)
    yield made
    made.close()


def board(world: World, audience: Audience = ORGANISER) -> dict[str, tuple[int, float]]:
    table = build(world.store, world.tasks["mini"], None, audience)
    return {row.team: (row.rank, row.values["ndcg_10"].mean) for row in table.rows}


@pytest.fixture
def again(project: Project, capsys: pytest.CaptureFixture[str]) -> Again:
    """The command that evaluates all runs again."""
    return lambda *more: call_here(project, ["reevaluate", "--all", *more], capsys)


BEFORE = {"beta": (1, 1.0), "alpha": (2, 0.5)}
AFTER = {"alpha": (1, 1.0), "beta": (2, 0.5)}


def test_another_result_is_shown_and_counts_when_it_is_accepted(world: World, again: Again) -> None:
    world.engine.script[EVALUATOR] = judging("beta", "alpha")
    said = again()
    assert said.code == 0 and "--accept" in said.err
    lines = [line.split() for line in said.out.splitlines()]
    assert ["mini", "main", "alpha/one", "2", "1", "0.5000", "1.0000"] in lines
    assert ["mini", "main", "beta/one", "1", "2", "1.0000", "0.5000"] in lines
    assert board(world) == BEFORE
    world.store.commit("dataset-published", {"task": "mini", "dataset": "test"}, actor="organiser")
    notes = " ".join(build(world.store, world.tasks["mini"], None, PUBLIC).notes)
    assert "beta/one" in notes and "alpha/one" in notes
    evaluated = len(world.engine.started)
    events = world.project.config.events.read_bytes()
    dry = again("--accept", "--dry-run")
    assert dry.out == "2 runs: 2 evaluated again\n" and world.project.config.events.read_bytes() == events
    said = again("--accept", "--reason", "wrong qrels", "--json")
    assert len(world.engine.started) == evaluated, "what was shown is what counts"
    keys = ("software", "old", "new", "old_score", "new_score")
    ranks = {tuple(row[key] for key in keys) for row in said.json["changes"]["ranks"]}
    assert ranks == {("alpha/one", 2, 1, 0.5, 1.0), ("beta/one", 1, 2, 1.0, 0.5)}
    assert said.json["changes"]["waiting"] == []
    assert board(world) == AFTER and all(run.stale == () for run in world.desk().runs)
    event = list(world.store.log)[-1]
    assert (event.type, event.actor) == ("evaluations-accepted", "organiser")
    assert event.data["reason"] == "wrong qrels"
    assert sorted(event.data["evaluations"]) == sorted([run.id, 1, 2] for run in world.desk().runs)
    rebuild(world.project.config)
    with open_store(world.project.config) as store:
        made = build(store, world.tasks["mini"], None, ORGANISER)
        assert {row.team: (row.rank, row.values["ndcg_10"].mean) for row in made.rows} == AFTER


def test_the_same_result_counts_at_once(world: World, again: Again) -> None:
    changes = again("--json").json["changes"]
    assert (changes["ranks"], changes["waiting"], board(world)) == ([], [], BEFORE)
    counted = [(run.outcome.evaluation, run.waiting, run.stale) for run in world.desk().runs]
    assert counted == [(2, None, ())] * 2


@pytest.mark.parametrize("corrected", ["truths", "evaluator"])
def test_what_waits_is_evaluated_once_more_if_truths_or_evaluator_changed_since(
    world: World, project: Project, again: Again, monkeypatch: pytest.MonkeyPatch, corrected: str
) -> None:
    world.engine.script[EVALUATOR] = judging("beta", "alpha")
    again()
    name = EVALUATOR if corrected == "truths" else "evaluator:corrected"
    world.engine.script[name] = judging("x", "beta", "y", "alpha")
    if corrected == "truths":
        (project.truths / "mini/test/qrels.txt").write_text("test-1 0 doc-02 1\n")
    machine = Machine(world.project.config, engine=world.engine, images={"evaluator": name})
    monkeypatch.setattr(context, "machine", lambda *_: machine)
    dry = again("--accept", "--dry-run", "--json").json
    assert [one["step"] for one in dry["work"]] == ["evaluate"] * 2
    again("--accept")
    assert board(world) == AFTER
    assert {run.outcome.evaluation for run in world.desk().runs} == {3}


def test_nobody_but_the_organiser_sees_what_waits(world: World, again: Again) -> None:
    world.engine.script[EVALUATOR] = judging("gamma", "delta", "beta", "alpha")
    again()
    run = world.desk().runs[0].id
    dataset = world.tasks["mini"].datasets["test"]
    for name in (run, f"{run}#1"):
        found = detail(world.store, name, world.tasks.values())
        shown = dict(redact_run(found, ORGANISER, dataset))
        assert shown["scores"]["ndcg_10"]["value"] == 0.5
        assert [e.get("counts", True) for e in shown["inside"]["evaluations"]] == [True, False]
        seen = json.dumps(dict(redact_run(found, Audience("team", "alpha"), dataset)))
        assert '"counts": false' not in seen and "evaluated again" in seen


def test_one_that_failed_and_one_that_a_killed_command_left_do_not_displace_anything(
    world: World, again: Again
) -> None:
    world.engine.script[EVALUATOR] = lambda mounts, out: 1
    assert again().code == 3
    assert board(world) == BEFORE
    world.engine.script[EVALUATOR] = judging("beta", "alpha")
    attempt = world.store.archive.attempts("mini", world.desk().runs[0].id)[0]
    old = attempt.evaluations()[0]
    staging = world.store.archive.begin_evaluation(attempt)
    for name in ("result.json", "scores.jsonl", "findings.jsonl"):
        data = (old.path / name).read_text() if (old.path / name).exists() else ""
        (staging.path / name).write_text(data.replace("0.5", "1.0"))
    world.store.archive.add_evaluation(attempt, staging, {**old.record(), "evaluation": staging.number})
    assert commit_orphans(world.store) == 1
    assert board(world) == BEFORE and world.desk().runs[0].waiting == staging.number


def test_a_corrected_evaluation_is_not_reported_as_failed(world: World, again: Again) -> None:
    world.engine.script[EVALUATOR] = lambda mounts, out: 1
    assert again().code == 3
    assert all(run.stale == (AGAIN_FAILED,) and run.outcome.fault for run in world.desk().runs)
    world.engine.script[EVALUATOR] = judging("beta", "alpha")
    said = again("--json")
    assert said.code == 0 and len(said.json["changes"]["values"]) == 4
    for run in world.desk().runs:
        assert (run.stale, run.outcome.fault, run.outcome.old) == ((WAITING,), "", False)
        assert run.outcome.evaluation == 1 and run.waiting == max(_numbers(world, run.id))
    assert again("--accept").code == 0
    assert board(world) == AFTER and all(run.stale == () for run in world.desk().runs)


def test_a_later_failure_replaces_what_waits(world: World, again: Again) -> None:
    world.engine.script[EVALUATOR] = judging("beta", "alpha")
    again()
    world.engine.script[EVALUATOR] = lambda mounts, out: 1
    assert again().code == 3
    assert {(run.stale, run.waiting) for run in world.desk().runs} == {((AGAIN_FAILED,), None)}
    assert board(world) == BEFORE


@pytest.mark.parametrize("failed_before", [False, True])
def test_what_waits_can_be_discarded(
    world: World, project: Project, again: Again, failed_before: bool
) -> None:
    if failed_before:
        world.engine.script[EVALUATOR] = lambda mounts, out: 1
        again()
    for order in (("x", "beta", "y", "alpha"), ("beta", "alpha")):
        world.engine.script[EVALUATOR] = judging(*order)
        again()
    ids = [run.id for run in world.desk().runs]
    evaluated = len(world.engine.started)
    assert again("--discard", "--accept").code == 2
    assert again("--discard", "--dry-run", "--json").json["discarded"] == ids
    assert again("--discard", "--run", "nowhere").err.startswith("E102")
    waiting = world.desk().runs
    assert all(run.waiting is not None for run in waiting)
    said = again("--discard", "--reason", "a wrong file", "--json")
    assert said.json["discarded"] == ids and len(world.engine.started) == evaluated
    event = list(world.store.log)[-1]
    assert (event.type, event.data["reason"]) == ("evaluations-discarded", "a wrong file")
    rebuild(world.project.config)
    for run in world.desk().runs:
        assert (run.stale, run.waiting, run.outcome.evaluation, run.outcome.fault) == ((), None, 1, "")
    assert board(world) == BEFORE
    with pytest.raises(PlatformError):  # another organiser accepts what has been discarded meanwhile
        settle(world.store, waiting, "too late")
    assert again("--discard", "--json").json["discarded"] == []
    again("--accept")
    assert board(world) == AFTER


def _numbers(world: World, run: str) -> list[int]:
    [attempt] = world.store.archive.attempts("mini", run)
    return [one.number for one in attempt.evaluations()]


def test_runs_of_a_task_that_cannot_be_loaded_stop_no_others(world: World, again: Again) -> None:
    world.project.write_task("other")
    world.hand_in("gamma", task="other", script=writing("beta"))
    world.work()
    (world.project.root / "tasks/mini/task.yaml").write_text("nonsense: 1\n")
    said = again("--json")
    assert said.code == 0 and [one["blocked"] for one in said.json["skipped"]] == [True, True]
    assert [one["step"] for one in said.json["work"]] == ["evaluate"]
