"""Which plots there are, which of them a task's page shows, and how one is made for an audience."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner.model.errors import RunnerError, no_such
from runner.views.plots import agreement, costs, critical, dates, heatmap, run, scores, topics
from runner.views.plots.base import Plot
from runner.views.plots.by_topic import ByTopic, by_topic
from runner.views.show.topics import Topics

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store
    from runner.views.audience import Audience
    from runner.views.leaderboard.rows import LeaderboardTable
    from runner.views.redact import RunView

# What each kind of plot shows.
KINDS: Mapping[str, str] = {
    "scores": "dots and whiskers: the mean of each row with its 95 % interval",
    "dates": "score over submission date, and the best until then",
    "time": "score against run time",
    "memory": "score against peak memory",
    "measures": "one measure against another, with Kendall's tau",
    "topics": "the distribution of scores over topics, row by row",
    "heatmap": "topics × rows",
    "critical": "mean ranks with the critical difference (Friedman, Nemenyi)",
    "run": "one run topic by topic, beside the median and the best of the board",
}
_BY_TOPIC: Mapping[str, Callable[[ByTopic], Plot]] = {
    "topics": topics.plot,
    "heatmap": heatmap.plot,
    "critical": critical.plot,
}
ON_BOARD = ("scores", "dates")  # what a board's page shows; all others stand on the page of the task's plots


@dataclass(frozen=True)
class Board:
    """What plots of a leaderboard are made of: the ``table`` is that of the ``audience``."""

    store: Store
    task: Task
    table: LeaderboardTable
    audience: Audience

    def plot(self, kind: str, measures: Sequence[str] = (), runs: Sequence[str] = ()) -> Plot:
        """One plot of the leaderboard.

        Args:
            kind: One of :data:`KINDS` but ``run``.
            measures: By their ids: none for the one that ranks; two for ``measures``.
            runs: Only rows with one of these, for what is by topic.

        Raises:
            RunnerError: E101 for another kind, too many measures, or runs where the plot is not by topic; E102 where there is
                nothing to show; E103 where the audience may not see it.
        """
        if kind not in KINDS:
            raise no_such("kind of plot", kind, KINDS, fix=f"use one of {', '.join(KINDS)}", code="E101")
        most = 2 if kind == "measures" else 1
        if len(measures) > most:
            raise RunnerError(
                "E101", f"{kind} shows {most} measure{'s' if most > 1 else ''}", fix="name fewer"
            )
        if runs and kind not in _BY_TOPIC:
            raise RunnerError("E101", f"{kind} shows all rows", fix="leave --run away")
        first, second = (*measures, None, None)[:2]
        if kind in _BY_TOPIC:
            found = by_topic(self.store, self.task, self.table, self.audience, first, runs)
            return _BY_TOPIC[kind](found)
        if kind == "measures":
            return agreement.plot(self.table, first, second)
        if kind == "dates":
            return dates.plot(self.table, first)
        if kind in ("time", "memory"):
            return costs.plot(self.table, first, costs.TIME if kind == "time" else costs.MEMORY)
        return scores.plot(self.table, first)

    def fitting(self, kinds: Sequence[str]) -> Iterator[Plot]:
        """The plots of these kinds that there are for the audience."""
        for kind in kinds:
            try:
                yield self.plot(kind)
            except RunnerError as error:
                if error.code not in ("E101", "E102", "E103"):
                    raise


def kinds_for(task: Task) -> tuple[str, ...]:
    """The plots that the page of a task's plots shows: those of boards, which everybody may see; single topics nobody but the
    organiser has of all rows. What the task has no use for is left out."""
    left_out = {"run", *_BY_TOPIC, *(() if len(task.measures) > 1 else ("measures",))}
    if task.workflow == "upload":
        left_out |= {"time", "memory"}
    return tuple(kind for kind in KINDS if kind not in left_out)


def plot_of_run(view: RunView, topics_: Topics | None) -> Plot:
    """The plot of one run. Raises E102 where its audience sees no scores by topic."""
    return run.plot(view, topics_)
