"""The terminal as it listens to a coordinator: chatter, problems, and a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runner.cli import output
from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from runner.execution.pool import RunProgress


class Terminal:
    """A :class:`runner.execution.coordinator.Listener` that writes to stderr."""

    def say(self, text: str) -> None:
        """Print one line, unless --quiet."""
        output.say(text)

    def problem(self, error: RunnerError) -> None:
        """Print an error, and go on."""
        output.show_error(error)

    @contextmanager
    def progress(self, total: int) -> Iterator[Any]:
        """A function that shows progress events: a bar with what is running on a terminal, plain lines elsewhere."""
        import sys

        from runner.cli.render import became

        if not sys.stderr.isatty() or output.options.quiet or total == 0:

            def line(moment: RunProgress) -> None:
                if moment.kind == "done":
                    output.say(f"{moment.run.id}: {became(moment.run)}")
                elif moment.kind == "blocked":
                    output.say(f"{moment.run.id}: not done: {moment.text}")

            yield line
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        running: dict[str, str] = {}
        with Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"),
            console=output.stderr_console(), transient=True,
        ) as bar:  # fmt: skip
            job = bar.add_task("runs", total=total, now="")

            def show(moment: RunProgress) -> None:
                if moment.kind == "started":
                    running[moment.run.id] = moment.step
                else:
                    running.pop(moment.run.id, None)
                if moment.kind in ("done", "blocked"):
                    bar.advance(job)
                    bar.console.print(f"{moment.run.id}: {moment.text or became(moment.run)}", markup=False)
                bar.update(job, now=", ".join(f"{step} {run}" for run, step in running.items()))

            yield show
