"""Small collections for the tests of the argument index, and formulas written down a second time."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

DIMENSIONS = 4
VECTOR_FIELDS = ("attacks_embedding_stella", "supports_embedding_stella", "text_embedding_stella")


def argument(name: str, text: str, **more: Any) -> dict[str, Any]:
    """An argument with all the fields of the official index."""
    return {
        "id": name,
        "topic": "Should cities ban cars?",
        "tags": ["Cities"],
        "attacks": f"Not so: {text}",
        "supports": f"Indeed: {text}",
        "text": text,
        "references": [],
        "original": "attacks",
        **more,
    }


ARGUMENTS = [
    argument(
        "1.1",
        "Cars pollute the air of cities.",
        attacks="Cars are good for cities.",
        tags=["Cities", "Health"],
    ),
    argument(
        "1.2", "Night nurses need cars.", attacks="Buses replace cars.", references=["https://example.org/a"]
    ),
    argument(
        "1.3", "Buses run all day and night.", attacks="Nobody can travel without cars.", original="supports"
    ),
    argument("2.1", "Trees don't grow under roads.", topic="Should roads be narrower?", tags=["Roads"]),
    argument(
        "2.2", "Wide roads invite fast cars, cars and more cars.", topic="Should roads be narrower?", tags=[]
    ),
    argument("10104.4", "Zürich has 1,000 trams.", attacks="Trams are rare.", topic="Trams"),
]


def write(
    folder: Path, arguments: Sequence[dict[str, Any]] = ARGUMENTS, vectors: bool = True, dtype: str = "f4"
) -> Path:
    """Write a data folder; the vectors are random, the same every time. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(a, ensure_ascii=False) + "\n" for a in arguments]
    (folder / "arguments.jsonl").write_text("".join(lines), encoding="utf-8")
    if vectors:
        random = np.random.default_rng(7)
        for field in VECTOR_FIELDS:
            np.save(
                folder / f"{field}.npy", random.standard_normal((len(arguments), DIMENSIONS)).astype(dtype)
            )
    return folder


def kept_length(length: int) -> int:
    """The length of a field as one byte keeps it: exact below 40, then four binary digits over 24, rounded down."""
    rest = length - 24
    if rest < 16:
        return length
    shift = rest.bit_length() - 4
    return 24 + ((rest >> shift) << shift)


def bm25(documents: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """Elasticsearch's BM25 of every document, written from its formula."""
    average = sum(map(len, documents)) / len(documents)
    scores = []
    for words in documents:
        counts, score = Counter(words), 0.0
        for word in query:
            df = sum(word in other for other in documents)
            if not counts[word]:
                continue
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            norm = 1.2 * (1 - 0.75 + 0.75 * kept_length(len(words)) / average)
            score += idf * 2.2 * counts[word] / (counts[word] + norm)
        scores.append(score)
    return scores
