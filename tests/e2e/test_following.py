"""Following a run's log from before it begins, and finding a run by the beginning of its id."""

from __future__ import annotations

import pytest

from runner.cli.live import lines
from tests.worlds.mini import TASK, Project, cli

SLOW = "import time; print('first', flush=True); time.sleep(4); print('sec\\x1bond')"


def test_pieces_become_lines() -> None:
    assert list(lines([b"a\nb", b"c\n", b"\x1b[2J\r\n", b"end"])) == ["a", "bc", "\\x1b[2J", "end"]
    assert [len(line) for line in lines([b"x" * 200_000])] == [65536, 65536, 65536, 3392]


@pytest.mark.slow
@pytest.mark.engine
def test_logs_are_followed_from_before_the_run_begins(live: Project) -> None:
    table = {**TASK["tables"][0], "cells": [{"dataset": "dev"}, {"dataset": "test"}]}
    live.write_task_only(tables=[table])
    live.software("slow", SLOW)
    cli(live, "submit", "-t", "alpha", "--no-check")
    ids = sorted(run["run"] for run in cli(live, "runs", "--json").json)
    dev, test = ids
    assert (dev[-4:], test[-5:]) == (".dev", ".test")

    several = cli(live, "show", "alpha.slow", expect=2)
    assert dev in several.err and test in several.err and "E102" in several.err
    assert dev in cli(live, "show", dev[:-1]).out
    hidden = cli(live, "show", "alpha", "--as", "team:beta", expect=2)
    assert "slow" not in hidden.all and "E102" in hidden.err

    closed = cli(live, "logs", test, "--follow", "--as", "team:alpha", expect=2)
    assert "E103" in closed.err
    follower = live.start("logs", dev[:-1], "--follow", "--as", "team:alpha")
    assert follower.stderr is not None and follower.stdout is not None
    assert dev in follower.stderr.readline(), "it waits for the run"
    worker = live.start("evaluate", "--run", dev)
    assert follower.stdout.readline() == "first\n"
    assert worker.poll() is None, "it is shown while the run goes on"
    rest, said = follower.communicate(timeout=120)
    assert (rest, follower.returncode) == ("sec\\x1bond\n", 0), said
    worker.communicate(timeout=120)
    assert cli(live, "logs", dev, "--follow").out == "first\nsec\\x1bond\n"
