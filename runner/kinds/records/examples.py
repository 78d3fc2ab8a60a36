"""What a first task of records may ask for: labels and numbers. The data are made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

Row = tuple[dict[str, Any], dict[str, Any]]


class Example(NamedTuple):
    """A form of task.

    - ``says``: what is asked, as a sentence; ``things``: what the records are about.
    - ``file``: the name of the inputs and of the truths; ``output``: that of the output, whose name ends as its format wants it.
    - ``answer``, ``truth``: the JSON Schemas of the fields beside ``id``; ``lines``: an output.
    - ``measures``: rows of task.yaml without their truths; ``rank_by``: the id of one of them.
    - ``baseline``: a software of ``submissions/baselines`` that reads and writes these files.
    - ``rows(draw)``: what software sees of each record, and what is right.
    """

    says: str
    things: str
    file: str
    output: str
    answer: Mapping[str, Any]
    truth: Mapping[str, Any]
    lines: str
    measures: tuple[str, ...]
    rank_by: str
    baseline: str
    rows: Callable[[Random], Iterable[Row]]


# Bill length, bill depth and flipper length (mm), and body mass (g).
_TYPICAL = {
    "Adelie": (39, 18, 190, 3700),
    "Chinstrap": (49, 18, 196, 3700),
    "Gentoo": (47, 15, 217, 5100),
}
_MEASURED = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm")
_PENGUIN = {
    "species": {"enum": [*_TYPICAL]},
    "body_mass_g": {"type": "number", "minimum": 0, "maximum": 20000},
}


def _penguins(draw: Random) -> Iterator[Row]:
    for species in [*_TYPICAL] * 4:
        values = [round(v * draw.uniform(0.97, 1.03), 1) for v in _TYPICAL[species]]
        seen = dict(zip(_MEASURED, values[:3], strict=True))
        yield seen, {"species": species, "body_mass_g": round(values[3])}


EXAMPLES = {
    "classification": Example(
        says="Say of every animal which species it is and what it weighs.",
        things="animals",
        file="penguins.jsonl",
        output="answers.csv",
        answer=_PENGUIN,
        truth=_PENGUIN,
        lines="id,species,body_mass_g\ndev-1,Adelie,3700\ndev-2,Gentoo,5076.5\n",
        measures=(
            'id: f1, measure: "F1(species, average=macro)"',
            "id: accuracy, measure: Accuracy(species)",
            'id: mae, measure: "MAE(body_mass_g, range=[2000, 7000])", direction: lower',
        ),
        rank_by="f1",
        baseline="penguins-nearest",
        rows=_penguins,
    ),
}
