"""What an evaluation was asked for, pinned by digest; and what of that the task asks otherwise now.

A value means what was computed. Each evaluation keeps the definitions that it was made by, so that a changed ``measure``
under the same id never gives old values a new name. The direction of a measure only orders values; it is not pinned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import schemas
from runner.model.task import Task

# What concerns every value of an evaluation, and what it is called for people.
PARTS = {
    "kind": "kind",
    "options": "options",
    "severities": "severities",
    "score_precision": "score_precision",
}


def of_task(task: Task) -> dict[str, Any]:
    """What an evaluation of ``task`` is asked for now, as ``evaluation.json`` keeps it (``asked``)."""
    return {
        "kind": task.kind,
        "measures": {
            m.id: {"measure": m.measure, "truths": m.truths, "options": dict(m.options)}
            for m in task.measures.values()
        },
        "options": dict(task.options),
        "severities": dict(task.severities),
        "score_precision": task.score_precision,
    }


def pins(asked: Mapping[str, Any]) -> dict[str, Any]:
    """SHA-256 of each definition: ``measures`` by id, and each of :data:`PARTS`."""
    return {
        "measures": {name: schemas.digest(one) for name, one in asked["measures"].items()},
        **{part: schemas.digest({"value": asked[part]}) for part in PARTS},
    }


@dataclass(frozen=True)
class Pins:
    """What the store knows of an evaluation's definitions: by measure its name and digest, and the digest of each part."""

    measures: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, asked: Mapping[str, Any]) -> Pins:
        """The pins of what was asked."""
        digests = pins(asked)
        names = {
            name: (str(one["measure"]), digests["measures"][name]) for name, one in asked["measures"].items()
        }
        return cls(names, {part: digests[part] for part in PARTS})

    @classmethod
    def read(cls, text: str | None) -> Pins | None:
        """As :meth:`text` wrote them; None for None (of an evaluation that kept nothing)."""
        if not text:
            return None
        data = json.loads(text)
        return cls({name: (m[0], m[1]) for name, m in data["measures"].items()}, data["parts"])

    def text(self) -> str:
        """As one line, always the same for the same pins."""
        data = {"measures": {n: list(m) for n, m in self.measures.items()}, "parts": dict(self.parts)}
        return json.dumps(data, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Changes:
    """What of an evaluation's definitions the task has otherwise now.

    ``measures`` are the ids whose values mean something else than the task's measure of that id. ``says`` are sentences for
    everybody: they hold names of the definition only.
    """

    measures: frozenset[str] = frozenset()
    says: tuple[str, ...] = ()


def changes(task: Task, made_by: Pins | None) -> Changes:
    """What has changed since an evaluation was made; nothing when it is not known what it was asked for."""
    if made_by is None:
        return Changes()
    now = Pins.made(of_task(task))
    says = []
    changed = set()
    for name, (measure, digest) in now.measures.items():
        old, old_digest = made_by.measures.get(name, (measure, digest))
        if old_digest != digest:
            changed.add(name)
            says.append(
                f"{name} was computed as {schemas.show(old, 80)}, and is {schemas.show(measure, 80)} now."
                if old != measure
                else f"{name} was computed with other truths or options of {schemas.show(measure, 80)} than there are now."
            )
    parts = [PARTS[part] for part in PARTS if made_by.parts.get(part, now.parts[part]) != now.parts[part]]
    if parts:
        says.append(f"The scores were made with other {' and '.join(parts)} than the task has now.")
    return Changes(frozenset(changed), tuple(says))
