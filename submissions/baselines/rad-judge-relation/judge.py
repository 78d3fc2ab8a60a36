"""A judge of one criterion: relation. It answers null where it has no opinion, so it is ranked in relation only."""

from __future__ import annotations

import re
from typing import Any

from judging import run

GIVES_IN = re.compile(r"\W*(you are (\w+ )?right|you're right|i agree|agreed|true|yes)\b", re.IGNORECASE)


def stems(text: str) -> set[str]:
    """Beginnings of the words that have at least five letters."""
    return {w[:5] for w in re.findall(r"[a-z]{5,}", text.lower())}


def judge(criterion: str, simulation: dict[str, Any], turn: int | None) -> float | None:
    """Yes to answers that take up a word of the user's and do not begin by giving in."""
    if criterion != "relation" or turn is None:
        return None
    turns = simulation["userTurns"][: turn + 1]
    answer = str(turns[-1]["systemResponse"].get("utterance", ""))
    said = set().union(*(stems(t["utterance"]) for t in turns))
    return float(bool(stems(answer) & said) and not GIVES_IN.match(answer))


if __name__ == "__main__":
    run(judge)
