"""A gross check of speed: the processor time of whole processes beside ir_measures, twice the goals of ``benchmarks/table.py``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.generate import SIZES, Size, generate
from benchmarks.trec import OURS, commands, cost


def ratio(run: Path, qrels: Path) -> float:
    """Our processor time by that of ir_measures, the least of two runs of each."""
    tools = commands(run, qrels)
    ours, theirs = (min(cost(tools[name]).cpu for _ in range(2)) for name in (OURS, "ir_measures"))
    return ours / theirs


@pytest.mark.slow
def test_a_run_is_checked_and_scored_in_a_part_of_the_time_of_ir_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The goals are 0.45 for 50 topics and 0.20 for 1,000, and 0.60 for lines in random order."""
    monkeypatch.setitem(SIZES, "some", Size(200, 1000, (20, 40), 390_001))
    run, qrels = generate(tmp_path, "some")
    assert ratio(run, qrels) < 0.8
    with run.open("rb") as file:
        lines = file.readlines()
    random.Random(1).shuffle(lines)
    run.write_bytes(b"".join(lines))
    assert ratio(run, qrels) < 1.2
