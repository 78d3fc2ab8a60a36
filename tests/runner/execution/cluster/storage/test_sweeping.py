"""Who may write to a store has the coordinator remove, read and write nothing elsewhere: no link is followed, and names are of one form."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runner.execution.cluster.storage.artefacts import Artefacts
from runner.execution.cluster.storage.sweeping import OLD, sweep
from runner.model.errors import PlatformError
from runner.records.archive import RunArchive
from runner.records.contents import Content

HOME, NAME = "0123456789abcdef", "a~mini~alpha.one.00000000.test~1~00000000"
LATER = datetime.now(UTC) + OLD + timedelta(hours=1)


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
    assert sweep(store, HOME, RunArchive(tmp_path / "archive"), LATER) == [] and own.is_file()
    assert store.delivered(HOME) == []
    store.forget(f"{HOME}/{NAME}")  # a link itself may be removed
    assert own.is_file()


def test_what_is_no_delivery_is_left_alone(store: Artefacts, tmp_path: Path) -> None:
    names = [f"mini/{NAME}", f"{HOME}/test", f"{HOME}/b{NAME[1:]}", f"{HOME}/a~mini~x~²~00000000"]
    names += [f"{HOME}/a~mini~..~1~00000000", f"{HOME}/{NAME}.bak", f"{HOME.upper()}/{NAME}"]
    for name in [*names, f"{HOME}/{NAME}"]:
        (folder := tmp_path / "store" / "attempts" / name).mkdir(parents=True)
        (folder / "lock.json").touch()
    assert sweep(store, HOME, RunArchive(tmp_path / "archive"), LATER) == [f"{HOME}/{NAME}"]
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
    assert sweep(store, HOME, RunArchive(tmp_path / "archive"), LATER) == names[1:]


def test_no_link_in_a_store_leads_to_what_is_read(store: Artefacts, own: Path, tmp_path: Path) -> None:
    store.deliver(f"{HOME}/{NAME}", {}, {}, b"key")
    delivery, data = tmp_path / "store" / "attempts" / HOME / NAME, own.read_bytes()
    content, to = Content(hashlib.sha256(data).hexdigest(), len(data)), tmp_path / "taken"
    (delivery / "file").symlink_to(own)
    (delivery / "logs").symlink_to(own.parent)
    for file in ("file", "logs/qrels.txt"):
        with pytest.raises(PlatformError):
            store.take(f"{HOME}/{NAME}", file, content, to)
    (delivery / "manifest.json").rename(tmp_path / "manifest.json")
    (delivery / "manifest.json").symlink_to(tmp_path / "manifest.json")
    with pytest.raises(PlatformError):
        store.manifest(f"{HOME}/{NAME}", b"key")
    assert not to.exists()


@pytest.mark.parametrize("place", ["contents", "contents/{:.2}", "contents/{:.2}/{}"])
def test_no_link_in_a_store_leads_to_what_is_written(
    store: Artefacts, own: Path, tmp_path: Path, place: str
) -> None:
    digest = hashlib.sha256(b"order").hexdigest()
    link(own, at := tmp_path / "store" / place.format(digest, digest), 0)
    if place.count("/") == 2:
        assert store.put_bytes(b"order").sha256 == digest and at.is_file() and not at.is_symlink()
    else:
        with pytest.raises(PlatformError, match="cannot be used") as error:
            store.put_bytes(b"order")
        assert "link" in error.value.why
    assert os.listdir(own.parent) == [own.name]


def test_the_folder_of_a_store_may_be_a_link_of_its_owner(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    store = Artefacts(f"file://{tmp_path / 'link'}")
    content = store.put_bytes(b"order")
    assert store.get_bytes(content) == b"order"
    store.deliver(
        f"{HOME}/{NAME}", {"lock.json": next((tmp_path / "disk").rglob(content.sha256))}, {}, b"key"
    )
    assert store.delivered(HOME) == [NAME] and store.changed(f"{HOME}/{NAME}") is not None
    store.forget(f"{HOME}/{NAME}")
    assert store.attempts() == []
