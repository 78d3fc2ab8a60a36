"""Compressed files as they come from strangers: the same bytes as Python's reader, and never minutes for MiB."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from evaluator.formats.files import MAX_MEMBERS, Damaged, TooLarge, read_all

TEXT = b"".join(b"%d Q0 d%d 1 1 t\n" % (n, n) for n in range(50_000))


def read(tmp_path: Path, raw: bytes, most: int | None = None) -> bytes:
    path = tmp_path / "run.txt.gz"
    path.write_bytes(raw)
    return read_all(path, most)


@pytest.mark.parametrize(
    "raw",
    [
        gzip.compress(TEXT),
        gzip.compress(TEXT, 0),
        gzip.compress(TEXT[:9]) + gzip.compress(b"") + gzip.compress(TEXT[9:]),
        b"".join(gzip.compress(TEXT[i : i + 1000]) for i in range(0, len(TEXT), 1000)),
        gzip.compress(TEXT) + bytes(200_000),
        gzip.compress(TEXT[:9]) + bytes(100_000) + gzip.compress(TEXT[9:]),
    ],
)
def test_members_and_padding(tmp_path: Path, raw: bytes) -> None:
    assert read(tmp_path, raw) == TEXT == gzip.decompress(raw)


def test_broken_ones(tmp_path: Path) -> None:
    whole = gzip.compress(TEXT)
    wrong_sum = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    for raw in (whole[:-1], whole[:30], whole + b"trash" * 1000, wrong_sum, whole + whole[:1]):
        with pytest.raises(Damaged):
            read(tmp_path, raw)


def test_a_bomb_ends_at_the_limit(tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        read(tmp_path, gzip.compress(bytes(50 << 20)), 1 << 20)


@pytest.mark.timeout(100)
def test_padding_and_empty_members_do_not_keep_it_busy(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(TEXT) + bytes(32 << 20)) == TEXT
    with pytest.raises(Damaged):
        read(tmp_path, gzip.compress(b"") * (MAX_MEMBERS + 1))
