"""A registered submission whose image is no longer in the engine: put back for nothing, and only that very image."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.submissions.origins import kept_as
from tests.e2e.test_two_machines import _resign
from tests.worlds.mini import Project, cli

pytestmark = pytest.mark.engine


@pytest.fixture
def image(engine: DockerEngine, build_image: Callable[..., ImageRef]) -> Iterator[tuple[ImageRef, str]]:
    """An image that nobody else has, and its name."""
    name = f"mine/vanishing:{secrets.token_hex(6)}"
    made = build_image(name, f"LABEL nonce={name}")
    yield made, name
    _remove(engine, made.id)


def _remove(engine: DockerEngine, image: str) -> None:
    from docker.errors import NotFound

    with engine.clients.calling("removing the image") as api, suppress(NotFound):
        api.remove_image(image, force=True)


def _outcome(project: Project) -> str:
    [run] = cli(project, "runs", "--json").json
    return str(run["outcome"]["name"])


@pytest.mark.slow
def test_it_is_put_back_for_nothing(
    live: Project, engine: DockerEngine, image: tuple[ImageRef, str], tmp_path: Path
) -> None:
    made, name = image
    stick = tmp_path / "stick"
    live.software("good", image=name)
    cli(live, "pack", "-t", "alpha", "--no-check", "--to", str(stick))
    [first] = cli(live, "submit", "-t", "alpha", "--no-check", "--json").json
    bundle = live.home / "submissions" / first["submission"] / "bundle"
    assert first["new"] and not (bundle / "image.tar").exists()
    _remove(engine, made.id)

    # It waits, costs nothing, and the message says what to do.
    said = cli(live, "evaluate", "--all", expect=3)
    assert "E204" in said.all and "runner register" in said.all
    assert first["submission"] in said.all and made.id[:19] in said.all
    assert _outcome(live) == "pending"

    # Another image is not that submission's: not under its id, not by an archive that claims to be it.
    other = engine.resolve(live.image)
    engine.save(other, tmp_path / "other.tar")
    bundle = json.loads((stick / "bundle.json").read_text())
    (stick / "image.tar").rename(tmp_path / "image.tar")
    (tmp_path / "other.tar").rename(stick / "image.tar")
    _resign(stick)
    assert "E205" in cli(live, "register", str(stick), expect=2).err
    assert _outcome(live) == "pending"
    (tmp_path / "image.tar").rename(stick / "image.tar")
    _resign(stick)
    assert json.loads((stick / "bundle.json").read_text()) == bundle

    # The same bundle again brings it back, once, and the quota is what it was.
    [again] = cli(live, "register", str(stick), "--json").json
    assert again == {**first, "new": False, "put_back": True}
    [third] = cli(live, "register", str(stick), "--json").json
    assert third == {**first, "new": False}
    cli(live, "evaluate", "--all")
    assert _outcome(live) == "scored"
    assert engine.resolve(kept_as("mini", "alpha", first["submission"])).id == made.id


@pytest.mark.slow
def test_an_archive_that_was_registered_puts_it_back_by_itself(
    live: Project, engine: DockerEngine, image: tuple[ImageRef, str], tmp_path: Path
) -> None:
    """And where the image itself is back under its name, handing it in again is enough."""
    made, name = image
    live.software("good", image=name)
    cli(live, "pack", "-t", "alpha", "--no-check", "--to", str(tmp_path / "stick"))
    [first] = cli(live, "register", str(tmp_path / "stick"), "--json").json
    _remove(engine, made.id)
    cli(live, "evaluate", "--all")
    assert _outcome(live) == "scored"
    with engine.clients.calling("naming the image") as api:
        api.tag(made.id, *name.split(":"))
    [again] = cli(live, "submit", "-t", "alpha", "--no-check", "--json").json
    assert (again["submission"], again["new"]) == (first["submission"], False)
    assert again["quota"]["left"] == first["quota"]["left"]
    assert engine.resolve(kept_as("mini", "alpha", first["submission"])).id == made.id


@pytest.mark.slow
def test_what_nobody_has_any_more_is_given_back(
    live: Project, engine: DockerEngine, build_image: Callable[..., ImageRef]
) -> None:
    """It was scored, then its image was lost and built anew as another one: submitted again, for no quota."""
    name = f"mine/lost:{secrets.token_hex(6)}"
    made = build_image(name, f"LABEL nonce={name}")
    live.write_task_only(quota={"submissions": 1})
    live.software("good", image=name)
    [first] = cli(live, "submit", "-t", "alpha", "--no-check", "--json").json
    cli(live, "evaluate", "--all")
    assert _outcome(live) == "scored" and first["quota"]["left"] == 0
    _remove(engine, made.id)

    said = cli(live, "evaluate", "--all", "--force", expect=3)
    assert "E204" in said.all and "--uncharged" in said.all
    assert _outcome(live) == "scored"  # what was found then still counts

    again = build_image(name, f"LABEL nonce={name} again=1")
    try:
        assert again.id != made.id
        assert "E206" in cli(live, "submit", "-t", "alpha", "--no-check", expect=1).all
        assert "E101" in cli(live, "withdraw", first["submission"], "--uncharged", expect=2).err
        cli(live, "withdraw", first["submission"], "--uncharged", "--reason", "pruned here")
        [second] = cli(live, "submit", "-t", "alpha", "--no-check", "--json").json
        assert second["new"] and second["submission"] != first["submission"]
        assert second["quota"] == first["quota"]
        cli(live, "evaluate", "--all")
        named = {r["submission"]: r["outcome"] for r in cli(live, "runs", "--json").json}
        assert named[second["submission"]]["name"] == "scored"
        old = named[first["submission"]]
        assert (old["name"], old["costs_quota"]) == ("withdrawn", False)
        before = cli(live, "runs", "--json").out
        cli(live, "store", "rebuild")
        assert cli(live, "runs", "--json").out == before
    finally:
        _remove(engine, again.id)
