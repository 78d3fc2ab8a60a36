"""A software whose image lies in a registry, over a server: fetched by work, by its digest, and from nowhere else."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engines.base import BuildSpec
from runner.engines.docker.engine import DockerEngine
from runner.submissions.hints import of_pull
from tests.e2e.test_from_afar import away
from tests.e2e.test_server import serving, until
from tests.leftovers import KEPT
from tests.worlds.machines import own_engine
from tests.worlds.mini import Project, cli
from tests.worlds.oci_registry import Registry


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    made = Registry(tmp_path / "registry")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def team(live: Project, tmp_path: Path) -> Iterator[Project]:
    """A team's machine with an engine of its own: what it pulls, the organiser's has not."""
    with own_engine(tmp_path / "own") as host:
        home = away(live, tmp_path)
        home.docker_host = host
        yield home


def own_image(engine: DockerEngine, base: str, folder: Path) -> str:
    """An image that nobody else has handed in: its identity."""
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {base}\n")
    mark = secrets.token_hex(8)
    name = f"proctor-test/of-a-registry:{mark}"  # without a name it would go with that of the registry
    return engine.build(BuildSpec(folder, tag=name, timeout=300, labels={**KEPT, "registry-test": mark})).id


def causes(said: str) -> list[str]:
    """Return which answers of a registry a message explains."""
    known = ("manifest unknown", "unauthorized", "no answer")
    return [cause for cause in known if of_pull(cause)[0] in " ".join(said.split())]


@pytest.mark.slow
def test_an_image_of_a_registry_goes_from_a_team_to_the_board(
    live: Project, team: Project, registry: Registry, engine: DockerEngine
) -> None:
    live.env.update(RUNNER_BASES="", RUNNER_REGISTRIES=registry.address)
    image = own_image(engine, live.image, live.root / "own")
    digest = registry.push(engine, image, "alpha/one")
    assert registry.push(engine, image, "alpha/lost") == digest
    token = cli(live, "team", "add", "alpha").out.strip()
    by_digest = f"{registry.address}/alpha/{{}}@{digest}"
    team.software("tagged", team="alpha", image=f"{registry.address}/alpha/one:one")
    team.software("lost", team="alpha", image=by_digest.format("lost"))
    # The same registry by a name that the organiser does not list.
    team.software("inside", team="alpha", image=f"localhost:{registry.port}/alpha/one@{digest}")

    def hand_in(software: str, expect: int = 0) -> Any:
        line = ("submit", "--to", "local", "--team", "alpha", "--software", software, "--no-check", "--wait")
        return cli(team, *line, "--json", expect=expect)

    for software in ("lost", "tagged"):  # then the team's engine has them
        cli(team, "pack", "--team", "alpha", "--software", software, "--no-check")
    with serving(live) as server:
        cli(team, "login", server.url, env={"RUNNER_TOKEN": token})
        said = hand_in("inside", 2).err
        assert "E212" in said and f"localhost:{registry.port} " in said, said
        registry.lose("alpha/lost")
        said = hand_in("lost", 2).err
        assert "E204" in said and causes(said) == ["manifest unknown"], said
        registry.start(password=True)
        said = hand_in("tagged", 2).err
        assert "E204" in said and causes(said) == ["unauthorized"] and "docker login" in said, said
        registry.stop()
        said = hand_in("tagged", 2).err
        assert "E204" in said and causes(said) == ["no answer"] and "refused" not in said, said
        assert cli(live, "runs", "--json").json == [], "nothing of that was registered"
        registry.start()
        came = hand_in("tagged")
        [one] = came.json
        assert one["answer"]["accepted"] is True and one["size"] < 2**20, "the image itself is not sent"
        [row] = until(lambda: cli(live, "leaderboard", "mini", "--json").json["rows"], 300)
        assert row["team"] == "alpha"
        assert row["software"] == "tagged" and row["submission"] == one["answer"]["submission"]
    with engine.clients.calling("removing the image of the test") as api:
        api.remove_image(image, force=True)
