"""The look of every page, made by the front or by work: one style sheet, one script, one set of elements.

Both sides need it, so it lies where both may look. ``look.css`` has the scales, the colours and the elements; ``elements.html``
is the elements as Jinja2 macros; ``look.js`` makes buttons work that copy, ``board.js`` sorts leaderboards and more. The front serves them (``/site.css``,
``/look.js``), pages that stand alone bring them (:mod:`runner.views.pages`). A sheet of its own is only for what one page alone has.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

LOOK, SCRIPT = "runner.exchange.look/look.css", "runner.exchange.look/look.js"
BOARD = "runner.exchange.look/board.js"  # for leaderboards
ELEMENTS = "runner.exchange.look/elements.html"
# An outcome of a run: how it is meant. What is not named here is only said.
TONES: Mapping[str, str] = {
    **{"scored": "good", "taken": "good"},
    **dict.fromkeys(("invalid", "failed", "refused"), "bad"),
    **dict.fromkeys(("pending", "running", "received"), "wait"),
    "held": "care",
}
# What stands beside the colour of a tone, on pages and on terminals.
FAR = 100  # days
SIGNS: Mapping[str, str] = {"good": "✓", "bad": "✗", "wait": "…", "care": "!"}


@cache
def source(name: str) -> str | None:
    """The text of a template, style sheet or script by its ``package/file``; None when there is no such file."""
    package, _, file = name.partition("/")
    path = files(package) / file
    return path.read_text("utf-8") if path.is_file() else None


def environment(home: str = "") -> Environment:
    """A Jinja2 environment: escaping, strict about what is missing, tags without lines of their own.

    Args:
        home: Where templates lie that are named without a place, as ``package/folder``.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(lambda name: source(name if "/" in name else f"{home}/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    made.globals |= {"tones": TONES, "signs": SIGNS}
    made.filters |= {"thousands": "{:,}".format, "date": date, "ahead": ahead}
    made.filters |= {"across": across, "below": below}
    return made


def across(value: float, least: float, most: float) -> str:
    """Where a value lies on a line from ``least`` to ``most``: from 4 to 124, as a drawing of ours has it."""
    return f"{4 + 120 * (min(max(value, least), most) - least) / ((most - least) or 1):.1f}"


def below(row: Sequence[Any], heads: Sequence[str], number: Container[int]) -> list[tuple[Any, str, bool]]:
    """The cells of a row but the first, each with the head of its column and whether that has figures (its place is in ``number``)."""
    return [
        (cell, heads[place] if place < len(heads) else "", place in number)
        for place, cell in enumerate(row)
        if place
    ]


def date(at: str) -> str:
    """A time of ours (UTC) as people write it, with its zone."""
    moment = datetime.fromisoformat(at)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def ahead(at: str, now: str) -> str:
    """How far a time is from another: ``in 3 days``, ``in 1 hour``, ``5 minutes ago``; whole units, the rest is left out. Empty where it is
    :data:`FAR` or more: nobody counts so many days, and the date says more."""
    seconds = (datetime.fromisoformat(at) - datetime.fromisoformat(now)).total_seconds()
    if abs(seconds) >= FAR * 86400:
        return ""
    units = (("day", 86400), ("hour", 3600), ("minute", 60))
    # Two of a unit before it is used: a deadline 30 hours ahead is not "in 1 day".
    unit, size = next(((u, s) for u, s in units[:2] if abs(seconds) >= 2 * s), units[2])
    count = int(abs(seconds) // size)
    words = f"{count} {unit}{'' if count == 1 else 's'}" if count else "less than a minute"
    return f"in {words}" if seconds >= 0 else f"{words} ago"
