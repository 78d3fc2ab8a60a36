"""A backup restored into an empty data directory gives the same events, submissions and exports."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.model.errors import RunnerError
from runner.records.backup import PARTS, backup, restore
from runner.records.store.connect import open_store, rebuild
from runner.records.store.queries import runs, submissions
from runner.records.store.verify import verify
from tests.runner.execution.test_pool import World, good
from tests.worlds.mini import Project


@pytest.fixture
def world(project: Project) -> Iterator[World]:
    project.write_task()
    made = World(project)
    yield made
    made.close()


def test_it_comes_back_whole(world: World, tmp_path: Path) -> None:
    world.hand_in("alpha", "one", good)
    world.work()
    config, copy = world.project.config, tmp_path / "copy.tar.gz"
    backup(config, copy, lambda _: False)
    fresh = replace(config, home=tmp_path / "fresh")
    restore(copy, fresh.home)
    rebuild(fresh)
    assert not verify(fresh, ()).problems
    with open_store(fresh) as store:
        assert submissions(store) == submissions(world.store)
        assert runs(store, world.tasks.values()) == runs(world.store, world.tasks.values())
    with pytest.raises(RunnerError, check=lambda error: error.code == "E101"):
        restore(copy, fresh.home)


@pytest.mark.parametrize("name", ["../escaped", "store.sqlite", "archive/../../escaped"])
def test_what_is_no_backup_is_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as file:
        file.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(RunnerError, check=lambda error: error.code == "E102"):
        restore(tmp_path / "bad.tar", tmp_path / "home" / "inner")
    assert not (tmp_path / "home" / "escaped").exists() and not (tmp_path / "escaped").exists()
    assert not any((tmp_path / "home" / "inner" / part).exists() for part in PARTS[:3])
