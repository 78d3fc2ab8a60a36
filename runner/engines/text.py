"""Hostile text made safe to show, at the length that suits an engine's messages."""

from __future__ import annotations

import schemas


def printable(text: str, limit: int = 200) -> str:
    """``text`` with everything that is not printable escaped, cut to at most ``limit`` characters."""
    return schemas.show(text, limit)
