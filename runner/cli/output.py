"""How the command line speaks: data to stdout, chatter to stderr, one shape for errors, tables and JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from rich.console import Console

    from runner.doctor.checks import Check

SHOWN_PROBLEMS = 50


@dataclass
class OutputOptions:
    """What the root options asked for."""

    debug: bool = False
    quiet: bool = False
    actor: str | None = None


options = OutputOptions()


def printable(text: str) -> str:
    """``text`` without control characters that a terminal would obey; line breaks and tabs stay."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def figure(value: float | None, digits: int = 4, *, none: str = "–") -> str:
    """A value as people read it, with so many digits behind the point; ``none`` where there is no value."""
    return none if value is None else f"{value:.{digits}f}"


def plain() -> bool:
    """Whether stdout gets plain lines: not a terminal, NO_COLOR, or a dumb terminal."""
    return not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def data(text: str) -> None:
    """Print a result to stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def as_json(value: Any) -> None:
    """Print a result to stdout as one JSON value, which may hold any text and is still safe on a terminal."""
    from schemas import harmless

    data(harmless(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)))


def finish(worst: int, value: Any) -> None:
    """End a command that went on after errors: print its result (None: nothing). Raises typer.Exit unless ``worst`` is 0."""
    import typer

    if value is not None:
        as_json(value)
    if worst:
        raise typer.Exit(worst)


def say(text: str) -> None:
    """Print chatter to stderr, unless --quiet."""
    if not options.quiet:
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()


def stderr_console() -> Console:
    """A rich console on stderr, for progress bars."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table to stdout: aligned columns, values escaped; a column ``outcome`` has colours on a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    wide = Console(highlight=False, no_color=plain(), width=None if not plain() else 400)
    grid = Table(box=box.SIMPLE_HEAD if not plain() else None, pad_edge=False, show_edge=False)
    for name in columns:
        grid.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        cells = zip(columns, map(str, row), strict=True)
        grid.add_row(*(Text(printable(cell), _style(name, cell)) for name, cell in cells))
    if plain():
        with wide.capture() as captured:
            wide.print(grid)
        data("\n".join(line.rstrip() for line in captured.get().splitlines()))
    else:
        wide.print(grid)


def _style(column: str, cell: str) -> str:
    from runner.views.text import OUTCOMES

    return OUTCOMES.get(cell, "") if column == "outcome" else ""


def facts(pairs: Mapping[str, str]) -> None:
    """Print ``name: value`` lines to stdout, aligned."""
    width = max((len(k) for k in pairs), default=0)
    data("\n".join(f"{k + ':':<{width + 2}}{printable(v)}" for k, v in pairs.items() if v))


def show_error(error: RunnerError) -> None:
    """Print an error to stderr: what, why, fix, and each problem on its own line."""
    lines = [f"{error.code}  {error.what}"]
    if error.why:
        lines.append(f"      {error.why}")
    shown = error.problems[:SHOWN_PROBLEMS]
    lines += [f"  {problem}" for problem in shown]
    if len(error.problems) > len(shown):
        lines.append(f"  … and {len(error.problems) - len(shown)} more")
    fix = f"Fix: {error.fix}     " if error.fix else ""
    lines.append(f"      {fix}docs/reference/errors.md#{error.code.lower()}")
    sys.stderr.write(printable("\n".join(lines)) + "\n")


def checks(found: Sequence[Check]) -> None:
    """Print a report, a line each: PASS, CAUTION or FAIL, what was looked at, what was seen; below it what corrects it."""
    width = max((len(check.name) for check in found), default=0)
    for check in found:
        data(f"{check.status:<8}{check.name:<{width + 2}}{printable(check.detail)}")
        if check.fix:
            data(f"{'':<8}{'':<{width + 2}}fix: {printable(check.fix)}")
