"""The rankings of a run as it wrote them: the first documents of each topic, by score and then by id, as the evaluator orders them."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Callable
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING

from runner.views.audience import Audience, escape, sees_inside
from runner.views.text import MAX_ID
from schemas import jsonl

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail

FIRST = 100  # documents of a topic
MAX_BYTES = 256 * 1024 * 1024  # of a run file, unpacked
MAX_LINES, MAX_TOPICS = 1_000_000, 20_000
MAX_LINE = 64 * 1024


def retrieved(
    found: RunDetail, task: Task, audience: Audience, dataset: Dataset
) -> dict[str, list[str]] | None:
    """The first :data:`FIRST` documents of each topic of a run, escaped; None where the audience may not see what it wrote, or no file
    is there that can be read. Lines that are none are left out, and those beyond :data:`MAX_LINES`, :data:`MAX_TOPICS` and :data:`MAX_BYTES`, too."""
    if not sees_inside(audience, found.run.submission.team, dataset, found.published):
        return None
    name = (found.record.get("output") or {}).get("file")
    kept = found.attempt.file(f"output/{name}") if found.attempt is not None and name else None
    if kept is None:
        return None
    single = task.score_precision == "float32"
    topics: dict[str, dict[bytes, float]] = {}
    try:
        with kept.local() as path, path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            lines = gzip.GzipFile(fileobj=raw) if packed else raw
            for _, _, line in islice(jsonl.split(_bounded(lines.read), MAX_LINE), MAX_LINES):
                parts = (line or b"").split()
                if len(parts) != 6 or (score := _score(parts[4], single)) is None:
                    continue
                topic = _text(parts[0])
                if topic in topics or len(topics) < MAX_TOPICS:
                    topics.setdefault(topic, {}).setdefault(parts[2], score)
    except (OSError, EOFError, zlib.error):
        return None
    return {
        topic: [_text(one) for one in nlargest(FIRST, scores, key=lambda one: (scores[one], one))]
        for topic, scores in topics.items()
    }


def _bounded(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    left = MAX_BYTES

    def some(size: int) -> bytes:
        nonlocal left
        data = read(min(size, left))
        left -= len(data)
        return data

    return some


def _score(text: bytes, single: bool) -> float | None:
    try:
        value = float(text)
        return (
            None
            if math.isnan(value)
            else struct.unpack("<f", struct.pack("<f", value))[0]
            if single
            else value
        )
    except (ValueError, OverflowError):
        return None


def _text(raw: bytes) -> str:
    return escape(raw.decode("utf-8", "backslashreplace"), MAX_ID)
