"""Scores of Nuggetizer files (TREC RAG): statements of a topic, each assigned to a report beforehand.

One line per topic: ``{"qid", "nuggets": [{"text", "importance": "vital|okay|failed", "assignment":
"support|partial_support|not_support"}]}``. Nothing is judged here. Per topic: ``strict_vital`` and ``strict_all`` count
``support`` only, ``vital`` and ``all`` count ``partial_support`` half; the divisor is the number of vital or of all
nuggets, and x/0 is 0. A run's score is the mean over its topics.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluator.argue.formats.lines import parse_lines
from evaluator.argue.formats.requests import refused
from evaluator.argue.scoring.means import mean, ratio
from evaluator.errors import EvaluatorError
from evaluator.findings import show
from evaluator.formats.files import Damaged, TooLarge, Unreadable
from schemas.jsonl import kind_of

MEASURES = ("strict_vital", "strict_all", "vital", "all")
_STRICT = {"support": 1.0, "partial_support": 0.0, "not_support": 0.0}
_LENIENT = _STRICT | {"partial_support": 0.5}
_IMPORTANCE = ("vital", "okay", "failed")


def nuggetizer_scores(nuggets: list[tuple[str, str]]) -> dict[str, float]:
    """The four measures of one topic from its (importance, assignment) pairs."""
    vital = [a for i, a in nuggets if i == "vital"]
    every = [a for _, a in nuggets]
    return {
        "strict_vital": ratio(sum(_STRICT[a] for a in vital), len(vital)),
        "strict_all": ratio(sum(_STRICT[a] for a in every), len(every)),
        "vital": ratio(sum(_LENIENT[a] for a in vital), len(vital)),
        "all": ratio(sum(_LENIENT[a] for a in every), len(every)),
    }


def score_nuggetizer(path: Path) -> dict[str, dict[str, float]]:
    """The measures by topic, and their means under ``all``. Raises :class:`EvaluatorError` with every problem."""
    problems: list[str] = []
    topics: dict[str, dict[str, float]] = {}
    try:
        for line in parse_lines(path, max_line=16 << 20, follow=True):
            place = f"{path.name}:{line.number}"
            if line.code:
                problems.append(f"{place}: {line.reason}")
                continue
            wrong, topic, pairs = _read(line.value)
            if topic in topics:
                wrong.append(f"the topic {show(topic)} is there twice")
            problems += [f"{place}: {w}" for w in wrong]
            if not wrong:
                topics[topic] = nuggetizer_scores(pairs)
    except (Unreadable, Damaged, TooLarge) as error:
        raise EvaluatorError(f"the nuggets {path.name} cannot be read", str(error)) from None
    if not topics and not problems:
        problems.append(f"{path.name}: it holds no topic")
    if problems:
        raise refused(f"the nuggets {path.name} cannot be scored", problems)
    means = {m: mean([t[m] for t in topics.values()]) for m in MEASURES}
    return topics | {"all": means}


def _read(data: Any) -> tuple[list[str], str, list[tuple[str, str]]]:
    if not isinstance(data, dict):
        return [f"there is {kind_of(data)}, not an object"], "", []
    wrong: list[str] = []
    topic, listed = data.get("qid"), data.get("nuggets")
    if not isinstance(topic, str | int) or isinstance(topic, bool) or str(topic) in ("", "all"):
        wrong.append("qid is missing or no name")
    if not isinstance(listed, list):
        wrong.append(f"nuggets is {kind_of(listed)}, not a list")
        listed = []
    pairs = []
    for i, nugget in enumerate(listed):
        one = nugget if isinstance(nugget, dict) else {}
        importance, assignment = one.get("importance"), one.get("assignment")
        if importance not in _IMPORTANCE:
            wrong.append(f"/nuggets/{i}/importance is {show(str(importance))}, not vital, okay or failed")
        elif not isinstance(assignment, str) or assignment not in _STRICT:
            wrong.append(
                f"/nuggets/{i}/assignment is {show(str(assignment))}, not one of {', '.join(_STRICT)}"
            )
        else:
            pairs.append((str(importance), str(assignment)))
    return wrong, str(topic), pairs
