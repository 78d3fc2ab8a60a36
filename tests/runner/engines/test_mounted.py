"""Volumes that are read and filled where they are mounted, on folders of this machine; real ones are in tests/contracts."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from runner.engines.collect import collect
from runner.engines.docker import mounted
from runner.model.container import Collected

FOLDERS = {"in": 0o500, "out": 0o700}


def opened(folder: Path) -> int:
    return os.open(folder, mounted.FOLDER)


def taken(folder: Path, dest: Path, most: int = 1 << 20) -> Collected:
    dest.mkdir()
    here = opened(folder)
    try:
        return collect(
            mounted.packed(here), dest, allowed=lambda n: n.endswith(".txt"), max_bytes=most, max_files=9, max_stream=2 * most
        )  # fmt: skip
    finally:
        os.close(here)


def test_only_regular_files_with_one_name_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "run.txt").write_text("deep")
    for name, size in (("a.txt", 0), ("b.txt", 512), ("c.txt", 513), ("first.txt", 3)):
        (folder / name).write_bytes(b"x" * size)
    (folder / "link.txt").symlink_to("/etc/passwd")
    os.link(folder / "first.txt", folder / "second.txt")
    os.mkfifo(folder / "pipe.txt")
    (folder / os.fsdecode(b"\xff\n" + b"n" * 150)).touch()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket.txt"))
    found = taken(folder, tmp_path / "dest")
    assert found.files == ("a.txt", "b.txt", "c.txt", "first.txt") and found.bytes == 1028
    reasons = {name: reason for name, reason in found.refused if name.endswith(".txt")}
    assert reasons == {
        "link.txt": "a symbolic link",
        "second.txt": "a hard link",
        "pipe.txt": "not a regular file",
    }
    assert len(found.refused) == 5
    assert {p.name: p.stat().st_size for p in (tmp_path / "dest").iterdir()} == {
        "a.txt": 0,
        "b.txt": 512,
        "c.txt": 513,
        "first.txt": 3,
    }


def test_a_sparse_file_is_read_no_further_than_the_cap(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    folder.mkdir()
    with (folder / "run.txt").open("wb") as file:
        file.truncate(1 << 40)
    found = taken(folder, tmp_path / "dest")
    assert found.files == () and [name for name, _ in found.refused] == ["run.txt", "(the rest)"]


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
    mounted.anew(
        here, FOLDERS, {"in/request.json": b"{}", "in/run/run.txt": outside / "kept"}, uid=os.getuid()
    )
    os.close(here)
    assert {p.name: p.stat().st_mode & 0o777 for p in room.iterdir()} == FOLDERS and not list(
        (room / "out").iterdir()
    )
    assert (room / "in/run/run.txt").read_text() == "kept" and (
        room / "in/run"
    ).stat().st_mode & 0o777 == 0o555
    assert (room / "in/request.json").stat().st_mode & 0o777 == 0o444
    assert [p.name for p in outside.iterdir()] == ["kept"] and (outside / "kept").read_text() == "kept"


def test_many_folders_in_one_another_are_left_to_the_engine(tmp_path: Path) -> None:
    (tmp_path / "out" / "/".join("x" * 40)).mkdir(parents=True)
    here = opened(tmp_path)
    with pytest.raises(OSError, match="too many folders"):
        mounted.anew(here, FOLDERS, {}, uid=os.getuid())
    os.close(here)
