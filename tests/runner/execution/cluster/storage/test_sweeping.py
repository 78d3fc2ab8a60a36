"""Who may write to a store has the coordinator remove, read and write nothing elsewhere: no link is followed, and names are of one form."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest

from runner.cli import context
from runner.engines.fake import FakeEngine
from runner.execution.cluster import order as at_order
from runner.execution.cluster.duties import Archives
from runner.execution.cluster.keys import home_of
from runner.execution.cluster.order import BROUGHT, Bringing
from runner.execution.cluster.storage.artefacts import KEPT, Artefacts
from runner.execution.cluster.storage.sweeping import OLD, sweep
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from runner.records.contents import Content
from tests.worlds.contents import read_content
from tests.worlds.mini import Project, call_here

KEY = b"key of a coordinator"
HOME, NAME = home_of(KEY), "a~mini~alpha.one.00000000.test~1~00000000"


def later() -> datetime:
    """A time at which everything that a test has just written is old."""
    return datetime.now(UTC) + OLD + timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> Artefacts:
    (tmp_path / "store").mkdir()
    return Artefacts(f"file://{tmp_path / 'store'}")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A file of the coordinator, whose folders are called as in a store."""
    (folder := tmp_path / "own" / HOME / NAME).mkdir(parents=True)
    (folder / "qrels.txt").write_text("1 0 d 1\n")
    return folder / "qrels.txt"


