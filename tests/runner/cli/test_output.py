"""What commands print on a terminal: tables that fit, outcomes in colour with their signs, and nothing of that anywhere else."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.cli import output
from runner.views.text import signed, sparkline
from tests.worlds import records
from tests.worlds.mini import Project, call_here
from tests.worlds.records import World

Screen = Callable[..., str]
HOSTILE = "\x1b[31mno\x1b[0m\noutcome: scored " + "and a name that is long enough to be wrapped " * 3


@pytest.fixture
def world(tmp_path: Path) -> World:
    records.write_project(tmp_path)
    made = World.make(tmp_path)
    made.scored("alpha", "a-software-with-a-long-name", scores=records.per_topic("a", topics=200))
    broken = made.attempt(made.register("beta", "broken"), dataset="dev", refused=[(HOSTILE, "it is a link")])
    made.evaluation(broken, status="invalid", codes={"F001": ("error", 3)})
    return made


def environment(world: World, **more: str) -> dict[str, str]:
    left_out = ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "COLORTERM")
    here = {name: value for name, value in os.environ.items() if name not in left_out}
    places = {"RUNNER_ROOT": str(world.config.root), "RUNNER_HOME": str(world.config.home)}
    return {**here, **places, "TERM": "xterm-256color", **more}


@pytest.fixture
def screen(world: World) -> Screen:
    """Runs a command at a terminal of so many columns; gives what it would show, with the codes of its colours."""

    def run(*command: str, columns: int = 80, **more: str) -> str:
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        called = subprocess.Popen(
            [sys.executable, "-m", "runner", *command],
            stdin=its, stdout=its, stderr=subprocess.DEVNULL, env=environment(world, **more),
        )  # fmt: skip
        os.close(its)
        told = b""
        try:
            while part := os.read(ours, 65536):
                told += part
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        called.wait()
        return told.decode().replace("\r\n", "\n")

    return run


def bare(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


@pytest.fixture
def piped(world: World, capsys: pytest.CaptureFixture[str]) -> Screen:
    project = Project(world.config.root, world.config.home, world.config.root / "truths")
    return lambda *command: call_here(project, command, capsys).out


def test_runs_fit_and_have_signs_beside_their_colours(screen: Screen) -> None:
    narrow, wide = screen("runs"), screen("runs", columns=120)
    header, line, *rows = bare(narrow)
    assert header.split() == ["run", "outcome", "why"] and line == "─" * 80 and len(rows) == 4
    marks = [row.split()[1:3] for row in rows[:3]]
    assert marks == [["✓", "scored"], ["…", "pending"], ["✗", "invalid"]] and not rows[3][:60].strip()
    assert max(map(len, rows)) <= 80
    assert "\x1b[32m✓ scored" in narrow and "\x1b[33m✗ invalid" in narrow
    assert bare(wide)[0].split() == ["run", "task", "outcome", "verdict", "time", "memory", "why"]
    assert len(bare(wide)) == 5 and max(map(len, bare(wide))) <= 120


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_tables_without_colours_fit_and_have_no_codes(screen: Screen, more: dict[str, str]) -> None:
    told = screen("runs", **more)
    assert told.isascii() and "\x1b" not in told
    assert max(map(len, told.splitlines())) <= 80 and "scored" in told
    shown = screen("show", "alpha", **more)
    assert "\x1b" not in shown and "▁" not in shown and "✓" not in shown


def test_a_pipe_has_a_row_in_a_line_and_every_column(piped: Screen) -> None:
    lines = piped("runs").splitlines()
    assert lines[0].split() == ["run", "task", "outcome", "verdict", "time", "memory", "why"]
    assert len(lines) == 4 and all(re.fullmatch("[ -~]*", line) for line in lines)
    assert "▁" not in piped("show", "alpha") and "✓" not in piped("show", "alpha")


def test_a_run_has_its_outcome_marked_and_its_topics_as_bars(screen: Screen) -> None:
    told = screen("show", "alpha")
    assert "outcome:     \x1b[32m✓ scored\x1b[0m – " in told
    image = next(line for line in bare(told) if line.startswith("image:"))
    assert image.endswith("sha256:" + "0" * 64), "what is copied stays whole"
    lines = bare(told)
    (above,) = [n for n, line in enumerate(lines) if "200 " in line and "--topics" in line]
    below = lines[above + 1]
    first, bars, last = below.split()
    assert (first, last, len(below)) == ("0.0036", "1.0000", 80)
    assert set(bars) <= set("▁▂▃▄▅▆▇█") and list(bars) == sorted(bars), "from the worst to the best"


def test_words_of_strangers_have_no_codes_and_no_outcome_of_their_own(screen: Screen) -> None:
    told = screen("show", "beta.broken.ea6b48f7.dev")
    assert "\x1b[31mno" not in told and "\\x1b[31mno" in told
    assert told.count("✓") == 0 and "\x1b[33m✗ invalid" in told
    lines = bare(told)
    (outcome,) = [line for line in lines if line.startswith("outcome:")]
    assert outcome.split()[1:3] == ["✗", "invalid"]
    assert max(len(line) for line in lines if not line.startswith("image:")) <= 80


def test_a_cell_is_one_line_and_what_is_no_outcome_has_no_sign(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("outcome", "why"), [("scored", "a\n\x1b[2Jb\nscored"), ("…", "x" * 500)])
    assert capsys.readouterr().out.splitlines()[1:] == [
        "scored   a \\x1b[2Jb scored",
        f"…        {'x' * 500}",
    ]
    for text, sign in (("scored (stale)", "✓ "), ("refused (E207): x", "✗ "), ("scoredly", ""), ("", "")):
        assert signed(text) == sign + text


@pytest.mark.parametrize(
    ("values", "most", "bars"),
    [
        ([0.0, 0.5, 1.0], 10, "▁▅█"),
        ([1.0, 1.0], 10, "██"),
        ([0.0, 0.0], 10, "▁▁"),
        ([-1.0, 0.0, 1.0], 10, "▁▅█"),
        ([0.0, 0.0, 1.0, 1.0], 2, "▁█"),  # the means of two
        ([3.0], 10, "█"),
    ],
)
def test_bars_are_from_nothing_to_the_greatest(values: list[float], most: int, bars: str) -> None:
    assert sparkline(values, most) == bars


def test_results_and_messages_keep_their_order_in_a_file() -> None:
    code = "from runner.cli import output as o; o.data('run'); o.say('message'); o.data('hint')"
    ended = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    assert ended.stdout.splitlines() == ["run", "message", "hint"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.0, "+0.0000"), (0.25, "+0.2500"), (-0.00005, "-0.0001"), (4e-9, "+4.0e-09"), (-1.26e-5, "-1.3e-05")],
)  # fmt: skip
def test_a_difference_that_there_is_never_looks_like_none(value: float | None, shown: str) -> None:
    assert output.difference(value) == shown
