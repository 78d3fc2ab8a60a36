"""The options of a kind, checked by its JSON Schema and completed by the defaults that it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.request import listed
from schemas import schema, validate


def checked_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a task, with the defaults of ``schemas/kinds/<kind>.schema.json`` for those that it does not give.

    What is an object is there with its own defaults, too, unless it needs a key that has none. Raises
    :class:`EvaluatorError` that lists everything wrong.
    """
    name, given = f"kinds/{kind}", dict(options)
    if problems := validate({"options": given}, name, at=("options",)):
        what = f"the options of the kind {kind} are wrong"
        raise EvaluatorError(what, listed(problems, "/options"), "see docs/reference/task.md")
    return _completed(schema(f"kinds/{kind}"), options)


def _completed(node: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(given)
    for key, below in node["properties"].items():
        if "properties" in below:
            needed = below.get("required", ())
            if key in given or all("default" in below["properties"][name] for name in needed):
                found[key] = _completed(below, given.get(key, {}))
        elif "default" in below:
            found.setdefault(key, below["default"])
    return found
