"""What the real GenIRSim wrote with our servers is read without a word (tests/sidecars/driver/genirsim/README.md)."""

from __future__ import annotations

import json
from pathlib import Path

from evaluator.findings import Log
from evaluator.formats.evaluations import read_judgments, read_shape
from schemas.debates import digest_of_lines, parse

RECORDED = Path(__file__).parents[2] / "sidecars" / "driver" / "genirsim"


def lines(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (RECORDED / name).read_text(encoding="utf-8").splitlines()]


def test_its_debates() -> None:
    for line in lines("simulations.jsonl"):
        found, faults = parse(line)
        assert found is not None and not faults
        assert (len(found.turns), found.planned, found.failed) == (3, 3, False)
        assert all(turn.cited == 1 and turn.milliseconds and not turn.failed for turn in found.turns)


def test_its_judgments() -> None:
    shape = read_shape(RECORDED / "simulations.jsonl", "simulations.jsonl")
    log = Log("evaluations.jsonl")
    found = read_judgments(RECORDED / "evaluations.jsonl", shape, log)
    assert not log.counts and found.part == {"quantity", "quality", "relation", "manner"}
    assert found.of(0, "quantity") == [1, 1, 1] and found.of(1, "manner")[1] == 0.4
    # Its file of evaluations is one of debates as well, of the same words.
    assert digest_of_lines(lines("evaluations.jsonl")) == digest_of_lines(lines("simulations.jsonl"))
