"""The load bench in small: all its parts, with bounds that only something broken misses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.server import at

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_readers_hand_ins_and_streams_at_once() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.server", "--quick"],
        capture_output=True,
        text=True,
        timeout=170,
        cwd=ROOT,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line.split(" | ") for line in ended.stdout.splitlines() if line.startswith("| ")][1:]
    assert [row[3] for row in rows] == ["yes"] * 8
    assert any("12 requests, 6 submissions" in row[1] for row in rows)
    assert all("load " in row[4] for row in rows[1:]), "who had the processors is stated"


def test_a_part_of_the_waits() -> None:
    waits = [number / 100 for number in range(100, 0, -1)]
    assert (at(waits, 0.95), at(waits, 0.5), at(waits, 1.0), at([3.0], 0.95)) == (0.95, 0.5, 1.0, 3.0)
