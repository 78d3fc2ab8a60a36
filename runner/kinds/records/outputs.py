"""What those who take part are told of the output files of a task of this kind: format, fields and an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import schemas
from runner.model.kinds import OutputFile
from runner.model.task import Task
from runner.tasks.load import with_files

FORMATS = {"jsonl": "JSON Lines", "json": "a JSON array", "csv": "CSV", "tsv": "TSV"}
_MOST_FIELDS = 12
_LINES = 2  # of an example
_LENGTH = 300  # characters of such a line
_TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false"}


def outputs(task: Task) -> list[OutputFile]:
    """The output files of a task, each with an example if it has one."""
    options = with_files(task.folder, task.kind, task.options, "text")
    named = [row.get("example", "") for row in task.options.get("outputs", ())]
    rows = zip(options.get("outputs", ()), named, strict=True)
    return [_output(row, example) for row, example in rows] or [OutputFile(task.output)]


def order(task: Task) -> Mapping[tuple[str, str], int]:
    """The places of fields by the path of their output and their name: in the order of the outputs, and in those of their schemas."""
    rows = [row for row in task.options.get("outputs", ()) if isinstance(row["schema"], dict)]
    names = [(row["path"], name) for row in rows for name in row["schema"].get("properties", {})]
    return {name: place for place, name in enumerate(names)}


def _output(row: Mapping[str, Any], example: str) -> OutputFile:
    name = row["path"]
    ending = name.rpartition(".")[2]
    form = FORMATS.get(row.get("format") or ending, FORMATS["jsonl"])
    ids = row.get("id", "id")
    known = schemas.show(ids if isinstance(ids, str) else " and ".join(ids))
    said = f"{form}, a record for each {known}"
    if fields := list(islice(_fields(row["schema"]), _MOST_FIELDS)):
        said += f": {', '.join(fields)}"
    if not row.get("required", True):
        said += " (may be left out)"
    lines = islice((line for line in str(row.get("example", "")).splitlines() if line.strip()), _LINES)
    return OutputFile(name, said, "\n".join(schemas.show(line, _LENGTH) for line in lines), example)


def _fields(schema: Any) -> Iterator[str]:
    """The fields of a record, with what may stand in them where the schema says so plainly."""
    node = schema if isinstance(schema, dict) else {}
    required = node.get("required", ())
    for name, one in node.get("properties", {}).items():
        says = _value(one) if isinstance(one, dict) else ""
        parts = [*([says] if says else []), *([] if name in required else ["optional"])]
        yield schemas.show(name) + (f" ({', '.join(parts)})" if parts else "")


def _value(node: Mapping[str, Any]) -> str:
    if isinstance(options := node.get("enum"), list) and len(options) <= 8:
        return schemas.show(" or ".join(map(str, options)), 80)
    given = node.get("type")
    says = " or ".join(
        _TYPES.get(one, str(one)) for one in ([given] if isinstance(given, str) else given or ())
    )
    bounds = [f"{word} {node[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in node]
    return " ".join([says, *bounds]).strip()
