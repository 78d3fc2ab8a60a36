"""Stages: what is taken from the runs of another task, that nothing tells whose it is, and when it can be made."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.execution import stage as stages
from runner.execution.plan import plan
from runner.execution.workspace import Workspace
from runner.model.errors import RunnerError
from runner.model.run import Selection
from runner.model.task import Stage, Task
from runner.submissions.bundle import Bundle
from runner.tasks.check_data import check_task, task_problems
from runner.tasks.data_files import folder_files
from runner.tasks.files import inputs_digest, view_files, why_stage_missing
from runner.tasks.load import load_task
from schemas.debates import parse, transcript_digest
from tests.worlds import definitions, records
from tests.worlds.definitions import told
from tests.worlds.records import World

FROM = {"task": "toy", "dataset": "test", "file": "simulations.jsonl"}


def debate(claim: int, team: str, turns: int = 3) -> dict[str, Any]:
    """A line of simulations.jsonl that tells its system wherever it can, but for what was said."""
    arguments = [
        {"id": f"{claim}.1", "text": "a text", "score": 33.1, "key": 1, "by": team},
        {"id": f"{claim}.2", "text": "other"},
    ]
    return {
        "simulation": {
            "configuration": {
                "topic": {"description": f"claim {claim}", "id": f"c{claim}"},
                "user": {"class": "U", "url": f"http://{team}.example", "model": "base-user"},
                "system": {"class": "BasicChatSystem", "url": f"http://{team}.example:8080"},
                "maxTurns": turns,
            },
            "userTurns": [
                {
                    "utterance": f"attack {n} on {claim}",
                    "systemResponse": {
                        "utterance": f"answer {n} with {len(team)} letters",
                        "response": {
                            "content": f"answer {n} with {len(team)} letters",
                            "arguments": arguments,
                            "system": team,
                        },
                        "milliseconds": 12.5 + len(team),
                    },
                }
                for n in range(turns)
            ],
            "milliseconds": 99.5,
        },
        "milliseconds": 100.5,
        "team": team,
    }


class Place:
    """A project with a judging task whose dataset is made from the runs of the toy task, and its archive."""

    def __init__(self, tmp_path: Path, **changes: Any) -> None:
        self.world = World.make(tmp_path / "project")
        definitions.project(tmp_path / "project")
        self.config = replace(self.world.config, truths=tmp_path / "truths")
        self.changes: dict[str, Any] = {}
        self.write(**changes)

    def write(self, **changes: Any) -> None:
        self.changes |= changes
        made = {"id": "debates", "visibility": "blinded", "from": {**FROM, **self.changes}}
        folder = self.config.tasks / "judging"
        folder.mkdir(exist_ok=True)
        data = definitions.definition(
            id="judging",
            demo=None,
            kind="adhoc",
            datasets=[made],
            tables=[{"id": "main", "cells": [{"dataset": "debates"}], "rank_by": "ap"}],
        )
        (folder / "task.yaml").write_text(json.dumps(data, indent=1))

    @property
    def task(self) -> Task:
        return load_task(self.config, "judging")

    @property
    def tasks(self) -> dict[str, Task]:
        return {"toy": records.task(), "judging": self.task}

    def hand_in(
        self, team: str, debates: int = 4, *, status: str = "valid", extra: str = "", **more: Any
    ) -> str:
        """A submission that ran and was evaluated; returns its id."""
        submission = self.world.register(team, "one", **more)
        lines = "".join(json.dumps(debate(n, team)) + "\n" for n in range(1, debates + 1)) + extra
        attempt = self.world.attempt(submission, output={"simulations.jsonl": lines})
        values = {"ndcg": {"1": 0.5}, "rr": {"1": 0.5}} if status == "valid" else None
        self.world.evaluation(attempt, values, status=status)
        return submission

    @property
    def all_stages(self) -> stages.Stages:
        return stages.Stages(self.config, self.world.store, self.tasks)

    def build(self) -> stages.Built:
        task = self.task
        return self.all_stages.build(task, task.datasets["debates"])

    def lines(self) -> list[dict[str, Any]]:
        text = (self.task.datasets["debates"].inputs / "debates.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def provenance(self) -> dict[str, Any]:
        task = self.task
        found = stages.provenance(self.config, task, task.datasets["debates"])
        assert found is not None
        return found


TEAMS = ("zebra", "alligator", "ox")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    for team in TEAMS:
        made.hand_in(team)
    return made


def test_inputs_are_made_from_all_scored_runs(place: Place) -> None:
    made = place.build()
    assert (made.new, made.runs, made.debates, made.skipped) == (True, 3, 12, 0)
    claims = Counter(line["simulation"]["configuration"]["topic"]["description"] for line in place.lines())
    assert claims == {f"claim {n}": 3 for n in range(1, 5)}


def test_nothing_tells_whose_a_debate_is(place: Place) -> None:
    place.build()
    dataset = place.task.datasets["debates"]
    files = view_files(dataset, place.task.default_scenario())
    assert [str(name) for name, _ in files] == ["debates.jsonl"]
    for _, path in folder_files(dataset.inputs):
        text = path.read_text()
        for word in (*TEAMS, "http", "milliseconds", 'system"', "33.1", "BasicChat"):
            assert word not in text, word


def test_what_was_said_is_the_same(place: Place) -> None:
    place.build()
    said = {transcript_digest([found]) for line in place.lines() if (found := parse(line)[0])}
    originals = {
        transcript_digest([found])
        for team in TEAMS
        for n in range(1, 5)
        if (found := parse(debate(n, team))[0])
    }
    assert said == originals
    first = place.lines()[0]["simulation"]
    assert first["configuration"]["maxTurns"] == 3
    assert first["userTurns"][0]["systemResponse"]["response"]["arguments"][1] == {
        "id": first["configuration"]["topic"]["id"][1:] + ".2",
        "text": "other",
    }


def test_provenance_names_the_debate_of_every_line(place: Place) -> None:
    made = place.build()
    found = place.provenance()
    assert found["from"] == {"task": "toy", "dataset": "test", "scenario": "default"}
    assert [one["taken"] for one in found["runs"]] == [4, 4, 4]
    for line, where in zip(place.lines(), found["lines"], strict=True):
        run = next(r for r in found["runs"] if r["run"] == where["run"])
        attempt = place.world.archive.attempt("toy", where["run"], run["attempt"])
        with attempt.output() as output:
            original = (output / "simulations.jsonl").read_text().splitlines()[where["debate"] - 1]
        assert parse(json.loads(original))[0][:2] == parse(line)[0][:2]  # type: ignore[index]
        assert where["transcript"] == transcript_digest([parse(line)[0]])  # type: ignore[list-item]
    assert not list((made.folder / "inputs").rglob("provenance*"))
    assert oct((made.folder / "provenance.json").stat().st_mode)[-3:] == "444"


def test_lines_are_shuffled_by_the_seed(place: Place) -> None:
    orders = []
    for seed in (0, 1, 0):
        place.write(sample={"seed": seed})
        place.build()
        orders.append([(one["run"], one["debate"]) for one in place.provenance()["lines"]])
    assert orders[0] == orders[2] != orders[1]
    assert orders[0] != sorted(orders[0])


def test_the_same_lines_of_every_run_are_sampled(place: Place) -> None:
    place.write(sample={"debates": 2, "seed": 1})
    assert place.build().debates == 6
    by_run: dict[str, set[int]] = {}
    for one in place.provenance()["lines"]:
        by_run.setdefault(one["run"], set()).add(one["debate"])
    assert len(set(map(frozenset, by_run.values()))) == 1
    assert all(len(chosen) == 2 for chosen in by_run.values())
    place.write(sample={"debates": 100})
    assert place.build().debates == 12, "a larger sample is the whole run"


def test_making_it_again_changes_nothing_and_new_runs_make_a_new_version(place: Place) -> None:
    first = place.build()
    before = inputs_digest(place.task.datasets["debates"])
    again = place.build()
    assert (again.version, again.new) == (first.version, False)
    assert [s.name for s in place.all_stages.states()] == ["current"]
    place.hand_in("newt")
    assert [s.name for s in place.all_stages.states()] == ["changed"]
    second = place.build()
    assert second.new and second.version != first.version
    assert inputs_digest(place.task.datasets["debates"]) != before
    assert first.folder.is_dir()  # what labels and runs were made from stays


def test_lines_that_hold_no_debate_are_left_out_and_counted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    deep = "[" * 5000
    place.hand_in("ox", 2, extra=f'{{}}\n\nnot json\n[1]\n{deep}\n{{"simulation": {{"userTurns": 1}}}}\n')
    made = place.build()
    assert (made.debates, made.skipped) == (2, 5)


def test_the_latest_scored_submission_of_a_software_counts(tmp_path: Path) -> None:
    place = Place(tmp_path)
    old = place.hand_in("ox", 2)
    new = place.hand_in("ox", 3, version=2)
    place.hand_in("ox", 4, version=3, status="invalid")
    assert place.build().debates == 3
    gathered = place.all_stages.gather(place.task.datasets["debates"].stage or Stage("", "", ""))
    assert [s.run_id for s in gathered.sources] == [f"{new}.test"]
    assert f"{old}.test" in gathered.left_out
    place.write(runs="all")
    assert place.build().debates == 4


@pytest.mark.parametrize(
    ("prepare", "name"),
    [
        (lambda p: p.world.register("late", "one"), "late.one."),
        (lambda p: p.write(file="other.jsonl"), "other.jsonl"),
        (lambda p: p.write(task="nothing"), "nothing/test"),
        (lambda p: p.write(scenario="other"), "other"),
    ],
)
def test_why_it_cannot_be_made(place: Place, prepare: Any, name: str) -> None:
    prepare(place)
    with pytest.raises(RunnerError) as caught:
        place.build()
    assert caught.value.code == "E410" and name in told(caught.value)


def test_runs_on_hidden_inputs_never_become_public(place: Place) -> None:
    """Software's logs of a public dataset are its team's to read: other teams' answers and hidden claims would be in them."""
    task = place.task
    public = replace(task.datasets["debates"], visibility="public")
    assert place.tasks["toy"].datasets["test"].visibility == "blinded"
    with pytest.raises(RunnerError) as caught:
        place.all_stages.build(task, public)
    assert caught.value.code == "E410" and "blinded toy/test" in told(caught.value)
    assert place.build().debates == 12


