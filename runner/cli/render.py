"""Runs on a terminal. Everything here takes what an audience may see (``RunView``), nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from runner.cli import output
from runner.model.names import ABOUT
from runner.views.redact import RunView

if TYPE_CHECKING:
    from runner.model.run import Run
    from runner.views.show.topics import Topics

LEFT_OUT = ("task", "dataset", "team", "software", "description", *ABOUT)  # facts that stand on pages only


def became(run: Run) -> str:
    """What became of a run that was worked on, in one line for the organiser: a failed evaluation is never called scored."""
    outcome, reason = run.outcome, output.printable(" ".join(run.outcome.reason.split()))
    if outcome.old:
        return f"THE EVALUATION FAILED, its scores are from before ({outcome.name}): {reason}"
    return f"{outcome.name}: {reason}" if reason else outcome.name


def show(view: RunView, topics: Topics | None = None, *, all_topics: bool = False) -> None:
    """Print everything of one run that its audience may see; of its topics the worst and the best, or all."""
    from runner.views.show.presentation import FINDING_HEADS, SCORE_HEADS, comments, present
    from runner.views.text import wrapped

    run = present(view)
    # The exact time is left to pages and JSON; where only the day is known, that is said.
    left_out = LEFT_OUT if view["steps"] else (*LEFT_OUT, "started")
    output.facts({name: text for name, text in run.facts.items() if name not in left_out})
    _lines("stale: ", view["stale"])
    for comment in comments(view):
        _lines("", wrapped(comment, "comment: "))
    if run.findings:
        output.data("\nfindings:")
        output.table(FINDING_HEADS, run.findings, right=("count",), texts=("what",))
    _lines("  ", run.some_lines())
    if run.scores:
        output.data("\nscores:")
        output.table(SCORE_HEADS, run.scores, right=("mean",), drop=("computed", "95 % interval"))
    _lines("  ", run.without_value())
    if topics is not None:
        _topics(topics, all_topics)
    if run.judge:
        output.data(f"\njudged by: {run.judge}")
    _lines("note: ", view["notes"])
    for stream, lines in run.logs.items():
        output.data(f"\nlast lines of {stream}:")
        _lines("  | ", lines)
    for one in view["excerpts"]:
        output.data(
            f"\nlines {one['first']} to {one['last']} of {one['stream']}, as its team was given them:"
        )
        _lines("  | ", one["lines"])
    if run.hidden:
        output.data(f"\nnot shown to {view.audience}: {run.hidden}")


def _topics(topics: Topics, everything: bool) -> None:
    """The worst and the best topics by the ranking measure, or all with as many measures as there is space for."""
    from runner.views.text import plural, width, wrapped

    count = plural(len(topics.order), "topic")
    chosen = topics.order if everything else topics.chosen
    more = "" if None not in chosen else ", the worst and the best; --topics shows all"
    output.data(f"\n{count} by {topics.measure}{more}:")
    output.sparkline(topics.values)
    shown = topics.fitting(width()) if everything else topics.alone()
    heads = shown.heads()
    output.table(heads, shown.rows(chosen), right=heads[1:])
    left = [name for name in topics.names.values() if name not in shown.names.values()]
    if everything and left:
        _lines("", wrapped(f"{', '.join(left)}; --json has everything", "too narrow for: "))


def hint(text: str) -> None:
    """Print a hint, last of all; nothing for an empty one."""
    from runner.views.text import wrapped

    if text:
        output.data("")
        _lines("", wrapped(text, "hint: "))


def _lines(head: str, lines: Iterable[str]) -> None:
    for line in lines:
        output.data(f"{head}{line}")
