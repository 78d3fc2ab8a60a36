"""Plots on published pages: a drawing that needs no script, what it says, and its data and specification next to it."""

from __future__ import annotations

import math
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from runner.exchange.published import Object, Published, Publisher
from runner.model.errors import RunnerError
from runner.views.pages import render
from runner.views.plots.base import Plot, board_name
from runner.views.plots.drawing import PACKAGES, PICTURES, drawn, for_page
from runner.views.plots.making import Board, plot_of_run

if TYPE_CHECKING:
    from runner.views.redact import RunView
    from runner.views.show.topics import Topics

DRAWING_SECONDS = (
    5.0  # of one publishing: a page waits for no more, and the other plots are drawn at the next
)
_KNOWN = 20_000  # drawn plots whose names are remembered


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


class Drawings:
    """Plots as figures, and as the objects that are published next to them.

    Args:
        to: Where they are published. Those that are there already are not drawn again.
        say: Is told which plots are left out.
        files: Whether each is published as SVG, PDF and PNG, too; then all are drawn again.
        seconds: Seconds of drawing after which a plot is words alone until :meth:`collect` was called.
    """

    def __init__(
        self,
        to: Publisher,
        say: Callable[[str], None] = lambda _: None,
        *,
        files: bool = False,
        seconds: float = math.inf,
    ) -> None:
        self._to, self._say, self._files, self._seconds = to, say, files, seconds
        self._objects: dict[str, Object] = {}
        self._failed: set[str] = set()
        self._left = seconds
        self._waiting = False
        self._installed = all(map(find_spec, PACKAGES))
        self.rounds = 0  # changes when plots wait that can be drawn now
        seen = Published(to.root)
        # The organiser's part has what all teams have.
        for audience in () if files else ("public", "organiser"):
            with suppress(OSError):
                self._objects |= {one.path: one for one in seen.view(audience).below("plots/") if one.page}

    def figure(self, plot: Plot) -> Figure | None:
        """Return a plot as it stands on a page now; None if it cannot be drawn."""
        path = f"plots/{plot.digest()}"
        published = self._objects.get(path)
        if published is None or not self._to.has([published]):
            if not self._installed or path in self._failed:
                return None
            if self._left <= 0:
                self._waiting = True
                html = render("runner.views.plots/awaited.html", caption=plot.caption, says=plot.says)
                return Figure(plot.digest(), plot.kind, plot.title, plot.says, html, drawn=False)
            if (published := self._draw(plot, path)) is None:
                return None
        assert published.page is not None
        html = Published(self._to.root).view("public").read(published.page).decode()
        return Figure(plot.digest(), plot.kind, plot.title, plot.says, html)

    def object(self, of: Figure) -> Object:
        """Return what is published next to a figure that is drawn."""
        return self._objects[f"plots/{of.digest}"]

    def collect(self) -> None:
        """Allow drawing again after a publishing."""
        self._left = self._seconds
        if self._waiting:
            self._waiting = False
            self.rounds += 1

    def _draw(self, plot: Plot, path: str) -> Object | None:
        begin = time.monotonic()
        try:
            svg, vega = for_page(plot)
            files = {form: b64encode(drawn(plot, form)).decode() for form in PICTURES} if self._files else {}
        except Exception as error:  # noqa: BLE001  (whatever Altair or vl-convert raises costs one plot)
            self._failed.add(path)
            self._say(
                f"plot left out: {plot.title} ({plot.kind}): {type(error).__name__}: {str(error)[:300]}"
            )
            return None
        finally:
            self._left -= time.monotonic() - begin
        said = {"title": plot.title, "kind": plot.kind, "says": plot.says}
        html = render(
            "runner.views.plots/figure.html",
            **said,
            caption=plot.caption,
            files=list(files),
            digest=plot.digest(),
            svg=svg,
        )
        data = {**said, "csv": plot.as_csv(), "vega": vega, "files": files}
        self._objects[path] = self._to.object(path, "plot", plot.title, data, html)
        while len(self._objects) > _KNOWN:
            del self._objects[next(iter(self._objects))]
        return self._objects[path]


def figure_of_board(board: Board, drawings: Drawings) -> Figure | None:
    """Return the plot of a board's page as a figure; None if nothing is ranked or it cannot be drawn."""
    try:
        plot = board.plot("scores")
    except RunnerError as error:
        if error.code != "E102":
            raise
        return None
    return drawings.figure(replace(plot, of=board_name(board.table)))


def below_board(task: str, figure: Figure | None) -> str:
    """Return the section below a board: its plot, and a link to those of all boards."""
    if figure is None:
        return ""
    return render("runner.views.plots/below_board.html", task=task, figure=figure.html)


def figure_of_run(view: RunView, topics: Topics | None, drawings: Drawings) -> Figure | None:
    """Return the plot of a run as a figure; None if its audience sees no scores by topic, or nothing can be drawn.

    Without the median of the others: it changes with every run of anybody, and all drawings would be made again each time. The
    table next to it has the median.
    """
    if topics is None:
        return None
    return drawings.figure(replace(plot_of_run(view, replace(topics, medians=None)), of=str(view["run"])))


def plots_page(title: str, boards: Sequence[tuple[str, Figure]], *, parts: bool) -> str:
    """Return the page with the plots of a task's boards; ``parts`` if boards of single cells have others."""
    return render("runner.views.plots/plots.html", title=title, boards=boards, parts=parts)
