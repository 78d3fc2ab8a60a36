"""The evaluator contract: what an evaluator is handed of a run, and what it may leave, checked before anything of it is believed.

``docs/reference/evaluator-contract.md`` is the public description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import schemas
from runner.model.limits import MIB
from runner.model.task import Task
from runner.records.files import damaged
from schemas import jsonl

MAX_HANDED_FILES = 64
RESULT_FILES = ("result.json", "scores.jsonl", "findings.jsonl")
DETAILS = "details.jsonl"  # optional: one line a topic with what its scores are made of
LINES = {"scores.jsonl": "score", "findings.jsonl": "finding", DETAILS: ""}  # with the schema of a line
MAX_RESULT_BYTES = 256 * MIB
MAX_RESULT_JSON = 4 * MIB
MAX_RESAMPLES = 10_000  # values of a measure, as in the schema of results
_TEXTS = ("code", "severity", "file", "message", "fix", "topic")  # of a finding
MAX_VALUE = 1e150  # of a score or measure, and below zero: squares and sums of such values are finite, too


def contract_problem(folder: Path, task: Task) -> str:
    """The first breach of the evaluator contract by the files in ``folder``, or an empty string.

    Result and lines are checked by their schemas.
    """
    result = schemas.load_json(folder / "result.json", "result.json", max_bytes=MAX_RESULT_JSON)
    if problems := schemas.validate(replace(result, data=_without_resamples(result.data)), "result"):
        return str(problems[0])
    known = {m.id for m in task.measures.values()}
    if broken := _measures_problem(result.data, known):
        return f"result.json {broken}"
    for name, schema in LINES.items():
        if name == DETAILS and not (folder / name).is_file():
            continue
        for number, line in enumerate(_lines(folder / name), start=1):
            broken = "not a JSON object" if line is None else _line_problem(line, schema, known)
            if broken:
                return f"{name}:{number}: {broken}"
    return ""


def _line_problem(line: dict[str, Any], schema: str, known: Set[str]) -> str:
    """What is wrong with a line of a file whose lines have that schema (empty: they have none)."""
    if (
        not schema
        or (schema == "score" and _is_plain_score(line, known))
        or (schema == "finding" and _is_plain_finding(line))
    ):
        return ""
    if problems := schemas.validate(line, schema):
        return schemas.show(str(problems[0]), 300)
    if schema != "score":
        return ""
    if line["measure"] not in known:
        return "measure is not one of the task's"
    return "" if _is_value(line["value"]) else "value is not a number between -1e150 and 1e150"


def _without_resamples(data: Any) -> Any:
    """Return a result without the values of resamples, which a schema checks slowly: :func:`_measures_problem` checks them."""
    if not isinstance(data, dict) or not isinstance(measures := data.get("measures"), dict):
        return data
    return {**data, "measures": {name: _without_values(measure) for name, measure in measures.items()}}


def _without_values(measure: Any) -> Any:
    if not isinstance(measure, dict) or not isinstance(resamples := measure.get("resamples"), dict):
        return measure
    if not isinstance(values := resamples.get("values"), list) or len(values) > MAX_RESAMPLES:
        return measure
    return {**measure, "resamples": {**resamples, "values": []}}


def _measures_problem(result: dict[str, Any], known: Set[str]) -> str:
    """What is wrong with the measures that have a value or are pending."""
    given, pending = set(result["measures"]), set(result.get("pending", {}))
    if unknown := (given - known) or (pending - known):
        return f"names measures that the task does not have: {_names(unknown)}"
    if both := pending & given:
        return f"has a value for {_names(both)}, which is pending"
    if result["status"] == "valid" and (missing := known - given - pending):
        return f"lacks the measures {_names(missing)}"
    large = {
        name for name, measure in result["measures"].items() if not all(map(_is_value, _values(measure)))
    }
    return f"has numbers that are not between -1e150 and 1e150: {_names(large)}" if large else ""


def _values(measure: Mapping[str, Any]) -> Iterator[Any]:
    """All numbers that a measure has: its value, the ends of its interval, and values in resamples."""
    yield measure["value"]
    yield from measure["interval"] or ()
    yield from (one for one in measure.get("resamples", {}).get("values", ()) if one is not None)


def _names(found: Iterable[str]) -> str:
    return schemas.show(", ".join(sorted(found)))


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """The objects of a file of JSON lines; None for a line that is none."""
    with path.open("rb") as stream:
        for _, data, _ in jsonl.rows(stream.read, max_line=MIB, rules=jsonl.WRITTEN):
            yield data if isinstance(data, dict) else None


def _is_plain_score(line: dict[str, Any], known: Set[str]) -> bool:
    """True for a line as nearly all are: there may be hundreds of thousands, and a schema takes fifteen times as long."""
    return (
        line.keys() - {"answered", "facets"} == {"topic", "measure", "value"}
        and type(line.get("answered", True)) is bool
        and type(line.get("facets", {})) is dict
        and type(line.get("topic")) is str
        and len(line["topic"]) <= 1000
        and type(line.get("measure")) is str
        and line["measure"] in known
        and _is_value(line.get("value"))
    )


def _is_plain_finding(line: dict[str, Any]) -> bool:
    """True for a line that fits the schema of findings, as nearly all do."""
    number = line.get("line")
    return (
        line.keys() - {"topic"} == {"code", "severity", "file", "line", "message", "fix"}
        and all(type(line.get(key, "")) is str and len(line.get(key, "")) <= 500 for key in _TEXTS)
        and re.fullmatch("F[0-9]{3}", line["code"]) is not None
        and line["severity"] in ("error", "defect", "warning")
        and (number is None or (type(number) is int and number >= 1))
    )


def _is_value(value: Any) -> bool:
    number = type(value) is float or type(value) is int
    return number and -MAX_VALUE <= value <= MAX_VALUE  # which NaN is not


class RunFiles(NamedTuple):
    """What is evaluated: a folder of output files, and the name of the run file among them.

    ``records`` says that the platform's own records of an interactive run lie there, too (see :func:`runner.tasks.request.request`).
    """

    folder: Path
    name: str
    records: bool = False


def files_for_evaluator(output: Path, run_file: str, most: int) -> dict[str, Path]:
    """The files of a run's output that the evaluator is given: the main one, and others next to it by name.

    Others are left out where they would make it more than ``most`` bytes or :data:`MAX_HANDED_FILES` files. Raises E307 where the main one
    is none of the output's own.
    """
    there = {p.name: p for p in sorted(output.iterdir()) if p.is_file() and not p.is_symlink()}
    if run_file not in there:
        raise damaged(f"the run file {schemas.show(run_file, 200)} is not in the output")
    found, left = {run_file: there[run_file]}, most - there[run_file].stat().st_size
    for name, path in there.items():
        size = path.stat().st_size
        if name not in found and size <= left and len(found) < MAX_HANDED_FILES:
            found[name] = path
            left -= size
    return found
