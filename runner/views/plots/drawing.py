"""Plots as files and for pages: Vega-Lite and Vega specifications, SVG, PDF and PNG, made by vl-convert.

The same plot gives the same bytes: nothing is asked of a network or a clock, and the font comes with vl-convert.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from runner.model.errors import RunnerError, no_such

if TYPE_CHECKING:
    from runner.views.plots.base import Plot

FORMATS = ("svg", "pdf", "png", "json", "csv")
PACKAGES = ("altair", "vl_convert")  # by which pictures are drawn
INSTALL = "pip install 'proctor-ir[plots]' (in the project's own folder: make tools)"
PICTURES = FORMATS[:3]  # what papers take
VEGA_LITE = "6.4"  # the version of Altair's schema that vl-convert has
_PNG_SCALE = 2.0
# The resources of a page of PDF, a line each: they come in any order, which means nothing, and here in one. No byte moves elsewhere.
_RESOURCES = re.compile(rb"(?:^ *+/[a-z]+[0-9]+ [0-9]+ 0 R\r?\n){2,}", re.MULTILINE)


def specification(plot: Plot) -> dict[str, Any]:
    """The Vega-Lite specification of a plot, checked against its schema by Altair. Raises E101 where Altair is not installed."""
    _library()
    made: dict[str, Any] = plot.chart(plot).to_dict()
    made["description"] = f"{plot.title}. {plot.says}"
    return made


def drawn(plot: Plot, form: str) -> bytes:
    """A plot as a file.

    Args:
        plot: What is drawn.
        form: One of :data:`FORMATS`; ``json`` is its Vega-Lite specification.

    Returns:
        The bytes of the file; the same for the same plot.

    Raises:
        RunnerError: E101 for another format, or where the packages of the extra ``plots`` are not installed (``csv`` needs none).
    """
    if form not in FORMATS:
        raise no_such("format", form, FORMATS, fix=f"use one of {', '.join(FORMATS)}", code="E101")
    if form == "csv":
        return plot.as_csv().encode()
    spec = specification(plot)
    if form == "json":
        return json.dumps(spec, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"
    library = _library()
    if form == "svg":
        text: str = library.vegalite_to_svg(spec, vl_version=VEGA_LITE)
        return text.encode() + b"\n"
    if form == "png":
        picture: bytes = library.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=_PNG_SCALE)
        return picture
    page: bytes = library.vegalite_to_pdf(spec, vl_version=VEGA_LITE)
    return _RESOURCES.sub(lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), page)


def _library() -> Any:
    """vl-convert, where it and Altair are installed. Raises E101."""
    try:
        import altair  # noqa: F401
        import vl_convert
    except ImportError as error:
        raise RunnerError(
            "E101",
            f"plots need a package that is not installed ({error.name})",
            why="They are drawn by Altair and vl-convert; --format csv gives the data without them.",
            fix=INSTALL,
        ) from error
    return vl_convert


@lru_cache(maxsize=64)
def for_page(plot: Plot) -> tuple[str, dict[str, Any]]:
    """A plot as SVG without a ground of its own, and as a Vega specification, in which nothing is left to translate.

    Raises:
        RunnerError: E101 where the packages of the extra ``plots`` are not installed.
    """
    spec = specification(plot)
    del spec["description"]  # the page says it
    spec["config"] = {**spec["config"], "background": "transparent"}
    library = _library()
    svg: str = library.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    vega: dict[str, Any] = library.vegalite_to_vega(spec, vl_version=VEGA_LITE)
    return svg, vega
