"""What a set-up says of itself."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engines.fake import FakeEngine
from runner.model.container import ImageRef
from runner.provision import summary
from runner.provision.steps import Steps, every, megabytes
from tests.worlds.machines import make_config

PIP = """Collecting thing==1
  Downloading thing-1-py3-none-any.whl.metadata (5.0 kB)
  Downloading thing-1-py3-none-any.whl (12.5 MB)
Collecting other==2
  Using cached other-2-py3-none-any.whl (99 MB)
WARNING: Location 'x' is ignored
"""


def test_the_lines_of_a_set_up(golden: Callable[[str, str], None]) -> None:
    """A step begins and ends, and names what it fetched. One that failed is not done."""
    said: list[str] = []
    steps = Steps(said.append)
    with steps.step("packages", total=4, note="four of them") as step:
        for line in PIP.splitlines():
            step.heard(line)
        said.append(step.said())
    with steps.step("engine") as step:
        step.heard("Fetched 66.1 MB in 3s (20.1 MB/s)")
    with steps.step("image") as step:
        step.heard("Step 7/21 : RUN something long")
        said.append(step.said())
    assert steps.steps == 3 and megabytes(steps.downloaded) == "79 MB"
    with pytest.raises(ValueError), steps.step("base image"):
        raise ValueError
    text = "".join(f"{line}\n" for line in said)
    golden("set-up.txt", re.sub(r"\d+ s\b", "N s", text))


def test_what_is_under_way_is_named_after_a_while_of_silence() -> None:
    said: list[str] = []
    reminded = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) > 2:
            reminded.set()

    steps = Steps(say, quiet=0.1)
    with steps.step("one"), steps.step("two"):
        assert reminded.wait(100)
    assert re.fullmatch(r"one: \d+ s; two: \d+ s", said[2])
    assert Steps.of(steps) is steps


def test_a_download_says_now_and_then_how_far_it_is() -> None:
    said: list[str] = []
    due = every(seconds=0.0)
    due(said.append, "corpus.gz", 1e9, 3e9)  # it goes on where it was
    due(said.append, "corpus.gz", 2e9, 3e9)
    due(said.append, "corpus.gz", 2e9, None)
    assert said[0] == "corpus.gz: 1.0 GB of 3.0 GB" and said[2] == "corpus.gz: 2.0 GB"
    assert said[1].startswith("corpus.gz: 2.0 GB of 3.0 GB, ")
    rarely = every(seconds=3600)
    rarely(said.append, "corpus.gz", 1, 2)
    assert len(said) == 3


def test_a_set_up_ends_with_the_engine_and_what_was_fetched(tmp_path: Path) -> None:
    config = replace(make_config(tmp_path), engine="unix:///some/engine.sock")
    said: list[str] = []
    steps, engine = Steps(said.append), FakeEngine({})
    summary(config, engine, steps)
    assert said == [], "nothing was done"
    with steps.step("base image") as step:
        step.heard("Fetched 60.5 MB in 3s (20.1 MB/s)")
    image = ImageRef(id="sha256:" + "0" * 64, size=600_000_000)
    summary(config, engine, steps, {"evaluator": image})
    facts = engine.info()
    assert all(part in said[-2] for part in (facts.name, facts.version, "unix:///some/engine.sock"))
    assert said[-1].startswith("60 MB ") and "600 MB" in said[-1]
    engine.close()
