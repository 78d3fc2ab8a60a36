"""Mean ranks over topics with the critical difference: which rows of a leaderboard differ significantly.

Friedman's test, and Nemenyi's for all pairs, as in J. Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets,
JMLR 7, 2006, section 3.2.2: two rows differ at the level alpha if their mean ranks differ by at least
CD = q_alpha · sqrt(k (k + 1) / (6 N)), with k rows, N topics, and q_alpha the studentized range for infinitely many degrees
of freedom divided by sqrt(2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.views.leaderboard.significance import ALPHA
from runner.views.plots import style
from runner.views.plots.base import Plot, nothing, of_board
from runner.views.plots.topics import ByTopic
from runner.views.text import listed, plural

COLUMNS = ("row", "mean_rank", "low", "high", "groups")
LEAST = 3  # rows that Friedman's test needs
_NAMED = 3


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of rows over ``topics`` topics, 1 the best; ``p`` of Friedman's test, and the critical difference."""

    means: Mapping[str, float]
    topics: int
    p: float
    difference: float

    @property
    def shown(self) -> bool:
        """Whether Friedman's test shows that rows differ at all."""
        return self.p <= ALPHA

    def groups(self) -> list[list[str]]:
        """The largest groups of rows of which no two differ by the critical difference, the best first; one of all where Friedman's test
        shows no difference, as pairs are looked at only after it (Demšar 2006)."""
        order = sorted(self.means, key=lambda row: (self.means[row], row))
        if not self.shown:
            return [order]
        found: list[list[str]] = []
        for at, row in enumerate(order):
            group = [one for one in order[at:] if self.means[one] - self.means[row] < self.difference]
            if not found or group[-1] != found[-1][-1]:
                found.append(group)
        return found


def critical_difference(rows: int, topics: int, alpha: float = ALPHA) -> float:
    """Nemenyi's critical difference of mean ranks (Demšar 2006)."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, rows, math.inf)) / math.sqrt(2)
    return q * math.sqrt(rows * (rows + 1) / (6 * topics))


def ranked(scores: Mapping[str, Mapping[str, float]], *, higher: bool) -> Ranks:
    """Mean ranks over the topics that all rows have; equal scores share the mean of their ranks.

    Raises:
        RunnerError: E102 for fewer than three rows, or fewer than two topics that all have.
    """
    from scipy.stats import friedmanchisquare, rankdata

    topics = sorted(set.intersection(*({*one} for one in scores.values()))) if scores else []
    if len(scores) < LEAST or len(topics) < 2:
        what = f"{plural(len(scores), 'row')} with {plural(len(topics), 'topic')} in common"
        raise nothing(what, f"Friedman's test needs {LEAST} rows and 2 topics.")
    sign = -1 if higher else 1
    table = [[sign * one[topic] for one in scores.values()] for topic in topics]
    ranks = [rankdata(row) for row in table]
    means = [math.fsum(column) / len(topics) for column in zip(*ranks, strict=True)]
    # Where all rows are equal on every topic there is nothing to test.
    equal = all(len({*row}) == 1 for row in table)
    p = 1.0 if equal else float(friedmanchisquare(*zip(*table, strict=True)).pvalue)
    return Ranks(
        dict(zip(scores, means, strict=True)), len(topics), p, critical_difference(len(scores), len(topics))
    )


def plot(scores: ByTopic) -> Plot:
    """The plot of mean ranks. Raises E102 for fewer than three rows, or fewer than two topics that all have."""
    column = scores.measure
    found = ranked(scores.scores, higher=column.direction == "higher")
    groups = found.groups()
    half = found.difference / 2
    order = sorted(found.means, key=lambda row: (found.means[row], row))
    made: list[dict[str, Any]] = [
        {
            **{"row": row, "mean_rank": found.means[row]},
            **{"low": found.means[row] - half, "high": found.means[row] + half},
            "groups": _letters([n for n, group in enumerate(groups) if row in group]),
        }
        for row in order
    ]
    top = groups[0]
    worse = "All others are significantly worse."
    if not found.shown:
        worse = "Friedman's test shows no difference between the rows."
    elif len(top) > 1:
        worse = f"Not significantly worse {'is' if len(top) == 2 else 'are'} {listed(top[1:], _NAMED)}."
    says = (
        f"By {column.measure} over {plural(found.topics, 'topic')}, {order[0]} has the best mean rank of "
        f"{plural(len(order), 'row')}, {found.means[order[0]]:.2f}, and the critical difference is {found.difference:.2f} "
        f"(Friedman's test p {_p(found.p)}, Nemenyi, alpha {ALPHA:g}). {worse}"
    )
    facts = {
        "caption": f"critical difference {found.difference:.2f} (Nemenyi, alpha {ALPHA:g}, {plural(found.topics, 'topic')}); "
        f"Friedman's test p {_p(found.p)}",
        "axis": f"mean rank by {column.measure}, 1 the best; "
        + ("rows whose bars do not touch differ" if found.shown else "no difference is shown"),
    }
    return Plot(
        "critical",
        of_board(scores.table, f"mean ranks by {column.measure}"),
        says,
        COLUMNS,
        tuple(made),
        chart,
        facts,
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _letters(numbers: Sequence[int]) -> str:
    """The letters of groups; from the 27th on their numbers."""
    return " ".join(chr(ord("a") + n) if n < 26 else str(n + 1) for n in numbers)


def chart(of: Plot) -> Any:
    """The chart: mean ranks with half a critical difference to each side, and the letters of the groups beside."""
    import altair as alt

    names = of.names("row")
    caption = alt.TitleParams(
        of.facts["caption"], anchor="start", fontSize=12, fontWeight="normal", color=style.INK
    )
    base = alt.Chart(
        {"values": [dict(row) for row in of.rows]},
        width=style.WIDTH,
        height=alt.Step(style.step(len(names))),
        title=caption,
    )
    y = style.rows_of(names)
    scale = alt.Scale(zero=False)
    bars = base.mark_rule(strokeWidth=2, color=style.MUTED).encode(
        x=alt.X(field="low", type="quantitative", title=of.facts["axis"], scale=scale),
        x2=alt.X2(field="high"),
        y=y,
    )
    tips = style.tips(row="row", mean_rank="mean rank:f", groups="groups")
    points = base.mark_point(filled=True, size=style.POINT, opacity=1, color=style.BLUE).encode(
        x=alt.X(field="mean_rank", type="quantitative", title=of.facts["axis"], scale=scale),
        y=y,
        tooltip=tips,
    )
    letters = base.mark_text(align="left", dx=6).encode(
        x=alt.X(field="high", type="quantitative", scale=scale),
        y=y,
        text=alt.Text(field="groups", type="nominal"),
    )
    return style.finished(alt.layer(bars, points, letters))
