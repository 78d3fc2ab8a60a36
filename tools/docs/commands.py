"""The page about the command lines: the help of every command, as each program prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from runner.model.sidecars import SIDECARS
from tools.docs.asking import help_of
from tools.docs.tables import grid, page

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
# Auto-ARGUE's arguments may be written in two ways, so `evaluator argue` has no list of its commands.
_ARGUE = ("score", "agreement", "correlation", "consistency", "canaries")
_SIDECARS = """\
The runner starts these in containers beside a software that is a server ([interactive software](interactive.md)). They also start
by hand, so that foreign clients can be pointed at them. More about [the argument index](search.md), [the simulated
user](simulated-user.md) and [the gateway](gateway.md).
"""


def command_lines() -> str:
    """Return the page about the command lines."""
    parts, contexts = [_COMMANDS], dict[str, Any]()
    for name, command in runner_commands().items():
        group, _, word = name.rpartition(" ")
        contexts[name] = context = command.make_context(
            word, [], parent=contexts.get(group), resilient_parsing=True, terminal_width=100
        )
        parts.append(_section(name, command.get_help(context)))
    parts += _program("evaluator", "evaluator")
    parts += ["# Containers beside a software\n", _SIDECARS]
    what = ((f"`{name}`", spec.about) for name, spec in SIDECARS.items())
    parts.append(grid("container, what it does", what))
    for name in dict.fromkeys(spec.program for spec in SIDECARS.values()):
        parts += _program(f"python -m sidecars.{name}", f"sidecars.{name}")
    return page("The command lines", *parts)


def _section(name: str, text: str) -> str:
    """Return a heading with the help text of a command below it."""
    return f"## {name}\n\n```text\n{text.strip()}\n```\n"


def _program(name: str, module: str, *words: str) -> Iterator[str]:
    """Yield the sections of a module's command, and of the commands below it."""
    text = help_of(module, *words)
    yield _section(name, text)
    below = _ARGUE if words == ("argue",) else re.findall(r"^    ([a-z][\w-]*)(?: |$)", text, re.MULTILINE)
    for word in below:
        yield from _program(f"{name} {word}", module, *words, word)


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
