"""Measures for the figures that another platform shows, as far as their names say how they are computed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from runner.kinds.records.foreign import Asked, Taken
from runner.kinds.records.truth_files import Records
from schemas import show
from schemas.checking import schema

# Figures whose names say what they are, by their letters and digits alone, and whether they are of amounts.
_FIGURES = {
    "accuracy": ("Accuracy({})", False),
    "acc": ("Accuracy({})", False),
    "f1macro": ("F1({}, average=macro)", False),
    "macrof1": ("F1({}, average=macro)", False),
    "f1micro": ("F1({}, average=micro)", False),
    "microf1": ("F1({}, average=micro)", False),
    "f1weighted": ("F1({}, average=weighted)", False),
    "weightedf1": ("F1({}, average=weighted)", False),
    "mae": ("MAE({})", True),
    "meanabsoluteerror": ("MAE({})", True),
}
_LOWER = ("MAE(",)


class Measured(NamedTuple):
    """A measure of the new task."""

    id: str
    measure: str
    precision: int | None

    @property
    def lower(self) -> bool:
        """Whether lower values are better."""
        return self.measure.startswith(_LOWER)


def measures_of(taken: Taken, fields: Sequence[str], of: Records) -> list[Measured]:
    """A measure for each figure whose name says what it is; without any, one for each field."""
    known = set(schema("kinds/records")["x-measures"])
    found: dict[str, Measured] = {}
    for asked in taken.asked:
        template, amounts = _FIGURES.get(re.sub("[^a-z0-9]", "", asked.name.lower()), ("", False))
        fits = [one for one in fields if of.numbers(one) is amounts] if template else []
        if not fits or template.partition("(")[0] not in known:
            taken.left.append(
                f"the figure {show(asked.name)}: its name does not say how it is computed from one field"
            )
            continue
        for name in fits:
            one = _measured(template, name, asked, taken, len(fits) > 1)
            found.setdefault(one.measure, one)
    if not found:
        for name in fields:
            one = _measured(
                "MAE({})" if of.numbers(name) else "Accuracy({})", name, Asked(""), taken, len(fields) > 1
            )
            found[one.measure] = one
        names = ", ".join(found)
        taken.left.append(
            f"what is computed: {names} stand in task.yaml to begin with, take what fits your task"
        )
    else:
        taken.left.append(f"how figures are computed: {', '.join(found)} are ours, compare them with yours")
    return list(found.values())


def _measured(template: str, name: str, asked: Asked, taken: Taken, several: bool) -> Measured:
    text = template.format(_quoted(field_of(name, taken)))
    if asked.lower is not None and asked.lower is not text.startswith(_LOWER):
        taken.left.append(
            f"the direction of {show(asked.name)}: of {text} {'lower' if asked.lower is False else 'higher'} values are better"
        )
    if (right := taken.truth_value) and right == name and taken.value_field not in ("", name):
        text = f"{text[:-1]}, truth={_quoted(name)})"
    short = re.sub("[^a-z0-9_.-]", "-", text.partition("(")[0].lower())
    own = re.sub("[^a-z0-9_.-]+", "-", name.lower()).strip("-.")[:25]
    precision = asked.precision if asked.precision is not None and asked.precision <= 10 else None
    return Measured(f"{short}-{own}" if several and own else short, text, precision)


def field_of(name: str, taken: Taken) -> str:
    """What an output calls a field of the truths."""
    return taken.value_field if name == taken.truth_value and taken.value_field else name


def _quoted(name: str) -> str:
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_.-]*", name) and name not in ("true", "false")
    return name if plain else f"'{name}'"
