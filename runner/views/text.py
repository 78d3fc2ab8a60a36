"""Texts for people: what participants wrote made safe to show, figures and counts in words, lines for a terminal."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

from runner.exchange.look import SIGNS, TONES
from runner.views.audience import escape

MAX_TEXT = 8000  # characters of one text
MAX_LINES = 400
MAX_ID = 200
# Outcomes on terminals with colour, as styles of rich.
OUTCOMES = {
    "scored": "green", "invalid": "yellow", "failed": "red", "held": "magenta", "running": "cyan",
    "pending": "dim", "cancelled": "dim", "withdrawn": "dim",
    "taken": "green", "registered": "green", "received": "cyan", "refused": "red",
}  # fmt: skip
_BARS = "▁▂▃▄▅▆▇█"
_BREAKS = re.compile(r"\r\n?|\n")


def shown(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` with its line breaks, each line escaped; cut (with "…") at ``limit`` characters or 400 lines.

    Only here may a shown text have a line break: what prints it has to mark every line as a quotation.
    """
    lines = _BREAKS.split(text[: limit + 1].strip("\r\n").replace("\t", " "))
    cut = len(text) > limit or len(lines) > MAX_LINES
    joined = "\n".join(escape(line, 2 * limit) for line in lines[:MAX_LINES])
    return joined[: limit - 1] + "…" if cut or len(joined) > limit else joined


def printable(text: str) -> str:
    """``text`` with its line breaks, everything else that does not print shown by its number; not cut."""
    return "".join(c if c.isprintable() or c == "\n" else escape(c) for c in text)


def number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def whole(value: Any) -> int | None:
    """A whole number, or None for anything else."""
    return value if type(value) is int and abs(value) < 1 << 53 else None


def counted(pairs: Iterable[tuple[str, int]]) -> str:
    """``timeout 2, status 1``."""
    return ", ".join(f"{name} {count:,}" for name, count in pairs)


def listed(names: Sequence[str], most: int) -> str:
    """The names with commas between, at most ``most`` of them: ``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def plural(count: int, name: str) -> str:
    """``1 debate``, ``1,000 debates``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def figures(scores: Mapping[str, float]) -> str:
    """``f1 0.4444, words 17``, in their order."""
    return ", ".join(f"{name} {value:.4g}" for name, value in scores.items())


def seconds(value: float | None) -> str:
    """A duration, short; empty for None."""
    return "" if value is None else f"{value:.1f} s"


def duration(value: float) -> str:
    """Seconds in words that are short and exact enough to wait by: ``40 s``, ``3 min``, ``2 h 5 min``."""
    if value < 59.5:
        return f"{value:.0f} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def memory(size: int | None, source: str) -> str:
    """A peak of memory in MiB (``size`` is in bytes); ``≈`` when it was only sampled, empty for None."""
    return "" if size is None else f"{'≈' if source == 'sampled' else ''}{size / 2**20:.0f} MiB"


# --- lines for a terminal ----------------------------------------------------------------------------------


def width() -> int:
    """Columns of the terminal, 100 when there is none."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


def sign_of(outcome: str) -> str:
    """What stands beside the colour of an outcome, as on pages; empty for words that have none."""
    return SIGNS.get(TONES.get(outcome, ""), "")


def signed(text: str) -> str:
    """``text`` with its sign in front where it begins with an outcome (``✓ scored (stale)``); as it is otherwise."""
    sign = sign_of(_first(text))
    return f"{sign} {text}" if sign else text


def style_of(text: str) -> str:
    """The style (of rich) of a text that begins with an outcome; empty for others."""
    return OUTCOMES.get(_first(text), "")


def _first(text: str) -> str:
    return re.split(r"[ :]", text, maxsplit=1)[0]


def sparkline(values: Sequence[float], most: int) -> str:
    """Values (one at least) as a line of bars from 0, or from the least below it, to the greatest; where they are more than ``most``, a bar
    is the mean of its neighbours."""
    count = min(len(values), most)
    edges = [len(values) * n // count for n in range(count + 1)]
    means = [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(0.0, *means), max(0.0, *means)
    span = (high - low) or 1.0
    return "".join(_BARS[round((mean - low) / span * (len(_BARS) - 1))] for mean in means)


def one_line(text: str) -> str:
    """``text`` without line breaks."""
    return " ".join(text.split("\n"))


def cut(text: str, limit: int | None = None) -> str:
    """``text``, with "…" at the end where it is longer than ``limit`` characters (None: than the terminal is wide)."""
    limit = width() if limit is None else limit
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quoted(text: str, head: str) -> Iterator[str]:
    """Lines with words of somebody else: each one marked, so that none can pass for ours."""
    rest = " " * (len(head) - 2) + "| "
    for line in text.split("\n"):
        for part in textwrap.wrap(line, width() - len(head)) or [""]:
            yield head + part
            head = rest


def wrapped(text: str, head: str) -> Iterator[str]:
    """``text`` in lines that fit, the first after ``head``, the others indented as far."""
    # A name or an option that is broken at its hyphen could not be copied.
    yield from textwrap.wrap(
        one_line(text),
        width(),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    ) or [head]


def amount_of_time(seconds: float) -> str:
    """``90 s``, ``5 min``, ``2 h``: in the largest unit that keeps it whole."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s"


def plural_of(amount: float, name: str) -> str:
    """``1 processor``, ``0.5 processors``."""
    return f"{amount:g} {name}{'' if amount == 1 else 's'}"
