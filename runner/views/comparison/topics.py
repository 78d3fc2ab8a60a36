"""Two runs topic by topic: wins, losses and ties on each measure, a paired test, the effect, the largest differences.

Made of two views of one audience, so that it shows nothing that these do not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from runner.model.comparing import TIE, Compared, Resampled, by_resamples, on_topics, recorded, why_not
from runner.model.errors import RunnerError, no_such
from runner.model.run import Run, run_named
from runner.model.task import Cell
from runner.views.audience import Audience, not_for
from runner.views.leaderboard import significance
from runner.views.leaderboard.comparing import FEW_TOPICS, TEST_NAME
from runner.views.leaderboard.formats.spreadsheet import no_formula
from runner.views.redact import RunView, redact_run
from runner.views.show.topics import ranking
from runner.views.text import listed, plural

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail

LARGEST = 10  # differences that are listed
_MOST_NAMES = 6
RESAMPLES, MOST_DRAWN, SEED = 10_000, 5_000_000, 20_261_121  # of intervals over topics
CSV_HEADS = ("measure", "topic", "first", "second", "difference")


@dataclass(frozen=True)
class Comparison:
    """Two runs: their ids and cells, the measures that both have, why others are left out, and what to know besides.

    ``shown`` are the ids of the measures of the ranking table, the ranking one first.
    """

    first: str
    second: str
    task: str
    cells: tuple[Cell, Cell]
    measures: tuple[Compared, ...]
    left_out: Mapping[str, str]
    shown: tuple[str, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``: everything, each measure with all its topics, as ``comparison.schema.json`` has it."""
        facts = {"task": self.task, "dataset": self.cells[0].dataset}
        made = recorded(facts, self.first, self.second, self.measures)
        return {**made, "left_out": dict(self.left_out), "notes": list(self.notes)}

    def as_csv(self) -> str:
        """One line for each measure and topic, at full precision. No cell starts a spreadsheet formula."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(CSV_HEADS)
        for one in self.measures:
            for pair in one.pairs:
                names = no_formula(one.id), no_formula(pair.topic)
                writer.writerow((*names, pair.first, pair.second, pair.difference))
        return out.getvalue()


def named(runs: Iterable[Run], texts: Sequence[str]) -> list[str]:
    """The ids of those of ``runs`` that are named, each by its beginning; ``#n`` stays.

    Of several that fit, those count that are scored, and those on the one dataset and scenario that all have. Raises E102
    when none is left, or several are.
    """
    known = list(runs)
    fitting = [_fitting(known, text) for text in texts]
    shared = set.intersection(*({_place(run) for run in found} for found in fitting))
    if len(shared) == 1:
        fitting = [[run for run in found if _place(run) in shared] for found in fitting]
    return [run_named([run.id for run in found], text) for found, text in zip(fitting, texts, strict=True)]


def _fitting(runs: Sequence[Run], text: str) -> list[Run]:
    start = text.partition("#")[0].lower()
    found = [run for run in runs if run.id == start] or [run for run in runs if run.id.startswith(start)]
    return [run for run in found if run.outcome.name == "scored"] or found


def _place(run: Run) -> tuple[str, Cell]:
    return run.submission.task, run.cell


def compare_found(
    found: Sequence[tuple[RunDetail, Dataset]], task: Task, audience: Audience, wanted: Sequence[str] = ()
) -> Comparison:
    """Compare two runs that were looked up for ``audience``. Raises as :func:`compare`, and E101 for another number of runs."""
    check_count(found)
    first, second = (redact_run(one, audience, dataset) for one, dataset in found)
    ours, theirs = (resamples_of(one, audience) for one, _ in found)
    return compare(first, second, task, wanted, unlike(*(one.run for one, _ in found)), (ours, theirs))


def check_count(runs: Sequence[object]) -> None:
    """Raise E101 unless two runs are named."""
    if len(runs) != 2:
        what = f"two runs can be compared, not {len(runs)}"
        raise RunnerError("E101", what, fix="runner compare RUN RUN; runner runs lists them")


def compare(
    first: RunView,
    second: RunView,
    task: Task,
    wanted: Sequence[str] = (),
    notes: Iterable[str] = (),
    resampled: tuple[Resampled, Resampled] = ({}, {}),
) -> Comparison:
    """Compare two runs of ``task``.

    Args:
        first: A run as an audience may see it.
        second: Another one, for the same audience.
        task: Their task.
        wanted: Ids of measures; empty: all that both have.
        notes: What else is to be said.
        resampled: Values of both in resamples (:func:`resamples_of`), for who may see values by topic.

    Raises:
        RunnerError: E101 for runs that cannot be compared, E102 for an unknown measure and for runs without scores, E103
            when the audience may not see their scores by topic.
    """
    both = (first, second)
    _check(both)
    ids, left_out, shown = _measures_of(both, task, wanted)
    made = [_compared(first, second, task, name, resampled) for name in ids]
    made = [*map(partial(_bootstrapped, resampled), _tested(made))]
    if all(one.p is None and not one.pairs for one in made):
        raise RunnerError(
            "E101",
            "the runs have no topic in common on any measure",
            why=" ".join(f"{name}: {why}." for name, why in left_out.items()) or "None has values by topic.",
            fix="runner show RUN says what there is",
        )
    cells = tuple(Cell(view["dataset"], view["scenario"]) for view in (first, second))
    return Comparison(
        first["run"],
        second["run"],
        task.id,
        (cells[0], cells[1]),
        tuple(made),
        left_out,
        shown,
        (*_notes(first, second, made), *notes),
    )


def _measures_of(
    views: Sequence[RunView], task: Task, wanted: Sequence[str]
) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
    """On what runs of a dataset can be compared.

    Args:
        views: The runs.
        task: Their task.
        wanted: Ids of measures; empty: all.

    Returns:
        The ids of the measures that all have, why others are left out, and which are shown first: those of the ranking table.

    Raises:
        RunnerError: E102 for an unknown measure.
    """
    known = set[str]().union(*(view[of] for view in views for of in ("scores", "pending")))
    for name in wanted:
        if name not in known:
            raise no_such("measure", name, sorted(known), of=f"{task.id}", fix="name one by its id")
    table = ranking(task, Cell(views[0]["dataset"], views[0]["scenario"]))
    shown = () if table is None else tuple(dict.fromkeys((*table.rank_by.measures, *table.measures)))
    order = list(dict.fromkeys((*shown[:1], *task.measures, *sorted(known))))
    ids = list(wanted) or [name for name in order if name in known]
    left_out = {name: why for name in ids if (why := why_not(views, name))}
    first = tuple(wanted) or tuple(name for name in shown if name in known)
    return [name for name in ids if name not in left_out], left_out, first


def unlike(*runs: Run) -> Iterator[str]:
    """What makes the scores of runs hard to compare: other truths, or another evaluator."""
    for what, of in (("truths", "truths_digest"), ("evaluator images", "evaluator_image")):
        if len({getattr(run, of) for run in runs}) > 1:
            yield f"The runs were evaluated with different {what}: runner reevaluate makes them comparable."


def _check(views: Sequence[RunView]) -> None:
    """Whether runs can be compared. Raises E101 where one is there twice or they are on different data, E102 for one without scores,
    and E103 where the audience may not see the scores by topic of one."""
    first, second = views
    if (first["run"], first["attempt"]) == (second["run"], second["attempt"]):
        raise RunnerError("E101", "that is one run, not two", fix="name another one")
    for key, what in (("task", "tasks"), ("dataset", "datasets")):
        if first[key] != second[key]:
            raise RunnerError(
                "E101",
                f"the runs are on different {what}",
                why=f"{first['run']}: {first[key]}; {second['run']}: {second[key]}. They have no topics in common.",
                fix="name runs on one dataset, as runner runs lists them",
            )
    for view in views:
        _check_scores(view)


def _check_scores(view: RunView) -> None:
    """The scores of a run by topic have to be there, and open to the audience."""
    if "per-topic scores" in view["hidden"]:
        raise not_for(view.audience, "scores by topic of a run on a blinded dataset")
    if not view["scores"]:
        outcome = view["outcome"]
        waits = "; ".join(dict.fromkeys(view["pending"].values()))
        raise RunnerError(
            "E102",
            f"{view['run']} has no scores",
            why=f"No value yet: {waits}." if waits else f"It is {outcome['name']}. {outcome['says']}".strip(),
            fix="name a run that is scored, as runner runs lists them",
        )


def _compared(
    first: RunView, second: RunView, task: Task, name: str, resampled: tuple[Resampled, Resampled]
) -> Compared:
    defined = task.measures.get(name)
    measure, direction = (defined.measure, defined.direction) if defined else (name, "higher")
    ours, theirs = (view["topic_scores"].get(name, {}) for view in (first, second))
    values = first["scores"][name]["value"], second["scores"][name]["value"]
    # What is resampled is no mean of values by topic.
    means = not any(name in side for side in resampled)
    return on_topics(name, measure, direction, ours, theirs, values, means=means)


def resamples_of(found: RunDetail, audience: Audience) -> Resampled:
    """The values of a run in resamples by measure, as its evaluation has them: for who may see its scores by topic. Of measures that others
    see rounded, they are the organiser's."""
    result = None if found.evaluation is None else found.evaluation.result()
    given = {} if result is None else result["measures"]
    closed = () if audience.kind == "organiser" else found.decimals
    return {
        name: one["resamples"] for name, one in given.items() if one.get("resamples") and name not in closed
    }


