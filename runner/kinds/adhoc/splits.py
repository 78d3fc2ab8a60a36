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
_QRELS = re.compile("^qrels?[-_]|[-_]qrels?$")


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
    """Return the topics of each split, the last of them blinded; nothing unless each judgment file names its split.

    BEIR has ``qrels/train.tsv``, ``qrels/dev.tsv`` and ``qrels/test.tsv``. A file without a split could hold judgments that
    must stay hidden, so the names then decide nothing. The same holds for a single split.
    """
    topics: dict[str, set[str]] = {}
    splits_of_file: dict[str, set[str]] = {}
    for judgment in judged:
        if judgment.file not in splits_of_file:
            splits_of_file[judgment.file] = _splits_in(judgment.file)
        for split in splits_of_file[judgment.file]:
            topics.setdefault(split, set()).add(judgment.topic)
    if len(topics) < 2 or any(len(splits) != 1 for splits in splits_of_file.values()):
        return {}
    return {name: topics[name] for name in ("train", "dev", "test") if name in topics}


def _splits_in(file: str) -> set[str]:
    """Return the splits that folders of a path and parts of its name between dots are called after."""
    path = PurePosixPath(file.lower())
    parts = [*path.parts[:-1], *stem(path.name).split(".")]
    return {_SPLITS[word] for part in parts if (word := _QRELS.sub("", part)) in _SPLITS}


def _draw(task_id: str, topic: str) -> str:
    """The place of a topic in an order that has no regard for its number, difficulty or subject."""
    return hashlib.sha256(f"{task_id}:{topic}".encode()).hexdigest()
