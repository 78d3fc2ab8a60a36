"""The page about the command lines: those of the runner, the evaluator and the containers beside a software."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.model.sidecars import SIDECARS
from runner.reference.asking import commands_of
from runner.reference.tables import NOTE, cell

_COMMANDS = """\
`runner` is what organisers and teams use; `evaluator` works alone, without tasks and containers. `python -m sidecars.…` are
the servers beside a software. Commands print data to stdout and everything else to stderr. `-h` after any command shows its help. `NO_COLOR`, and output that is not a
terminal, give plain lines. [Environment variables](environment.md) | [error codes](errors.md)

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
    """The page about the two command lines."""
    parts = [NOTE, "# The command lines\n", _COMMANDS]
    for name, command in runner_commands().items():
        parts += [f"## {name}\n", _command(name, command)]
    for entry in commands_of("evaluator", "evaluator"):
        if entry["name"] != "evaluator argue":
            parts += _program(entry)
            continue
        for words in _ARGUE:
            for own in commands_of("evaluator", " ".join(("evaluator", *words)), *words):
                parts += _program(own)
    parts += ["# Containers beside a software\n", _SIDECARS]
    rows = (f"| `{name}` | {cell(spec.about)} |" for name, spec in SIDECARS.items())
    parts.append("\n".join(("| container | what it does |", "|---|---|", *rows, "")))
    for name in dict.fromkeys(spec.program for spec in SIDECARS.values()):
        for entry in commands_of(f"sidecars.{name}", f"python -m sidecars.{name}"):
            parts += _program(entry)
    return "\n".join(parts)


def _program(entry: dict[str, Any]) -> list[str]:
    rows = [
        [
            ", ".join(f"`{name}`" for name in names),
            value,
            (says[:1].upper() + says[1:]) + (" Repeatable." if many and "repeat" not in says else ""),
        ]
        for names, value, says, many in entry["rows"]
        if names
    ]
    usage = " ".join([entry["name"], *entry["words"], "COMMAND" if entry["group"] else "[OPTIONS]"])
    says = " ".join(entry["help"].split())
    return [
        f"## {entry['name']}\n",
        f"{(says[:1].upper() + says[1:]).rstrip('.')}.\n\n    {usage}\n",
        _options(rows),
    ]


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
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    words = [f"{p.name.upper()}{'...' if p.nargs != 1 else ''}" for p in arguments]
    last = ["COMMAND"] if hasattr(command, "commands") else ["[OPTIONS]"]
    rows = [[f"`{p.name.upper()}`", "", p.help or ""] for p in arguments]
    for p in command.params:
        if p.param_type_name != "argument" and not getattr(p, "hidden", False):
            names = [*sorted(p.opts, key=len, reverse=True), *p.secondary_opts]
            value = "" if p.is_flag else _VALUES.get(p.type_descriptor.annotation, "TEXT")
            extra = f" Environment: `{p.envvar}`." if p.envvar else ""
            needed = " **Required.**" if p.required else ""
            default = (
                ""
                if p.is_flag or not isinstance(p.default, str | int) or p.default == ""
                else f" Default: `{p.default}`."
            )
            rows.append(
                [", ".join(f"`{n}`" for n in names), value, f"{p.help or ''}{needed}{default}{extra}"]
            )
    text = [
        " ".join((command.help or "").split()) + "\n",
        f"    {' '.join([name, *words, *last])}\n",
        _options(rows),
    ]
    if command.epilog:
        examples = command.epilog.removeprefix("Examples:").split("  |  ")
        text += ["Examples:\n", *(f"    {example.strip()}" for example in examples), ""]
    return "\n".join(text)


def _options(rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [f"| {name} | {value} | {cell(says)} |" for name, value, says in rows]
    return "\n".join(["| option | value | meaning |", "|---|---|---|", *lines, ""])
