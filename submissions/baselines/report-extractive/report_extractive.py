"""Reports of sentences that are taken from documents, each with the document that it is from.

Reads $inputDataset and writes $outputDir/reports.jsonl (see reports.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from reports import Request, command


def source(request: Request, position: int, document: str, ids: Sequence[str]) -> list[str]:
    """The document that a sentence is from."""
    return [document]


if __name__ == "__main__":
    command("report-extractive", "Sentences from documents, with citations", source)
