"""Entry point of ``runner``: loads the commands, and is the one place where errors become exit codes."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

from runner.cli import output
from runner.cli.app import app
from runner.model.errors import INTERRUPTED, RunnerError, disk_error

# The modules of the commands, in the order in which the help lists them, with the first words that each of them registers.
COMMANDS = {
    "cluster": ("worker", "cluster"),
    "compare": ("compare",),
    "data": ("data",),
    "evaluate": ("evaluate", "cancel", "check", "reevaluate"),
    "labels": ("labels",),
    "leaderboard": ("leaderboard", "plot"),
    "organise": ("publish", "unpublish", "release", "extend", "name", "choose", "team", "account"),
    "review": ("events", "review", "release-log"),
    "rounds": ("round",),
    "runs": ("runs", "show", "logs", "export"),
    "serve": ("work", "front", "serve", "requests", "site"),
    "server": ("login", "logout", "status", "notices"),
    "submit": ("pack", "register", "submit", "try", "withdraw"),
    "system": ("setup", "doctor", "store", "gc"),
    "task": ("task",),
    "task_check": ("task",),
    "team": ("team", "account"),
    "verify": ("verify", "receipt"),
    "demo": ("demo",),
}


def load_commands(word: str = "") -> None:
    """Have the commands registered, by importing their modules: those of the first word of a command line, or all where none has that word."""
    named = [module for module, words in COMMANDS.items() if word in words]
    for module in named or COMMANDS:
        import_module(f"runner.cli.commands.{module}")


def main() -> None:
    """Entry point of ``runner``: exit codes per design (0 fine, 1 failed, 2 usage, 3 platform, 4 organiser, 130)."""
    from schemas.interrupts import interrupted

    # Matrices are small here: more threads of numpy's library take processor time from each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for number in (signal.SIGTERM, signal.SIGINT):  # also where a shell had the second ignored
        signal.signal(number, interrupted)
    load_commands(sys.argv[1] if len(sys.argv) > 1 else "")
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
