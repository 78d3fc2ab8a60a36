"""The rules of a task as they were when somebody last met them, and how they have changed since.

A task.yaml can be edited at any time. What it says of visibility, scores, dates, quotas, limits, tables and the like is noted in
the event log when it takes effect on people: when submissions come in, runs are planned, or results go out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import schemas
from runner.records.events import COORDINATOR
from schemas import show

if TYPE_CHECKING:
    from runner.model.task import Task
    from runner.records.store.connect import Store

# Keys that only tell about a task; whatever else a definition says is a rule.
PROSE = frozenset({"schema_version", "title", "description", "sources"})
NOT_SET = "not set"
MAX_CHANGES = 200  # that are said; all of them are in the rules before and after


def note_policies(store: Store, tasks: Iterable[Task]) -> None:
    """Write an event for each task whose rules are not those that were noted last; nothing where nothing changed.

    Args:
        store: The open store.
        tasks: The tasks as they are loaded now; one that was made without a definition has no rules to be noted.
    """
    from runner.records.store.decisions import policies

    known = policies(store)
    for task in tasks:
        now, before = policy_of(task), known.get(task.id)
        if task.definition and now != before:
            said = [] if before is None else list(changes(before, now))
            more = {"more": len(said) - MAX_CHANGES} if len(said) > MAX_CHANGES else {}
            data = {"task": task.id, "policy": now, "changes": said[:MAX_CHANGES], **more}
            # Nobody commanded it: whoever edited the file need not be who gives the command that sees it.
            store.commit("policy-changed", data, actor=COORDINATOR)


def policy_of(task: Task) -> dict[str, Any]:
    """The rules of a task: its definition without what only tells about it."""
    rules: dict[str, Any] = _without_prose(task.definition)
    return rules


def _without_prose(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_prose(inner) for key, inner in value.items() if key not in PROSE}
    return [_without_prose(inner) for inner in value] if isinstance(value, list | tuple) else value


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What differs between two states of rules, each as ``key: before → now``, in the order of the keys, then what
    only stands in another order; without control characters."""
    old, new = dict(_flat(before)), dict(_flat(now))
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield f"{show(key, 200)}: {_value(old, key)} → {_value(new, key)}"
    old, new = dict(_orders(before)), dict(_orders(now))
    for key in old:
        if key in new and old[key] != new[key] and sorted(old[key]) == sorted(new[key]):
            yield f"order of {show(key, 200)}: {show(', '.join(old[key]), 200)} → {show(', '.join(new[key]), 200)}"


def _orders(value: Any, place: str = "") -> Iterator[tuple[str, list[str]]]:
    """The ids of what has one, list by list, in their order, and where the lists stand."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _orders(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        rows = [one for one in value if isinstance(one, Mapping) and "id" in one]
        if len(rows) == len(value):
            yield place, [str(one["id"]) for one in rows]
        for one in rows:
            yield from _orders(one, f"{place}.{one['id']}")


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The single values of rules with where they stand; what has an ``id`` stands under that."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        for number, one in enumerate(value, 1):
            rest = {key: inner for key, inner in one.items() if key != "id"}
            here = f"{place}.{one.get('id', number)}"
            yield here, "there"
            yield from _flat(rest, here)
    else:
        yield place, value


def _value(rules: Mapping[str, Any], key: str) -> str:
    if key not in rules:
        return NOT_SET
    value = rules[key]
    return show(value if isinstance(value, str) else schemas.canonical(value).decode(), 100)
