"""A limit of processor time: who works for ever ends at it, who waits is let alone, and everybody reads why."""

from __future__ import annotations

import json

import pytest

from tests.worlds.mini import GOOD, TASK, Project, cli

pytestmark = pytest.mark.engine


@pytest.mark.slow
def test_work_is_bounded_and_waiting_is_not(live: Project) -> None:
    limits = TASK["limits"] | {"cpu_time": "3s", "wall_clock": "4min"}
    live.write_task(limits=limits)
    live.software("busy", "while True: pass")
    live.software("patient", "import time; time.sleep(5)\n" + GOOD)
    cli(live, "submit", "-t", "alpha", "--no-check")
    cli(live, "evaluate", "--all")
    rows = {row["software"]: row for row in cli(live, "runs", "--json").json}
    outcomes = {name: row["outcome"]["name"] for name, row in rows.items()}
    assert outcomes == {"busy": "failed", "patient": "scored"}
    run = rows["busy"]["run"]
    shown = cli(live, "show", run, "--json", expect=None).json
    assert shown["outcome"]["verdict"] == "cpu-limit" and " 3 s" in cli(live, "show", run, expect=None).out
    (path,) = (live.home / "archive").glob(f"**/{run}/**/run.json")
    record = json.loads(path.read_text())
    assert record["exit"]["killed"] == "processor" and record["resources"]["cpu_seconds"] >= 3.0
    assert json.loads(path.with_name("lock.json").read_text())["limits"]["cpu_time"] == 3.0
    # The software chose what it used: on hidden data its team reads the verdict and no figure.
    for_team = cli(live, "show", run, "--as", "team:alpha", expect=None).out
    view = cli(live, "show", run, "--as", "team:alpha", "--json", expect=None).out
    used = record["resources"]["cpu_seconds"]
    assert "cpu-limit" in for_team and not [v for v in (str(used), f"{used:.1f} s") if v in view + for_team]
    assert "3 s of " in cli(live, "task", "show", "mini").out
    cli(live, "store", "verify")
