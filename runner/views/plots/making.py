"""Which plots there are, and how one is made for an audience."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner.model.errors import RunnerError, no_such
from runner.views.plots import critical, run, scores, topics
from runner.views.plots.base import Plot
from runner.views.plots.topics import ByTopic, by_topic
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
    "topics": "the distribution of scores over topics, row by row",
    "critical": "mean ranks with the critical difference (Friedman, Nemenyi)",
    "run": "one run topic by topic, beside the median and the best of the board",
}
_BY_TOPIC: Mapping[str, Callable[[ByTopic], Plot]] = {"topics": topics.plot, "critical": critical.plot}


@dataclass(frozen=True)
class Board:
    """What plots of a leaderboard are made of: the ``table`` is that of the ``audience``."""

    store: Store
    task: Task
    table: LeaderboardTable
    audience: Audience

    def plot(self, kind: str, measure: str | None = None, runs: Sequence[str] = ()) -> Plot:
        """One plot of the leaderboard.

        Args:
            kind: One of :data:`KINDS` but ``run``.
            measure: By its id; None for the one that ranks.
            runs: Only rows with one of these, for what is by topic.

        Raises:
            RunnerError: E101 for another kind, or runs where the plot is not by topic; E102 where there is nothing to show; E103
                where the audience may not see it.
        """
        if kind not in KINDS:
            raise no_such("kind of plot", kind, KINDS, fix=f"use one of {', '.join(KINDS)}", code="E101")
        if kind in _BY_TOPIC:
            return _BY_TOPIC[kind](by_topic(self.store, self.task, self.table, self.audience, measure, runs))
        if runs:
            raise RunnerError("E101", f"{kind} shows all rows", fix="leave --run away")
        return scores.plot(self.table, measure)


def plot_of_run(view: RunView, topics_: Topics | None) -> Plot:
    """The plot of one run. Raises E102 where its audience sees no scores by topic."""
    return run.plot(view, topics_)
