"""How much work a schema can make of one value: refused is what a small hostile record could turn into hours.

What counts is how many subschemas are applied to the values on one way from the root of a record to its deepest value. A
subschema that leads back to itself is fine while each value is reached by it once; one that reaches a value twice doubles
the work with every level. In place apply ``$ref``, ``allOf``, ``anyOf``, ``oneOf``, ``not``, ``if``, ``then``, ``else`` and
``dependentSchemas``; the others apply to what is in the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
MOST = 10_000  # subschemas on one way


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
    return _Work(dict(subschemas(schema)), targets).problem()


class _Work:
    def __init__(self, nodes: Mapping[Pointer, Any], targets: Mapping[Pointer, Pointer]) -> None:
        self.nodes, self.targets = nodes, targets
        self._closures: dict[Pointer, dict[Pointer, int] | None] = {}
        self._steps: dict[Pointer, list[dict[Pointer, int]]] = {}

    def problem(self) -> tuple[Pointer, str] | None:
        order = self._reachable()
        for place in order:
            found = self.closure(place)
            if found is None:
                return place, "it refers to itself without going deeper"
            if sum(found.values()) > MOST:
                return place, f"more than {MOST:,} subschemas apply to one value"
        circles = _circles({place: {t for step in self.steps(place) for t in step} for place in order})
        for place in order:
            for step in self.steps(place):
                if sum(n for target, n in step.items() if circles[target] == circles[place]) > 1:
                    return (
                        place,
                        "it contains itself in two ways that can apply to the same value: with each level the work doubles",
                    )
        return self._longest(order, circles)

    def _reachable(self) -> list[Pointer]:
        """The root, and all places that a value deeper in a record can come to."""
        seen: dict[Pointer, None] = {(): None}
        left: list[Pointer] = [()]
        while left:
            place = left.pop()
            if self.closure(place) is None:
                continue
            for step in self.steps(place):
                for target in step:
                    if target not in seen:
                        seen[target] = None
                        left.append(target)
        return list(seen)

    def closure(self, place: Pointer) -> dict[Pointer, int] | None:
        """How often each subschema is applied to the value at ``place``; None for a circle in place."""
        if place in self._closures:
            return self._closures[place]
        order: list[Pointer] = []
        state: dict[Pointer, bool] = {}
        left: list[tuple[Pointer, bool]] = [(place, False)]
        while left:  # depth first: what is applied comes behind all that it applies
            one, done = left.pop()
            if done:
                state[one] = True
                order.append(one)
            elif one not in state:
                state[one] = False
                left.append((one, True))
                for other in self._in_place(one):
                    if state.get(other) is False:
                        self._closures[place] = None
                        return None
                    if other not in state:
                        left.append((other, False))
        counts = dict.fromkeys(order, 0)
        counts[place] = 1
        for one in reversed(order):
            for other in self._in_place(one):
                counts[other] = min(counts[other] + counts[one], MOST + 1)
        self._closures[place] = counts
        return counts

    def _in_place(self, place: Pointer) -> Iterator[Pointer]:
        if place in self.targets:
            yield self.targets[place]
        for step, _ in _below(self.nodes[place]):
            if step[0] in _IN_PLACE:
                yield place + step

    def steps(self, place: Pointer) -> list[dict[Pointer, int]]:
        """For each key or kind of item of the value at ``place``: the subschemas that are applied to it, and how often."""
        if place not in self._steps:
            applied = self.closure(place) or {}
            keys = {key for one in applied for key in _dict(self._of(one, "properties"))}
            wholes = {len(_list(self._of(one, "prefixItems"))) for one in applied}
            names = [*sorted(keys), None]
            items = range(max(wholes, default=0) + 1)
            self._steps[place] = [
                *(self._sum(applied, lambda one, key=name: self._of_key(one, key)) for name in names),  # type: ignore[misc]
                *(self._sum(applied, lambda one, i=item: self._of_item(one, i)) for item in items),  # type: ignore[misc]
            ]
        return self._steps[place]

    def _sum(self, applied: Mapping[Pointer, int], targets: Any) -> dict[Pointer, int]:
        found: dict[Pointer, int] = {}
        for one, count in applied.items():
            for target in targets(one):
                found[target] = min(found.get(target, 0) + count, MOST + 1)
        return found

    def _of(self, place: Pointer, key: str) -> Any:
        node = self.nodes[place]
        return node.get(key) if isinstance(node, dict) else None

    def _has(self, place: Pointer, keys: Iterable[str]) -> Iterator[Pointer]:
        yield from ((*place, key) for key in keys if self._of(place, key) is not None)

    def _of_key(self, place: Pointer, key: str | None) -> Iterator[Pointer]:
        """What a subschema applies to the value of a key; None stands for one that it does not name."""
        if key is not None and key in _dict(self._of(place, "properties")):
            yield (*place, "properties", key)
        else:
            yield from self._has(place, ("additionalProperties",))
        yield from ((*place, "patternProperties", one) for one in _dict(self._of(place, "patternProperties")))
        yield from self._has(place, ("unevaluatedProperties", "propertyNames"))

    def _of_item(self, place: Pointer, item: int) -> Iterator[Pointer]:
        if item < len(_list(self._of(place, "prefixItems"))):
            yield (*place, "prefixItems", item)
        else:
            yield from self._has(place, ("items",))
        yield from self._has(place, ("contains", "unevaluatedItems"))

    def _longest(
        self, order: Iterable[Pointer], circles: Mapping[Pointer, int]
    ) -> tuple[Pointer, str] | None:
        """Where circles are left out: the work on the longest way, from the last place to the root."""
        work: dict[Pointer, int] = {}
        for place in sorted(order, key=lambda one: circles[one]):  # whatever a place leads to comes first
            own = sum((self.closure(place) or {}).values())
            deeper = [
                sum(n * work[t] for t, n in step.items() if circles[t] != circles[place] and t in work)
                for step in self.steps(place)
            ]
            work[place] = own + max(deeper, default=0)
            if work[place] > MOST:
                return place, f"more than {MOST:,} subschemas apply to one value and what is in it"
        return None


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _circles(edges: Mapping[Pointer, set[Pointer]]) -> dict[Pointer, int]:
    """The number of each node's strongly connected component (Tarjan 1972); whatever a component leads to has a lower one."""
    index: dict[Pointer, int] = {}
    low: dict[Pointer, int] = {}
    found: dict[Pointer, int] = {}
    stack: list[Pointer] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(edges[other])))
                    break
                if other not in found:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    _close(node, stack, found)
    return found


def _close(node: Pointer, stack: list[Pointer], found: dict[Pointer, int]) -> None:
    """Take the component that begins with ``node`` from the stack, and give it a number."""
    number = len(found)  # higher than all before: each component has at least one node
    while True:
        one = stack.pop()
        found[one] = number
        if one == node:
            return
