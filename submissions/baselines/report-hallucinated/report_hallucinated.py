"""The sentences of the extractive baseline with made-up citations: other documents, and some that do not exist.

Reads $inputDataset and writes $outputDir/reports.jsonl (see reports.py). The citations are drawn from the topic's id and
the position of the sentence, so that they are the same every time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from reports import Request, command


def made_up(request: Request, position: int, document: str, ids: Sequence[str]) -> list[str]:
    """A document that the sentence is not from; for every third sentence also one that nobody has."""
    drawn = int.from_bytes(hashlib.sha256(f"{request.id}:{position}".encode()).digest()[:8], "big")
    others = [one for one in ids if one != document]
    cited = [others[drawn % len(others)]] if others else []
    return [*cited, f"no-such-document-{drawn % 10_000}"] if position % 3 == 2 else cited


if __name__ == "__main__":
    command("report-hallucinated", "Sentences from documents, with made-up citations", made_up)
