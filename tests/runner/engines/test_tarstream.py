"""Names in archives for engines lead nowhere else, and are written in one way; folders of images are given on without special files."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Generator, Iterator
from pathlib import PurePosixPath

import pytest

from runner.engines.tarstream import (
    END,
    PER_ENTRY,
    Chunks,
    TooMuch,
    checked,
    engine_archive,
    header,
    readable,
)
from runner.model.errors import PlatformError


@pytest.mark.parametrize(
    "name", ["", ".", "/etc/hostname", "run//etc/hostname", "run/../x", "run/./x", "run/", "a\0b"]
)
def test_a_name_that_is_no_plain_path_inside_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        checked(name)


@pytest.mark.parametrize("name", ["run.txt", "run/run.txt", "..x", ".hidden/x y"])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert str(checked(name)) == name


def _archive(*entries: tuple[str, bytes, int, str | bytes]) -> bytes:
    """Return an archive of entries: name, type, mode, and content or the target of a link."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, mode, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.uid = kind, mode, 1000
            if isinstance(content, str):
                info.linkname = content
            else:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content if isinstance(content, bytes) else b""))
    return file.getvalue()


FOLDER = _archive(
    ("./", tarfile.DIRTYPE, 0o700, b""),
    ("./a", tarfile.REGTYPE, 0o4700, b"x" * 700),
    ("./b/", tarfile.DIRTYPE, 0o700, b""),
    ("./b/c", tarfile.REGTYPE, 0o600, b"c"),
    ("./hard", tarfile.LNKTYPE, 0o600, "./a"),
    ("./soft", tarfile.SYMTYPE, 0o777, "/etc/shadow"),
    ("./dev", tarfile.CHRTYPE, 0o666, b""),
    ("./pipe", tarfile.FIFOTYPE, 0o666, b""),
    ("./pipe-again", tarfile.LNKTYPE, 0o666, "./pipe"),
    ("./../up", tarfile.REGTYPE, 0o600, b"up"),
    ("/abs", tarfile.REGTYPE, 0o600, b"abs"),
)


def read(parts: Iterator[bytes]) -> dict[str, tuple[bytes, int, int, str]]:
    """Return the entries of an archive that has no end: type, mode, user and target."""
    with tarfile.open(fileobj=io.BytesIO(b"".join([*parts, END]))) as archive:
        return {entry.name: (entry.type, entry.mode, entry.uid, entry.linkname) for entry in archive}


def test_a_folder_is_given_on_readable_and_without_special_files() -> None:
    parts = list(readable([FOLDER], "0", [PurePosixPath("b"), PurePosixPath("new/deep")], 10**6))
    assert read(iter(parts)) == {
        "0": (tarfile.DIRTYPE, 0o755, 0, ""),
        "0/a": (tarfile.REGTYPE, 0o755, 0, ""),
        "0/b": (tarfile.DIRTYPE, 0o755, 0, ""),
        "0/b/c": (tarfile.REGTYPE, 0o644, 0, ""),
        "0/hard": (tarfile.LNKTYPE, 0o644, 0, "0/a"),
        "0/soft": (tarfile.SYMTYPE, 0o777, 0, "/etc/shadow"),
        "0/new": (tarfile.DIRTYPE, 0o777, 0, ""),
        "0/new/deep": (tarfile.DIRTYPE, 0o777, 0, ""),
    }
    with tarfile.open(fileobj=io.BytesIO(b"".join([*parts, END]))) as archive:
        content = archive.extractfile("0/a")
        assert content is not None and content.read() == b"x" * 700


def read_rest(parts: Generator[bytes, None, int]) -> int:
    """Return what a generator returns at its end."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            return int(end.value)


def test_folders_share_a_limit() -> None:
    left = read_rest(readable([FOLDER], "0", [], 100_000))
    assert left == 100_000 - 11 * PER_ENTRY - (700 + 1 + 2 + 3)  # those that are left out count too
    with pytest.raises(TooMuch):
        read_rest(readable([FOLDER], "1", [], 45_000))


@pytest.mark.parametrize(
    "archive",
    [b"", b"\xff" * 2000, FOLDER[:512], FOLDER[:1024], FOLDER[:1030], FOLDER[:1600], FOLDER[:1024] + b"\xff" * 2000],
)  # fmt: skip
def test_a_damaged_archive_is_the_fault_of_the_engine(archive: bytes) -> None:
    with pytest.raises(PlatformError):
        read_rest(readable([archive], "0", [], 10**6))


def test_entries_of_an_archive_are_not_held_in_memory() -> None:
    many = header("x", kind=tarfile.DIRTYPE) * 1000 + END
    with engine_archive(Chunks(iter([many]))) as archive:
        assert sum(1 for _ in archive) == 1000
        assert vars(archive)["members"] == []
