"""Registered bundles against their events: each loss and each change is found by verify, and no backup copies it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.model.errors import RunnerError
from runner.records.backup import backup
from runner.records.files import file_sha256
from runner.records.store.verify import verify
from runner.submissions.kept import home_of
from tests.runner.execution.test_pool import World
from tests.worlds.mini import Project, call_here


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    new_world = World(project)
    yield new_world
    new_world.close()


@pytest.fixture
def bundle(world: World) -> Path:
    """The kept bundle of a registered submission."""
    run = world.hand_in("alpha")
    return home_of(world.project.config, run.removesuffix(".test"))


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def add_comment(bundle: Path) -> None:
    with (bundle / "submission.yaml").open("a") as file:
        file.write("# changed\n")


def change_command_with_hashes_that_fit(bundle: Path) -> None:
    rewrite(bundle / "bundle.json", lambda data: data.update(command="cat /etc/hostname"))
    fit_hashes(bundle)


def add_comment_with_hashes_that_fit(bundle: Path) -> None:
    add_comment(bundle)
    fit_hashes(bundle)


def fit_hashes(bundle: Path) -> None:
    def entries(data: dict[str, Any]) -> None:
        for name, entry in data["files"].items():
            path = bundle / name
            entry.update(sha256=file_sha256(path), size=path.stat().st_size)

    rewrite(bundle / "manifest.json", entries)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "folder gone": lambda bundle: shutil.rmtree(bundle.parent),
    "bundle gone": shutil.rmtree,
    "bundle.json gone": lambda bundle: (bundle / "bundle.json").unlink(),
    "bundle.json changed": lambda bundle: rewrite(bundle / "bundle.json", lambda d: d.update(packed="2020-01-01T00:00:00Z")),
    "bundle.json is no JSON": lambda bundle: (bundle / "bundle.json").write_text("{"),
    "another command": change_command_with_hashes_that_fit,
    "submission.yaml gone": lambda bundle: (bundle / "submission.yaml").unlink(),
    "submission.yaml changed": add_comment,
    "submission.yaml and its hash changed": add_comment_with_hashes_that_fit,
    "manifest.json gone": lambda bundle: (bundle / "manifest.json").unlink(),
    "manifest.json is no manifest": lambda bundle: (bundle / "manifest.json").write_text("{}"),
    "a file added": lambda bundle: (bundle / "more.txt").write_text("more"),
    "a link added": lambda bundle: (bundle / "link").symlink_to("/etc/passwd"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_bundle_is_found_and_no_backup_is_made_of_it(
    world: World, bundle: Path, damage: str, tmp_path: Path
) -> None:
    config, target = world.project.config, tmp_path / "backup.tar.gz"
    assert verify(config).problems == ()
    backup(config, target, lambda _: False)
    before = target.read_bytes()
    DAMAGES[damage](bundle)
    problems = verify(config).problems
    assert problems and all(entry.where.startswith("submissions") for entry in problems)
    with pytest.raises(RunnerError) as caught:
        backup(config, target, lambda _: False)
    assert caught.value.code == "E307" and set(caught.value.problems) == set(problems)
    assert target.read_bytes() == before
    backup(config, target, lambda _: False, accept_damage=True)
    assert target.read_bytes() != before


def test_a_restored_backup_is_compared_too(
    project: Project, world: World, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "backup.tar.gz"
    (bundle / "submission.yaml").unlink()
    assert call_here(project, ["store", "backup", str(target)], capsys).code == 3 and not target.exists()
    assert call_here(project, ["store", "backup", "--accept-damage", str(target)], capsys).code == 0
    project.env["RUNNER_HOME"] = str(tmp_path / "fresh")
    result = call_here(project, ["store", "restore", str(target)], capsys)
    assert result.code == 3 and "E307" in result.err and "submission.yaml" in result.err
    assert call_here(project, ["store", "verify"], capsys).code == 3
