"""What the organiser says about runs holds on real containers: limits, first cases, a pause while a plan is worked on."""

from __future__ import annotations

import json

import pytest

from tests.worlds.mini import GOOD, TASK, Project, cli

pytestmark = pytest.mark.engine

# 80 MiB: more than the 64 MiB of the task, less than what one team is given.
LARGE = "block = bytearray(80 * 2**20)\n"
LONG = "import time; time.sleep(4)\n"


@pytest.mark.slow
def test_one_team_has_limits_of_its_own_and_one_software_those_it_asked_for(live: Project) -> None:
    frame = {"default": "64MiB", "max": "128MiB"}
    live.write_task(limits=TASK["limits"] | {"wall_clock": "3s", "memory": frame})
    live.software("asks", LARGE + GOOD, team="beta", limits={"memory": "128MiB"})
    for team in ("alpha", "beta"):
        live.software("large", LARGE + GOOD, team=team)
        live.software("long", LONG + GOOD, team=team)
    given = ("--memory", "160MiB", "--time", "1min", "--reason", "a large vocabulary")
    cli(live, "extend", "mini", "alpha", *given)
    cli(live, "submit", "--all-teams", "--no-check")
    cli(live, "evaluate", "--all")
    found = {(row["team"], row["software"]): row for row in cli(live, "runs", "--json").json}
    ended = {key: (row["outcome"]["name"], row["outcome"]["verdict"]) for key, row in found.items()}
    assert ended == {
        ("alpha", "large"): ("scored", "ok"),
        ("alpha", "long"): ("scored", "ok"),
        ("beta", "large"): ("failed", "memory-limit"),
        ("beta", "asks"): ("scored", "ok"),
        ("beta", "long"): ("failed", "time-limit"),
    }
    (path,) = (live.home / "archive").glob(f"**/{found['alpha', 'large']['run']}/**/lock.json")
    limits = json.loads(path.read_text())["limits"]
    assert (limits["memory"], limits["wall_clock"]) == (160 * 2**20, 60.0)
    cli(live, "store", "verify")


@pytest.mark.slow
def test_a_pause_stops_a_plan_that_is_worked_on(live: Project) -> None:
    for name in ("one", "two"):
        live.software(name, "import time; print('begun', flush=True); time.sleep(12)\n" + GOOD)
    cli(live, "submit", "-t", "alpha", "--no-check")
    first, second = [row["run"] for row in cli(live, "runs", "--json").json]
    worker = live.start("evaluate", "--all", "--jobs", "1")
    follower = live.start("logs", first, "--follow")
    assert follower.stdout is not None and follower.stdout.readline() == "begun\n"
    cli(live, "task", "pause", "mini", "--reason", "a topic is wrong")
    _, said = worker.communicate(timeout=240)
    follower.communicate(timeout=60)
    assert worker.returncode == 3 and "task resume mini" in said, said
    ended = {row["run"]: row["outcome"]["name"] for row in cli(live, "runs", "--json").json}
    assert ended == {first: "scored", second: "pending"}
    cli(live, "task", "resume", "mini")
    cli(live, "evaluate", "--all")
    ended = {row["run"]: row["outcome"]["name"] for row in cli(live, "runs", "--json").json}
    assert ended == {first: "scored", second: "scored"}


@pytest.mark.slow
def test_first_cases_end_a_run_early(live: Project) -> None:
    datasets = [one | {"smoke": 2} for one in TASK["datasets"]]
    live.write_task(datasets=datasets)
    count = "import os; topics = len(open(os.environ['inputDataset'] + '/queries.jsonl').readlines())\n"
    count += "print('topics', topics, flush=True)\n"
    live.software("early", count + "raise SystemExit(3)")
    live.software("later", count + "if topics > 2: raise SystemExit(3)\n" + GOOD)
    live.software("good", count + GOOD)
    cli(live, "submit", "-t", "alpha", "--no-check")
    cli(live, "evaluate", "--all")
    rows = {row["software"]: row for row in cli(live, "runs", "--json").json}
    ended = {name: (row["outcome"]["name"], row["outcome"]["verdict"]) for name, row in rows.items()}
    assert ended == {
        "early": ("failed", "run-error"),
        "later": ("failed", "run-error"),
        "good": ("scored", "ok"),
    }
    logs = {name: cli(live, "logs", row["run"]).out for name, row in rows.items()}
    assert ["topics 2" in logs[name] for name in ("early", "later", "good")] == [True, False, False]
    assert "topics 3" in logs["later"] and "topics 3" in logs["good"]
    shown = cli(live, "show", rows["early"]["run"], expect=None).out
    assert "first cases, 2 " in " ".join(shown.split())
    for_team = cli(live, "show", rows["early"]["run"], "--as", "team:alpha", expect=None).out
    assert "first cases" not in for_team
    assert "dev, test: 2 " in " ".join(cli(live, "task", "show", "mini", "--as", "team:alpha").out.split())
    # The first of four submissions that fail on the first cases costs nothing yet.
    quota = cli(live, "task", "show", "mini", "--as", "team:alpha", "--json").json["team"]
    assert (quota["first"], quota["used"], quota["open"]) == (1, 2, 0)
    sample = cli(live, "verify", rows["good"]["run"], "--sample", "2", "--json").json
    assert (sample["same"], sample["sample"], sample["identical"]) == (True, 2, None)
    assert "ndcg_10" in sample["values"]
    cli(live, "store", "verify")
