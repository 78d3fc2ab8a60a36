"""What the engine remembers of a container's end, as it is asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runner.engines.witness import recorded_event

START, END = "2026-01-01T00:00:00.000000000Z", "2026-01-01T00:00:01.000000000Z"
KILL = {"Action": "kill", "Actor": {"Attributes": {"signal": "15"}}}
DIE = {"Action": "die", "Actor": {"Attributes": {"exitCode": "0"}}}


class Api:
    """An engine that remembers ``recorded``, and then has nothing to say until ``until``."""

    def __init__(self, *recorded: dict[str, Any]) -> None:
        self.recorded, self.waited = recorded, False

    def events(self, *, filters: dict[str, list[str]], **_: object) -> Iterator[dict[str, Any]]:
        """What it remembers of the kinds that it is asked for."""
        yield from (event for event in self.recorded if event["Action"] in filters["event"])
        self.waited = True


@pytest.mark.parametrize(
    ("recorded", "found", "waited"),
    [
        ([DIE], False, False),
        ([KILL, DIE], True, False),
        ([], False, True),  # the end was forgotten, or is not recorded yet
        ([KILL], True, False),
    ],
    ids=["an end of its own", "asked for", "forgotten", "asked for, and the end forgotten"],
)
def test_nothing_is_waited_for_behind_the_recorded_end(
    recorded: list[dict[str, Any]], found: bool, waited: bool
) -> None:
    api = Api(*recorded)
    said = recorded_event(api, "c", "kill", START, END, 1.5)
    assert (said is not None, api.waited) == (found, waited)
