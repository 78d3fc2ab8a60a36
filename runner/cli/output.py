"""How the command line speaks: data to stdout, chatter to stderr, one shape for errors, tables and JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runner.model.errors import RunnerError

if TYPE_CHECKING:
    from rich.console import Console

    from runner.doctor.checks import Check

SHOWN_PROBLEMS = 50
OUTCOME_COLUMNS = ("outcome", "state")  # columns and facts that begin with what became of something
PIPE = 1 << 20  # columns where there is no terminal: nothing wraps
ROOMY, NARROW = 20, 10  # columns that a text should have where a table is narrow, and has at least


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


def difference(value: float | None) -> str:
    """How much a value moved, as people read it; one that four digits would show as none has its first two."""
    if value is None:
        return "–"
    return f"{value:+.1e}" if value and abs(value) < 0.00005 else f"{value:+.4f}"


def plain() -> bool:
    """Whether stdout gets plain lines: not a terminal, NO_COLOR, or a dumb terminal."""
    return not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def data(text: str) -> None:
    """Print a result to stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def choose_csv(form: str | None, *, excel: bool) -> str | None:
    """Return the format of a result: CSV with ``--excel``, unless TSV was chosen. Raises E101 for other formats."""
    from runner.model.errors import RunnerError

    if not excel or form in ("csv", "tsv"):
        return form
    if form not in (None, "table"):
        raise RunnerError("E101", f"--excel does not apply to the format {form}", fix="use --format csv")
    return "csv"


def spreadsheet(text: str, *, excel: bool) -> None:
    """Print CSV or TSV to stdout, with a byte order mark for Excel."""
    data(f"\ufeff{text}" if excel else text)


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
    """Print chatter to stderr, unless --quiet; below what was printed before, also where both go into one file."""
    if not options.quiet:
        sys.stdout.flush()
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()


def stderr_console() -> Console:
    """A rich console on stderr, for progress bars."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[str] = (),
    drop: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> None:
    """Print a table to stdout: aligned columns, values escaped, a row of a pipe in one line.

    On a terminal it fits: columns of ``drop`` go, the first of them first, and what went is said on stderr; then ``texts`` wrap,
    and the others stay whole as long as that is possible. What begins with an outcome has its colour there, and its sign.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from runner.views.text import signed, style_of

    told = [[" ".join(printable(str(cell)).splitlines()) for cell in row] for row in rows]
    marked = [n for n, name in enumerate(columns) if name in OUTCOME_COLUMNS and not plain()]
    cells = [[signed(cell) if n in marked else cell for n, cell in enumerate(row)] for row in told]
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else PIPE
    kept, whole = _fitting(columns, cells, width, drop, texts)
    grid = Table(box=None if plain() else box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for n in kept:
        stays = whole and columns[n] not in texts
        grid.add_column(
            columns[n], justify="right" if columns[n] in right else "left", overflow="fold", no_wrap=stays
        )
    for row, bare in zip(cells, told, strict=True):
        grid.add_row(*(Text(row[n], style_of(bare[n]) if n in marked else "") for n in kept))
    console = Console(highlight=False, width=width, color_system=None if plain() else "auto")
    with console.capture() as captured:
        console.print(grid)
    data("\n".join(line.rstrip() for line in captured.get().splitlines()))
    if gone := [name for n, name in enumerate(columns) if n not in kept]:
        say(f"too narrow for: {', '.join(gone)}; --json has everything")


def _fitting(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    drop: Sequence[str],
    texts: Sequence[str],
) -> tuple[list[int], bool]:
    """The numbers of the columns that are shown in so wide a terminal, and whether all but ``texts`` have space in one line."""
    from rich.cells import cell_len

    gap = 2 if plain() else 3  # between two columns
    longest = [max(map(cell_len, (name, *(row[n] for row in rows)))) for n, name in enumerate(columns)]
    kept = list(range(len(columns)))

    def too_wide(text: int) -> bool:
        needed = [min(longest[n], text) if columns[n] in texts else longest[n] for n in kept]
        return sum(needed) + gap * (len(kept) - 1) > width

    for name in drop:
        if too_wide(ROOMY):
            kept.remove(columns.index(name))
    return kept, not too_wide(NARROW)


def facts(pairs: Mapping[str, str]) -> None:
    """Print ``name: value`` lines to stdout, aligned; on a terminal long ones go on below themselves, and outcomes have colours and signs."""
    from runner.views.text import signed, wrapped

    width = max((len(k) for k in pairs), default=0)
    lines: list[str] = []
    for name, value in pairs.items():
        head, said = f"{name + ':':<{width + 2}}", printable(value)
        if not said:
            continue
        if not sys.stdout.isatty() or " " not in said:  # a digest that is broken could not be copied
            lines.append(
                head + (said if plain() or name not in OUTCOME_COLUMNS else _coloured(signed(said), said))
            )
        elif plain() or name not in OUTCOME_COLUMNS:
            lines += wrapped(said, head)
        else:
            first, *rest = wrapped(signed(said), head)
            lines += [head + _coloured(first[len(head) :], said), *rest]
    data("\n".join(lines))


def sparkline(values: Sequence[float]) -> None:
    """Print values as a line of bars between the first and the last of them, where stdout is a terminal that can show them."""
    from runner.views.text import sparkline as bars

    if plain() or len(values) < 2:
        return
    first, last = figure(values[0]), figure(values[-1])
    space = shutil.get_terminal_size((80, 24)).columns - len(first) - len(last) - 2
    data(f"{first} {bars(values, max(1, space))} {last}")


def _coloured(shown: str, outcome: str) -> str:
    """``shown``, its sign and its first word in the colour of the ``outcome`` that it is about."""
    from rich.color import ColorSystem
    from rich.style import Style

    from runner.views.text import signed, style_of

    if not (style := style_of(outcome)):
        return shown
    end = len(signed(re.split(r"[ :]", outcome, maxsplit=1)[0]))
    return Style.parse(style).render(shown[:end], color_system=ColorSystem.STANDARD) + shown[end:]


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
