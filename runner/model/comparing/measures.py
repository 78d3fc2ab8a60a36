"""On what runs can be compared: measures that all have, computed alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import schemas


def why_not(views: Sequence[Mapping[str, Any]], name: str) -> str:
    """Why runs cannot be compared on a measure, by its id; empty where they can. ``views`` are the runs as somebody may see them."""
    for view in views:
        if name in view["pending"]:
            return f"no value of {view['run']} yet ({view['pending'][name]})"
        if name not in view["scores"]:
            return f"{view['run']} was evaluated without it"
    computed = dict.fromkeys(view["scores"][name]["measure"] for view in views)
    if None not in computed and len(computed) > 1:
        return f"computed as {' and as '.join(schemas.show(one, 80) for one in computed)}"
    return ""
