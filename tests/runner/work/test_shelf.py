"""What is kept of pages over a restart: used by the same program, and as if it were not there where it is damaged."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from runner.exchange.published import Published
from runner.work import shelf as shelves
from runner.work.run_pages import Kept
from runner.work.shelf import NAME, Shelf
from tests.runner.work.test_run_pages import TEAMS, publish
from tests.worlds import records
from tests.worlds.records import World

# Another process, in which sets have another order.
AGAIN = """
import json, sys
from pathlib import Path
from runner.exchange.published import Publisher
from runner.records.store.connect import open_store
from runner.tasks.load import load_tasks
from runner.work import run_pages
from runner.work.publishing import Desk
from runner.work.shelf import NAME, Shelf
from tests.worlds import records

config, read, detail = records.config(Path(sys.argv[1])), [], run_pages.detail
run_pages.detail = lambda *of, **more: read.append(of[1]) or detail(*of, **more)
kept = Shelf(config.home / NAME).load()
with open_store(config) as store:
    Desk(store, load_tasks(config)[0], Publisher(config.root / "kept"), print, kept=kept).publish(sys.argv[2:])
print(json.dumps([len(kept), read]))
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    records.write_project(made.config.root, scores="organiser")
    for n, team in enumerate(TEAMS):
        made.scored(team, "y", mean=0.3 + n / 20, topics=6, datasets=("dev", "test"))
    return made


@pytest.fixture
def place(world: World) -> Path:
    return world.config.home / NAME


@pytest.fixture
def kept(world: World, place: Path) -> Kept:
    """What is kept of the pages of a world, saved."""
    kept = Shelf(place).load()
    publish(world, "kept", kept, TEAMS)
    Shelf(place).save(kept)
    return kept


def test_after_a_restart_no_page_is_made_again_and_what_is_published_is_the_same(
    world: World, kept: Kept
) -> None:
    before = Published(world.config.root / "kept").pointer()
    ended = subprocess.run(
        [sys.executable, "-c", AGAIN, str(world.config.root), *TEAMS],
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert ended.stdout == f"[{2 * len(TEAMS)}, []]\n", ended.stderr
    assert publish(world, "kept", Shelf(world.config.home / NAME).load(), TEAMS)[0].pointer() == before


def test_what_another_program_made_is_not_used(world: World) -> None:
    place = world.config.home / NAME
    ours, theirs = Shelf(place, "ours"), Shelf(place, "theirs")
    kept = ours.load()
    publish(world, "kept", kept, TEAMS)
    ours.save(kept)
    assert Shelf(place, "ours").load() == kept != {}
    assert theirs.load() == {}
    one, *_ = kept
    theirs.save({one: kept[one]})
    assert Shelf(place, "ours").load() == {}
    assert [*Shelf(place, "theirs").load()] == [one]


def test_packages_that_a_process_finds_later_do_not_change_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests of object stores import packages from a folder of their own."""
    before = shelves.program()
    metadata = tmp_path / "later-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: later\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert version("later") == "1.0"
    assert shelves.program() == before


def test_what_is_gone_is_kept_no_more_and_what_is_damaged_is_begun_anew(place: Path, kept: Kept) -> None:
    shelf = Shelf(place)
    shelf.save(kept)
    kept.popitem()
    shelf.save(kept)
    assert Shelf(place).load() == kept
    for damage in (b"", b"[]", b"{", b'{"made": {"x": [1]}, "by": 1}', b"[" * 100_000):
        place.write_bytes(damage)
        again = Shelf(place)
        assert again.load() == {}
    again.save(kept)
    assert Shelf(place).load() == kept


def test_a_file_that_was_changed_is_begun_anew(place: Path, kept: Kept) -> None:
    digest = str(next(iter(kept.values())).page.page)
    place.write_text(place.read_text().replace(digest, "g" * 64))
    assert Shelf(place).load() == {}


def test_a_program_that_was_changed_under_its_process_keeps_nothing(
    place: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(place)
    shelf.save(kept)
    before = dict(kept)
    kept.popitem()
    monkeypatch.setattr(shelves, "program", lambda: "what was pulled since")
    shelf.save(kept)
    again = Shelf(place)
    assert again.load() == before, "this process is the one that it was"
    again.save({})
    monkeypatch.undo()
    assert Shelf(place).load() == before
