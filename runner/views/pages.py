"""Pages, sheets and forms as Jinja2 templates, which lie with their style and script beside the module that fills them.

A template is named by its package and file: ``runner.views.show/run.html``. What is put into one is escaped; a value that
it needs and does not get is an error. Only style sheets and scripts of ours go in as they are (``asset``), and the page's
policy (``policy``) allows these by their hashes and nothing else. Elements and colours are those of all pages
(:mod:`runner.exchange.look`).
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.exchange import look
from runner.exchange.look import LOOK, SCRIPT, source
from runner.model.errors import RunnerError
from runner.views.audience import escape
from runner.views.text import figures, plural, printable
from schemas.files import atomic_file

if TYPE_CHECKING:
    from jinja2 import Environment


def asset(name: str) -> str:
    """A style sheet or script of ours as it stands on a page that is alone: a line break, and the file; what is of one page
    stands below what is of all."""
    above = source(LOOK if name.endswith(".css") else SCRIPT)
    return f"\n{above}{source(name)}"


def policy(style: str, script: str = "") -> str:
    """The content security policy of a page: its style sheet and script, by their names, and nothing else."""
    parts = ["default-src 'none'", *([f"script-src '{_hash(script)}'"] if script else [])]
    return "; ".join([*parts, f"style-src '{_hash(style)}'", "base-uri 'none'", "form-action 'none'"])


def _hash(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()


@cache
def environment() -> Environment:
    """The environment of all pages, with what work knows of them."""
    made = look.environment()
    made.globals |= {"asset": asset, "policy": policy}
    made.filters |= {"figures": figures, "plural": plural, "printable": printable}
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


def write_page(target: Path, body: str) -> None:
    """Write a page as a whole or not at all, readable by its owner only; it replaces a file that is there. Raises E101."""
    try:
        with atomic_file(target, mode=0o600) as file:
            file.write(body.encode())
    except OSError as error:
        raise RunnerError(
            "E101",
            f"{escape(str(target), 200)} cannot be written",
            why=str(error.strerror),
            fix="name a file in a folder that is there and can be written to",
        ) from error


def macros(name: str) -> Any:
    """What a template defines, by name: macros that return HTML."""
    return environment().get_template(name).module
