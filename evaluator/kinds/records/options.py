"""What a task of this kind asks for: its output files and their schemas, and how records are told from one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.findings import plain
from evaluator.kinds.options import checked_options
from evaluator.kinds.records.reading import format_of
from evaluator.kinds.records.schema import validator
from evaluator.measures.records.base import LABEL, MISSING, Column, Measure
from evaluator.measures.records.named import measure
from evaluator.request import MeasureRequest, Request

Getter = Sequence[str | int]
MAX_ID = 1_000  # characters


class Output:
    """One output file: ``path``, ``form`` (of reading.FORMATS), ``schema``, its ``ids``, and whether it is ``required``."""

    def __init__(self, row: Mapping[str, Any], name: str) -> None:
        self.path: str = row["path"]
        self.name = name
        self.form: str = row.get("format") or format_of(self.path)
        self.schema: Any = row["schema"]
        self.ids = ids_of(row.get("id", "id"))
        self.required: bool = row.get("required", True)
        self.example: str | None = row.get("example")

    @cached_property
    def validator(self) -> Any:
        """What validates a record. Raises :class:`EvaluatorError` for a wrong schema."""
        return validator(self.schema, self.name)


class Wanted:
    """A measure of the task: the request for it, the measure, and the output that it reads."""

    def __init__(self, asked: MeasureRequest, outputs: Mapping[str, Output]) -> None:
        self.asked = asked
        self.measure: Measure = measure(asked.measure)
        if unknown := [key for key in asked.options if key != "output"]:
            raise EvaluatorError(
                f"the measure {asked.id} has an unknown option {plain(unknown[0])}", fix="it may have output"
            )
        name = asked.options.get("output", next(iter(outputs)))
        if name not in outputs:
            raise EvaluatorError(
                f"the measure {asked.id} reads {plain(str(name))}",
                f"outputs are {', '.join(outputs)}",
                "name one of them",
            )
        if asked.direction != self.measure.direction:
            better = self.measure.direction
            raise EvaluatorError(
                f"of {plain(asked.measure)} {better} values are better",
                f"the measure {asked.id} says direction: {asked.direction}",
                f"write direction: {better}",
            )
        self.output = outputs[name]


class Options:
    """The options of a task. Raises :class:`EvaluatorError` that says what is wrong with them."""

    def __init__(self, request: Request) -> None:
        given = checked_options("records", request.options)
        rows = given["outputs"]
        named = [row["path"] for row in rows]
        if len(set(named)) < len(named):
            raise EvaluatorError(
                "two outputs have the same path", ", ".join(named), "give each a path of its own"
            )
        self.outputs = {row["path"]: Output(row, row["path"]) for row in rows}
        self.first = next(iter(self.outputs.values()))
        self.truth_schema: Any = given["truths"].get("schema") if "truths" in given else None
        own = given.get("truths", {}).get("id")
        self.truth_ids = ids_of(own) if own is not None else None
        self.interval: bool = given["interval"]
        self.clusters: str | None = given.get("clusters")
        self.wanted = [Wanted(asked, self.outputs) for asked in request.measures]

    def needed_truths(self, group: Sequence[Wanted]) -> list[Column]:
        """The columns that measures read of the truths, and ``clusters``."""
        more = [] if self.clusters is None else [Column("truth", self.clusters, LABEL)]
        return list({(c.field, c.form.name): c for c in [*needed(group, "truth"), *more]}.values())

    def ids_of_truths(self, output: Output) -> Sequence[Getter]:
        """The ids of truths for this output."""
        return output.ids if self.truth_ids is None else self.truth_ids


def needed(group: Sequence[Wanted], side: str) -> list[Column]:
    """The columns that measures read of one side, each once."""
    return list(
        {(c.field, c.form.name): c for w in group for c in w.measure.columns() if c.side == side}.values()
    )


def ids_of(given: str | Sequence[str]) -> tuple[Getter, ...]:
    """Where the parts of an id stand in a record."""
    return tuple(steps(one) for one in ([given] if isinstance(given, str) else given))


def steps(field: str) -> Getter:
    """The keys that lead to a field: a name, or a JSON pointer."""
    if not field.startswith("/"):
        return (field,)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in field.split("/")[1:])


def value_at(record: Any, way: Getter) -> Any:
    """The value of a field in a record, None where it is not there."""
    if len(way) == 1 and type(record) is dict:
        return record.get(way[0])
    for step in way:
        if isinstance(record, dict):
            record = record.get(step)
        elif isinstance(record, list) and str(step).isdigit() and int(step) < len(record):
            record = record[int(step)]
        else:
            return None
    return record


def id_reader(ids: Sequence[Getter]) -> Callable[[Any], str | None]:
    """:func:`id_of` for many records; the short way for one key of text."""
    if len(ids) > 1 or len(ids[0]) > 1:
        return lambda record: id_of(record, ids)
    name = ids[0][0]

    def read(record: Any) -> str | None:  # the short way of most records
        key = record.get(name) if type(record) is dict else None
        return key if type(key) is str and len(key) <= MAX_ID else id_of(record, ids)

    return read


def ids_reader(ids: Sequence[Getter]) -> Callable[[Sequence[Any]], list[str] | None]:
    """:func:`id_of` for many records at once: None where one has no id."""
    one_by_one = id_reader(ids)
    name = ids[0][0] if len(ids) == 1 and len(ids[0]) == 1 else None

    def read(records: Sequence[Any]) -> list[str] | None:
        if name is not None:
            try:
                keys = [*map(itemgetter(name), records)]
            except (KeyError, TypeError):  # none, or no object
                return None
            if {*map(type, keys)} == {str} and max(map(len, keys)) <= MAX_ID:
                return keys
        found = [*map(one_by_one, records)]
        return None if None in found else found  # type: ignore[return-value]

    return read


def id_of(record: Any, ids: Sequence[Getter]) -> str | None:
    """The id of a record as text, several keys joined by ``/`` (as in a JSON pointer); None where one is missing or too long."""
    if not isinstance(record, dict):
        return None
    parts = [LABEL.read(value_at(record, way)) for way in ids]
    if MISSING in parts:
        return None
    if len(parts) > 1:
        parts = [part.replace("~", "~0").replace("/", "~1") for part in parts]
    whole = "/".join(parts)
    return whole if len(whole) <= MAX_ID else None
