"""Small files that are replaced as a whole, read anew only when they were."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import schemas
from schemas.files import settled

_Stamp = tuple[int, int, int]
_KNOWN: dict[tuple[Path, str], tuple[_Stamp, dict[str, Any] | None]] = {}


def read_replaced(path: Path, schema: str) -> dict[str, Any] | None:
    """The JSON object in a file that fits its schema; None where there is none. Not to be changed.

    It is parsed once for each version of the file: whoever writes it renames a new one over it.
    """
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            known = _KNOWN.get((path, schema))
            if known is not None and known[0] == stamp:
                return known[1]
            data = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    found = data if isinstance(data, dict) and not schemas.validate(data, schema) else None
    if settled(facts):
        _KNOWN[path, schema] = (stamp, found)
    return found
