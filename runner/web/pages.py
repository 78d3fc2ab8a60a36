"""Pages: templates beside this module, filled with what was published; everything is escaped but the pieces that work made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from runner.model.clock import SystemClock, stamp
from runner.web.rules import Visitor

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.responses import Response

    from runner.exchange.published import Object, Published, View

LATE = 60.0  # seconds without a sign of work until pages say so
STYLE = (files("runner.web") / "site.css").read_text("utf-8")
HAND_IN = (files("runner.web") / "hand_in.js").read_text("utf-8")


@cache
def environment() -> Environment:
    """The one Jinja2 environment: escaping, and strict about what is missing."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("runner.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"thousands": "{:,}".format, "date": date, "ahead": ahead, "fields": _fields}
    return made


def _fields(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    """Fields of a row, in this order."""
    return tuple(row[name] for name in names)


def date(at: str) -> str:
    """A time of ours (UTC) as people write it, with its zone."""
    moment = datetime.fromisoformat(at)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def ahead(at: str, now: str) -> str:
    """How far a time is from another: ``in 3 days``, ``in 1 hour``, ``5 minutes ago``; whole units, the rest is left out."""
    seconds = (datetime.fromisoformat(at) - datetime.fromisoformat(now)).total_seconds()
    units = (("day", 86400), ("hour", 3600), ("minute", 60))
    # Two of a unit before it is used: a deadline 30 hours ahead is not "in 1 day".
    unit, size = next(((u, s) for u, s in units[:2] if abs(seconds) >= 2 * s), units[2])
    count = int(abs(seconds) // size)
    words = f"{count} {unit}{'' if count == 1 else 's'}" if count else "less than a minute"
    return f"in {words}" if seconds >= 0 else f"{words} ago"


def page(
    name: str,
    visitor: Visitor,
    published: Published,
    *,
    status: int = 200,
    title: str,
    up: Sequence[tuple[str, str]] = (),
    live: tuple[str, str] | None = None,
    **values: Any,
) -> Response:
    """An answer with the page of a template.

    Args:
        name: The template, without its ending.
        visitor: Who asks: navigation and forms are theirs.
        published: Says how long ago work was heard of.
        status: Of the answer.
        title: Of the page.
        up: What it belongs to: title and address of the pages above it.
        live: For a page that follows what is published: its path, and the tag of what it shows.
        values: What the template needs.
    """
    from starlette.responses import HTMLResponse

    age = published.age()
    known: dict[str, Any] = {
        "visitor": visitor,
        "form": visitor.session.form if visitor.session else "",
        "late": None
        if age is not None and age < LATE
        else "unknown"
        if age is None
        else f"{age / 60:.0f} min",
        "style": None,
        "title": title,
        "status": status,
        "up": up,
        "live": live,
        "now": stamp(SystemClock().now()),
    }
    text = environment().get_template(f"{name}.html").render({**known, **values})
    return HTMLResponse(text, status, {"Cache-Control": "no-store" if visitor.grant else "no-cache"})


def piece(
    of: Object,
    visitor: Visitor,
    published: Published,
    view: View,
    up: Sequence[tuple[str, str]] = (),
    live: tuple[str, str] | None = None,
) -> Response:
    """An answer with the piece of a page that was published as an object."""
    return page(
        "piece",
        visitor,
        published,
        title=of.title,
        up=up,
        live=live,
        style=of.style,
        kind=of.kind,
        piece=view.text(of),
    )
