"""Measures for the figures that another platform shows, as far as their names say how they are computed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from runner.kinds.records.foreign import Asked, Taken, name_of
from runner.kinds.records.truth_files import Records
from schemas import show
from schemas.checking import schema

# Figures whose names say what they are, by their letters and digits alone: the measure, and of what it is.
_AVERAGED = {
    f"{first}{second}": (f"{measure}({{}}, average={average})", "labels")
    for name, measure in (("f1", "F1"), ("precision", "Precision"), ("recall", "Recall"))
    for average in ("macro", "micro", "weighted")
    for first, second in ((name, average), (average, name))
}
_FIGURES = {
    "accuracy": ("Accuracy({})", "labels"),
    "acc": ("Accuracy({})", "labels"),
    "balancedaccuracy": ("BalancedAccuracy({})", "labels"),
    **_AVERAGED,
    "mcc": ("MCC({})", "labels"),
    "matthewscorrelation": ("MCC({})", "labels"),
    "cohenkappa": ("Kappa({})", "labels"),
    "mae": ("MAE({})", "numbers"),
    "meanabsoluteerror": ("MAE({})", "numbers"),
    "rmse": ("RMSE({})", "numbers"),
    "pearson": ("Pearson({})", "numbers"),
    "pearsonr": ("Pearson({})", "numbers"),
    "spearman": ("Spearman({})", "numbers"),
    "spearmanr": ("Spearman({})", "numbers"),
    "kendall": ("Kendall({})", "numbers"),
    "kendalltau": ("Kendall({})", "numbers"),
    "exactmatch": ("ExactMatch({})", "texts"),
    "bleu": ("BLEU({})", "texts"),
    "sacrebleu": ("BLEU({})", "texts"),
    "chrf": ("chrF({})", "texts"),
    "rouge1": ("ROUGE({}, type=rouge1)", "texts"),
    "rouge2": ("ROUGE({}, type=rouge2)", "texts"),
    "rougel": ("ROUGE({}, type=rougeL)", "texts"),
}
_LOWER = ("MAE(", "RMSE(")


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
        template, sort = _FIGURES.get(re.sub("[^a-z0-9]", "", asked.name.lower()), ("", ""))
        fits = [one for one in fields if template.partition("(")[0] in known and _is(of, one, sort)]
        if not fits:
            taken.left.append(
                f"the figure {show(asked.name)}: its name does not say how it is computed from one field"
            )
            continue
        for name in fits:
            one = _measured(template, name, asked, taken, len(fits) > 1, [m.id for m in found.values()])
            found.setdefault(one.measure, one)
    if not found:
        for name in fields:
            template = "MAE({})" if of.numbers(name) else "Accuracy({})"
            ids = [m.id for m in found.values()]
            one = _measured(template, name, Asked(""), taken, len(fields) > 1, ids)
            found[one.measure] = one
        names = ", ".join(found)
        taken.left.append(
            f"what is computed: {names} stand in task.yaml to begin with, take what fits your task"
        )
    else:
        taken.left.append(f"how figures are computed: {', '.join(found)} are ours, compare them with yours")
    return list(found.values())


def _is(of: Records, name: str, sort: str) -> bool:
    """Whether a field of the truths holds ``labels``, ``numbers`` (amounts) or ``texts``."""
    if sort == "texts":
        return of.type(name) == "string"
    return bool(sort) and of.numbers(name) is (sort == "numbers")


def _measured(
    template: str, name: str, asked: Asked, taken: Taken, several: bool, ids: Sequence[str]
) -> Measured:
    text = template.format(_quoted(field_of(name, taken)))
    if asked.lower is not None and asked.lower is not text.startswith(_LOWER):
        better = "higher" if asked.lower else "lower"
        taken.left.append(f"the direction of {show(asked.name)}: of {text} {better} values are better")
    if (right := taken.truth_value) and right == name and taken.value_field not in ("", name):
        text = f"{text[:-1]}, truth={_quoted(name)})"
    parts = [asked.name or template.partition("(")[0], *([name] if several else [])]
    precision = asked.precision if asked.precision is not None and asked.precision <= 10 else None
    return Measured(name_of("-".join(parts), ids, "measure"), text, precision)


def field_of(name: str, taken: Taken) -> str:
    """What an output calls a field of the truths."""
    return taken.value_field if name == taken.truth_value and taken.value_field else name


def _quoted(name: str) -> str:
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_.-]*", name) and name not in ("true", "false")
    return name if plain else f"'{name}'"
