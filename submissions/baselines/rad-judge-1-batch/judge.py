"""The 1-baseline of sub-task 2: yes to everything, and no opinion on debates as a whole."""

from __future__ import annotations

from typing import Any

from judging import run


def judge(criterion: str, simulation: dict[str, Any], turn: int | None) -> float | None:
    """1 for every answer."""
    return None if turn is None else 1


if __name__ == "__main__":
    run(judge)
