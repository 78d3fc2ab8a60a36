"""The page about the command lines: those of the runner, the evaluator and the containers beside a software."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.model.sidecars import SIDECARS
from runner.reference.asking import commands_of
from runner.reference.tables import grid, page

_COMMANDS = """\
`runner` is what organisers and teams use; `evaluator` works alone, without tasks and containers. `python -m sidecars.…` are
the servers beside a software. Commands print data to stdout and everything else to stderr. `-h` after any command shows its help. On a terminal tables
fit (what is left out is said), outcomes have a colour and a sign (`✓ ✗ … !`), and `show` draws the scores of topics as bars from the worst to the best. With
`NO_COLOR` or `TERM=dumb` there are neither colours nor signs nor bars; where output is no terminal also every column and a row in a line. [Environment variables](environment.md) | [error codes](errors.md)

## Exit codes

| code | meaning |
|---|---|
| 0 | fine (for `runner evaluate`: every run has a settled outcome, good or bad) |
| 1 | what was asked about failed or is invalid (`runner try`, `runner check`, `runner submit`, `evaluator check`) |
| 2 | usage: wrong arguments, unknown names, or a team's files are wrong |
| 3 | platform: the engine, the disk, an image of ours |
| 4 | organiser's files: a task cannot be used |
| 130 | interrupted, after cleaning up |
"""

# It reads its arguments by itself, since Auto-ARGUE's may be written in two ways. `annotate` has those of `argue`.
_ARGUE = tuple(
    ("argue", *rest)
    for rest in ((), ("score",), ("agreement",), ("correlation",), ("consistency",), ("canaries",))
)
_SIDECARS = """\
The runner starts these in containers beside a software that is a server ([interactive software](interactive.md)). They also start
by hand, so that foreign clients can be pointed at them. More about [the argument index](search.md), [the simulated
user](simulated-user.md) and [the gateway](gateway.md).
"""


def command_lines() -> str:
    """The page about the command lines."""
    parts = [_COMMANDS, *(_command(name, command) for name, command in runner_commands().items())]
    for entry in commands_of("evaluator", "evaluator"):
        if entry["name"] != "evaluator argue":
            parts.append(_program(entry))
            continue
        for words in _ARGUE:
            found = commands_of("evaluator", " ".join(("evaluator", *words)), *words)
            parts += [_program(own) for own in found]
    parts += ["# Containers beside a software\n", _SIDECARS]
    what = ((f"`{name}`", spec.about) for name, spec in SIDECARS.items())
    parts.append(grid("container, what it does", what))
    for name in dict.fromkeys(spec.program for spec in SIDECARS.values()):
        found = commands_of(f"sidecars.{name}", f"python -m sidecars.{name}")
        parts += [_program(entry) for entry in found]
    return page("The command lines", *parts)


def _section(name: str, says: str, words: list[str], group: bool, rows: list[list[str]]) -> str:
    """What is said of one command: what for, how it is called, and a table of its options."""
    usage = " ".join([name, *words, "COMMAND" if group else "[OPTIONS]"])
    options = grid("option, value, meaning", rows) if rows else ""
    return f"## {name}\n\n{' '.join(says.split())}\n\n    {usage}\n\n{options}"


def _program(entry: dict[str, Any]) -> str:
    """A command of another program, as :func:`commands_of` gives it."""
    rows = [
        [
            ", ".join(f"`{name}`" for name in names),
            value,
            (says[:1].upper() + says[1:]) + (" Repeatable." if many and "repeat" not in says else ""),
        ]
        for names, value, says, many in entry["rows"]
        if names
    ]
    says = (entry["help"][:1].upper() + entry["help"][1:]).rstrip().rstrip(".") + "."
    return _section(entry["name"], says, entry["words"], entry["group"], rows)


def runner_commands() -> dict[str, Any]:
    """Every command of ``runner`` by its full name (``runner task new``), as click objects; the root first."""
    import typer.main

    from runner.cli.app import app
    from runner.cli.main import load_commands

    load_commands()
    found: dict[str, Any] = {}

    def walk(name: str, command: Any) -> None:
        found[name] = command
        # In the order of names: the order of registration depends on what was imported first.
        for key, child in sorted(getattr(command, "commands", {}).items()):
            walk(f"{name} {key}", child)

    walk("runner", typer.main.get_command(app))
    return found


_VALUES = {int: "NUMBER", Path: "PATH"}


def _command(name: str, command: Any) -> str:
    """A command of the runner, from click's description of it."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    words = [f"{p.name.upper()}{'...' if p.nargs != 1 else ''}" for p in arguments]
    rows = [[f"`{p.name.upper()}`", "", p.help or ""] for p in arguments]
    rows += [_option(p) for p in command.params if p not in arguments and not getattr(p, "hidden", False)]
    text = _section(name, command.help or "", words, hasattr(command, "commands"), rows)
    if command.epilog:
        examples = command.epilog.removeprefix("Examples:").split("  |  ")
        text = "\n".join([text, "Examples:\n", *(f"    {example.strip()}" for example in examples), ""])
    return text


def _option(option: Any) -> list[str]:
    """The row of one option: its names, its value, and what it means."""
    says = option.help or ""
    if option.required:
        says += " **Required.**"
    if not option.is_flag and isinstance(option.default, str | int) and option.default != "":
        says += f" Default: `{option.default}`."
    if option.envvar:
        says += f" Environment: `{option.envvar}`."
    names = [*sorted(option.opts, key=len, reverse=True), *option.secondary_opts]
    value = "" if option.is_flag else _VALUES.get(option.type_descriptor.annotation, "TEXT")
    return [", ".join(f"`{name}`" for name in names), value, says]
