"""Hostile text made safe to show."""

from __future__ import annotations


def printable(text: str, limit: int = 200) -> str:
    """``text`` with everything that is not printable escaped (control, direction and undecodable characters).

    At most ``limit`` characters of the original are kept; a cut is marked with an ellipsis.
    """
    cut = text[:limit]
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in cut
    )
    return shown + ("…" if len(text) > limit else "")
