"""Changes of a task's rules, and exports, are events; nothing is where nothing changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from runner.execution.coordinator import EvaluationRequest, Silent, coordinating
from runner.records.policy import MAX_CHANGES, NOT_SET, changes
from runner.records.store import connect
from tests.worlds import records
from tests.worlds.commands import At


@pytest.fixture
def at(tmp_path: Path) -> At:
    records.write_project(tmp_path)
    world = records.World.make(tmp_path)
    world.scored("alpha", "x")
    world.scored("beta", "y", datasets=("test", "dev"))
    world.scored("gamma", "z", datasets=("dev",))
    return At(tmp_path, world)


def edit(at: At, **keys: Any) -> None:
    path = at.root / "tasks/toy/task.yaml"
    data = json.loads(path.read_text())
    for key, value in keys.items():
        at_dataset = key in ("scores", "publish_at")
        (data["datasets"][1] if at_dataset else data)[key] = value
    path.write_text(json.dumps(data))


def of(at: At, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(at.run("events", "--kind", kind, "--json").out)
    return found


def csv(at: At, audience: str = "organiser") -> str:
    return at.run("--actor", "anna", "leaderboard", "toy", "--format", "csv", "--as", audience).out


def test_rules_are_noted_when_results_go_out_and_again_only_when_they_have_changed(at: At) -> None:
    csv(at)
    csv(at)
    (first,) = of(at, "policy-changed")
    assert "toy" in first["says"] and first["data"]["changes"] == []
    edit(at, title="Another title", description="Other words")
    csv(at)
    assert len(of(at, "policy-changed")) == 1
    edit(at, quota={"submissions": 7}, scores="organiser", publish_at="2030-05-01 12:00 AoE")
    csv(at)
    csv(at)
    _, second = of(at, "policy-changed")
    assert second["data"]["changes"] == [
        "datasets.test.scores: public → organiser",
        f"datasets.test.publish_at: {NOT_SET} → 2030-05-01 12:00 AoE",
        f"quota.submissions: {NOT_SET} → 7",
    ]
    assert all(change in second["says"] for change in second["data"]["changes"][:2])
    edit(at, quota={"submissions": 7})  # the same again
    csv(at)
    assert len(of(at, "policy-changed")) == 2


def test_rules_are_noted_when_runs_are_planned(at: At) -> None:
    at.world.store.close()

    def plan(dry_run: bool = False) -> None:
        with coordinating(at.world.config, Silent(), dry_run=dry_run) as coordinator:
            coordinator.plan(EvaluationRequest())

    plan(dry_run=True)
    assert of(at, "policy-changed") == []
    plan()
    plan()
    assert len(of(at, "policy-changed")) == 1


def test_what_is_not_used_is_not_noted(at: At) -> None:
    at.run("leaderboard", "toy")
    assert of(at, "policy-changed") == [] and of(at, "results-exported") == []


def test_changes_are_said_key_by_key_with_what_has_an_id_under_it() -> None:
    tables = [{"id": "main", "rank_by": "ap"}, {"id": "old", "rank_by": "rr"}]
    before = {"tables": tables, "limits": {"cpus": 1}}
    now = {"tables": [{"id": "main", "rank_by": "a\x1b[31m"}], "limits": {"cpus": 2, "gpus": [1, 2]}}
    assert list(changes(before, now)) == [
        "tables.main.rank_by: ap → a\\x1b[31m",
        f"tables.old: there → {NOT_SET}",
        f"tables.old.rank_by: rr → {NOT_SET}",
        "limits.cpus: 1 → 2",
        f"limits.gpus: {NOT_SET} → [1,2]",
    ]
    assert list(changes(now, now)) == []
    assert list(changes({"a": {}}, {"a": {}})) == []


def test_another_order_is_a_change(at: At) -> None:
    csv(at)
    path = at.root / "tasks/toy/task.yaml"
    data = json.loads(path.read_text())
    names = [one["id"] for one in data["datasets"]]
    data["datasets"].reverse()
    path.write_text(json.dumps(data))
    csv(at)
    _, second = of(at, "policy-changed")
    said = f"{', '.join(names)} → {', '.join(reversed(names))}"
    assert said in second["data"]["changes"][0] and said in second["says"]
    assert list(changes({"a": [{"id": "x"}, {"id": "y"}]}, {"a": [{"id": "z"}, {"id": "x"}]})) == [
        f"a.y: there → {NOT_SET}",
        f"a.z: {NOT_SET} → there",
    ]


def test_very_many_changes_are_counted(at: At) -> None:
    csv(at)
    edit(at, exceptions={f"alpha/x{n}": {"writable": ["/data"]} for n in range(MAX_CHANGES + 5)})
    csv(at)
    data = of(at, "policy-changed")[-1]["data"]
    assert (len(data["changes"]), data["more"]) == (MAX_CHANGES, 5)
    assert of(at, "policy-changed")[-1]["says"].rpartition(";")[2].count("5") == 1


def test_what_is_written_out_for_an_audience_is_an_event(at: At, tmp_path: Path) -> None:
    text = csv(at, "public")
    run = at.run_of("beta", "dev")
    for words in (
        ("leaderboard", "toy", "--format", "jsonl"),
        ("export", run, str(tmp_path / "out"), "--as", "team:beta"),
        ("show", run, "--html", str(tmp_path / "page.html")),
        ("compare", run, at.run_of("gamma", "dev"), "--format", "csv"),
    ):
        assert at.run(*words).failed is None
    first, *others = of(at, "results-exported")
    assert first["data"] == {
        **{"task": "toy", "what": "leaderboard", "name": "main", "format": "csv", "audience": "public"},
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    assert first["who"] == "anna" and all(word in first["says"] for word in ("toy", "csv", "public"))
    said = [(one["data"]["what"], one["data"]["format"], one["data"]["audience"]) for one in others]
    assert said == [
        ("leaderboard", "jsonl", "organiser"),
        ("run", "files", "team:beta"),
        ("page", "html", "organiser"),
        ("comparison", "csv", "organiser"),
    ]
    page = (tmp_path / "page.html").read_bytes()
    assert others[2]["data"]["sha256"] == hashlib.sha256(page).hexdigest()


def test_the_same_export_is_an_event_once_for_each_person_and_audience(at: At) -> None:
    csv(at)
    csv(at)
    assert len(of(at, "results-exported")) == 1
    at.run("--actor", "bert", "leaderboard", "toy", "--format", "csv")
    csv(at, "public")
    assert len(of(at, "results-exported")) == 3
    at.world.store.catch_up()
    at.world.scored("delta", "w")
    csv(at)
    assert len(of(at, "results-exported")) == 4


def test_what_fails_or_is_only_looked_at_is_no_export(at: At, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    assert at.run("export", at.run_of("beta"), str(tmp_path / "full")).error.code == "E101"
    hidden = at.run("export", at.run_of("beta"), str(tmp_path / "out"), "--as", "team:beta")
    assert hidden.error.code == "E103"
    at.run("show", at.run_of("beta"))
    at.run("runs", "--json")
    assert of(at, "results-exported") == []


def test_a_rebuilt_store_remembers_rules_and_exports(at: At) -> None:
    csv(at)
    at.world.store.close()
    connect.rebuild(at.world.config)
    csv(at)
    assert len(of(at, "policy-changed")) == len(of(at, "results-exported")) == 1


def test_csv_for_excel_begins_with_a_byte_order_mark(at: At) -> None:
    for form in ((), ("--format", "csv")):
        assert at.run("leaderboard", "toy", *form, "--excel").out == f"\ufeff{csv(at)}"
    assert not csv(at).startswith("\ufeff")
    assert at.run("leaderboard", "toy", "--format", "latex", "--excel").error.code == "E101"  # type: ignore[union-attr]