def test_a_debate_that_would_stop_other_teams_judges_is_left_out(tmp_path: Path) -> None:
    place = Place(tmp_path)
    huge = debate(5, "ox")
    answer = huge["simulation"]["userTurns"][0]["systemResponse"]["response"]
    answer["arguments"] = [{"id": f"{n}", "text": "x" * 100} for n in range(15_000)]
    place.hand_in("ox", extra=json.dumps(huge) + "\n")
    made = place.build()
    assert (made.debates, made.skipped) == (4, 1)


def test_without_any_run_there_is_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (state,) = place.all_stages.states()
    assert state.name == "missing" and state.why


def test_a_dataset_is_ready_when_it_was_made_and_has_labels(place: Place) -> None:
    task = place.task
    assert task_problems(task, place.config) == []  # the definition is right without it
    assert "E410" in why_stage_missing(task.datasets["debates"])
    place.build()
    dataset = place.task.datasets["debates"]
    assert "E402" in why_stage_missing(dataset)
    assert dataset.truths == place.config.truths / "judging/debates"  # type: ignore[operator]
    dataset.truths.mkdir(parents=True)
    (dataset.truths / "qrels.txt").write_text("1 0 d 1\n")
    assert why_stage_missing(dataset) == ""
    check_task(place.task, place.config, ["debates"])


