"""What the inputs of a public dataset hold: files, the fields of their lines, and an example of each."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schemas
from runner.model.errors import RunnerError
from runner.tasks.files import view
from runner.tasks.views import Shown, is_lines, objects

if TYPE_CHECKING:
    from runner.model.task import Dataset, Scenario, Task

EXAMPLE = 148  # characters of an example
_READ = 4096  # characters of a file of which an example is made
_LONGEST, _SHORTEST = 120, 3  # characters of a text in an example
_IDS = ("qid", "query_id", "request_id", "docno", "doc_id", "docid", "argument_id", "id", "number", "_id")


@dataclass(frozen=True)
class InputFile:
    """One file of the inputs: its name, the fields of its first object (JSON Lines only), and a shortened example.

    ``scenarios`` are those that see it, ``fields_of`` those that see a field which others do not; both empty where all
    scenarios see the same.
    """

    name: str
    fields: tuple[str, ...] = ()
    example: str = ""
    scenarios: tuple[str, ...] = ()
    fields_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def first_object(shown: Shown) -> dict[str, Any]:
    """The first object of a file of JSON lines, as far as it is in the view; empty where there is none to be read."""
    if not is_lines(str(shown.name)):
        return {}
    try:
        found = next(islice(filter(None, objects(shown.path, str(shown.name))), 1), {})
    except (RunnerError, OSError, json.JSONDecodeError):
        return {}
    return {key: value for key, value in found.items() if shown.fields is None or key in shown.fields}


def seen(dataset: Dataset, scenario: Scenario | None) -> list[Shown]:
    """What a scenario sees of a dataset; nothing where its files are not here."""
    try:
        return view(dataset, scenario)
    except (RunnerError, OSError):
        return []


def input_files(task: Task, dataset: Dataset) -> Iterator[InputFile]:
    """The files of ``dataset`` that any scenario of ``task`` sees. To be asked of public datasets only."""
    by_scenario = {
        name: {str(one.name): one for one in seen(dataset, scenario)}
        for name, scenario in task.scenarios.items()
    }
    for name in sorted({name for files in by_scenario.values() for name in files}):
        holds = {one: first_object(files[name]) for one, files in by_scenario.items() if name in files}
        most = max(holds.values(), key=len)
        path = next(files[name].path for files in by_scenario.values() if name in files)
        begins = shortened(most) if most else _beginning(path, name)
        whose = {key: tuple(one for one, row in holds.items() if key in row) for key in most}
        yield InputFile(
            name,
            tuple(most),
            schemas.show(begins, EXAMPLE),
            tuple(holds) if len(holds) < len(by_scenario) else (),
            {key: of for key, of in whose.items() if len(of) < len(holds)},
        )


def first_id(dataset: Dataset, name: str | None) -> str:
    """The first id in a file of the inputs (JSON lines, or a list of ids); empty where none is recognised."""
    shown = next((one for one in seen(dataset, None) if str(one.name) == name), None)
    if shown is None:
        return ""
    row = first_object(shown)
    begins = _beginning(shown.path, str(shown.name))
    ids = [str(row[key]) for key in _IDS if key in row] or ([begins] if len(begins.split()) == 1 else [])
    return schemas.show(ids[0], 60) if ids else ""


def shortened(row: Mapping[str, Any], limit: int = EXAMPLE) -> str:
    """``row`` as JSON of at most about ``limit`` characters: texts cut, lists with their first item only."""
    text = ""
    for most in range(_LONGEST, _SHORTEST, -3):
        text = json.dumps(_cut(row, most), ensure_ascii=False)
        if len(text) <= limit:
            break
    return text


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else value[: most - 1] + "…"
    if isinstance(value, Mapping):
        return {key: _cut(one, most) for key, one in value.items()}
    if isinstance(value, list):
        return [_cut(one, most) for one in value[:1]] + ["…"] * (len(value) > 1)
    return value


def _start(path: Path, name: str) -> str:
    """The first characters of a text file, plain or ``.gz``; empty for what is no text or cannot be read."""
    try:
        with gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb") as file:
            text = file.read(_READ).decode("utf-8-sig", "ignore")
    except (OSError, EOFError):
        return ""
    return "" if "\0" in text else text


def _beginning(path: Path, name: str) -> str:
    """How a file begins: its first line, or of XML and JSON its first elements in one line."""
    text = _start(path, name).strip()
    if text.startswith(("<", "{", "[")):
        return " ".join(re.sub(r"^<\?xml[^>]*\?>", "", text).split())
    return text.partition("\n")[0].strip()
