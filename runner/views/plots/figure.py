"""A plot on a page: a drawing that stands there without a script, what it says, and its data and specification beside it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from runner.model.errors import RunnerError
from runner.views.pages import render
from runner.views.plots.base import Plot, board_name
from runner.views.plots.drawing import PICTURES, drawn, for_page
from runner.views.plots.making import ON_BOARD, Board, kinds_for, plot_of_run

if TYPE_CHECKING:
    from runner.views.redact import RunView
    from runner.views.show.topics import Topics

_KEPT = 64  # drawings


@dataclass(frozen=True)
class Figure:
    """What a page shows of a plot, which is found by its ``digest``; not ``drawn`` yet, it is words alone."""

    digest: str
    kind: str
    title: str
    says: str
    html: str
    drawn: bool = True

    def brief(self) -> dict[str, str]:
        """For a list: what it is, what it says, and by what it is found."""
        return {"kind": self.kind, "title": self.title, "says": self.says, "digest": self.digest}


Draw = Callable[[Plot], Figure | None]  # a plot as a figure; None where it cannot be drawn


def figure(plot: Plot, html: str) -> Figure:
    """A plot as a figure, by the piece of a page that :func:`piece` made."""
    return Figure(plot.digest(), plot.kind, plot.title, plot.says, html)


def piece(plot: Plot, svg: str, files: Sequence[str] = ()) -> str:
    """The piece of a page for a plot and its drawing, with links to ``files`` of it for papers."""
    said = {
        "title": plot.title,
        "caption": plot.caption,
        "kind": plot.kind,
        "says": plot.says,
        "files": files,
    }
    return render("runner.views.plots/figure.html", digest=plot.digest(), svg=svg, **said)


def awaited(plot: Plot) -> Figure:
    """A plot that is being drawn: what it says."""
    html = render("runner.views.plots/awaited.html", caption=plot.caption, says=plot.says)
    return replace(figure(plot, html), drawn=False)


def data_of(plot: Plot, vega: dict[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """What is published beside a plot: its words, its data, its Vega specification and ``files`` for papers."""
    said = {"title": plot.title, "kind": plot.kind, "says": plot.says}
    return {**said, "csv": plot.as_csv(), "vega": vega, "files": dict(files)}


class _Known:
    """A plot by its digest: equal ones are drawn once."""

    def __init__(self, plot: Plot) -> None:
        self.plot, self.digest = plot, plot.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def drawn_here(plot: Plot) -> tuple[str, dict[str, Any]] | None:
    """A plot drawn by this process: SVG and Vega specification; None where the packages that draw are not installed."""
    return _drawn(_Known(plot))


@lru_cache(maxsize=_KEPT)
def _drawn(known: _Known) -> tuple[str, dict[str, Any]] | None:
    try:
        return for_page(known.plot)
    except RunnerError as error:
        if error.code != "E101":
            raise
        return None


def pictures(plot: Plot) -> dict[str, str]:
    """A plot as SVG, PDF and PNG (in base64), for a site that nobody asks ``runner plot`` beside."""
    return _pictures(_Known(plot))


@lru_cache(maxsize=_KEPT)
def _pictures(known: _Known) -> dict[str, str]:
    return {form: b64encode(drawn(known.plot, form)).decode() for form in PICTURES}


def figures(board: Board, every: bool, draw: Draw) -> list[Figure]:
    """The plots of a board that its audience may see, as figures: ``every`` one that its task has a use for, or those of its page."""
    kinds = kinds_for(board.task) if every else ON_BOARD
    plots = (replace(plot, of=board_name(board.table)) for plot in board.fitting(kinds))
    return [made for plot in plots if (made := draw(plot)) is not None]


def below_board(task: str, drawn: Sequence[Figure]) -> str:
    """What stands below a board: the plots of its page, and where the others are; empty where there are none."""
    shown = [one.html for one in drawn if one.kind in ON_BOARD]
    return render("runner.views.plots/below_board.html", task=task, figures=shown) if shown else ""


def figure_of_run(view: RunView, topics: Topics | None, draw: Draw) -> Figure | None:
    """The plot of a run as a figure; None where its audience sees no scores by topic, or nothing can be drawn.

    Without the median of the others: it changes with every run of anybody, and all drawings would be made again each time. The
    table beside has it.
    """
    if topics is None:
        return None
    return draw(replace(plot_of_run(view, replace(topics, medians=None)), of=str(view["run"])))
