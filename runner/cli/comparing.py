"""Runs beside each other on a terminal: two with the topics where they differ most, three to eight with all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runner.cli import output

if TYPE_CHECKING:
    from runner.model.comparing.several import Pair, Several
    from runner.model.comparing.topics import Compared
    from runner.model.task import Task
    from runner.views.comparison.several import Comparisons
    from runner.views.comparison.topics import Comparison

HEADS = ("measure", "first", "second", "difference", "w/l/t", "p", "effect")
PAIRS = ("pair", "difference", "95 %", "w/l/t", "p", "p (Holm)", "effect")
_EFFECT = "effect: mean difference / standard deviation of the differences."
LEGEND = (
    "w/l/t: topics on which the first run is better, worse, equal. p: {test}, two-sided, not corrected for several "
    "measures. " + _EFFECT
)
LEGEND_OF_PAIRS = (
    "w/l/t: topics on which the first run of a pair is better, worse, equal. p: {test}, two-sided; p (Holm): corrected for all "
    "pairs, not for several measures. " + _EFFECT
)


def show(made: Comparison | Comparisons, task: Task, everything: bool) -> None:
    """Print a comparison: the measures of the table and the largest differences, or ``everything``."""
    from runner.views.comparison.topics import Comparison
    from runner.views.show.topics import measure_names
    from runner.views.text import plural, wrapped

    names = measure_names(task, [one.id for one in made.measures])
    left_out = [
        f"no comparison on {name}: {why}"
        for name, why in made.left_out.items()
        if everything or name in made.shown
    ]
    if isinstance(made, Comparison):
        legend, shown = _two(made, names, left_out, everything)
    else:
        legend, shown = _all(made, names, left_out, everything)
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


def _all(
    made: Comparisons, names: Mapping[str, str], left_out: Sequence[str], everything: bool
) -> tuple[str, int]:
    """Print three to eight runs; returns the legend, and how many measures were shown."""
    from runner.model.comparing.several import LETTERS

    letters = LETTERS[: len(made.runs)]
    output.facts(dict(zip(letters, made.runs, strict=True)))
    output.data("")
    rows = [one for one in made.measures if everything or one.id in made.shown] or list(made.measures)
    ranked = made.ranked
    output.table(("measure", *letters), [_figures(one, names[one.id]) for one in rows], right=letters)
    _lines(left_out)
    for one in rows if everything else [ranked]:
        output.data(f"\nall pairs by {output.printable(names[one.id])}:")
        output.table(PAIRS, [_pair(one, pair, letters) for pair in one.pairs], right=PAIRS[1:])
    found = [
        (row.topic, *(f"{value:.4f}" for value in row.values), f"{row.spread:.4f}") for row in ranked.topics
    ]
    _topics(names[ranked.id], (*letters, "spread"), found, "spreads", everything)
    if made.shared:
        _overlap(made, letters)
    tests = "; ".join(dict.fromkeys(test for one in rows for test in one.tests))
    return LEGEND_OF_PAIRS.format(test=tests), len(rows)


def _overlap(made: Comparisons, letters: str) -> None:
    from runner.model.comparing.overlap import DEPTHS

    output.data("\ndocuments that both retrieved (Jaccard coefficient, the mean over topics):")
    heads = ("pair", *(f"at {depth}" for depth in DEPTHS))
    rows = [
        (f"{letters[one.first]} {letters[one.second]}", *(f"{value:.3f}" for value in one.jaccard))
        for one in made.shared
    ]
    output.table(heads, rows, right=heads[1:])


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


def _figures(one: Several, name: str) -> tuple[str, ...]:
    """A measure with the figure of each run, and its interval where there is one."""
    spans = ("" if span is None else f" [{span[0]:.3f}, {span[1]:.3f}]" for span in one.intervals)
    figures = (f"{value:.4f}{span}" for value, span in zip(one.values, spans, strict=True))
    return _with_direction(one.direction, name), *figures


def _pair(of: Several, pair: Pair, letters: str) -> tuple[str, ...]:
    span = "–" if pair.interval is None else f"[{pair.interval[0]:+.3f}, {pair.interval[1]:+.3f}]"
    return (
        f"{letters[pair.first]} {letters[pair.second]}",
        output.difference(pair.difference),
        span,
        f"{pair.wins}/{pair.losses}/{pair.ties}" if of.topics else "–",
        _p(pair.p),
        _p(pair.p_corrected),
        "–" if pair.effect is None else f"{pair.effect:+.2f}",
    )


def _row(one: Compared, name: str) -> tuple[str, ...]:
    counts = f"{one.wins}/{one.losses}/{one.ties}" if one.pairs else "–"
    effect = "–" if one.effect is None else f"{one.effect:+.2f}"
    figures = f"{one.first:.4f}", f"{one.second:.4f}", output.difference(one.difference)
    return _with_direction(one.direction, name), *figures, counts, _p(one.p), effect


def _with_direction(direction: str, name: str) -> str:
    return f"{name} ↓" if direction == "lower" else name


def _p(value: float | None) -> str:
    return "<0.001" if value is not None and value < 0.001 else output.figure(value, 3)
