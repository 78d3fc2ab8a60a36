"""Small files that are replaced as a whole are read again when they were."""

import os
import time
from pathlib import Path

import pytest

from runner.exchange.access import FILE, Access, Grant


def test_a_file_replaced_within_the_same_tick_of_the_clock_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 6.13 the times of files stand still for 4 to 10 ms, and a new file may get the number of the one that went."""
    at, seen = time.time_ns(), list[str]()
    monkeypatch.setattr(time, "time_ns", lambda: at + 1_000_000)
    for account in ("1" * 16, "2" * 16):
        Access({"a" * 12: Grant("a" * 12, "b" * 64, f"a-{account}", "team", "alpha", ("read",))}).write(
            tmp_path
        )
        kept = tmp_path / "kept"  # always the same number
        kept.write_bytes((tmp_path / FILE).read_bytes())
        (tmp_path / FILE).unlink()
        (tmp_path / FILE).hardlink_to(kept)
        os.utime(kept, ns=(at, at))
        seen += [grant.account for grant in Access.read(tmp_path).grants.values()]
    assert seen == ["a-" + "1" * 16, "a-" + "2" * 16]
