"""Plans as people read them, the question that some of them need, and the way from a request to its plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from runner.cli import context, output
from runner.model.errors import RunnerError
from runner.views.text import duration, plural, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.execution.coordinator import Changed, Coordinator, EvaluationRequest
    from runner.execution.plan import Plan
    from runner.execution.schedule import Forecast
    from runner.model.run import Run

CHANGED: tuple[Changed, ...] = ("ask", "again", "keep")
ASK_ABOVE = 10
EXPLAINED = ("blocked", "left to the other engine", "stale", "cancelled")  # whose reasons are said
REASONS = 8  # that are said; more are listed with --verbose


@contextmanager
def planned(
    request: EvaluationRequest, *, dry_run: bool, as_json: bool, verbose: bool = False, yes: bool = False
) -> Iterator[tuple[Coordinator, Plan | None]]:
    """The coordinator and the plan of a request, shown and agreed to; no plan where it was only to be shown.

    With ``verbose`` the plan is listed run by run, and so is what becomes of them.

    Raises E101 for forcing many runs without ``yes``, and as :func:`ask_again`.
    """
    with context.coordinating(dry_run=dry_run, verbose=verbose) as coordinator:
        if coordinator.adopted:
            output.say(f"taken over from an interrupted command: {coordinator.adopted}")
        todo = coordinator.plan(request)
        tell = output.data if dry_run and not as_json else output.say
        show_plan(todo, tell)
        expected = coordinator.forecast(todo, request.jobs)
        if expected is not None:
            tell(f"  {takes(expected)}")
            if coordinator.config.cluster or coordinator.config.evaluation_cluster:
                tell("  on this machine alone: hosts of the cluster (runner cluster show) not counted")
        if verbose and not as_json:
            _list(todo)
        if dry_run and as_json:
            output.as_json({**plan_json(todo), "takes": None if expected is None else asdict(expected)})
        yield coordinator, None if dry_run else _confirmed(todo, request, yes)


def show_plan(plan: Plan, tell: Callable[[str], None] = output.say) -> None:
    """Say how many runs of each kind there are, and why some are left alone: one line a reason."""
    kinds = Counter(entry.kind for entry in plan.entries)
    counts = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    tell(f"{plural(kinds.total(), 'run')}: {counts}" if kinds else "no runs")
    if plan.again:
        tell(f"  {again(plan)}")
    reasons = [(s.run.id, f"{s.kind}: {s.why}") for s in plan.skipped if s.kind in EXPLAINED]
    for line in by_reason(reasons, REASONS):
        tell(line)
    if not plan.work and not any(s.evaluated for s in plan.skipped):
        tell("nothing to do")


def takes(expected: Forecast) -> str:
    """How long a plan takes, in one line."""
    at_once = f", {expected.slots} at once" if expected.slots > 1 else ""
    by = f"by the last time of {plural(expected.known, 'run')}{at_once}"
    more = (
        f"; {expected.unknown} others at most {duration(expected.longest)} each" if expected.unknown else ""
    )
    return f"takes about {duration(expected.seconds)} ({by}{more})"


def by_reason(reasons: Iterable[tuple[str, str]], most: int | None = None) -> list[str]:
    """Runs and why, in lines that fit: each reason once, whomever it is about; at most so many reasons."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for run, why in reasons:
        groups.setdefault(why.replace(run, "RUN"), []).append((run, why))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    lines: list[str] = []
    for same, ((run, why), *others) in ordered[:most]:
        text = f"{1 + len(others)} runs {same}" if others else f"{run} {why}"
        lines += wrapped(output.printable(text), "  ")
    if more := sum(len(runs) for _, runs in ordered[len(ordered[:most]) :]):
        lines.append(f"  … and {plural(more, 'run')} for other reasons; --verbose lists them")
    return lines


def _list(plan: Plan) -> None:
    """Print every run of a plan: what is done or why not."""
    rows = [(entry.kind, entry.run.id, entry.why) for entry in plan.entries]
    if rows:
        output.table(("what", "run", "why"), rows, texts=("why",))


def again(plan: Plan) -> str:
    """How many settled runs a plan would execute again, and why, in one line."""
    why = Counter(p.changed for p in plan.again)
    reasons = "; ".join(f"{changed} has changed ({n})" for changed, n in sorted(why.items()))
    return f"{plural(len(plan.again), 'settled run')} would be executed again: {reasons}"


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
