"""``runner demo``: the whole main job, on real data, in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.cli import context, output

if TYPE_CHECKING:
    from runner.config import Config

TASK = "vaswani"
TEAMS = ("baselines", "broken")


def run_demo(where: Config) -> None:
    """Submit the baselines and the broken softwares, run what is missing, print the leaderboard.

    The broken softwares are registered without the local check, which would refuse them: that is what they
    are for. A second time nothing is built, registered or run again.
    """
    from runner.audience import ORGANISER
    from runner.bundle import read_bundle
    from runner.cli.evaluate import _show_plan, work
    from runner.cli.leaderboard import print_table
    from runner.cli.submit import _packed, _register
    from runner.errors import RunnerError
    from runner.leaderboard.table import build
    from runner.plan import Selection, plan
    from runner.records import adopt, coordinator
    from runner.submissions import find_submissions

    task = context.one_task(where, TASK)
    with context.store(where) as store:
        from runner.store.queries import submissions

        registered = {(s.team, s.software) for s in submissions(store, task=TASK)}
    for team in TEAMS:
        found, errors = find_submissions(where, team)
        if errors:
            raise errors[0]
        for submission in found:
            if submission.task != TASK or (submission.team, submission.software) in registered:
                continue
            bundle = _packed(where, submission, None, check=False)
            if bundle is None:
                raise RunnerError("E209", f"{team}/{submission.software} could not be packed")
            receipt = _register(where, read_bundle(bundle.folder).folder)
            output.say(f"registered {receipt.submission}")
    with context.store(where) as store, coordinator(where):
        adopt(store)
        engine = context.engine(where)
        desk = context.desktop(where, store, own_profile=engine.info().seccomp)
        todo = plan(desk, Selection(task=TASK, dataset="test"))
        _show_plan(todo)
        work(where, desk, todo, jobs=None)
        print_table(build(store, task, None, ORGANISER))
    output.say(
        "next: runner runs · runner show RUN · runner leaderboard vaswani --as public --format html > board.html"
    )
