"""Kinds of tasks that other packages bring: their entry points in the group ``proctor.kinds``.

An entry point's name is the kind, its value an importable package with ``options.schema.json`` (the kind's options),
``evaluator`` (a module or package with ``KIND``) and, if the runner has to know more of the kind, ``runner`` (with
``SPEC``). The package itself imports neither: each side reads its own half.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "proctor.kinds"
OPTIONS = "options.schema.json"


@cache
def external_kinds() -> Mapping[str, EntryPoint]:
    """The kinds of installed packages by name, with their entry points. Of two packages with a kind of one name the first by value is taken."""
    from importlib.metadata import entry_points  # importing it takes longer than all of ours

    points = sorted(entry_points(group=GROUP), key=lambda point: point.value, reverse=True)
    return {point.name: point for point in points}


def options_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of the options of a kind of :func:`external_kinds`. Raises OSError when its package has none."""
    from importlib.resources import files

    path = files(external_kinds()[kind].value).joinpath(OPTIONS)
    schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return schema
