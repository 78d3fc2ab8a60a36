"""How many volumes the next keeper is to have: what those who hand them out are told."""

from __future__ import annotations

from runner.engines.base import Volume
from runner.engines.docker.memory.outputs import LITTLE, Outputs


def told(count: int, *used: int) -> list[bool]:
    """What is said of a keeper with ``count`` volumes, of which so many are taken and have so much in them, until it ends."""
    said: list[bool] = []
    outputs = Outputs([(Volume(f"v{n}"), "keeper", f"/kept/{n}") for n in range(count)], (1, 2), said.append)
    for size in used:
        outputs.take()
        outputs.seen(size)
    outputs.close()
    return said


def test_more_volumes_are_made_only_where_all_of_them_were_wanted() -> None:
    assert told(2, 0, 0) == [True]
    assert told(2, 0) == [False], "nobody came"
    assert told(3, 0, LITTLE + 1) == [False, False], "one left much"
