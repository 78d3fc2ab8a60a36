"""A campaign whose store is in PostgreSQL, in a database of its own: what it prints is what SQLite gives, to the byte."""

from __future__ import annotations

import pytest

from tests.worlds import records
from tests.worlds.mini import GOOD, Project, call_here, cli
from tests.worlds.postgres import Server

pytestmark = pytest.mark.engine


def _everything(project: Project, run: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    asked = [("runs", "--json"), ("show", run, "--json"), ("leaderboard", "mini", "--format", "csv")]
    asked += [("leaderboard", "mini", "--format", "html")]
    return {" ".join(one): call_here(project, one, capsys).out for one in asked}


def test_a_campaign_is_the_same_in_postgresql_and_in_sqlite(
    live: Project, postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    postgres.sql("CREATE DATABASE campaign OWNER proctor", database="postgres")
    live.database = postgres.url(database="campaign").replace("proctor@", "proctor:secret@")
    live.software("line", GOOD, team="base")
    live.software("same", command=["python3", "-c", GOOD, "reversed"], team="alpha")
    live.software("crash", "raise SystemExit(3)", team="beta")
    for team in ("base", "alpha", "beta"):
        cli(live, "submit", "-t", team, "--no-check")
    cli(live, "evaluate", "--all")
    rows = cli(live, "runs", "--json").json
    assert {r["software"]: r["outcome"]["name"] for r in rows} == {
        "line": "scored",
        "same": "scored",
        "crash": "failed",
    }
    cli(live, "extend", "mini", "alpha", "-n", "3")
    assert not live.config.database.exists()

    run = next(r["run"] for r in rows if r["software"] == "line")
    before = _everything(live, run, capsys)
    cli(live, "store", "rebuild")
    assert _everything(live, run, capsys) == before
    assert "all hashes match" in cli(live, "store", "verify").err
    assert cli(live, "evaluate", "--all", "--dry-run", "--json").json["work"] == []
    said = cli(live, "doctor", expect=None)
    assert "PostgreSQL" in said.all and "secret" not in said.all

    copy = live.home.parent / "backup.tar.gz"
    cli(live, "store", "backup", str(copy))
    restored = Project(live.root, live.home.parent / "restored", live.truths, database=live.database)
    cli(restored, "store", "restore", str(copy))
    again = _everything(restored, run, capsys)
    assert [again[one] for one in again if "show" not in one] == [
        before[one] for one in before if "show" not in one
    ]

    records.sql(live.config, "UPDATE measures SET value = 0.99 WHERE measure = 'ndcg_10'")
    assert "measures of" in cli(live, "store", "verify", expect=3).err

    live.database = None
    assert _everything(live, run, capsys) == before
