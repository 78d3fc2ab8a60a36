"""Pages: templates beside this module, filled with what was published; everything is escaped but the pieces that work made."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from runner.exchange import look
from runner.model.clock import stamp
from runner.web.rules import Visitor
from runner.web.vega import script

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.responses import Response

    from runner.exchange.published import Object, Published, View

PLOT = '<figure class="plot"'  # how a plot begins on a page; of a text of somebody's it would be escaped
LATE = 60.0  # seconds without a sign of work until pages say so
STYLE, SCRIPT, BOARD = (str(look.source(name)) for name in (look.LOOK, look.SCRIPT, look.BOARD))
HAND_IN = (files("runner.web") / "hand_in.js").read_text("utf-8")


@cache
def environment() -> Environment:
    """The environment of all pages, with the front's templates."""
    made = look.environment("runner.web/templates")
    made.filters |= {"fields": _fields}
    return made


def load() -> list[str]:
    """Read all templates, so that an update of the files meanwhile does not mix with what is loaded. Returns their names."""
    names = [
        path.name
        for path in (files("runner.web") / "templates").iterdir()
        if path.name.endswith((".html", ".svg", ".xml"))
    ]
    for name in names:
        environment().get_template(name)
    return names


def _fields(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    """Fields of a row, in this order."""
    return tuple(row[name] for name in names)


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
        if visitor.kept or (age is not None and age < LATE)
        else "unknown"
        if age is None
        else f"{age / 60:.0f} min",
        "style": None,
        "plots": "",
        "api": "",
        "badge": "",
        "unlisted": False,
        "title": title,
        "status": status,
        "up": up,
        "live": None if visitor.kept else live,
        "now": stamp(published.clock.now()),
        "once": secrets.token_hex(16),
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
    beside: Sequence[Sequence[tuple[str, str, str]]] = (),
    **values: Any,
) -> Response:
    """An answer with the piece of a page that was published as an object; with plots in it, and with the script for these."""
    text = view.text(of)
    return page(
        "piece",
        visitor,
        published,
        title=of.title,
        up=up,
        live=live,
        style=of.style,
        kind=of.kind,
        beside=beside,
        piece=text,
        plots=script()[0] if PLOT in text else "",
        **values,
    )
