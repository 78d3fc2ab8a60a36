"""The pages about measures by name, from what the evaluator says of kinds that have such (their module ``page``)."""

from __future__ import annotations

import re
from typing import Any

import schemas
from tools.docs.asking import ask
from tools.docs.tables import grid, page

_ASKED = """
import inspect
from evaluator import registry

def measure(one):
    own = {k: p for k, p in one.takes().items() if k not in ("field", "truth")}
    return [one.name, inspect.getdoc(one), one.direction, [[k, p.says, p.default, p.required] for k, p in own.items()]]

found = []
for kind in registry.built_in():
    if (page := registry.part(kind, "page")) is not None:
        families = [[inspect.getdoc(m), [measure(one) for one in m.MEASURES]] for m in page.MODULES]
        found.append([kind, page.FILE, page.TITLE, page.BEFORE, families])
"""


def measure_pages() -> dict[str, str]:
    """File and text of each page: a table of all measures, and what each means."""
    return {file: _page(kind, title, before, families) for kind, file, title, before, families in ask(_ASKED)}


def _page(kind: str, name_of_page: str, before: str, families: list[Any]) -> str:
    said = schemas.schema(f"kinds/{kind}")["x-measures"]
    rows = (
        (f"[{name}](#{name.lower()})", one["unit"], one["says"])
        for _, measures in families
        for name, *_ in measures
        for one in [said[name]]
    )
    parts = [before, grid("measure, values, what it says", rows)]
    for about, measures in families:
        title, _, rest = about.partition("\n")
        parts.append(f"## {title.removeprefix('Measures of ').partition(':')[0].capitalize()}\n")
        parts.append(_words(f"{title}\n{rest}".rstrip()))
        parts += [_one(*measure) for measure in measures]
    return page(name_of_page, *parts)


def _one(name: str, about: str, direction: str, parameters: list[Any]) -> str:
    better = "" if direction == "higher" else " Lower is better."
    text = f"### {name}\n\n{_words(about).rstrip()}{better}\n"
    if not parameters:
        return text
    rows = (
        (f"`{key}`", says, "**required**" if needed else "" if default is None else f"`{_shown(default)}`")
        for key, says, default, needed in parameters
    )
    return f"{text}\n{grid('parameter, what it may be, default', rows)}"


def _shown(default: Any) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def _words(text: str) -> str:
    """A docstring as Markdown: one kind of quotes, no roles."""
    return re.sub(r":[a-z]+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text).replace("``", "`") + "\n"
