"""The output of an interactive run without the times that the platform measured: no execution repeats those."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.execution.workflows.beside import SERVED, TURNS
from runner.records.archive import Attempt
from runner.records.contents import KeptFile
from schemas import jsonl

# Where they stand: keys from the outside in, * for each element of a list and each value of an object. What is not named here was said
# by the software, whatever it calls it.
_DEBATES = (
    "simulation.milliseconds",
    "simulation.userTurns.*.systemResponse.milliseconds",
    "userTurnsEvaluations.*.milliseconds",
    "userTurnsEvaluations.*.*.milliseconds",
    "overallEvaluations.milliseconds",
    "overallEvaluations.*.milliseconds",
    "millisecondsEvaluation",
)
_RULES = jsonl.Rules(duplicates="last", constants=True, bounded=False)  # whatever a software may say
_BESIDE = {TURNS: ("user_ms", "system_ms"), SERVED: ("at_ms", "n")}


def untimed(attempt: Attempt) -> dict[str, str]:
    """A digest of each output file of an interactive attempt, by name: the same for two that differ in measured times only.

    Debates are held at the same time, so the order in which the argument index was asked by several is one of these. Raises E307 for
    damaged files.
    """
    return {
        name: _digest(file, _BESIDE.get(name, _DEBATES), ordered=name != SERVED)
        for name, file in attempt.files("output").items()
    }


def _digest(file: KeptFile, times: Sequence[str], *, ordered: bool) -> str:
    lines = list(_lines(file, [path.split(".") for path in times]))
    return hashlib.sha256(b"".join(lines if ordered else sorted(lines))).hexdigest()


def _lines(file: KeptFile, times: Sequence[Sequence[str]]) -> Iterator[bytes]:
    """A digest of each line; of one that is no JSON, of its bytes."""
    with file.open() as stream:
        for raw in stream:
            found = jsonl.parse(raw, _RULES)
            if not isinstance(found, jsonl.Fault):
                for path in times:
                    _drop(found, path)
                raw = json.dumps(found, sort_keys=True).encode()
            yield hashlib.sha256(raw).digest()


def _drop(value: Any, path: Sequence[str]) -> None:
    """Take what stands at ``path`` out of JSON data."""
    key, *rest = path
    inside: Sequence[Any] = ()
    if key == "*":
        inside = (
            list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        )
    elif isinstance(value, dict) and not rest:
        value.pop(key, None)
    elif isinstance(value, dict) and key in value:
        inside = [value[key]]
    for one in inside:
        _drop(one, rest)
