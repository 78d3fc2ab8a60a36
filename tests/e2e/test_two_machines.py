"""From a team's machine to the organiser's: two projects, two data directories, two container engines."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engines.docker.engine import DockerEngine
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.provision import daemon
from runner.provision.images import IMAGES, tag
from tests.worlds.machines import give_image, own_engine
from tests.worlds.mini import GOOD, Project, cli

pytestmark = pytest.mark.engine


@pytest.fixture
def organiser(
    live: Project, engine: DockerEngine, evaluator_image: ImageRef, tmp_path: Path
) -> Iterator[Project]:
    """The organiser's machine; only root can start a second engine for it, which has our evaluator and nothing else."""
    other = Project(tmp_path / "organiser", tmp_path / "organiser-home", tmp_path / "organiser-truths")
    other.write_task(quota={"submissions": 3, "teams": {"small": 1}})
    if os.geteuid() != 0 or daemon.which("dockerd") is None:
        other.docker_host = live.docker_host
        yield other
        return
    with own_engine(tmp_path / "second") as host:
        other.docker_host = host
        give_image(engine, evaluator_image, host, tag(IMAGES[0]), tmp_path)
        yield other


@pytest.fixture
def traveller(
    engine: DockerEngine, build_image: Callable[..., ImageRef], tmp_path: Path
) -> Iterator[ImageRef]:
    """An image that no other engine can have, named by nobody."""
    image = build_image("proctor/test-traveller", f"LABEL nonce={tmp_path}")
    yield image
    with engine.clients.calling("removing the image") as api:
        api.remove_image(image.id, force=True)


def _identity(project: Project, name: str) -> str:
    engine = DockerEngine(project.docker_host, engine_for="both-without-eviction")
    try:
        return engine.resolve(name).id
    finally:
        engine.close()


def _resign(bundle: Path, **changes: Any) -> None:
    """Make the hashes of a changed bundle right again: what somebody does who means it."""
    data = json.loads((bundle / "bundle.json").read_text()) | changes
    (bundle / "bundle.json").write_text(json.dumps(data))
    files = {}
    for path in sorted(bundle.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            content = path.read_bytes()
            files[str(path.relative_to(bundle))] = {
                "sha256": hashlib.sha256(content).hexdigest(),
                "size": len(content),
            }
    (bundle / "manifest.json").write_text(json.dumps({"schema_version": 1, "files": files}))


def _claim_names(archive: Path, names: list[str]) -> None:
    """Rewrite an image archive so that loading it as it is would give ``names`` to its image."""
    with tarfile.open(archive) as old, tarfile.open(archive.with_suffix(".new"), "w") as new:
        for member in old:
            if member.name == "repositories":
                continue
            content = old.extractfile(member)
            data = content.read() if content else b""
            if member.name == "manifest.json":
                data = json.dumps([{**entry, "RepoTags": names} for entry in json.loads(data)]).encode()
            member.size = len(data) if member.isreg() else 0
            new.addfile(member, io.BytesIO(data) if member.isreg() else None)
    archive.with_suffix(".new").replace(archive)


@pytest.mark.slow
def test_a_submission_travels(
    live: Project, organiser: Project, traveller: ImageRef, engine: DockerEngine, tmp_path: Path
) -> None:
    stick = tmp_path / "stick"
    live.software("good", image=traveller.id)
    [packed] = cli(live, "pack", "-t", "alpha", "-s", "good", "--to", str(stick / "good"), "--json").json
    assert packed["check"]["verdict"] == "ok" and packed["check"]["status"] == "valid"
    assert (stick / "good" / "image.tar").stat().st_size > 1_000_000
    live.software("other", GOOD.replace("all done", "other"), image=traveller.id, team="small")
    live.software("third", GOOD.replace("all done", "third"), image=traveller.id, team="small")
    for name in ("other", "third"):
        cli(live, "pack", "-t", "small", "-s", name, "--no-check", "--to", str(stick / name))
    cli(live, "pack", "-t", "alpha", "-s", "good", "--no-check")
    bare = live.home / "bundles" / "alpha.good"
    assert not (bare / "image.tar").exists()
    if organiser.docker_host == live.docker_host:
        with engine.clients.calling("removing the image") as api:
            api.remove_image(traveller.id, force=True)

    # Without its image it is refused, and leaves nothing.
    said = cli(organiser, "register", str(bare), expect=2)
    assert "E204" in said.err and "--to" in said.err
    assert cli(organiser, "runs", "--json").json == []
    assert not list((organiser.home / "submissions").glob("*"))

    # With it: registered, run and scored there; the team's machine is not asked again.
    receipt = cli(organiser, "register", str(stick / "good"), "--json").json[0]
    assert receipt["submission"] == packed["submission"] and receipt["image"] == traveller.id
    assert receipt["new"] and receipt["quota"]["left"] == 2
    again = cli(organiser, "register", str(stick / "good"), "--json").json[0]
    assert again == {**receipt, "new": False}
    cli(organiser, "evaluate", "--all")
    [run] = cli(organiser, "runs", "--json").json
    assert (run["outcome"]["name"], run["run"]) == ("scored", f"{packed['submission']}.test")
    assert cli(live, "runs", "--json").json == []

    # An archive that says it is our evaluator is not.
    ours = _identity(organiser, tag(IMAGES[0]))
    _claim_names(stick / "other" / "image.tar", [tag(IMAGES[0]), "python:3.11-slim"])
    _resign(stick / "other")
    cli(organiser, "register", str(stick / "other"))
    assert _identity(organiser, tag(IMAGES[0])) == ours != traveller.id
    for name in ("python:3.11-slim", "proctor/test-traveller"):
        if organiser.docker_host != live.docker_host:
            with pytest.raises(RunnerError) as caught:
                _identity(organiser, name)
            assert caught.value.code == "E204"

    # The quota holds at the edge.
    assert "E206" in cli(organiser, "register", str(stick / "third"), expect=1).err
    assert len(cli(organiser, "runs", "--json").json) == 2


@pytest.mark.slow
def test_a_bundle_that_was_tampered_with(live: Project, tmp_path: Path) -> None:
    """Every problem is named at once, the exit code is the caller's, and nothing is taken in."""
    live.software("good")
    cli(live, "pack", "-t", "alpha", "--no-check", "--to", str(tmp_path / "b"))
    before = live.config.events.exists() and live.config.events.read_bytes()
    bundle = tmp_path / "b"
    with (bundle / "image.tar").open("r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    (bundle / "extra.sh").write_text("#!/bin/sh\n")
    (bundle / "run.txt").symlink_to("/etc/passwd")
    data = json.loads((bundle / "bundle.json").read_text())
    (bundle / "bundle.json").write_text(json.dumps({**data, "team": "beta"}))
    (bundle / "submission.yaml").unlink()
    said = cli(live, "register", str(bundle), expect=2)
    for word in ("E205", "image.tar", "extra.sh", "run.txt", "bundle.json", "submission.yaml"):
        assert word in said.err
    (bundle / "image.tar").unlink()
    assert "image.tar: " in cli(live, "register", str(bundle), expect=2).err
    assert (live.config.events.exists() and live.config.events.read_bytes()) == before
    assert not list((live.home / "submissions").glob("*"))
