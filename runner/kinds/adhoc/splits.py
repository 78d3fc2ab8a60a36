"""Divide the topics of a collection into public and blinded datasets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from runner.kinds.adhoc.formats import Judgment, Report
from runner.kinds.release import stem

_SPLITS = {
    "train": "train", "training": "train", "dev": "dev", "devel": "dev", "development": "dev", "val": "dev", "valid": "dev",
    "validation": "dev", "test": "test", "eval": "test",
}  # fmt: skip


def draw_topics(task_id: str, judged: Iterable[Judgment], public: int, report: Report) -> dict[str, set[str]]:
    """Return the topics of ``dev``, of which there are ``public``, and of ``test``: all other judged ones."""
    ordered = sorted({entry.topic for entry in judged}, key=lambda name: _draw(task_id, name))
    if not ordered:
        report.add("the collection", "has no judgments of its topics", "take topics and judgments that fit")
    elif public >= len(ordered):
        what = f"has {len(ordered)} judged topics: with {public} of them public none is left to be blinded"
        report.add("the collection", what, "make fewer topics public")
    dev = {"dev": set(ordered[:public])} if public else {}
    return dev | {"test": set(ordered[public:])}


def split_topics(judged: Iterable[Judgment]) -> dict[str, set[str]]:
    """Return the topics of each split that names of judgment files tell, the last of them blinded; none for a single split.

    BEIR has ``qrels/train.tsv``, ``qrels/dev.tsv`` and ``qrels/test.tsv``. Judgments without such a name are for the test.
    """
    topics: dict[str, set[str]] = {}
    split_of_file: dict[str, str] = {}
    for judgment in judged:
        if judgment.file not in split_of_file:
            split_of_file[judgment.file] = _split_of(judgment.file)
        topics.setdefault(split_of_file[judgment.file], set()).add(judgment.topic)
    return (
        {name: topics[name] for name in ("train", "dev", "test") if name in topics} if len(topics) > 1 else {}
    )


def _split_of(file: str) -> str:
    path = PurePosixPath(file)
    words = re.split("[^a-z]+", stem(path.name).lower())
    splits = {_SPLITS[word] for word in words if word in _SPLITS} or {
        _SPLITS.get(path.parent.name.lower(), "test")
    }
    return splits.pop() if len(splits) == 1 else "test"


def _draw(task_id: str, topic: str) -> str:
    """The place of a topic in an order that has no regard for its number, difficulty or subject."""
    return hashlib.sha256(f"{task_id}:{topic}".encode()).hexdigest()