def test_a_run_on_it_waits(place: Place) -> None:
    place.world.commit(
        "submission-registered", submission="judge.one.12345678", task="judging", team="judge", software="one",
        scenarios=["default"], tag="x", description="", method="automatic", image={"id": "sha256:" + "0" * 64},
    )  # fmt: skip
    bundle = Bundle(Path("nowhere"), {"inputs": {}, "runs": []}, "")
    desk = Workspace(place.world.store, place.tasks, {"judge.one.12345678": bundle})
    (skipped,) = plan(desk, Selection(task="judging")).skipped
    assert skipped.blocked and "E410" in skipped.why


@pytest.mark.parametrize(
    ("changes", "line", "name"),
    [
        ({"inputs": "datasets/x/inputs"}, 15, "inputs"),
        ({"sources": [{"path": "inputs/x.jsonl"}]}, 15, "sources"),
        ({"from": {**FROM, "task": "judging", "dataset": "debates"}}, 10, "runs"),
        ({"from": {**FROM, "file": "../x.jsonl"}}, 13, '"../x.jsonl"'),
        ({"from": {**FROM, "runs": "some"}}, 14, '"some"'),
        ({"from": {"task": "toy"}}, 10, '"dataset"'),
    ],
)
def test_a_wrong_stage_is_refused(tmp_path: Path, changes: dict[str, Any], line: int, name: str) -> None:
    place = Place(tmp_path)
    path = place.config.tasks / "judging/task.yaml"
    data = json.loads(path.read_text())
    data["datasets"][0] |= changes
    path.write_text(json.dumps(data, indent=1))
    with pytest.raises(RunnerError) as caught:
        load_task(place.config, "judging")
    problem = caught.value.problems[0]
    assert caught.value.code == "E401" and problem.where == f"tasks/judging/task.yaml:{line}"
    assert name in problem.what


def test_a_pointer_that_was_tampered_with_leads_nowhere(place: Place) -> None:
    made = place.build()
    for text in ("../../../../etc", "", "\xff" * 64, "0" * 63):
        (made.folder.parent / "current").write_bytes(text.encode("latin-1"))
        assert not place.task.datasets["debates"].inputs.is_dir()


def test_it_is_taken_by_the_front_door(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from runner.cli import app, context
    from runner.cli.commands import data  # noqa: F401

    monkeypatch.setattr(context, "config", lambda: place.config)
    monkeypatch.setattr(context, "all_tasks", lambda _: place.tasks)
    call = CliRunner().invoke
    said = call(app.app, ["data", "stage", "judging", "debates", "--dry-run", "--json"])
    assert said.exit_code == 0 and len(json.loads(said.stdout)["takes"]) == 3
    assert not place.task.datasets["debates"].inputs.is_dir()
    said = call(app.app, ["data", "stage", "judging", "debates", "--json"])
    assert json.loads(said.stdout)["debates"] == 12
    assert "cells" not in said.stderr
    path = place.config.tasks / "judging/task.yaml"
    definition = json.loads(path.read_text())
    definition["datasets"].append({**definition["datasets"][0], "id": "more"})  # in no table
    path.write_text(json.dumps(definition))
    said = call(app.app, ["data", "stage", "judging", "more"])
    assert said.exit_code == 0 and all(word in said.stderr for word in ("judging", "more", "cells"))
    said = call(app.app, ["data", "stage", "toy", "test"])
    assert isinstance(said.exception, RunnerError) and said.exception.code == "E101"
