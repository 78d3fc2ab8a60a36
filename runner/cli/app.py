"""The root of the ``runner`` command and its options; commands register themselves at it."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from runner.cli import output
from runner.cli.help import Commands, Group
from runner.model.errors import INTERRUPTED


class Root(Group):
    """The root command, which ends well when it is interrupted or when nobody reads on."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Ctrl-C and SIGTERM give 130 after everything was put away; a closed pipe gives 0."""

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


app = Commands(
    name="runner",
    cls=Root,
    help="Run shared tasks: software in a sandbox, hidden truths, a leaderboard people can trust.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Examples:  runner doctor  |  runner submit --team baselines  |  runner evaluate --all  |  runner leaderboard vaswani",
)


def group(name: str, text: str) -> typer.Typer:
    """A group of commands of that name under the root; ``text`` is its help."""
    commands = Commands(cls=Group, help=text, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(commands, name=name)
    return commands


# Groups of more than one module.
tasks = group("task", "Tasks of this project: list, start a new one, check one.")
teams = group("team", "Teams that may sign in at the server, and their tokens.")
accounts = group("account", "Everybody who may sign in at the server: organisers, assistants, teams.")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        output.data(f"proctor-ir {version('proctor-ir')} (schema version 1)")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No chatter on stderr.")] = False,
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor",
            metavar="NAME",
            help="Who gives the command, for the event log; default: RUNNER_ACTOR, else the system's user.",
        ),
    ] = None,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Set how every command talks: with tracebacks or without, and quietly; and in whose name it acts."""
    output.options.debug = output.options.debug or debug
    output.options.quiet = quiet
    output.options.actor = actor
