"""The reader of output volumes against hand-made streams; real output is in tests/contracts."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engines.collect import CappedReader, collect
from runner.engines.tarstream import TooMuch
from runner.engines.text import printable
from runner.model.container import Collected


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


def read(raw: bytes, dest: Path, **caps: int) -> Collected:
    chunks = [raw[i : i + 700] for i in range(0, len(raw), 700)]
    caps = {"max_bytes": 1000, "max_files": 3, "max_stream": 100_000} | caps
    return collect(chunks, dest, allowed=lambda n: n.endswith(".txt"), **caps)  # type: ignore[arg-type]


def test_caps_on_bytes_and_files(tmp_path: Path) -> None:
    got = read(archive(*((f"{n}.txt", b"x" * 300) for n in range(5))), tmp_path)
    assert got.files == ("0.txt", "1.txt", "2.txt") and got.bytes == 900
    assert got.refused == (("3.txt", "more than 3 files"), ("4.txt", "more than 3 files"))
    (tmp_path / "b").mkdir()
    got = read(archive(("a.txt", b"x" * 999), ("b.txt", b"xx")), tmp_path / "b")
    assert got.files == ("a.txt",) and "1000 bytes" in got.refused[0][1]


def test_a_stream_that_does_not_end_is_cut_and_half_files_go(tmp_path: Path) -> None:
    got = read(
        archive(("a.txt", b"x" * 100), ("b.txt", b"x" * 90_000)),
        tmp_path,
        max_stream=30_000,
        max_bytes=99_999,
    )
    assert got.files == ("a.txt",)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert got.refused[-1][0] == "(the rest)"


def test_a_broken_stream_is_no_crash(tmp_path: Path) -> None:
    got = read(archive(("a.txt", b"x" * 900))[:1300], tmp_path)
    assert got.files == () and list(tmp_path.iterdir()) == []


def test_names_twice_and_existing_files(tmp_path: Path) -> None:
    got = read(archive(("a.txt", b"1"), ("a.txt", b"2")), tmp_path)
    assert got.files == ("a.txt",) and (tmp_path / "a.txt").read_bytes() == b"1"
    with pytest.raises(FileExistsError):
        read(archive(("a.txt", b"3")), tmp_path)


def test_the_list_of_refusals_is_bounded(tmp_path: Path) -> None:
    got = read(archive(*((f"{n}.bin", b"") for n in range(300))), tmp_path, max_stream=10**6)
    assert len(got.refused) == 51


@given(st.binary(max_size=3000))
def test_any_bytes(raw: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        got = read(raw, Path(folder))
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
