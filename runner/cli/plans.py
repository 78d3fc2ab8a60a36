"""Plans as people read them, and the question that some of them need."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import typer

from runner.cli import output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.coordinator import Changed, Coordinator, EvaluationRequest
    from runner.execution.plan import Plan
    from runner.model.run import Run

CHANGED: tuple[Changed, ...] = ("ask", "again", "keep")
ASK_ABOVE = 10


def show_plan(plan: Plan) -> None:
    if plan.work:
        output.say(f"to do: {len(plan.work)} run{'s' if len(plan.work) > 1 else ''}")
        for planned in plan.work:
            output.say(f"  {planned.step:8} {planned.run.id}  ({planned.why})")
    else:
        output.say("nothing to do")
    blocked = [entry for entry in plan.skipped if entry.blocked]
    for entry in blocked:
        output.say(f"  left alone {entry.run.id}: {entry.why}")
    cancelled = [entry for entry in plan.skipped if entry.run.outcome.name == "cancelled"]
    for entry in cancelled:
        output.say(f"  left out {entry.run.id}: {entry.why}")
    stale = [entry for entry in plan.skipped if entry.stale]
    for entry in stale:
        output.say(f"  stale {entry.run.id}: {entry.why}")
    elsewhere = [entry for entry in plan.skipped if entry.elsewhere]
    for entry in elsewhere:
        output.say(f"  left to the other engine {entry.run.id}: {entry.why}")
    if plan.again:
        output.say(f"  {again(plan)}")
    settled = len(plan.skipped) - len(blocked) - len(cancelled) - len(elsewhere)
    if settled:
        output.say(f"  settled already: {settled} run{'s' if settled > 1 else ''}")


def again(plan: Plan) -> str:
    """How many settled runs a plan would execute again, and why, in one line."""
    why = Counter(p.changed for p in plan.again)
    reasons = "; ".join(f"{changed} has changed ({n})" for changed, n in sorted(why.items()))
    many = len(plan.again) > 1
    return f"{len(plan.again)} settled run{'s' if many else ''} would be executed again: {reasons}"


def ask_again(plan: Plan) -> Plan:
    """The plan that a person wants: with the settled runs that it would execute again, or without them.

    Raises E104 where nobody can be asked, KeyboardInterrupt when the answer is neither.
    """
    import sys

    from runner.model.errors import RunnerError

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RunnerError(
            "E104",
            again(plan),
            why="Their outcomes stand; to execute them again costs their time once more, and may change ranks.",
            fix="add --changed keep to leave them as they are, or --changed again to execute them again",
        )
    answer = typer.prompt(
        f"{again(plan)}. Execute them again, or keep them as they are? [again/keep/stop]",
        default="keep",
        err=True,
    )
    if answer == "again":
        return plan
    if answer == "keep":
        return plan.keeping()
    raise KeyboardInterrupt


def plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "work": [{"run": p.run.id, "step": p.step, "why": p.why, "needs": list(p.needs)} for p in plan.work],
        "again": [{"run": p.run.id, "changed": p.changed} for p in plan.again],
        "skipped": [
            {"run": s.run.id, "why": s.why, "blocked": s.blocked, "stale": s.stale} for s in plan.skipped
        ],
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
    rows = []
    for run in done.values():
        view = redact_row(run, ORGANISER, tasks[run.submission.task].datasets[run.dataset])
        rows.append(dict(view or {}))
    more = {} if changes is None else {"changes": changes}
    output.as_json({**plan_json(todo), "done": rows, "unsettled": unsettled, **more})


def changed_choice(given: str) -> Changed:
    """What ``--changed`` says. Raises E101 for another word."""
    from runner.model.errors import no_such

    for choice in CHANGED:
        if given == choice:
            return choice
    raise no_such("--changed", given, CHANGED, fix=f"use {', '.join(CHANGED)}", code="E101")


def confirmed(todo: Plan, request: EvaluationRequest, yes: bool) -> Plan:
    """The plan that a person agrees to. Raises E101 for forcing many runs without ``yes``, and as :func:`ask_again`."""
    from runner.model.errors import RunnerError

    if request.force and len(todo.work) > ASK_ABOVE and not yes:
        raise RunnerError(
            "E101",
            f"--force would execute {len(todo.work)} runs again",
            why="It costs their time once more.",
            fix="add --yes if that is meant",
        )
    return ask_again(todo) if request.changed == "ask" and todo.again else todo
