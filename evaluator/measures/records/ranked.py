"""Measures of ranked lists: in JSON, by the strings of ir-measures.

A record of the output holds a list of different ids, the best first; one of the truths an object with a grade for each judged id
(``{"d1": 2, "d7": 0}``), or a list of the relevant ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, ClassVar

from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.formats.qrels import Qrels
from evaluator.formats.ranked import Ranked
from evaluator.measures import ir
from evaluator.measures.records.base import (
    LABEL,
    MISSING,
    Columns,
    Form,
    Measure,
    Parameter,
    PerRecord,
    refuse,
)

MAX_LIST = 10_000  # ids of one record


def _ids(value: Any) -> list[str] | None:
    """The ids of a list as text; None if it is none, or one is there twice."""
    if not isinstance(value, list) or len(value) > MAX_LIST:
        return None
    found = list(map(LABEL.read, value))
    return None if MISSING in found or len(set(found)) < len(found) else found


def _list(value: Any) -> Any:
    found = _ids(value)
    return MISSING if found is None else tuple(found)


def _grades(value: Any) -> Any:
    if isinstance(value, dict):
        fine = all(type(grade) is int and abs(grade) < 1 << 31 for grade in value.values())
        return value if fine else MISSING
    found = _ids(value)
    return MISSING if found is None else dict.fromkeys(found, 1)


LIST = Form("list", f"a list of at most {MAX_LIST:,} different ids", _list)
GRADES = Form("grades", "an object with a whole number for each id, or a list of ids", _grades)


class IR(PerRecord):
    """A measure of ranked lists, ``measure='nDCG@10'`` in the words of ir-measures, averaged over records.

    A missing record, and an empty list, have 0, as topics without an answer have in the kind ``adhoc``. As ``ir_measures``
    (MacAvaney et al., "Streamlining evaluation with ir-measures", ECIR 2022), which is asked for all but the
    common ones, as in that kind.
    """

    name = "IR"
    output_form = LIST
    truth_form = GRADES
    rules = ("mean", "median", "sum")
    bounds = (0.0, inf)
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "measure": Parameter("an ir-measures string in quotes", lambda v: isinstance(v, str), required=True),
    }

    def check(self) -> None:
        """The string has to be a measure that is computed by list."""
        try:
            self._measure = ir.Measure(self.given["measure"])
            ir.require([self._measure])
        except EvaluatorError as error:
            raise refuse(self, plain(" ".join(error.lines()), 300), "correct measure=") from None
        if self._measure.first:
            raise refuse(self, "it has no value for some lists", "take another measure")

    @property
    def rule(self) -> str:
        """A sum for counts, whatever the task says."""
        return "sum" if self._measure.total else super().rule

    def values(self, of: Columns) -> Sequence[float]:
        """The value of each list."""
        qrels, topics = Qrels(Path("truths"), "truths"), {}
        for row, (said, grades) in enumerate(zip(*self.pair(of), strict=True)):
            topic = str(row).encode()
            judged = {doc.encode("utf-8", "backslashreplace"): grade for doc, grade in grades.items()}
            qrels.grades[topic] = {}
            for doc, grade in judged.items():
                qrels.add(topic, b"0", doc, grade)
            if said is not MISSING and said:
                at = {doc.encode("utf-8", "backslashreplace"): rank for rank, doc in enumerate(said, 1)}
                topics[topic] = Ranked(len(said), {doc: rank for doc, rank in at.items() if doc in judged})
        found = ir.evaluate([self._measure], qrels, topics)[self._measure.text]
        return [found[str(row).encode()] for row in range(len(of))]


MEASURES: tuple[type[Measure], ...] = (IR,)
