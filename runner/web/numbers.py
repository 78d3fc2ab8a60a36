"""Whole numbers in requests: the one place where text from outside becomes a number."""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_DIGITS = 18  # the number fits into 64 bits, and int() takes no time
_DIGITS = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}")


def whole_number(text: str, least: int = 0, most: int = 10**MAX_DIGITS - 1) -> int | None:
    """Return the whole number that a text is; None for any other text, and outside the bounds.

    Only the ASCII digits count: ``int()`` also takes signs, blanks, underscores and the digits of other scripts, and raises
    ValueError above 4,300 digits.

    Args:
        text: From a query, a header, a path or a form.
        least: The smallest number.
        most: The largest number.
    """
    if not _DIGITS.fullmatch(text):
        return None
    number = int(text)
    return number if least <= number <= most else None


def content_length(headers: Mapping[str, str]) -> int:
    """Return the length of a body as the head of the request announces it; 0 where it does not."""
    return whole_number(headers.get("content-length", "")) or 0
