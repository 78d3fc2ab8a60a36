"""How much work a schema makes of one value: refused is what a small hostile record could turn into hours.

The schema is unfolded: every ``$ref`` is followed until it leads back to a subschema on the way from the root. The number of unfolded
subschemas is bounded. A way back is fine while it reaches every value once; two ways back that can reach the same value double the
work with every level of a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Pointer = tuple[str | int, ...]

ONE = (
    "not",
    "if",
    "then",
    "else",
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs")
_IN_PLACE = {"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"}
MOST = 10_000  # unfolded subschemas
DEEPEST = 300  # of them on one way
_SAME, _ANY = -1, -2  # steps that lead to the same value, and to any value in it


def subschemas(schema: Any, at: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:
    """A schema and all that stand in it, each with its place. Keywords of a wrong type are passed over."""
    left = [(at, schema)]
    while left:
        place, one = left.pop()
        yield place, one
        left += [(place + step, below) for step, below in _below(one)]


def _below(one: Any) -> Iterator[tuple[Pointer, Any]]:
    for key, value in one.items() if isinstance(one, dict) else ():
        if key in ONE:
            yield (key,), value
        elif key in MANY and isinstance(value, list):
            yield from (((key, i), below) for i, below in enumerate(value))
        elif key in NAMED and isinstance(value, dict):
            yield from (((key, name), below) for name, below in value.items())


def too_much(schema: Any, targets: Mapping[Pointer, Pointer]) -> tuple[Pointer, str] | None:
    """Where and why a schema makes too much work; None when it does not.

    Args:
        schema: It was found to be a legal schema.
        targets: The place that each ``$ref`` (by the place of the subschema that has it) leads to.
    """
    return _Work(dict(subschemas(schema)), targets).problem((), _SAME)


class _Visit(NamedTuple):
    """A subschema on the way from the root: the step that led to it, and the first steps of the ways back to it."""

    place: Pointer
    step: str | int
    returns: list[str | int]


class _Work:
    def __init__(self, nodes: Mapping[Pointer, Any], targets: Mapping[Pointer, Pointer]) -> None:
        self.nodes, self.targets = nodes, targets
        self.left, self.way = MOST, list[_Visit]()

    def problem(self, place: Pointer, step: str | int) -> tuple[Pointer, str] | None:
        """Return where and why unfolding a subschema, to which ``step`` led, makes too much work."""
        begin = next((n for n, visit in enumerate(self.way) if visit.place == place), None)
        if begin is not None:
            return self._return(begin, [*(visit.step for visit in self.way), step])
        self.left -= 1
        if self.left < 0 or len(self.way) >= DEEPEST:
            return (), f"it unfolds to more than {MOST:,} subschemas, or to a way of more than {DEEPEST}"
        self.way.append(_Visit(place, step, []))
        for below, next_step in self._applied(place):
            if (found := self.problem(below, next_step)) is not None:
                return found
        self.way.pop()
        return None

    def _return(self, begin: int, steps: list[str | int]) -> tuple[Pointer, str] | None:
        """Note a way back to the visit ``begin``; return the problem if it can reach the same value as another one."""
        value = next(visit.place for visit in reversed(self.way) if visit.step != _SAME or not visit.place)
        if all(step == _SAME for step in steps[begin + 1 :]):
            return value, "it refers to itself without going deeper"
        for n, visit in enumerate(self.way[begin:], begin + 1):
            first = next((step for step in steps[n:] if step != _SAME), _ANY)
            if visit.returns and (_ANY in (first, *visit.returns) or first in visit.returns):
                return (
                    value,
                    "it contains itself in two ways that can apply to the same value: with each level the work doubles",
                )
            visit.returns.append(first)
        return None

    def _applied(self, place: Pointer) -> Iterator[tuple[Pointer, str | int]]:
        """The subschemas that a subschema applies to its value, and to what is in it, with the step to each."""
        if place in self.targets:
            yield self.targets[place], _SAME
        for (key, *name), _ in _below(self.nodes[place]):
            if key in _IN_PLACE:
                yield (*place, key, *name), _SAME
            elif key != "$defs":
                yield (*place, key, *name), name[0] if key in ("properties", "prefixItems") else _ANY
