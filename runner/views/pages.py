"""Pages, sheets and forms as Jinja2 templates, which lie with their style and script beside the module that fills them.

A template is named by its package and file: ``runner.views.show/run.html``. What is put into one is escaped; a value that
it needs and does not get is an error. Only style sheets and scripts of ours go in as they are (``asset``), and the page's
policy (``policy``) allows these by their hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from runner.views.text import figures, plural, printable

if TYPE_CHECKING:
    from jinja2 import Environment


def source(name: str) -> str | None:
    """The text of a template, style sheet or script; None when there is no such file."""
    package, _, file = name.partition("/")
    path = files(package) / file
    return path.read_text("utf-8") if path.is_file() else None


def asset(name: str) -> str:
    """A style sheet or script of ours as it stands on a page: a line break, and the file."""
    return f"\n{source(name)}"


def policy(style: str, script: str = "") -> str:
    """The content security policy of a page: its own style sheet and script, by their names, and nothing else."""
    parts = ["default-src 'none'", *([f"script-src '{_hash(script)}'"] if script else [])]
    return "; ".join([*parts, f"style-src '{_hash(style)}'", "base-uri 'none'", "form-action 'none'"])


def _hash(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()


@cache
def environment() -> Environment:
    """The one Jinja2 environment: escaping, strict, tags without lines of their own."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"asset": asset, "policy": policy}
    made.filters |= {"figures": figures, "plural": plural, "printable": printable, "thousands": "{:,}".format}
    return made


def render(name: str, **values: Any) -> str:
    """A page.

    Args:
        name: The template, as ``package/file``.
        values: What it needs, by name; escaped where it is put in.

    Returns:
        HTML.

    Raises:
        jinja2.UndefinedError: A value that the template needs is missing.
    """
    return environment().get_template(name).render(values)


def macros(name: str) -> Any:
    """What a template defines, by name: macros that return HTML."""
    return environment().get_template(name).module
