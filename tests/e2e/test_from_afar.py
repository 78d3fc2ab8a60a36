"""Handing in from another machine, on the real engine: a home with the task's public part and a submission, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from runner.model.container import ImageRef
from runner.submissions.parcel import BASES, PARTS
from tests.e2e.test_server import serving, until
from tests.e2e.test_uploads_scored import run_text
from tests.worlds.mini import GOOD, Project, cli

ROOT = Path(__file__).resolve().parents[2]


def away(live: Project, tmp_path: Path) -> Project:
    """A team's own machine: what is public of the task, no truths, no data directory yet."""
    home = Project(tmp_path / "afar", tmp_path / "afar-home", tmp_path / "none", docker_host=live.docker_host)
    home.write_task(uploads=True)
    home.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    home.image = live.image
    return home


def test_a_run_file_is_handed_in_by_make_from_another_home_and_scored(live: Project, tmp_path: Path) -> None:
    live.write_task(uploads=True)
    home = away(live, tmp_path)
    folder = home.root / "submissions/alpha/one"
    folder.mkdir(parents=True)
    (folder / "run.txt").write_text(run_text("test", "one"))
    entry = {"file": "run.txt", "dataset": "test"}
    (folder / "submission.yaml").write_text(json.dumps({"task": "mini", "run": [entry]}))
    token = cli(live, "team", "add", "alpha").out.strip()
    with serving(live) as server:
        until(lambda: "Mini" in server.client().get("/").text)
        cli(home, "login", server.url, env={"RUNNER_TOKEN": token})
        environment = home.environment(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        line = ["make", "-C", str(ROOT), "-o", "setup", "submit", "TEAM=alpha", "SERVER=local"]
        said = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300)
        assert said.returncode == 0, said.stdout + said.stderr
        assert "came to local at" in said.stderr and "was taken as alpha.one." in said.stderr
        [row] = until(
            lambda: [
                r
                for r in cli(home, "runs", "--to", "local", "--json").json
                if r["outcome"]["name"] == "scored"
            ]
        )
        assert row["run"].startswith("alpha.one.") and row["dataset"] == "test"
        assert "scored" in cli(home, "show", row["run"], "--to", "local").out
        assert not list(home.home.glob("archive")), "nothing was run here"


def test_a_software_is_sent_without_what_the_team_sent_before(
    live: Project, tmp_path: Path, build_image: Callable[..., ImageRef]
) -> None:
    """Nobody sends base images. A second system on the same image is kilobytes. Another team has to send all of it."""
    live.env["RUNNER_BASES"] = ""  # the team's image is a stranger's here
    home = away(live, tmp_path)
    home.image = build_image("proctor/test-sent", "RUN head -c 3000000 /dev/urandom > /own").names[0]
    home.software("one", team="alpha")
    home.software("two", GOOD.replace("all done", "all done again"), team="alpha")
    home.software("one", team="beta")
    token = {team: cli(live, "team", "add", team).out.strip() for team in ("alpha", "beta")}
    with serving(live) as server:
        until(lambda: [*live.home.glob(f"{BASES}/*/{PARTS}")])
        cli(live, "team", "add", "gamma")  # the server publishes again
        bases = set(until(lambda: server.parts(token["alpha"])))
        cli(home, "login", server.url, env={"RUNNER_TOKEN": token["alpha"]})
        submit = ("submit", "--to", "local", "--no-check", "--wait", "--json")
        [first] = (said := cli(home, *submit, "--team", "alpha", "--software", "one")).json
        assert first["answer"]["accepted"] is True, said.err
        assert 3_000_000 < first["size"] < 4_000_000
        until(lambda: set(server.parts(token["alpha"])) > bases)
        [second] = cli(home, *submit, "--team", "alpha", "--software", "two").json
        assert second["size"] < first["size"] / 2 and second["answer"]["accepted"] is True
        cli(home, "login", server.url, env={"RUNNER_TOKEN": token["beta"]})
        assert set(server.parts(token["beta"])) == bases
        [other] = cli(home, *submit, "--team", "beta").json
        assert other["size"] > first["size"] * 0.99 and other["answer"]["accepted"] is True
        rows = until(
            lambda: (
                (found := cli(live, "runs", "--json").json)
                and all(r["outcome"]["name"] == "scored" for r in found)
                and found
            ),
            300,
        )
    assert {(r["team"], r["software"]) for r in rows} == {("alpha", "one"), ("alpha", "two"), ("beta", "one")}
