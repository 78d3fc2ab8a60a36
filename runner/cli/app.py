"""The ``runner`` command: its root, its options, and the one place where errors become exit codes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from runner.cli import output


class Root(TyperGroup):
    """The root command, which ends well when it is interrupted or when nobody reads on."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Ctrl-C and SIGTERM give 130 after everything was put away; a closed pipe gives 0."""
        from runner.model.errors import INTERRUPTED

        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            output.say("interrupted; nothing is half-done, start the same command again to go on")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(0) from None


app = typer.Typer(
    name="runner",
    cls=Root,
    help="Run shared tasks: software in a sealed room, hidden truths, a leaderboard people can trust.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Examples:  runner doctor  |  runner submit --team baselines  |  runner evaluate --all  |  runner leaderboard vaswani",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        output.data(f"proctor-ir {version('proctor-ir')} (schema version 1)")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No chatter on stderr.")] = False,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    output.manners.debug = output.manners.debug or debug
    output.manners.quiet = quiet


def _load_commands() -> None:
    """Each noun registers its commands by being imported."""
    from runner.cli import (  # noqa: F401  # noqa: F401
        data,
        evaluate,
        labels,
        leaderboard,
        organise,
        reevaluate,
        rounds,
        runs,
        submit,
        system,
        task,
    )


def main() -> None:
    """Entry point of ``runner``: exit codes per design (0 fine, 1 failed, 2 usage, 3 platform, 4 organiser, 130)."""
    from runner.model.errors import INTERRUPTED, PLATFORM, RunnerError
    from schemas.interrupts import heard

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    heard()
    _load_commands()
    try:
        sys.exit(app(standalone_mode=True) or 0)
    except RunnerError as error:
        if output.manners.debug:
            raise
        output.show_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # before any command began
        sys.exit(INTERRUPTED)
    except OSError as error:
        if output.manners.debug:
            raise
        name = f"{error.filename}: " if error.filename else ""
        output.show_error(
            RunnerError(
                "E306",
                "a file cannot be read or written",
                why=f"{name}{error.strerror or error}.",
                fix="look at the disk's space and the folder's permissions",
            )
        )
        sys.exit(PLATFORM)
    except Exception as error:
        if output.manners.debug:
            raise
        output.show_error(
            RunnerError(
                "E308",
                "this is a defect of runner itself",
                why=f"{type(error).__name__}: {error}",
                fix="run the command again as runner --debug … and report what it prints",
            )
        )
        sys.exit(PLATFORM)
