"""Handing in from another machine, on the real engine: a home with the task's public part and a submission, nothing else."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.model.container import ImageRef
from runner.submissions.parcel import BASES, PARTS
from tests.e2e.test_server import serving, until
from tests.worlds.mini import GOOD, Project, call, cli

ROOT = Path(__file__).resolve().parents[2]


def away(live: Project, tmp_path: Path) -> Project:
    """A team's own machine: what is public of the task, no truths, no data directory yet."""
    home = Project(tmp_path / "afar", tmp_path / "afar-home", tmp_path / "none", docker_host=live.docker_host)
    home.write_task(uploads=True)
    home.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    home.image = live.image
    return home


@pytest.mark.slow
def test_a_software_is_sent_without_what_the_team_sent_before(
    live: Project, tmp_path: Path, build_image: Callable[..., ImageRef]
) -> None:
    """Nobody sends base images. A second system on the same image is kilobytes. Another team has to send all of it."""
    live.env["RUNNER_BASES"] = ""  # the team's image is a stranger's here
    home = away(live, tmp_path)
    # The comment keeps the engine's build cache from giving the image of an earlier run of this test.
    line = f"RUN head -c 3000000 /dev/urandom > /own # {secrets.token_hex(8)}"
    home.image = build_image("proctor/test-sent", line).names[0]
    home.software("one", team="alpha")
    home.software("two", GOOD.replace("all done", "all done again"), team="alpha")
    home.software("one", team="beta")
    token = {team: cli(live, "team", "add", team).out.strip() for team in ("alpha", "beta")}
    with serving(live) as server:
        until(lambda: [*live.home.glob(f"{BASES}/*/{PARTS}")])
        cli(live, "team", "add", "gamma")  # the server publishes again
        bases = set(until(lambda: server.parts(token["alpha"])))
        call(home, "login", server.url, env={"RUNNER_TOKEN": token["alpha"]})
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

        def scored() -> list[Any]:
            rows = cli(live, "runs", "--json").json
            return rows if all(r["outcome"]["name"] == "scored" for r in rows) else []

        rows = until(scored, 300)
    assert {(r["team"], r["software"]) for r in rows} == {("alpha", "one"), ("alpha", "two"), ("beta", "one")}
