"""What ``runner evaluate`` says of many runs: the plan in a few lines, how far it is, and who was not scored and why."""

from __future__ import annotations

import itertools
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from runner.cli import output
from runner.cli.plans import by_reason, show_plan
from runner.cli.terminal import Tally, Terminal
from runner.execution.plan import Plan, Planned, Skipped
from runner.execution.pool import RunProgress
from runner.model.outcome import Outcome
from runner.model.run import Run, Submission
from runner.records.archive import Attempt, Evaluation
from runner.records.commit import commit
from runner.records.store.connect import Store
from tests.runner.execution.test_pool import World
from tests.worlds.mini import Project, Said, call_here

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))


def a_run(number: int, name: str = "scored", *, workflow: str = "upload", reason: str = "") -> Run:
    """A run of a team of its own, which became ``name``."""
    team = f"team-with-a-long-name-{number:03}"
    id = f"{team}.dense-retrieval.{number:08x}"
    submission = Submission(
        id, "mini", team, "dense-retrieval", ("default",), "t", "", "automatic", None, "", number, workflow
    )
    return Run(f"{id}.test", submission, "test", "default", Outcome(name, "", reason, ""))  # type: ignore[arg-type]


@pytest.fixture
def many() -> Plan:
    """147 run files to be evaluated, and 3 that cannot be."""
    todo = [Planned(a_run(n, "pending"), "execute", "not executed yet") for n in range(147)]
    why = "E402: 2 of the files of mini/test have not been fetched. Fix: runner data pull mini --dataset test"
    return Plan(tuple(todo), tuple(Skipped(a_run(n, "pending"), why, blocked=True) for n in range(147, 150)))


@pytest.mark.parametrize("steps", [0, 1])
def test_an_executed_run_cannot_be_cancelled(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], steps: int
) -> None:
    """Neither before its attempt is committed (when no step was) nor while it is evaluated."""
    world, said = World(project), dict[int, Said]()
    count = itertools.count()

    def committed(store: Store, *results: Attempt | Evaluation) -> None:
        if (step := next(count)) == steps:
            said[step] = call_here(project, ["cancel", run], capsys)
        commit(store, *results)

    try:
        run = world.hand_in("alpha")
        monkeypatch.setattr("runner.execution.pool.commit", committed)
        world.work()
        assert world.outcome(run).name == "scored"
    finally:
        world.close()
    assert said[steps].code == 2 and "E102" in said[steps].err


def test_plans_and_progress_are_short(many: Plan, golden: Callable[[str, str], None]) -> None:
    held = a_run(2, "held")
    why = f"held; runner evaluate --run {held.id} --force starts it again"
    software = Planned(a_run(1, "pending", workflow="batch"), "execute", "not executed yet")
    settled = Skipped(a_run(3), "scored")
    lines: list[str] = []
    for plan in (many, Plan((software,), (settled, Skipped(held, why, blocked=True))), Plan((), (settled,))):
        show_plan(plan, lines.append)
    lines += by_reason([(f"a.{n}", f"blocked: a.{n} needs RUNNER_X {n % 12}") for n in range(24)], 8)
    lines += by_reason([("a.1", "blocked: \x1b[2J RUNNER_X")])
    assert all(len(line) <= 100 for line in lines)

    now = [0.0]
    tally = Tally(147, lambda: now[0])
    progress = [tally.line(80)]
    events = list(_events(many))
    for moment in events[:197]:  # 98 are done, the next has started
        tally.take(moment)
    now[0] = 98 * 3.0
    progress += [tally.line(), tally.line(80)]
    assert len(progress[-1]) == 80
    for moment in events[197:]:
        tally.take(moment)
    golden("progress.txt", "\n".join([*lines, *progress, tally.line(), *_blocked(many)]) + "\n")


