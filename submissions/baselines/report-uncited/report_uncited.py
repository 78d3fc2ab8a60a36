"""The sentences of the extractive baseline without a single citation: nothing in such a report can be checked.

Reads $inputDataset and writes $outputDir/reports.jsonl (see reports.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from reports import Request, command


def nothing(request: Request, position: int, document: str, ids: Sequence[str]) -> list[str]:
    """No document."""
    return []


if __name__ == "__main__":
    command("report-uncited", "Sentences from documents, without citations", nothing)
