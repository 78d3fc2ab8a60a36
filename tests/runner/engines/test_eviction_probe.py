"""The probe of an eviction: pages that others evict while it measures are read again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.engines.docker import counters
from runner.engines.docker.evict import PAGES, PROGRAM, judge

COUNTERS = {"processors": 1, "inodes": 1, "memory_inodes": 1}  # all of them were moved

# Evicts the file that is measured, as another engine's eviction on the same machine would, before the first measurements.
DISTURBANCE = """
import mmap, os
real, left = mmap.mmap, {times}
def disturbed(descriptor, *args, **keys):
    global left
    if left:
        left -= 1
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    return real(descriptor, *args, **keys)
mmap.mmap = disturbed
"""


def probe(folder: Path, times: int, tries: int = 10) -> dict[str, Any]:
    """Return what the program reports if its file is evicted so many ``times``; the machine's caches stay."""
    file = folder / "file"
    file.write_bytes(os.urandom(4096 * PAGES))
    program = (
        PROGRAM.replace("/probe/file", str(file))
        .replace("'/probe'", repr(str(folder)))
        .replace("/proc/sys/vm/drop_caches", str(folder / "switch"))
        .replace("os.sync()", "None")
        .replace("= move_counters()", f"= {COUNTERS}")
        .replace("len(missing) < 10", f"len(missing) < {tries}")
    )
    done = subprocess.run(
        [sys.executable, "-c", DISTURBANCE.format(times=times) + program],
        capture_output=True,
        text=True,
        check=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    assert "error" not in report and not report["memory"]
    return report


def evicted(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report of an eviction that worked, with the same probing."""
    return {**report, "after": {name: report[name][0] for name in ("volume", "image")}}


def test_a_page_that_others_evict_is_read_again(tmp_path: Path) -> None:
    alone = probe(tmp_path, times=1, tries=1)
    assert alone["volume"][1] > 0 and judge(evicted(alone)), "without another try the file cannot be measured"
    report = probe(tmp_path, times=3)
    assert report["volume"] == [PAGES, 0] and report["image"][1] == 0
    assert len(report["tries"]["volume"]) >= 4 and report["tries"]["volume"][-1] == 0
    assert judge(evicted(report)) == ""
    assert judge(report), "nothing was evicted, and that is seen"


def test_what_cannot_be_measured_is_said_in_numbers(tmp_path: Path) -> None:
    report = probe(tmp_path, times=100)
    problem = judge(evicted(report))
    assert len(report["tries"]["volume"]) == 10
    assert "volume" in problem and str(PAGES) in problem
    assert ", ".join(map(str, report["tries"]["volume"])) in problem
    small = evicted(report) | {"volume": [3, 0]}
    assert "3 pages" in judge(small)


@pytest.mark.parametrize("name", ["volume", "image"])
def test_a_page_that_stays_is_found(name: str) -> None:
    report = {
        "counters": COUNTERS,
        "memory": False,
        "tries": {"volume": [0], "image": [5, 0]},
        "volume": [64, 0],
        "image": [64, 0],
        "after": {"volume": 64, "image": 64},
    }
    assert judge(report) == ""
    assert name in judge(report | {"after": {"volume": 64, "image": 64, name: 63}})


@pytest.mark.parametrize("span", [1 << 10, 1 << 19])
def test_a_step_takes_as_long_for_small_amounts_as_for_large_ones(span: int) -> None:
    durations = [step_seconds(span, drawn) for drawn in (0, 1, span // 100, span // 30, span // 2, span - 1)]
    assert durations == pytest.approx([durations[-1]] * len(durations), rel=0.02)


def step_seconds(span: int, drawn: int) -> float:
    """Return how long the program takes to move a counter if it draws this amount; the clock is simulated."""
    now = 0.0

    def work(seconds: float) -> None:
        nonlocal now
        now += seconds

    program: dict[str, Any] = {}
    exec(counters.PROGRAM, program)
    program |= {
        "time": SimpleNamespace(monotonic=lambda: now),
        "os": SimpleNamespace(eventfd=lambda _: work(span * 1e-8), close=lambda _: None),
        "draw": lambda _: drawn,
    }
    program["move"](lambda amount: work(amount * 1e-5), span)
    return now
