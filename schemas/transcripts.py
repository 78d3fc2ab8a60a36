"""The identity of what was said in a run: the same words, however long they took, give the same digest.

It is how labels and judgments say which debates they are about, and how two executions are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from schemas import canonical


def transcript(line: Mapping[str, Any]) -> list[list[Any]]:
    """What was said in one debate (a line of ``simulations.jsonl``), without times.

    One entry a turn: the user's utterance, the system's utterance, and its arguments as ``[id, text]``. What is
    missing or of another type than it should be is None; a failed debate (``{}``) has no turns. Never raises.
    """
    simulation = line.get("simulation")
    turns = simulation.get("userTurns") if isinstance(simulation, Mapping) else None
    return [_turn(turn) for turn in turns] if isinstance(turns, list) else []


def transcript_digest(lines: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 (hex) of the canonical JSON of the list of all debates' :func:`transcript`, in their order.

    Takes one line at a time, so that a long run needs no more memory than a short one.
    """
    whole = hashlib.sha256(b"[")
    for number, line in enumerate(lines):
        whole.update((b"," if number else b"") + canonical(transcript(line)))
    whole.update(b"]")
    return whole.hexdigest()


def _turn(turn: Any) -> list[Any]:
    row = turn if isinstance(turn, Mapping) else {}
    said = row.get("systemResponse")
    said = said if isinstance(said, Mapping) else {}
    response = said.get("response")
    arguments = response.get("arguments") if isinstance(response, Mapping) else None
    rows = arguments if isinstance(arguments, list) else []
    return [_text(row.get("utterance")), _text(said.get("utterance")), [_argument(one) for one in rows]]


def _argument(argument: Any) -> list[str | None]:
    row = argument if isinstance(argument, Mapping) else {}
    return [_text(row.get("id")), _text(row.get("text"))]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
