"""Plans as people read them, the question that some of them need, and the way from a request to its plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from runner.cli import context, output
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.coordinator import Changed, Coordinator, EvaluationRequest
    from runner.execution.plan import Plan
    from runner.model.run import Run

CHANGED: tuple[Changed, ...] = ("ask", "again", "keep")
ASK_ABOVE = 10


@contextmanager
def planned(
    request: EvaluationRequest, *, dry_run: bool, as_json: bool, yes: bool = False
) -> Iterator[tuple[Coordinator, Plan | None]]:
    """The coordinator and the plan of a request, shown and agreed to; no plan where it was only to be shown.

    Raises E101 for forcing many runs without ``yes``, and as :func:`ask_again`.
    """
    with context.coordinating(dry_run=dry_run) as coordinator:
        if coordinator.adopted:
            output.say(f"taken over from an interrupted command: {coordinator.adopted}")
        todo = coordinator.plan(request)
        show_plan(todo)
        if dry_run and as_json:
            output.as_json(plan_json(todo))
        yield coordinator, None if dry_run else _confirmed(todo, request, yes)


def show_plan(plan: Plan) -> None:
    """Say what is to be done, and what is left alone and why."""
    output.say(f"to do: {_many(len(plan.work), 'run')}" if plan.work else "nothing to do")
    for planned in plan.work:
        output.say(f"  {planned.step:8} {planned.run.id}  ({planned.why})")
    groups = {
        "left alone": [entry for entry in plan.skipped if entry.blocked],
        "left out": [entry for entry in plan.skipped if entry.run.outcome.name == "cancelled"],
        "stale": [entry for entry in plan.skipped if entry.stale],
        "left to the other engine": [entry for entry in plan.skipped if entry.elsewhere],
    }
    for how, entries in groups.items():
        for entry in entries:
            output.say(f"  {how} {entry.run.id}: {entry.why}")
    if plan.again:
        output.say(f"  {again(plan)}")
    settled = len(plan.skipped) - sum(len(entries) for how, entries in groups.items() if how != "stale")
    if settled:
        output.say(f"  settled already: {_many(settled, 'run')}")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


def again(plan: Plan) -> str:
    """How many settled runs a plan would execute again, and why, in one line."""
    why = Counter(p.changed for p in plan.again)
    reasons = "; ".join(f"{changed} has changed ({n})" for changed, n in sorted(why.items()))
    return f"{_many(len(plan.again), 'settled run')} would be executed again: {reasons}"


def ask_again(plan: Plan) -> Plan:
    """The plan that a person wants: with the settled runs that it would execute again, or without them.

    Raises E104 where nobody can be asked, KeyboardInterrupt when the answer is neither.
    """
    import sys

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        why = "Their outcomes stand; to execute them again costs their time once more, and may change ranks."
        fix = "add --changed keep to leave them as they are, or --changed again to execute them again"
        raise RunnerError("E104", again(plan), why=why, fix=fix)
    question = f"{again(plan)}. Execute them again, or keep them as they are? [again/keep/stop]"
    answer = typer.prompt(question, default="keep", err=True)
    if answer not in ("again", "keep"):
        raise KeyboardInterrupt
    return plan if answer == "again" else plan.keeping()


def plan_json(plan: Plan) -> dict[str, Any]:
    """A plan for ``--json``."""
    skipped = [{"run": s.run.id, "why": s.why, "blocked": s.blocked, "stale": s.stale} for s in plan.skipped]
    return {
        "work": [{"run": p.run.id, "step": p.step, "why": p.why, "needs": list(p.needs)} for p in plan.work],
        "again": [{"run": p.run.id, "changed": p.changed} for p in plan.again],
        "skipped": skipped,
    }


def result_json(
    coordinator: Coordinator,
    todo: Plan,
    done: Mapping[str, Run],
    unsettled: Mapping[str, str],
    changes: Mapping[str, Any] | None = None,
) -> None:
    """Print what was done as JSON; ``changes``: what evaluating again changed."""
    from runner.views.audience import ORGANISER
    from runner.views.redact import redact_row

    tasks = coordinator.workspace.tasks
    rows = [
        dict(redact_row(run, ORGANISER, tasks[run.submission.task].datasets[run.dataset]) or {})
        for run in done.values()
    ]
    more = {} if changes is None else {"changes": changes}
    output.as_json({**plan_json(todo), "done": rows, "unsettled": unsettled, **more})


def changed_choice(given: str) -> Changed:
    """What ``--changed`` says. Raises E101 for another word."""
    for choice in CHANGED:
        if given == choice:
            return choice
    what = f"there is no --changed {output.printable(given)}"
    raise RunnerError("E101", what, fix=f"use {', '.join(CHANGED)}")


def _confirmed(todo: Plan, request: EvaluationRequest, yes: bool) -> Plan:
    if request.force and len(todo.work) > ASK_ABOVE and not yes:
        what, why = f"--force would execute {len(todo.work)} runs again", "It costs their time once more."
        raise RunnerError("E101", what, why=why, fix="add --yes if that is meant")
    return ask_again(todo) if request.changed == "ask" and todo.again else todo
