"""What a host keeps and cannot read any more is as what it never had: it is fetched again."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import schemas
from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.cache import Cache
from runner.model.errors import PlatformError
from runner.records.contents import Content
from tests.worlds.contents import read_content

DATA = b"some data"


def a_link_to_what_cannot_be_read(path: Path) -> None:
    path.symlink_to("/proc/self/mem")  # the system says EIO


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def a_link_to_a_folder(path: Path) -> None:
    path.symlink_to("/proc/self")


def a_folder(path: Path) -> None:
    (path / "deeper").mkdir(parents=True)
    (path / "deeper" / "file").touch()


INSTEAD = [a_link_to_what_cannot_be_read, a_link_to_itself, a_link_to_a_folder, a_folder]
instead_of_it = pytest.mark.parametrize("instead", INSTEAD, ids=lambda one: one.__name__)


@pytest.fixture
def store(tmp_path: Path) -> Artefacts:
    return Artefacts(f"file://{tmp_path / 'store'}")


@pytest.fixture
def content(store: Artefacts) -> Content:
    return store.put(DATA)


@pytest.fixture
def cache(store: Artefacts, tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", store, 1000)


@instead_of_it
def test_what_cannot_be_read_is_fetched_again(
    cache: Cache, content: Content, instead: Callable[[Path], None]
) -> None:
    instead(cache.folder / content.sha256)
    with cache.using(content) as path:
        assert path.read_bytes() == DATA and not path.is_symlink()
    assert [one.name for one in cache.folder.iterdir()] == [content.sha256]


@instead_of_it
def test_what_cannot_be_read_makes_room_as_all_else(
    cache: Cache, store: Artefacts, content: Content, instead: Callable[[Path], None]
) -> None:
    for digit in "01":
        instead(cache.folder / (64 * digit))
    large = store.put(bytes(1000))
    with cache.using(large) as path:
        assert path.stat().st_size == 1000
    assert cache.size() >= 1000
    with cache.using(content) as path:
        assert path.read_bytes() == DATA


@instead_of_it
def test_halves_that_cannot_be_read_are_removed_at_the_start(
    cache: Cache, store: Artefacts, instead: Callable[[Path], None]
) -> None:
    instead(cache.folder / "0.part")
    assert not list(Cache(cache.folder, store, 1000).folder.iterdir())


def test_what_cannot_be_removed_is_said_with_what_helps(
    cache: Cache, store: Artefacts, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_folder(cache.folder / content.sha256)
    a_folder(cache.folder / "0.part")

    def refuse(path: Any, *_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(PlatformError) as error, cache.using(content):
        pass
    with pytest.raises(PlatformError) as other:
        Cache(cache.folder, store, 1000)
    for one in (error.value, other.value):
        assert one.code == "E306" and str(cache.folder) in one.what
        assert one.fix and "RUNNER_HOME" not in one.fix


def test_contents_are_verified_wherever_they_were_damaged(tmp_path: Path) -> None:
    store, file = Artefacts(f"file://{tmp_path / 'store'}"), tmp_path / "file"
    file.write_bytes(b"some data")
    content = store.put(file)
    cache = Cache(tmp_path / "cache", store, 1 << 20)
    with cache.using(content) as path:
        path.write_bytes(b"some dirt")  # on the disk of the host
    with cache.using(content) as path:
        assert path.read_bytes() == b"some data"
    (kept,) = (path for path in (tmp_path / "store" / "contents").rglob("*") if path.is_file())
    kept.write_bytes(b"some dirt")  # in the store
    path.unlink()
    with pytest.raises(PlatformError) as error, cache.using(content):
        pass
    assert error.value.code == "E313"
    assert not list((tmp_path / "cache").iterdir())


def test_a_cache_forgets_what_was_used_longest_ago_and_nothing_in_use(tmp_path: Path) -> None:
    store = Artefacts(f"file://{tmp_path / 'store'}")
    contents = [store.put(bytes([number]) * 400) for number in range(4)]
    cache = Cache(tmp_path / "cache", store, 1000)
    with cache.using(contents[0]), cache.using(contents[1]):
        pass
    with cache.using(contents[0]) as first, cache.using(contents[2]), cache.using(contents[3]):
        assert first.is_file()
    kept = {path.name for path in (tmp_path / "cache").iterdir()}
    assert contents[0].sha256 in kept and contents[1].sha256 not in kept


def test_a_store_that_is_away_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Artefacts(f"file://{tmp_path / 'file' / 'store'}")
    with pytest.raises(PlatformError) as error:
        store.put(b"x")
    assert error.value.code == "E313" and schemas.show(error.value.what)
    with pytest.raises(PlatformError):
        read_content(store, Content("0" * 64, 1))
