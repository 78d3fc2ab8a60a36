"""How ``--help`` looks: commands by who they are for, in whole sentences, and examples that can be copied."""

from __future__ import annotations

import copy
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name
from typer.models import CommandFunctionType, CommandInfo

# Whom each command is for; the help lists them in this order.
READERS = {
    "Participants": (
        *("try", "check", "pack", "submit", "data pull", "data get", "data convert-lookup"),
        *("login", "logout", "status", "notices"),
        *("receipt", "receipt get", "receipt verify"),
    ),
    "Participants and organisers": (
        *("leaderboard", "plot", "runs", "show", "compare", "logs", "export"),
        *("task", "task list", "task show", "data", "round list", "round show"),
    ),
    "Organisers": (
        *(
            "register",
            "evaluate",
            "reevaluate",
            "verify",
            "cancel",
            "withdraw",
            "choose",
            "extend",
            "name",
            "publish",
            "unpublish",
            "release",
            "release-log",
            "review",
            "events",
        ),
        *("work", "front", "serve", "site", "site build"),
        *("worker", "cluster", "cluster show", "cluster scheduler", "cluster certificates", "cluster reap"),
        *(
            "team",
            "team add",
            "team list",
            "team people",
            "team link",
            "team waiting",
            "team approve",
            "team reject",
            "team rotate",
            "team close",
            "team reopen",
            "team texts",
        ),
        *("account", "account add", "account list", "account people", "account link"),
        *("account rotate", "account tie", "account untie", "account close", "account erase"),
        *("requests", "requests list", "requests show", "requests approve", "requests reject"),
        *("round", "round freeze", "labels", "labels export", "labels import", "labels agreement"),
        *(
            "task new",
            "task check",
            "task hide",
            "task kit",
            "task estimate",
            "task pause",
            "task resume",
            "data import",
            "data stage",
        ),
    ),
    "This machine": (
        *("setup", "doctor", "demo", "gc"),
        *("store", "store backup", "store restore", "store verify", "store rebuild"),
    ),
}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def grouped(names: list[str], group: str = "") -> Iterator[tuple[str, list[str]]]:
    """Whom the commands of a ``group`` (empty: of the root) are for, and which they are, in the order of :data:`READERS`.

    A command that stands nowhere comes last.
    """
    known = set[str]()
    for reader, commands in READERS.items():
        parts = [full.rpartition(" ") for full in commands]
        found = [name for head, _, name in parts if head == group and name in names]
        known |= {*found}
        if found:
            yield reader, found
    if rest := [name for name in names if name not in known]:
        yield "Others", rest


def _examples(epilog: str | None, formatter: Any) -> None:
    """Write the examples of an epilog (``Examples:  a  |  b``) in a line each; a long one goes on after a backslash."""
    if not epilog:
        return
    formatter.write("\nExamples:\n")
    for example in epilog.removeprefix("Examples:").split("  |  "):
        whole = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), example.strip())
        lines = textwrap.wrap(
            whole,
            formatter.width - 4,
            subsequent_indent="    ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        formatter.write("  " + " \\\n  ".join(lines).replace("\0", " ") + "\n")


class _Sparing:
    """Converts values of a parameter as Typer does, and spares Typer's import of Pydantic where nothing is to be converted."""

    def __init__(self, param: Any) -> None:
        self._made = param.get_runtime_param

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """A text where one is wanted, or the absence of a value, as it is; everything else by Typer."""
        text = param.type_descriptor.annotation is str and isinstance(value, str)
        if param.nargs == 1 and not param.multiple and (value is None or text):
            return value
        return self._made().coerce(value, param=param, ctx=ctx)


def _sparing(params: Sequence[Any]) -> list[Any]:
    for param in params:
        if "get_runtime_param" not in vars(param):
            sparing = _Sparing(param)
            param.get_runtime_param = lambda sparing=sparing: sparing
    return [*params]


class Command(TyperCommand):
    """A command whose examples have a line each."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which are not read by Pydantic where they need not be."""
        return _sparing(super().get_params(ctx))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _examples(self.epilog, formatter)


class Group(TyperGroup):
    """A group of commands that lists them by who they are for."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which are not read by Pydantic where they need not be."""
        return _sparing(super().get_params(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands: nothing is cut."""
        group = "" if ctx.parent is None else str(ctx.info_name)
        names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        longest = max(map(len, names), default=0)
        for reader, found in grouped(names, group):
            with formatter.section(reader):
                rows = [(f"{name:<{longest}}", _sentence(self.commands[name].help or "")) for name in found]
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _examples(self.epilog, formatter)


def _sentence(text: str) -> str:
    """The first sentence of a help text."""
    first = " ".join(text.split("\n\n")[0].split())
    end = first.find(". ")
    return first if end < 0 else first[: end + 1]


def name_of(command: CommandInfo) -> str:
    """What a command is called on the command line."""
    return command.name or get_command_name(getattr(command.callback, "__name__", ""))


class Commands(typer.Typer):
    """A collection of commands with help as this module writes it."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """As Typer's. Only what the first word of the command line names is made ready: all of them take a tenth of a second."""
        return typer.Typer.__call__(self.only(sys.argv[1] if len(sys.argv) > 1 else ""), *args, **options)

    def only(self, name: str) -> Commands:
        """These commands with none but the one or the group of that name; all of them where there is none of that name."""
        commands = [one for one in self.registered_commands if name_of(one) == name]
        groups = [one for one in self.registered_groups if one.name == name]
        if not commands and not groups:
            return self
        found = copy.copy(self)
        found.registered_commands, found.registered_groups = commands, groups
        return found

    def command(
        self, name: str | None = None, **options: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """As Typer's."""
        return super().command(name, **{"cls": Command, **options})
