"""What is remembered of a task's data while they stay the same."""

import os
import time
import zipfile
from pathlib import Path

import pytest

from runner.tasks.data_files import contents, file_digest


def test_a_change_within_one_tick_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 6.13 the times of files stand still for 4 to 10 ms: neither size nor time shows what is written in one of them."""
    at = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: at + 1_000_000)
    path, digests, inner = tmp_path / "data.zip", set[str](), set[str]()
    for text in (b"one", b"two"):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(zipfile.ZipInfo("a"), text)
        os.utime(path, ns=(at, at))
        digests.add(file_digest(path))
        inner.update(digest for _, digest in contents(path, {3}))
    assert len(digests) == len(inner) == 2
    monkeypatch.setattr(time, "time_ns", lambda: at + 60_000_000)
    kept = file_digest(path)
    path.write_bytes(b"x" * path.stat().st_size)
    os.utime(path, ns=(at, at))
    assert file_digest(path) == kept, "what is settled is not read again"
