"""Progress lines of a set-up."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest

from runner.provision.steps import Steps


def test_the_lines_of_a_set_up(golden: Callable[[str, str], None]) -> None:
    """A step begins and ends. One that failed is not done."""
    said: list[str] = []
    steps = Steps(said.append)
    with steps.step("packages", note="four of them"):
        pass
    with pytest.raises(ValueError), steps.step("base image"):
        raise ValueError
    text = "".join(f"{line}\n" for line in said)
    golden("set-up.txt", re.sub(r"\d+ s\b", "N s", text))


def test_a_step_under_way_is_named_now_and_then() -> None:
    said: list[str] = []
    reminded = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) > 2:
            reminded.set()

    steps = Steps(say, quiet=0.1)
    with steps.step("one"):
        assert reminded.wait(100)
    assert re.fullmatch(r"one: \d+ s", said[1])
    assert Steps.of(steps) is steps
