"""Three to eight runs beside each other: each run's figures, all pairs with the paired tests of leaderboards, topics by spread, shared documents.

Made of views of one audience, so that it shows nothing that these do not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from runner.model.comparing.overlap import Rankings
from runner.model.comparing.resampled import Resampled, by_resamples
from runner.model.comparing.several import (
    MOST_RUNS,
    Pair,
    Scored,
    Several,
    Shared,
    on_measure,
    recorded,
    shared_documents,
    with_tests,
)
from runner.model.errors import RunnerError
from runner.model.kinds import kind_spec
from runner.views.audience import Audience
from runner.views.comparison.topics import (
    check,
    measures_of,
    notes_of,
    nothing_shared,
    percentiles,
    resamples_of,
    topics_drawn,
    unlike,
)
from runner.views.leaderboard import significance
from runner.views.leaderboard.comparing import TEST_NAME
from runner.views.leaderboard.formats.spreadsheet import no_formula
from runner.views.redact import RunView, redact_run
from runner.views.text import plural

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail


@dataclass(frozen=True)
class Comparisons:
    """Several runs: their ids, task and dataset, the measures that all have, the documents that two share, why measures are left out, and what to
    know besides. ``shown`` are the ids of the measures of the ranking table, the ranking one first."""

    runs: tuple[str, ...]
    task: str
    dataset: str
    measures: tuple[Several, ...]
    shared: tuple[Shared, ...]
    left_out: Mapping[str, str]
    shown: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ranked(self) -> Several:
        """The measure whose pairs and topics are shown: the first of the table that has topics."""
        shown = [one for one in self.measures if one.id in self.shown]
        return next((one for one in (*shown, *self.measures) if one.topics), self.measures[0])

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``, as ``comparison.schema.json`` has it."""
        facts = {"task": self.task, "dataset": self.dataset}
        made = recorded(facts, self.runs, self.measures, self.shared)
        return {**made, "left_out": dict(self.left_out), "notes": list(self.notes)}

    def as_csv(self) -> str:
        """One line for each measure and topic, a column for each run, at full precision. No cell starts a spreadsheet formula."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("measure", "topic", *map(no_formula, self.runs), "spread"))
        for one in self.measures:
            for row in one.topics:
                writer.writerow((no_formula(one.id), no_formula(row.topic), *row.values, row.spread))
        return out.getvalue()


def how_many(count: int) -> None:
    """Whether so many runs can be compared at once. Raises E101."""
    if not 2 <= count <= MOST_RUNS:
        what = f"two to {MOST_RUNS} runs can be compared, not {count}"
        raise RunnerError("E101", what, fix="runner compare RUN RUN …; runner runs lists them")


def rankings_of(
    found: Sequence[tuple[RunDetail, Dataset]], task: Task, audience: Audience
) -> list[Rankings | None]:
    """The documents of each run by topic, where it has any and ``audience`` may see them."""
    retrieved = kind_spec(task.kind).retrieved
    return [retrieved(one, task, audience, dataset) if retrieved else None for one, dataset in found]


def compare_found(
    found: Sequence[tuple[RunDetail, Dataset]], task: Task, audience: Audience, wanted: Sequence[str] = ()
) -> Comparisons:
    """Compare runs that were looked up for ``audience``. Raises as :func:`compare_all`."""
    views = [redact_run(one, audience, dataset) for one, dataset in found]
    drawn = [resamples_of(one, audience) for one, _ in found]
    notes = unlike(*(one.run for one, _ in found))
    return compare_all(views, task, wanted, notes, drawn, rankings_of(found, task, audience))


def compare_all(
    views: Sequence[RunView],
    task: Task,
    wanted: Sequence[str] = (),
    notes: Iterable[str] = (),
    resampled: Sequence[Resampled] = (),
    rankings: Sequence[Rankings | None] = (),
) -> Comparisons:
    """Compare runs of ``task``.

    Args:
        views: Two to eight runs as an audience may see them.
        task: Their task.
        wanted: Ids of measures; empty: all that the runs have.
        notes: What else is to be said.
        resampled: Values of each run in resamples, for who may see values by topic.
        rankings: The documents of each run, where it has any and the audience may see them.

    Raises:
        RunnerError: E101 for runs that cannot be compared, E102 for an unknown measure and for runs without scores, E103
            when the audience may not see their scores by topic.
    """
    how_many(len(views))
    check(views)
    ids, left_out, shown = measures_of(views, task, wanted)
    drawn = {name: [side.get(name) for side in resampled] for name in ids}
    made = [
        with_tests(_on_measure(views, task, name, drawn[name]), partial(_tests, drawn=drawn[name]))
        for name in ids
    ]
    if not any(one.topics or one.tests for one in made):
        raise nothing_shared(left_out)
    there = [one for one in rankings if one]
    return Comparisons(
        tuple(view["run"] for view in views),
        task.id,
        views[0]["dataset"],
        tuple(made),
        tuple(shared_documents(there)) if len(there) == len(views) else (),
        left_out,
        shown,
        (*_notes(views, made), *notes),
    )


def _on_measure(
    views: Sequence[RunView], task: Task, name: str, drawn: Sequence[Mapping[str, Any] | None]
) -> Several:
    defined = task.measures.get(name)
    measure, direction = (defined.measure, defined.direction) if defined else (name, "higher")
    runs = [
        Scored(
            view["scores"][name]["value"],
            tuple(view["scores"][name]["interval"] or ()) or None,
            view["topic_scores"].get(name, {}),
        )
        for view in views
    ]
    # What is resampled is no mean of values by topic.
    return on_measure(name, measure, direction, runs, means=not any(drawn))


def _tests(of: Several, drawn: Sequence[Mapping[str, Any] | None]) -> Iterator[Pair]:
    """The pairs, tested as leaderboards test: by randomisation where figures are means over topics, else by values in the same resamples."""
    if of.means:
        rows = [[row.values[n] for row in of.topics] for n in range(len(of.values))]
        ps, spans = significance.between(rows), _intervals(rows)
        for pair in of.pairs:
            at = pair.first, pair.second
            yield replace(pair, p=ps[at], test=TEST_NAME, interval=spans.get(at))
        return
    for pair in of.pairs:
        found = by_resamples(drawn[pair.first], drawn[pair.second], pair.difference) if drawn else None
        yield pair if found is None else replace(pair, p=found[0], interval=found[1], test=found[2])


def _intervals(rows: Sequence[Sequence[float]]) -> dict[tuple[int, int], tuple[float, float]]:
    """95 % intervals of the mean difference of each two rows, as :func:`~runner.views.comparison.topics.effect_intervals` makes them; none of one topic."""
    import numpy as np

    if len(rows[0]) < 2:
        return {}
    drawn = topics_drawn(len(rows[0]))
    means = [np.asarray(row, dtype=np.float64)[drawn].mean(axis=1) for row in rows]
    return {(a, b): percentiles(means[a] - means[b]) for a, b in combinations(range(len(rows)), 2)}


def _notes(views: Sequence[RunView], made: Sequence[Several]) -> Iterator[str]:
    yield from notes_of(views, max(len(one.topics) for one in made))
    if left := max(one.left_out for one in made):
        yield f"{plural(left, 'topic')} that not all of the runs have, left out."
