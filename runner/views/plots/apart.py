"""Plots drawn in a process of its own: what draws (V8) takes long, has threads and may die, and harms nobody there.

``python -m runner.views.plots.apart`` reads a plot a line and writes a drawing a line, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from typing import Any

from runner.views.plots import agreement, costs, critical, dates, heatmap, run, scores, topics
from runner.views.plots.base import Plot
from runner.views.plots.drawing import for_page

LONGEST = 60.0  # seconds for one plot, with the start of the process
EACH = 200  # plots that a process draws: then its memory is given back
_PROCESSOR = (
    1200  # seconds of the processor that a process may take: it ends also where whoever started it was killed
)
_CHARTS = {
    one.__name__: one.chart for one in (agreement, costs, critical, dates, heatmap, run, scores, topics)
}
_COMMAND = (sys.executable, "-m", "runner.views.plots.apart")


class Undrawn(Exception):
    """A plot was not drawn, and why."""


class Apart:
    """A process that draws, started when it is first needed. Used by one thread; :meth:`close` by any.

    Args:
        command: What is started.
        longest: Seconds after which a plot is given up, and the process is killed.
    """

    def __init__(self, command: tuple[str, ...] = _COMMAND, longest: float = LONGEST) -> None:
        self._command, self._longest = command, longest
        self._process: subprocess.Popen[str] | None = None
        self._drawn = 0
        self._closed = False

    def draw(self, plot: Plot) -> tuple[str, dict[str, Any]]:
        """What :func:`runner.views.plots.drawing.for_page` gives for a plot. Raises Undrawn; the next plot has a new process."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self._longest, process.kill)
        timer.daemon = True
        timer.start()
        try:
            process.stdin.write(_asked(plot) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        except (OSError, ValueError) as error:
            self.rest()
            raise Undrawn(f"the process that draws ended, or took longer than {self._longest:g} s") from error
        finally:
            timer.cancel()
        self._drawn += 1
        if self._drawn >= EACH:
            self.rest()
        if "failed" in answer:
            raise Undrawn(answer["failed"])
        return answer["svg"], answer["vega"]

    def rest(self) -> None:
        """End the process; the next plot starts another one."""
        process, self._process, self._drawn = self._process, None, 0
        if process is not None:
            process.kill()
            process.communicate()

    def close(self) -> None:
        """End the process for good; a plot that is being drawn is given up."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,  # Ctrl-C is for who started it, who ends it
                )
            except OSError as error:
                raise Undrawn(f"no process that draws could be started: {error.strerror}") from error
        if self._closed:
            self._process.kill()
        return self._process


def _asked(plot: Plot) -> str:
    said = {key: getattr(plot, key) for key in ("kind", "title", "says", "columns", "rows", "facts")}
    return json.dumps({**said, "chart": plot.chart.__module__})


def _answered(line: str) -> str:
    asked = json.loads(line)
    chart = _CHARTS[asked.pop("chart")]
    rows, columns = tuple(asked.pop("rows")), tuple(asked.pop("columns"))
    try:
        svg, vega = for_page(Plot(**asked, rows=rows, columns=columns, chart=chart))
    except Exception as error:  # noqa: BLE001  (the border of a process)
        return json.dumps({"failed": f"{type(error).__name__}: {str(error)[:300]}"})
    return json.dumps({"svg": svg, "vega": vega})


def main() -> None:
    """Draw what is asked for, until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR, _PROCESSOR))
    for line in sys.stdin:
        answers.write(_answered(line) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
