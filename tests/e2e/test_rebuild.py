"""The database is derived: made again from archive and events, in SQLite and in PostgreSQL, every export is the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds import records
from tests.worlds.mini import GOOD, Project, cli, digests
from tests.worlds.postgres import Server

pytestmark = pytest.mark.engine
FORMATS = ("table", "json", "csv", "markdown", "latex", "html")


@pytest.fixture
def settled(live: Project) -> tuple[Project, str]:
    """A project with a leaderboard of every sort of row; returns it and the id of a scored run."""
    table = {"id": "main", "cells": [{"dataset": "test"}], "rank_by": "ndcg_10", "baseline": "base/line"}
    live.write_task(tables=[table])
    live.software("line", GOOD, team="base")
    live.software("same", GOOD, team="alpha")
    live.software("worse", command=["python3", "-c", GOOD, "reversed"], team="alpha", method="manual")
    live.software("crash", "raise SystemExit(3)", team="beta")
    live.software("broken", GOOD.replace("Q0", ""), team="beta")
    live.software("gone", GOOD + "\n# other", team="beta")
    for team in ("base", "alpha", "beta"):
        said = cli(live, "submit", "-t", team, "--no-check", "--json")
    gone = next(r["submission"] for r in said.json if ".gone." in r["submission"])
    cli(live, "evaluate", "--all")
    cli(live, "withdraw", gone, "--reason", "=cmd|' /C calc'!A0")
    cli(live, "extend", "mini", "alpha", "-n", "3")
    cli(live, "reevaluate", "--team", "base")
    run = next(r["run"] for r in cli(live, "runs", "--json").json if r["software"] == "line")
    return live, run


def _everything(project: Project, run: str) -> dict[str, str]:
    """Return all exports and listings."""
    said = {"runs": cli(project, "runs", "--json").out, "show": cli(project, "show", run, "--json").out}
    return said | {form: cli(project, "leaderboard", "mini", "--format", form).out for form in FORMATS}


@pytest.mark.slow
def test_a_store_is_the_same_when_it_is_rebuilt(settled: tuple[Project, str], postgres: Server) -> None:
    project, run = settled
    before = _everything(project, run)
    rows = {r["software"]: r for r in json.loads(before["runs"])}
    assert {name: r["outcome"]["name"] for name, r in rows.items()} == {
        **dict.fromkeys(("line", "same", "worse"), "scored"),
        "crash": "failed",
        "broken": "invalid",
        "gone": "withdrawn",
    }
    cli(project, "store", "rebuild")
    assert _everything(project, run) == before
    for file in project.home.glob("store.sqlite*"):
        file.unlink()
    assert _everything(project, run) == before
    cli(project, "store", "verify")
    # Rebuilding touches neither the archive nor the events, and nothing is to be done again.
    assert cli(project, "evaluate", "--all", "--dry-run", "--json").json["work"] == []
    _postgresql(project, run, postgres)
    _export(project, run)
    _tampering(project, run)


def _postgresql(project: Project, run: str, postgres: Server) -> None:
    """A store in PostgreSQL has the same contents, whether it is rebuilt, written, or restored from a backup."""
    before = _everything(project, run)
    for file in project.home.glob("store.sqlite*"):
        file.unlink()
    postgres.sql("CREATE DATABASE campaign OWNER proctor", database="postgres")
    project.database = postgres.url(database="campaign").replace("proctor@", "proctor:secret@")
    assert _everything(project, run) == before
    assert "secret" not in cli(project, "doctor", expect=None).all
    cli(project, "reevaluate", "--team", "alpha")
    cli(project, "extend", "mini", "alpha", "-n", "4")
    cli(project, "store", "verify")
    after = _everything(project, run)
    assert not project.config.database.exists()

    copy = project.home.parent / "backup.tar.gz"
    cli(project, "store", "backup", str(copy))
    restored = Project(
        project.root, project.home.parent / "restored", project.truths, database=project.database
    )
    cli(restored, "store", "restore", str(copy))
    again = _everything(restored, run)
    assert {key: again[key] for key in again if key != "show"} == {
        key: after[key] for key in after if key != "show"
    }
    records.sql(project.config, "UPDATE measures SET value = 0.99 WHERE measure = 'ndcg_10'")
    assert "E307" in cli(project, "store", "verify", expect=3).err
    project.database = None
    assert _everything(project, run) == after


def _export(project: Project, run: str) -> None:
    folder = project.home.parent / "exported"
    cli(project, "export", run, str(folder))
    names = {p.name for p in folder.rglob("*") if p.is_file()}
    assert {"run.txt", "evaluation.prototext", "run.json"} <= names
    assert 'key: "nDCG@10"' in next(folder.rglob("evaluation.prototext")).read_text()
    assert "E101" in cli(project, "export", run, str(folder), expect=2).err


def _tampering(project: Project, run: str) -> None:
    """Any changed byte of what was sealed is found, and so is a changed or missing event."""
    attempt = project.home / "archive" / "mini" / run / "attempts" / "1"
    contents = project.home / "archive" / ".contents"
    (stored,) = contents.glob(f"*/{digests(attempt)['output/run.txt']}*")
    places = [stored, attempt / "run.json", attempt / "manifest.json"]
    places += [attempt / "evaluations" / "1" / "scores.jsonl", attempt / "logs" / "stdout.log"]
    for place in places:
        _undone(project, place, lambda data: data.replace(b"1", b"2", 1) if b"1" in data else data + b"x")
    events = project.config.events
    _undone(project, events, lambda data: data.replace(b"alpha", b"alphb", 1))
    _undone(project, events, lambda data: b"".join(data.splitlines(keepends=True)[1:]))
    stray = attempt / "output" / "stray.txt"
    attempt.joinpath("output").chmod(0o755)
    stray.write_text("x")
    assert "E307" in cli(project, "store", "verify", expect=3).err
    stray.unlink()
    cli(project, "store", "verify")


def _undone(project: Project, path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file, see that it is found, and change it back."""
    content, mode = path.read_bytes(), path.stat().st_mode
    path.chmod(0o644)
    changed = change(content)
    assert changed != content
    path.write_bytes(changed)
    assert "E307" in cli(project, "store", "verify", expect=3).err, path
    path.write_bytes(content)
    path.chmod(mode)