def _blocked(plan: Plan) -> Iterator[str]:
    """The lines of a tally of which some runs are blocked, and of one whose evaluation failed."""
    now = [0.0]
    tally = Tally(4, lambda: now[0])
    blocked = [RunProgress("blocked", planned.run, planned.step, "E306") for planned in plan.work[:4]]
    for moment in blocked[:2]:
        tally.take(moment)
    now[0] = 60.0
    yield tally.line()
    tally.take(RunProgress("done", a_run(3), "evaluate"))
    tally.take(blocked[3])
    yield from (tally.line(), tally.line(80))
    failed, run = Tally(1), a_run(1)
    outcome = replace(run.outcome, old=True, reason="x")
    failed.take(RunProgress("done", replace(run, outcome=outcome), "evaluate"))
    yield failed.line()


def _events(plan: Plan) -> Iterator[RunProgress]:
    """What a pool with two workers reports, the first of five runs of a software that fails."""
    for n, planned in enumerate(plan.work):
        yield RunProgress("started", planned.run, planned.step)
        became = a_run(n, "invalid", reason="3 errors in the run file") if n % 49 == 0 else a_run(n)
        yield RunProgress("done", became, planned.step)


def test_without_a_terminal_only_failures_have_lines(many: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal().progress(147) as take:
        for moment in _events(many):
            take(moment)
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert said.out == "" and len(lines) == 4
    assert [line.split(": ")[0] for line in lines[:-1]] == [a_run(n).id for n in (0, 49, 98)]
    assert lines[-1].startswith("147/147 ") and "144 scored, 3 invalid" in lines[-1]
    with Terminal(verbose=True).progress(147) as take:
        for moment in _events(many):
            take(moment)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 148 and lines[1] == f"{a_run(1).id}: scored"


def test_progress_without_a_terminal_is_repeated(many: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal(every=0.02).progress(147) as take:
        take(next(_events(many)))
        end = time.monotonic() + 100
        said = ""
        while said.count("0/147 ") < 3 and time.monotonic() < end:
            time.sleep(0.02)
            said += capsys.readouterr().err
    assert said.count("team-with-a-long-name-000") >= 2


def test_quiet_says_nothing_but_results(many: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    output.options.quiet = True
    try:
        with Terminal().progress(147) as take:
            for moment in _events(many):
                take(moment)
    finally:
        output.options.quiet = False
    assert capsys.readouterr().err == ""


SHOWN = """
import time
from runner.cli.terminal import Terminal
from runner.execution.pool import RunProgress
from tests.runner.cli.test_evaluating import a_run
with Terminal().progress(20) as take:
    for n in range(20):
        take(RunProgress("started", a_run(n, "pending"), "execute"))
        time.sleep(0.1)
        take(RunProgress("done", a_run(n, "failed" if n == 7 else "scored"), "execute"))
"""


@pytest.mark.slow
def test_on_a_terminal_one_line_of_eighty_columns_moves() -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    command = [sys.executable, "-c", SHOWN]
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=env, cwd=ROOT)
    os.close(theirs)
    seen = b""
    try:
        while block := os.read(ours, 65536):
            seen += block
    except OSError:  # the other end was closed
        pass
    os.close(ours)
    assert done.wait(60) == 0
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen).decode()
    lines = [line for line in re.split(r"[\r\n]+", plain) if line]
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    assert any(re.match(r"█+░+ \d+/20 .* team-", line) for line in lines)
    failed = [line for line in lines if "team-with-a-long-name-007" in line and "█" not in line]
    assert len(failed) == 1 and "failed" in failed[0]
    assert lines[-1].startswith("20/20 ") and "19 scored, 1 failed" in lines[-1]


def test_dry_runs_print_the_list_to_stdout(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(project)
    runs = [world.hand_in("alpha"), world.hand_in("beta")]
    world.close()
    dry = ["evaluate", "--all", "--dry-run"]
    said = call_here(project, dry, capsys)
    assert (said.out, said.err) == ("2 runs: 2 execute\n", "")
    said = call_here(project, [*dry, "--verbose"], capsys)
    assert [line.split()[:2] for line in said.out.splitlines()[2:]] == [["execute", run] for run in runs]
    said = call_here(project, [*dry, "--json", "--verbose"], capsys)
    assert [work["run"] for work in said.json["work"]] == runs and said.err == "2 runs: 2 execute\n"
