"""The terminal as it listens to a coordinator: chatter, problems, and how far the work is."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runner.cli import output
from runner.model.errors import RunnerError
from runner.model.limits import in_units

if TYPE_CHECKING:
    from runner.execution.pool import RunProgress

EVERY = 60.0  # seconds between two lines of progress where there is no terminal
BAR = 12  # columns
PRINT_SECONDS = 10.0  # between two lines about a transfer where there is no terminal
NOT_DONE = "not done"


class Tally:
    """How far work on ``total`` things is, in one line. ``now`` gives the time in seconds."""

    def __init__(self, total: int, now: Callable[[], float] = time.monotonic) -> None:
        self.total, self._now, self._began = total, now, now()
        self._ended: Counter[str] = Counter()
        self._running: dict[str, str] = {}
        self._lock = threading.Lock()  # what shows it does so from another thread

    def take(self, moment: RunProgress) -> None:
        """Count what has happened."""
        from runner.execution.plan import work_of

        run = moment.run
        if moment.kind == "started":
            self.started(run.id, work_of(run, moment.step))
        elif moment.kind == "done":
            self.ended(run.id, "evaluation failed" if run.outcome.old else run.outcome.name)
        else:
            self.ended(run.id, NOT_DONE if moment.kind == "blocked" else "")

    def started(self, name: str, what: str) -> None:
        """Note that something is being done."""
        with self._lock:
            self._running[name] = what

    def ended(self, name: str, outcome: str) -> None:
        """Note that it is not any more; with an ``outcome`` it is done."""
        with self._lock:
            self._running.pop(name, None)
            if outcome:
                self._ended[outcome] += 1

    def line(self, width: int | None = None) -> str:
        """Done of all, outcomes, time left (at the end: used), what is running; cut at ``width`` columns, with a bar in front."""
        from runner.views.text import cut, duration, sign_of

        with self._lock:
            ended_in_all = self._ended.total()
            done = ended_in_all - self._ended[NOT_DONE]
            used = self._now() - self._began
            parts = [f"{done}/{self.total} done"]
            ended = [(f"{n} {name}", sign_of(name)) for name, n in self._ended.most_common()]
            named = [f"{sign} {said}" if sign and width is not None else said for said, sign in ended]
            parts += [", ".join(named)] if named else []
            if ended_in_all == self.total:
                parts.append(f"took {duration(used)}")
            elif ended_in_all:
                parts.append(f"{duration(used / ended_in_all * (self.total - ended_in_all))} left")
            running = [f"{work} {run}" for run, work in self._running.items()]
        parts += [f"{len(running)} running: {', '.join(running)}"] if running else []
        text = " · ".join(parts)
        if width is None:
            return text
        full = done * BAR // self.total if self.total else BAR
        return cut(f"{'█' * full}{'░' * (BAR - full)} {text}", width)


class Terminal:
    """A :class:`runner.execution.coordinator.Listener` that writes to stderr.

    ``verbose`` names every run that is done, not only those that were not scored. ``every``: seconds between two lines of
    progress where stderr is no terminal.
    """

    def __init__(self, *, verbose: bool = False, every: float = EVERY) -> None:
        self._verbose, self._every = verbose, every

    def say(self, text: str) -> None:
        """Print one line, unless --quiet."""
        output.say(text)

    def problem(self, error: RunnerError) -> None:
        """Print an error, and go on."""
        output.show_error(error)

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[RunProgress], None]]:
        """A function that takes progress events: they move a line on a terminal, and a line a minute elsewhere.

        What was not scored is named in a line of its own, and the end is said in any case; nothing with --quiet.
        """
        with counting(total, self._every) as tally:

            def take(moment: RunProgress) -> None:
                tally.take(moment)
                if text := self._of_run(moment):
                    output.say(text)

            yield take

    def _of_run(self, moment: RunProgress) -> str:
        """What is said of one run now; empty for nothing."""
        from runner.cli.render import became

        if moment.kind == "blocked":
            return f"{moment.run.id}: {NOT_DONE}: {moment.text}"
        outcome = moment.run.outcome
        named = self._verbose or outcome.name != "scored" or outcome.old
        return f"{moment.run.id}: {became(moment.run)}" if moment.kind == "done" and named else ""


@contextmanager
def counting(total: int, every: float = EVERY) -> Iterator[Tally]:
    """A tally that is shown until the block ends, and its last line then; nothing with --quiet or where nothing is to do."""
    tally = Tally(total)
    if total == 0 or output.options.quiet:
        yield tally
        return
    moving = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    with _moving(tally) if moving else _now_and_then(tally, every):
        yield tally
    output.say(tally.line())


@contextmanager
def _moving(tally: Tally) -> Iterator[None]:
    """The line at the bottom of a terminal; what is printed meanwhile goes above it."""
    from rich.live import Live
    from rich.text import Text

    from runner.views.text import OUTCOMES, sign_of

    console = output.stderr_console()

    def shown() -> Text:
        line = Text(tally.line(console.width), no_wrap=True, overflow="crop")
        for name, style in OUTCOMES.items():  # no name of a run has a sign in it
            if sign := sign_of(name):
                line.highlight_regex(f"{sign} [0-9]+ {name}", style)
        return line

    with Live(get_renderable=shown, console=console, transient=True, redirect_stdout=False):
        yield


@contextmanager
def _now_and_then(tally: Tally, seconds: float) -> Iterator[None]:
    """The line every so many seconds, also while a long run gives no news."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(seconds):
            output.say(tally.line())

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@contextmanager
def transfers() -> Iterator[Callable[[str, int, int | None], None]]:
    """A function that takes the name of a file, its bytes that were sent or came, and all of them (None: not known): a bar for each
    file on a terminal, with the time left; elsewhere a line now and then."""
    if not sys.stderr.isatty() or output.options.quiet:
        printed = time.monotonic()

        def line(name: str, done: int, total: int | None) -> None:
            nonlocal printed
            if time.monotonic() - printed >= PRINT_SECONDS:
                printed = time.monotonic()
                output.say(f"{name}: {in_units(done)}" + (f" of {in_units(total)}" if total else ""))

        yield line
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    bars: dict[str, TaskID] = {}
    label = TextColumn("{task.description}", markup=False)
    columns = (label, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.stderr_console(), transient=True) as bar:

        def show(name: str, done: int, total: int | None) -> None:
            if name not in bars:
                bars[name] = bar.add_task(output.printable(name), total=total)
            bar.update(bars[name], completed=done, total=total)

        yield show
