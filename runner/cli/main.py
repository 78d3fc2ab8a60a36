"""Entry point of ``runner``: loads the commands, and is the one place where errors become exit codes."""

from __future__ import annotations

import gc
import os
import signal
import sys

from runner.cli import output
from runner.cli.app import app
from runner.model.errors import INTERRUPTED, RunnerError, disk_error


def load_commands() -> None:
    """Each noun registers its commands by being imported; the help lists them in this order."""
    from runner.cli.commands import (  # noqa: F401
        cluster,
        compare,
        data,
        evaluate,
        labels,
        leaderboard,
        organise,
        review,
        rounds,
        runs,
        serve,
        server,
        submit,
        system,
        task,
        task_check,
        team,
        verify,
    )

    # isort: split
    from runner.cli.commands import demo  # noqa: F401


def main() -> None:
    """Entry point of ``runner``: exit codes per design (0 fine, 1 failed, 2 usage, 3 platform, 4 organiser, 130)."""
    from schemas.interrupts import interrupted

    # What is imported stays: looking through it for garbage again and again takes one part in twenty of a short command.
    gc.set_threshold(100_000, 20, 20)
    # Matrices are small here: more threads of numpy's library take processor time from each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for number in (signal.SIGTERM, signal.SIGINT):  # also where a shell had the second ignored
        signal.signal(number, interrupted)
    load_commands()
    try:
        sys.exit(app(standalone_mode=True) or 0)
    except KeyboardInterrupt:  # before any command began
        sys.exit(INTERRUPTED)
    except Exception as error:
        if output.options.debug:
            raise
        shown = _as_error(error)
        output.show_error(shown)
        sys.exit(shown.exit_code)


def _as_error(error: Exception) -> RunnerError:
    """An error as people are shown it."""
    if isinstance(error, RunnerError):
        return error
    if isinstance(error, OSError):
        return disk_error("a file cannot be read or written", error)
    return RunnerError(
        "E308",
        "this is a defect of runner itself",
        why=f"{type(error).__name__}: {error}",
        fix="run the command again as runner --debug … and report what it prints",
    )
