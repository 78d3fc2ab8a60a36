"""The plots of published pages: each is drawn once, beside the clerk, and what is published is the memory of what was drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from runner.exchange.published import Object, Published, Publisher
from runner.views.plots.apart import Apart, Undrawn
from runner.views.plots.base import Plot
from runner.views.plots.figure import Figure, awaited, data_of, drawn_here, figure, pictures, piece

_WAITING = 250  # plots that wait to be drawn; the others do at the next publishing
_KNOWN = 20_000  # drawn plots whose names are remembered
_TRIES = 3  # a plot that was not drawn so often is left out
_IDLE = 30.0  # seconds without a plot until the process that draws is ended


class Drawings:
    """Plots as figures, and as the objects that are published beside them.

    Args:
        to: Where they are published. Those that are there already are not drawn again.
        apart: The process that draws: a plot that was not drawn yet is words alone until :meth:`collect` has it. None: this
            process draws, and nothing waits.
        say: Is told which plots are left out.
        files: Whether each is published as SVG, PDF and PNG, too; then nothing waits, and nothing is taken from before.
    """

    def __init__(
        self,
        to: Publisher,
        apart: Apart | None = None,
        say: Callable[[str], None] = lambda _: None,
        *,
        files: bool = False,
    ) -> None:
        self._to, self._apart, self._say, self._files = to, apart, say, files
        self._threads = ThreadPoolExecutor(1, "plots")
        self._known: dict[str, Object] = {}
        self._asked: dict[str, tuple[Plot, Future[tuple[str, dict[str, Any]]]]] = {}
        self._failed: dict[str, int] = {}
        self._last = time.monotonic()
        self._can = apart is None or all(map(find_spec, ("altair", "vl_convert")))
        self.drawn = 0  # changes when all that was asked for has been drawn
        seen = Published(to.root)
        for audience in (
            () if files else ("public", "organiser")
        ):  # the organiser's part has what all teams have
            with suppress(OSError):
                self._known |= {one.path: one for one in seen.view(audience).below("plots/") if one.page}

    def figure(self, plot: Plot) -> Figure | None:
        """A plot as it stands on a page now; None where it cannot be drawn."""
        path = _path(plot)
        known = self._known.get(path)
        if known is not None and self._to.has([known]):
            assert known.page is not None
            return figure(plot, Published(self._to.root).view("public").read(known.page).decode())
        if self._apart is None:
            if (made := drawn_here(plot)) is None:
                return None
            self._keep(plot, *made)
            return self.figure(plot)
        if not self._can or self._failed.get(path, 0) >= _TRIES:
            return None
        if path not in self._asked and len(self._asked) < _WAITING:
            self._asked[path] = plot, self._threads.submit(self._apart.draw, plot)
        return awaited(plot)

    def object(self, of: Figure) -> Object:
        """What is published beside a figure that is drawn."""
        return self._known[f"plots/{of.digest}"]

    def collect(self) -> None:
        """Keep what has been drawn: the next publishing has it."""
        done = [path for path, (_, future) in self._asked.items() if future.done()]
        for path in done:
            plot, future = self._asked.pop(path)
            try:
                self._keep(plot, *future.result())
            except Undrawn as error:
                self._failed[path] = self._failed.get(path, 0) + 1
                if self._failed[path] == _TRIES:
                    self._say(f"plot left out: {plot.title} ({plot.kind}): {error}")
        if done:
            self._last = time.monotonic()
            self.drawn += not self._asked
        elif self._apart and not self._asked and time.monotonic() - self._last > _IDLE:
            self._apart.rest()

    def close(self) -> None:
        """End what is being drawn."""
        if self._apart is not None:
            self._apart.close()
        self._threads.shutdown(cancel_futures=True)
        if self._apart is not None:
            self._apart.rest()

    def _keep(self, plot: Plot, svg: str, vega: dict[str, Any]) -> None:
        path, files = _path(plot), pictures(plot) if self._files else {}
        data, html = data_of(plot, vega, files), piece(plot, svg, list(files))
        self._known[path] = self._to.object(path, "plot", plot.title, data, html)
        while len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]


def _path(plot: Plot) -> str:
    return f"plots/{plot.digest()}"
