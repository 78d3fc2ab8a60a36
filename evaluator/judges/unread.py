"""The reason why judgments must not count when most replies of a judge cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.findings import show

EXAMPLES = 3
EXAMPLE_CHARACTERS = 60


def unread_replies(unread: int, asked: int, examples: Sequence[str]) -> str:
    """Return the number of unreadable replies with the first of them, shortened and escaped: replies are untrusted."""
    quotes = ", ".join(show(reply, EXAMPLE_CHARACTERS) for reply in examples[:EXAMPLES])
    return f"{unread:,} of {asked:,} replies of the judge could not be read, such as {quotes}"