def link(own: Path, place: Path, levels: int) -> None:
    """Put a link to a folder of the coordinator, so many above its file, in the place."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(own.parents[levels])


@pytest.mark.parametrize(
    ("place", "levels"), [("attempts", 2), (f"attempts/{HOME}", 1), (f"attempts/{HOME}/{NAME}", 0)]
)
def test_no_link_in_a_store_leads_to_what_is_removed(
    store: Artefacts, own: Path, tmp_path: Path, place: str, levels: int
) -> None:
    link(own, tmp_path / "store" / place, levels)
    gone = sweep(store, KEY, RunArchive(tmp_path / "archive"), later())
    assert gone == ([] if levels else [f"{HOME}/{NAME}"]) and own.is_file(), "at most the link itself goes"
    assert store.delivered(HOME) == []
    store.forget(f"{HOME}/{NAME}")  # a link itself may be removed
    assert own.is_file()


@pytest.mark.parametrize("sort", ["a", "e"])
def test_what_no_run_can_be_called_stops_nothing(store: Artefacts, tmp_path: Path, sort: str) -> None:
    """A store may have longer names than a disk."""
    archive, name = RunArchive(tmp_path / "archive"), f"{sort}~mini~{300 * 'r'}~1~00000000"
    (archive.root / "mini").mkdir(parents=True)
    there = SimpleNamespace(attempts=lambda: [f"{HOME}/{name}", f"{HOME}/{NAME}"], changed=store.changed)
    assert sweep(cast(Artefacts, there), KEY, archive, later()) == []


def test_what_is_no_delivery_is_left_alone(store: Artefacts, tmp_path: Path) -> None:
    names = [f"mini/{NAME}", f"{HOME}/test", f"{HOME}/b{NAME[1:]}", f"{HOME}/a~mini~x~²~00000000"]
    names += [f"{HOME}/a~mini~..~1~00000000", f"{HOME}/{NAME}.bak", f"{HOME.upper()}/{NAME}"]
    for name in [*names, f"{HOME}/{NAME}"]:
        (folder := tmp_path / "store" / "attempts" / name).mkdir(parents=True)
        (folder / "lock.json").touch()
    assert sweep(store, KEY, RunArchive(tmp_path / "archive"), later()) == [f"{HOME}/{NAME}"]
    assert store.attempts() == sorted(names)


def test_what_cannot_be_removed_keeps_nothing_else(
    store: Artefacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, forget = [f"{HOME}/{NAME[:-1]}{n}" for n in range(2)], store.forget

    def some(name: str) -> None:
        if name == names[0]:
            raise PlatformError("it is somebody else's", code="E313")
        forget(name)

    monkeypatch.setattr(store, "forget", some)
    for name in names:
        store.deliver(name, {}, {}, b"key")
    assert sweep(store, KEY, RunArchive(tmp_path / "archive"), later()) == names[1:]


def test_no_link_in_a_store_leads_to_what_is_read(store: Artefacts, own: Path, tmp_path: Path) -> None:
    store.deliver(f"{HOME}/{NAME}", {}, {}, b"key")
    delivery, data = tmp_path / "store" / "attempts" / HOME / NAME, own.read_bytes()
    content, to = Content(hashlib.sha256(data).hexdigest(), len(data)), tmp_path / "taken"
    (delivery / "files").unlink()
    (delivery / "files").symlink_to(own)
    with pytest.raises(PlatformError):
        store.take(f"{HOME}/{NAME}", {"qrels.txt": content}, to)
    (delivery / "manifest.json").rename(tmp_path / "manifest.json")
    (delivery / "manifest.json").symlink_to(tmp_path / "manifest.json")
    with pytest.raises(PlatformError):
        store.manifest(f"{HOME}/{NAME}", b"key")
    assert not list(to.glob("*"))


@pytest.mark.parametrize("place", ["contents", "contents/{:.2}", "contents/{:.2}/{}"])
def test_no_link_in_a_store_leads_to_what_is_written(
    store: Artefacts, own: Path, tmp_path: Path, place: str
) -> None:
    digest = hashlib.sha256(b"order").hexdigest()
    link(own, at := tmp_path / "store" / place.format(digest, digest), 0)
    if place.count("/") == 2:
        assert store.put(b"order").sha256 == digest and at.is_file() and not at.is_symlink()
    else:
        with pytest.raises(PlatformError) as error:
            store.put(b"order")
        assert error.value.code == "E313" and "link" in error.value.why
    assert os.listdir(own.parent) == [own.name]


def test_the_folder_of_a_store_may_be_a_link_of_its_owner(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    store = Artefacts(f"file://{tmp_path / 'link'}")
    content = store.put(b"order")
    assert read_content(store, content) == b"order"
    lock = next((tmp_path / "disk").rglob(content.sha256))
    store.deliver(f"{HOME}/{NAME}", {"lock.json": lock}, {}, b"key")
    assert store.delivered(HOME) == [NAME] and store.changed(f"{HOME}/{NAME}") is not None
    store.forget(f"{HOME}/{NAME}")
    assert store.attempts() == []


def test_a_delivery_that_never_had_a_file_is_swept_once_it_is_old(store: Artefacts, tmp_path: Path) -> None:
    (tmp_path / "store" / "attempts" / HOME / NAME / "logs").mkdir(parents=True)
    archive = RunArchive(tmp_path / "archive")
    assert sweep(store, KEY, archive, datetime.now(UTC)) == []  # a host is about to write to it
    assert sweep(store, KEY, archive, later()) == [f"{HOME}/{NAME}"] and store.attempts() == []


def aged(path: Path, age: timedelta) -> None:
    """Have a file be so old."""
    then = datetime.now(UTC).timestamp() - age.total_seconds()
    os.utime(path, (then, then))


def test_contents_that_nobody_brings_any_more_go_and_what_is_brought_stays(
    store: Artefacts, tmp_path: Path
) -> None:
    day, kept = timedelta(days=1), {}
    for data, age in ((b"old", KEPT + day), (b"used", KEPT - day), (b"new", KEPT / 2 - day)):
        digest = store.put(data).sha256
        kept[data] = tmp_path / "store" / "contents" / digest[:2] / digest
        aged(kept[data], age)
    half, strange = (kept[b"old"].with_name(name) for name in (kept[b"old"].name + ".0123abcd", "strange"))
    for path in (half, strange):
        path.touch()
        aged(path, KEPT + day)
    times = {data: path.stat().st_mtime for data, path in kept.items()}
    for data in (b"used", b"new"):
        store.put(data)
    again = {data for data, path in kept.items() if path.stat().st_mtime != times[data]}
    assert again == {b"used"}, "what is brought now and then is not sent each time"
    gone = [kept[b"old"].name, half.name]
    assert store.sweep_contents(dry_run=True) == gone and half.exists()
    assert store.sweep_contents() == gone and store.sweep_contents() == []
    left = {path.name for path in (tmp_path / "store").rglob("*") if path.is_file()}
    assert left == {"strange", kept[b"used"].name, kept[b"new"].name}


def test_a_coordinator_that_lasts_brings_what_is_gone_again(
    store: Artefacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "queries.jsonl").write_text("{}")
    fill = [(PurePosixPath(file.name), file)]
    bringing, engine = Bringing(store), FakeEngine({"team/one": lambda *_: None})
    archives, image = Archives(engine, store, tmp_path), engine.resolve("team/one")

    def brought() -> int:
        bringing.data_volume("0" * 64, lambda: fill)
        assert archives.ordered(image.id, lambda: image).archive is not None
        return sum(path.is_file() for path in (tmp_path / "store").rglob("*"))

    assert brought() == 2
    shutil.rmtree(tmp_path / "store" / "contents")
    assert brought() == 1, "data are not looked for with every order"
    later = time.monotonic() + BROUGHT
    monkeypatch.setattr(at_order, "time", SimpleNamespace(monotonic=lambda: later))
    assert brought() == 2


def test_gc_removes_what_nobody_brings_to_the_stores_of_clusters(
    store: Artefacts,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = (store.put(data) for data in (b"old", b"new"))
    aged(tmp_path / "store" / "contents" / old.sha256[:2] / old.sha256, KEPT + timedelta(days=1))
    config = replace(project.config, cluster="tcp://127.0.0.1:9", artefacts=store.address)
    monkeypatch.setattr(context, "config", lambda *_: config)
    monkeypatch.setattr(context, "engine", lambda *_: FakeEngine({}))
    assert call_here(project, ["gc", "--dry-run", "--json"], capsys).json["artefacts"] == [old.sha256]
    assert call_here(project, ["gc", "--json"], capsys).json["artefacts"] == [old.sha256]
    assert not store.stays(old) and store.stays(new)
