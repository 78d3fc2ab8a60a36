"""Bundles that nobody packed with our tools: what is in them is decided by whoever wrote bundle.json."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import schemas
from runner.engines.base import Engine
from runner.model.container import ImageRef
from runner.model.errors import RunnerError
from runner.submissions.bundle import Bundle
from runner.submissions.definition import SubmissionFile
from runner.submissions.origins import Origins, kept_as
from runner.submissions.pack import image_of
from runner.submissions.register import task_of
from runner.tasks.load import load_task
from tests.runner.submissions.test_bundle import DATA, UPLOAD
from tests.worlds.definitions import project, write_task

IMAGE_ID = "sha256:" + "0" * 64
HONEST: dict[str, Any] = DATA | {
    "team": "mine",
    "image": {"id": IMAGE_ID, "repo_digest": "localhost:5000/x@sha256:" + "1" * 64, "archive": None},
    "command": ["python3", "main.py", "--query=a b\n\u00e9"],
    "inputs": {"first": "baselines/bm25", "second": "sparse"},
}


def test_an_honest_one_is_fine() -> None:
    assert not schemas.validate(HONEST, "bundle")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"scenarios": ["default"] * 2},
        {"scenarios": [f"s{n}" for n in range(60_000)]},
        {"runs": ["run.txt"]},
        {"runs": [UPLOAD, UPLOAD]},
        {"runs": [UPLOAD | {"dataset": "../dev"}]},
        {"runs": [UPLOAD | {"sha256": None}]},
        {"datasets": ["../dev"]},
        {"command": "true\0"},
        {"command": ["true", "a\0b"]},
        {"command": ["x"] * 1001},
        {"command": ["x" * 20_001]},
        {"inputs": {f"i{n}": "x" for n in range(21)}},
        {"inputs": {"../up\x1b[2J": "x"}},
        {"inputs": {"up": "../../x"}},
        {"image": {"id": IMAGE_ID, "repo_digest": "registry.example/x:latest"}},
        {"image": {"id": IMAGE_ID, "repo_digest": "x\x1b[2J@sha256:" + "1" * 64}},
        {"check": {"verdict": "x" * 41, "status": None, "dataset": "dev", "scores": {}}},
    ],
)
def test_beyond_what_a_submission_may_say(change: dict[str, Any]) -> None:
    assert schemas.validate(HONEST | change, "bundle")


@pytest.mark.parametrize(("workflow", "runs", "fits"), [
    ("batch", [], True), ("batch", [UPLOAD], False), ("upload", [UPLOAD], True), ("upload", [], False),
    ("both", [], True), ("both", [UPLOAD], True),
    ("both", [UPLOAD | {"dataset": "other"}], False), ("both", [UPLOAD | {"scenario": "other"}], False),
])  # fmt: skip
def test_run_files_need_uploads(
    tmp_path: Path, workflow: str, runs: list[dict[str, str]], fits: bool
) -> None:
    """Whoever has seen hidden data could hand in a run made elsewhere where the task asks for software."""
    image = None if runs else HONEST["image"]
    bundle = Bundle(Path("bundle"), HONEST | {"runs": runs, "image": image}, "0" * 64)
    config = project(tmp_path / "root")
    how = {"uploads": True} if workflow == "both" else {"workflow": workflow}
    write_task(config, "mini", data=False, **how)
    task = load_task(config, "mini")
    if fits:
        assert task_of(bundle, {"mini": task}) is task
        return
    with pytest.raises(RunnerError, check=lambda error: error.code == "E207"):
        task_of(bundle, {"mini": task})


@pytest.mark.parametrize("registry", ["", "docker.io/"])
def test_the_image_of_another_submission_cannot_be_handed_in(tmp_path: Path, registry: str) -> None:
    name = f"{registry}proctor-submissions/mini:other.dense.0a1b2c3d"
    mine = SubmissionFile("mine", "copy", "mini", Path("mine"), image=name)
    engine = cast(Engine, SimpleNamespace(resolve=lambda _: pytest.fail("it was looked for")))
    with pytest.raises(RunnerError, check=lambda error: error.code == "E212"):
        image_of(project(tmp_path), engine, mine)


@pytest.mark.parametrize(
    ("kept", "owners", "fine"),
    [
        (kept_as("mini", "Mine.1", "mine_1.dense.0a1b2c3d"), None, True),
        (kept_as("mini", "other", "other.dense.0a1b2c3d"), None, False),
        (kept_as("mini", "other", "other.dense.0a1b2c3d"), {"Mine.1"}, False),
        # A name of another form is nobody's own.
        ("proctor-submissions/mini:mine.1.0a1b2c3d", None, False),
        ("proctor-submissions/mini:mine.1.0a1b2c3d", {"Mine.1", "other"}, False),
    ],
)
def test_whose_a_kept_image_is(kept: str, owners: set[str] | None, fine: bool) -> None:
    image = ImageRef("sha256:" + "1" * 64, names=("mine/x:1", kept))
    engine = cast(Engine, SimpleNamespace(resolve=lambda _: image))
    known = {} if owners is None else {image.id: frozenset(owners)}
    allowed = Origins("Mine.1", engine, owners=known)
    if fine:
        assert allowed.image("mine/x:1") is image
        return
    with pytest.raises(RunnerError, check=lambda error: error.code == "E212"):
        allowed.image("mine/x:1")


def test_images_have_names_that_every_registry_takes() -> None:
    """No capital, no dot of a team's name gets into them."""
    names = {kept_as("mini", team, "x.y.0a1b2c3d") for team in ("TeamA_v2.1", "teamA_v2.1", "x", "a" * 40)}
    assert len(names) == 4
    assert all(re.fullmatch(r"proctor-submissions/[0-9a-f]{32}:[0-9a-f]{32}", name) for name in names)
