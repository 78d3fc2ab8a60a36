"""Archives of engines: safe names, folders without special files, and output that is read to its limits."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Generator, Iterator
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engines.collect import CappedReader, collect
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
from runner.engines.text import printable
from runner.model.container import Collected
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


def archive(*entries: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folder = tarfile.TarInfo("out")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, content in entries:
            info = tarfile.TarInfo(f"out/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def collected(raw: bytes, dest: Path, **caps: int) -> Collected:
    chunks = [raw[i : i + 700] for i in range(0, len(raw), 700)]
    caps = {"max_bytes": 1000, "max_files": 3, "max_stream": 100_000} | caps
    return collect(chunks, dest, allowed=lambda n: n.endswith(".txt"), **caps)  # type: ignore[arg-type]


def test_caps_on_bytes_and_files(tmp_path: Path) -> None:
    got = collected(archive(*((f"{n}.txt", b"x" * 300) for n in range(5))), tmp_path)
    assert got.files == ("0.txt", "1.txt", "2.txt") and got.bytes == 900
    assert got.refused == (("3.txt", "more than 3 files"), ("4.txt", "more than 3 files"))
    (tmp_path / "b").mkdir()
    got = collected(archive(("a.txt", b"x" * 999), ("b.txt", b"xx")), tmp_path / "b")
    assert got.files == ("a.txt",) and "1000 bytes" in got.refused[0][1]


def test_a_stream_that_does_not_end_is_cut_and_half_files_go(tmp_path: Path) -> None:
    got = collected(
        archive(("a.txt", b"x" * 100), ("b.txt", b"x" * 90_000)),
        tmp_path,
        max_stream=30_000,
        max_bytes=99_999,
    )
    assert got.files == ("a.txt",)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert got.refused[-1][0] == "(the rest)"


def test_a_broken_stream_is_no_crash(tmp_path: Path) -> None:
    got = collected(archive(("a.txt", b"x" * 900))[:1300], tmp_path)
    assert got.files == () and list(tmp_path.iterdir()) == []


def test_names_twice_and_existing_files(tmp_path: Path) -> None:
    got = collected(archive(("a.txt", b"1"), ("a.txt", b"2")), tmp_path)
    assert got.files == ("a.txt",) and (tmp_path / "a.txt").read_bytes() == b"1"
    with pytest.raises(FileExistsError):
        collected(archive(("a.txt", b"3")), tmp_path)


def test_the_list_of_refusals_is_bounded(tmp_path: Path) -> None:
    got = collected(archive(*((f"{n}.bin", b"") for n in range(300))), tmp_path, max_stream=10**6)
    assert len(got.refused) == 51


@given(st.binary(max_size=3000))
def test_any_bytes(raw: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        got = collected(raw, Path(folder))
        assert got.bytes <= 1000
        assert sorted(got.files) == sorted(p.name for p in Path(folder).iterdir())


@given(st.lists(st.binary(max_size=50)), st.integers(0, 200), st.integers(1, 40))
def test_the_capped_reader_reads_what_was_written(chunks: list[bytes], cap: int, size: int) -> None:
    chunks = [c for c in chunks if c]
    reader, whole, got = CappedReader(chunks, cap), b"".join(chunks), b""
    try:
        while part := reader.read(size):
            got += part
    except TooMuch:
        assert len(whole) > cap
        assert whole.startswith(got) and len(got) <= cap
    else:
        assert got == whole and len(whole) <= cap


@given(st.text())
def test_printable_is_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert printable("\ud800\x1b\u202e") == "\\ud800\\x1b\\u202e"
