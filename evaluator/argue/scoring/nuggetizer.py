"""Scores of Nuggetizer files (TREC RAG): statements of a topic, each assigned to a report beforehand.

One line per topic: ``{"qid", "nuggets": [{"text", "importance": "vital|okay|failed", "assignment":
"support|partial_support|not_support"}]}``. Nothing is judged here. Per topic: ``strict_vital`` and ``strict_all`` count
``support`` only, ``vital`` and ``all`` count ``partial_support`` half; the divisor is the number of vital or of all
nuggets, and x/0 is 0. A run's score is the mean over its topics.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluator.argue.formats.lines import Lines, refused
from evaluator.argue.scoring.measures import mean, ratio
from evaluator.findings import show
from schemas.jsonl import kind_of

MAX_LINE = 16 << 20
MEASURES = ("strict_vital", "strict_all", "vital", "all")
_STRICT = {"support": 1.0, "partial_support": 0.0, "not_support": 0.0}
_LENIENT = _STRICT | {"partial_support": 0.5}
_IMPORTANCE = ("vital", "okay", "failed")


def nuggetizer_scores(nuggets: list[tuple[str, str]]) -> dict[str, float]:
    """The four measures of one topic from its (importance, assignment) pairs."""
    chosen = {"vital": [a for i, a in nuggets if i == "vital"], "all": [a for _, a in nuggets]}
    weights = {"strict_": _STRICT, "": _LENIENT}
    return {
        f"{how}{name}": ratio(sum(weights[how][a] for a in said), len(said))
        for how in weights
        for name, said in chosen.items()
    }


def score_nuggetizer(path: Path) -> dict[str, dict[str, float]]:
    """The measures by topic, and their means over the topics under ``all``.

    Args:
        path: a Nuggetizer file with assignments, JSON Lines.

    Raises:
        EvaluatorError: the file cannot be scored; lists every problem.
    """
    lines = Lines(path.name)
    topics: dict[str, dict[str, float]] = {}
    for value in lines.values(path, MAX_LINE):
        before = len(lines.problems)
        topic, pairs = _read(value, lines)
        if topic in topics:
            lines.add(f"the topic {show(topic)} is there twice")
        if len(lines.problems) == before:
            topics[topic] = nuggetizer_scores(pairs)
    if not topics and not lines.problems:
        lines.add("it holds no topic")
    if lines.problems:
        raise refused(f"the nuggets {path.name} cannot be scored", lines.problems)
    return topics | {"all": {m: mean([t[m] for t in topics.values()]) for m in MEASURES}}


def _read(data: Any, lines: Lines) -> tuple[str, list[tuple[str, str]]]:
    """The topic and the (importance, assignment) pairs of one object; what is wrong with it is noted."""
    if not isinstance(data, dict):
        lines.add(f"there is {kind_of(data)}, not an object")
        return "", []
    topic = data.get("qid")
    listed: Any = data.get("nuggets")
    if not isinstance(topic, str | int) or isinstance(topic, bool) or str(topic) in ("", "all"):
        lines.add("qid is missing or no name")
    pairs = []
    for i, nugget in enumerate(listed if lines.is_list(("nuggets",), listed, "nuggets") else ()):
        row = nugget if isinstance(nugget, dict) else {}
        pair = str(row.get("importance")), str(row.get("assignment"))
        for key, value, known in zip(("importance", "assignment"), pair, (_IMPORTANCE, _STRICT), strict=True):
            if value not in known:
                lines.say(("nuggets", i, key), f"{key} is {show(value)}, not one of {', '.join(known)}")
        pairs.append(pair)
    return str(topic), pairs