def _bootstrapped(resampled: tuple[Resampled, Resampled], one: Compared) -> Compared:
    """A figure that is no mean over topics, with its test where both runs were drawn alike."""
    if one.means:
        return one
    ours, theirs = (side.get(one.id) for side in resampled)
    found = by_resamples(ours, theirs, one.difference)
    return one if found is None else replace(one, p=found[0], interval=found[1], test=found[2])


def _tested(made: Sequence[Compared]) -> Iterator[Compared]:
    """The same with p-values and effects, where they are means over topics."""
    differences = [[pair.difference for pair in one.pairs if one.means] for one in made]
    for one, row, p in zip(made, differences, significance.randomisation(differences), strict=True):
        if row:
            spans = effect_intervals(row)
            one = replace(one, p=p, test=TEST_NAME, interval=spans[0], effect_interval=spans[1])
        yield one


def effect_intervals(
    differences: Sequence[float],
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """95 % intervals of the mean of paired differences, and of it as a multiple of their standard deviation; None where there are
    fewer than two topics, or where a resample in twenty has no deviation.

    Percentile bootstrap over topics (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13), seeded.
    """
    import numpy as np

    data, count = np.asarray(differences, dtype=np.float64), len(differences)
    if count < 2:
        return None, None
    times = max(500, min(RESAMPLES, MOST_DRAWN // count))
    drawn = data[np.random.default_rng(SEED).integers(0, count, (times, count))]
    means, deviations = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
    fine = deviations > TIE
    usual = fine.sum() >= 0.95 * len(fine)
    return _percentiles(means), _percentiles(means[fine] / deviations[fine]) if usual else None


def _percentiles(values: Any) -> tuple[float, float]:
    """The 95 % percentile interval of an array."""
    import numpy as np

    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _notes(first: RunView, second: RunView, made: Sequence[Compared]) -> Iterator[str]:
    scenarios = list(dict.fromkeys(view["scenario"] for view in (first, second)))
    if len(scenarios) > 1:
        yield f"The runs are in different scenarios: {' and '.join(scenarios)}."
    for view in (first, second):
        yield from (f"{view['run']} is stale. {line}" for line in view["stale"])
    topics = max(len(one.pairs) for one in made)
    if 0 < topics < FEW_TOPICS:
        yield f"Only {plural(topics, 'topic')}: differences this few topics can show are large ones."
    for whose, of in (("first", "only_first"), ("second", "only_second")):
        missing = list(dict.fromkeys(topic for one in made for topic in getattr(one, of)))
        if missing:
            yield f"{plural(len(missing), 'topic')} of the {whose} run only, left out: {listed(missing, _MOST_NAMES)}."
