"""Volumes that are read and filled where they are mounted."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.engines.collect import collect
from runner.engines.docker.memory import mounted
from runner.model.container import Collected
from runner.model.errors import PlatformError

FOLDERS = {"in": 0o500, "out": 0o700}


def opened(folder: Path) -> int:
    return os.open(folder, mounted.FOLDER)


def taken(folder: Path, dest: Path, most: int = 1 << 20) -> Collected | None:
    dest.mkdir()
    here = opened(folder)
    try:
        with mounted.plain_files(here) as files:
            if files is None:
                return None
            return collect(
                mounted.packed(files), dest, allowed=lambda n: n.endswith(".txt"), max_bytes=most, max_files=9, max_stream=2 * most
            )  # fmt: skip
    finally:
        os.close(here)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A folder with plain files."""
    folder = tmp_path / "output"
    folder.mkdir()
    odd = os.fsdecode(b"\xff\n" + b"n" * 150)
    for name, size in (("a.txt", 0), ("b.txt", 512), ("c.txt", 513), (odd, 1)):
        (folder / name).write_bytes(b"x" * size)
    return folder


def test_plain_files_are_read(output: Path, tmp_path: Path) -> None:
    found = taken(output, tmp_path / "dest")
    assert found is not None and found.files == ("a.txt", "b.txt", "c.txt") and found.bytes == 1025
    assert len(found.refused) == 1
    sizes = {p.name: p.stat().st_size for p in (tmp_path / "dest").iterdir()}
    assert sizes == {"a.txt": 0, "b.txt": 512, "c.txt": 513}


ODD: dict[str, Callable[[Path], object]] = {
    "a folder": lambda at: (at / "inner").mkdir(),
    "a symbolic link": lambda at: (at / "link.txt").symlink_to("/etc/passwd"),
    "a hard link": lambda at: os.link(at / "a.txt", at / "z.txt"),
    "a hard link from a folder": lambda at: os.link(at / "a.txt", at.with_name("elsewhere")),
    "a pipe": lambda at: os.mkfifo(at / "pipe.txt"),
    "a socket": lambda at: socket.socket(socket.AF_UNIX).bind(str(at / "socket.txt")),
    "many files": lambda at: [(at / f"{n}.txt").touch() for n in range(mounted.FILES)],
}


@pytest.mark.parametrize("odd", ODD)
def test_a_folder_with_anything_else_is_left_to_the_engine(odd: str, output: Path, tmp_path: Path) -> None:
    ODD[odd](output)
    assert taken(output, tmp_path / "dest") is None and not list((tmp_path / "dest").iterdir())


def test_a_file_that_cannot_be_opened_is_left_to_the_engine(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a root without capabilities; nothing stays open."""
    own, before = os.open, len(list(Path("/proc/self/fd").iterdir()))

    def refused(path: str, *args: int, **options: int) -> int:
        if path == "c.txt":
            raise PermissionError
        return own(path, *args, **options)

    monkeypatch.setattr(os, "open", refused)
    assert taken(output, tmp_path / "dest") is None
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_sparse_file_is_read_no_further_than_the_cap(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    folder.mkdir()
    with (folder / "run.txt").open("wb") as file:
        file.truncate(1 << 40)
    found = taken(folder, tmp_path / "dest")
    assert found is not None and found.files == ()
    assert [name for name, _ in found.refused] == ["run.txt", "(the rest)"]


def test_folders_are_made_anew_whatever_lay_there(tmp_path: Path) -> None:
    room, outside = tmp_path / "room", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    room.mkdir()
    (room / "in").symlink_to(outside)
    (room / "out" / "a" / "b").mkdir(parents=True)
    (room / "out" / "a" / "link").symlink_to(outside)
    os.link(outside / "kept", room / "out" / "kept")
    (room / "out" / "a").chmod(0)
    here = opened(room)
    files = {"in/request.json": b"{}", "in/run/run.txt": outside / "kept"}
    mounted.anew(here, FOLDERS, files, uid=os.getuid(), seconds=60)
    os.close(here)
    assert {p.name: p.stat().st_mode & 0o777 for p in room.iterdir()} == FOLDERS
    assert not list((room / "out").iterdir())
    assert (room / "in/run/run.txt").read_text() == "kept"
    assert (room / "in/run").stat().st_mode & 0o777 == 0o555
    assert (room / "in/request.json").stat().st_mode & 0o777 == 0o444
    assert {(room / name).stat().st_mtime for name in ("in/request.json", "in/run/run.txt")} == {0}
    assert [p.name for p in outside.iterdir()] == ["kept"] and (outside / "kept").read_text() == "kept"


def test_many_folders_in_one_another_are_left_to_the_engine(tmp_path: Path) -> None:
    (tmp_path / "out" / "/".join("x" * 40)).mkdir(parents=True)
    here = opened(tmp_path)
    with pytest.raises(OSError) as error:
        mounted.anew(here, FOLDERS, {}, uid=os.getuid(), seconds=60)
    assert error.value.errno is None, "the system did not refuse it"
    os.close(here)


def test_a_source_that_hangs_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hangs")
    (tmp_path / "room").mkdir()
    here = opened(tmp_path / "room")
    files = {"in/a": b"a", "in/hangs": tmp_path / "hangs"}
    with pytest.raises(PlatformError) as error:
        mounted.anew(here, FOLDERS, files, uid=os.getuid(), stall=0.3, seconds=60)
    assert "0.3 s" in error.value.why
    os.close(here)
    os.close(os.open(tmp_path / "hangs", os.O_WRONLY | os.O_NONBLOCK))  # its reader ends
    assert (tmp_path / "room/in/a").read_bytes() == b"a"
