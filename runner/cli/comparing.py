"""Two runs beside each other on a terminal, with the topics where they differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runner.cli import output

if TYPE_CHECKING:
    from runner.model.comparing import Compared
    from runner.model.task import Task
    from runner.views.comparison.topics import Comparison

HEADS = ("measure", "first", "second", "difference", "w/l/t", "p", "effect")
LEGEND = (
    "w/l/t: topics on which the first run is better, worse, equal. p: {test}, two-sided, not corrected for several "
    "measures. effect: mean difference / standard deviation of the differences."
)


def show(made: Comparison, task: Task, everything: bool) -> None:
    """Print a comparison: the measures of the table and the largest differences, or ``everything``."""
    from runner.views.show.topics import measure_names
    from runner.views.text import plural, wrapped

    names = measure_names(task, [one.id for one in made.measures])
    left_out = [
        f"no comparison on {name}: {why}"
        for name, why in made.left_out.items()
        if everything or name in made.shown
    ]
    legend, shown = _two(made, names, left_out, everything)
    left = len(made.measures) - shown
    more = f" {plural(left, 'more measure')} with --all." if left else ""
    output.data("")
    for line in wrapped(legend + more, ""):
        output.data(line)
    for note in made.notes:
        for line in wrapped(note, "note: "):
            output.data(line)


def _two(
    made: Comparison, names: Mapping[str, str], left_out: Sequence[str], everything: bool
) -> tuple[str, int]:
    """Print two runs; returns the legend, and how many measures were shown."""
    output.facts({"first": made.first, "second": made.second})
    output.data("")
    rows = [one for one in made.measures if everything or one.id in made.shown] or list(made.measures)
    ranked = next((one for one in (*rows, *made.measures) if one.pairs), rows[0])
    output.table(HEADS, [_row(one, names[one.id]) for one in rows], right=HEADS[1:])
    _lines(left_out)
    found = [
        (p.topic, f"{p.first:.4f}", f"{p.second:.4f}", output.difference(p.difference)) for p in ranked.pairs
    ]
    _topics(names[ranked.id], ("first", "second", "difference"), found, "differences", everything)
    tests = "; ".join(dict.fromkeys(one.test for one in rows if one.p is not None))
    return LEGEND.format(test=tests), len(rows)


def _topics(
    name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], largest: str, everything: bool
) -> None:
    """Print topics, the first of them or all; nothing where there are none."""
    from runner.views.comparison.topics import LARGEST
    from runner.views.text import plural

    shown = rows if everything else rows[:LARGEST]
    if rows:
        more = "" if len(shown) == len(rows) else f", the largest {largest}; --all shows all"
        output.data(f"\n{plural(len(rows), 'topic')} by {output.printable(name)}{more}:")
        output.table(("topic", *heads), shown, right=heads)


def _lines(lines: Sequence[str]) -> None:
    for line in lines:
        output.data(output.printable(line))


def _row(one: Compared, name: str) -> tuple[str, ...]:
    counts = f"{one.wins}/{one.losses}/{one.ties}" if one.pairs else "–"
    effect = "–" if one.effect is None else f"{one.effect:+.2f}"
    figures = f"{one.first:.4f}", f"{one.second:.4f}", output.difference(one.difference)
    return _with_direction(one.direction, name), *figures, counts, _p(one.p), effect


def _with_direction(direction: str, name: str) -> str:
    return f"{name} ↓" if direction == "lower" else name


def _p(value: float | None) -> str:
    return "<0.001" if value is not None and value < 0.001 else output.figure(value, 3)
