"""Files in pieces: read again as they were, whatever part is asked for, and never what was changed."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from runner.exchange.pieces import MARGIN, Pieces, keep
from runner.exchange.published import FILE, Damaged, Object, Published, Publisher, file_of, leads_to, sweep
from schemas import canonical
from tests.worlds.small_disk import small_disk

CONTENT = bytes(range(256)) * 40 + b"the end"


@pytest.fixture
def to(tmp_path: Path) -> Publisher:
    (tmp_path / "source").write_bytes(CONTENT)
    return Publisher(tmp_path / "published")


def kept(to: Publisher, piece: int = 1000) -> Pieces:
    return Pieces.read(keep(to, to.root.parent / "source", piece).as_dict())


@pytest.mark.parametrize("piece", [1000, 10_247, 10**6])
def test_every_part_is_read_as_it_was(to: Publisher, piece: int) -> None:
    found = kept(to, piece)
    assert (found.size, found.sha256) == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    size = len(CONTENT)
    for start, end in ((0, size), (0, 1), (999, 1001), (1000, 2000), (5, 10_240), (size - 1, size)):
        found.check(to.root, start, end)
        assert b"".join(found.blocks(to.root, start, end)) == CONTENT[start:end]
    assert not list(to.root.rglob("*.part"))


def test_a_file_without_content_has_no_pieces(to: Publisher) -> None:
    (to.root.parent / "source").write_bytes(b"")
    found = kept(to)
    assert found.pieces == () and list(found.blocks(to.root, 0, 0)) == []


@pytest.mark.parametrize("change", ["gone", "shorter", "other"])
def test_what_was_changed_is_not_given(to: Publisher, change: str) -> None:
    found = kept(to)
    path = file_of(to.root, found.pieces[2])
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(CONTENT[: 999 if change == "shorter" else 1000][::-1])
    with pytest.raises(Damaged):
        found.check(to.root, 0, found.size)
        list(found.blocks(to.root, 0, found.size))
    assert b"".join(found.blocks(to.root, 0, 2000)) == CONTENT[:2000]


def test_damage_and_repair_are_seen_whatever_was_read_before(to: Publisher) -> None:
    found = kept(to)
    path = file_of(to.root, found.pieces[2])
    for written in range(1, 3):
        with path.open("r+b") as file:
            file.write(CONTENT[2000:3000])
        os.utime(path, ns=(0, 2 * written * 10**9))
        assert b"".join(found.blocks(to.root, 0, found.size)) == CONTENT
        with path.open("r+b") as file:
            file.write(CONTENT[2000:3000][::-1])
        os.utime(path, ns=(0, (2 * written + 1) * 10**9))
        with pytest.raises(Damaged):
            list(found.blocks(to.root, 2000, 3000))


def test_a_file_that_does_not_fit_leaves_room_on_the_disk_and_nothing_of_it(tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    with small_disk(tmp_path / "disk", 64 + 8) as disk:
        to = Publisher(disk.path / "published")
        for path, mebibytes in ((large, 9), (small, 6)):
            path.write_bytes(os.urandom(mebibytes * 2**20))
        with pytest.raises(OSError) as error:
            keep(to, large, 2**20)
        assert error.value.errno == errno.ENOSPC and not [*to.root.glob("files/*/*")]
        found = keep(to, small, 2**20)
        assert shutil.disk_usage(disk.path).free >= MARGIN
        assert keep(to, small, 2**20) == found, "what is there needs no room"
        small.write_bytes(small.read_bytes() + large.read_bytes())
        with pytest.raises(OSError) as error:
            keep(to, small, 2**20)
        assert error.value.errno == errno.ENOSPC
        assert {path.name for path in to.root.glob("files/*/*")} == set(found.pieces)


def test_pieces_stay_as_long_as_a_pointer_leads_to_their_file(to: Publisher) -> None:
    found = kept(to)
    one = Object("data/mini/dev/inputs/source", FILE, "source", to.keep(canonical(found.as_dict())))
    to.publish({"public": [one]})
    names = leads_to(to.root, Published(to.root).pointer().values())
    assert {f"files/{digest[:2]}/{digest}" for digest in found.pieces} < names
    for path in to.root.glob("files/*/*"):
        os.utime(path, (0, 0))
    sweep(to.root)
    assert b"".join(found.blocks(to.root, 0, found.size)) == CONTENT
    assert to.has([one])
    file_of(to.root, found.pieces[0]).unlink()
    assert not to.has([one])
    to.publish({"public": []})
    for path in to.root.glob("files/*/*"):
        os.utime(path, (0, 0))
    sweep(to.root)
    assert not [path for path in to.root.glob("files/*/*") if path.name in found.pieces]
