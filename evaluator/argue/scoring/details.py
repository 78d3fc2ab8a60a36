"""``details.jsonl`` of a run of reports: one line a topic, with every sentence, judgment, reward and penalty.

``{"kind": "report", "topic", "answered", "line", "cut", "left_out", "measures": {…}, "sentences": [{"number", "text",
"citations": [ids], "judgments": [{"type", "doc_id"?, "value"? | "matches"?, "evaluator", "defaulted"?}], "effects": [{"kind":
"reward" | "penalty" | "none", "code", "text", "doc_id"?, "question"?, "answers"?}]}], "nuggets": [{"question", "aggregator",
"importance", "weight", "correct", "answers": [{"answer", "given"}], "sentences": [numbers]}]}``
"""

from __future__ import annotations

import json
from typing import Any

from evaluator.argue.models import JudgedReport, Judgment
from evaluator.argue.scoring.explaining import explanation
from evaluator.argue.scoring.topic import TopicScores

TEXT = 4_000  # characters that are kept of a sentence
CITED = 100  # citations, and judgments about them
SENTENCES = 500
ROOM = 800_000  # bytes of a line, nuggets included; the rest of the sentences is left out


def detail(scores: TopicScores, judged: JudgedReport | None, *, cut: int = 0) -> dict[str, Any]:
    """The line of one topic; ``cut`` is how many sentences were beyond the limit. Bounded, whatever was written.

    ``left_out`` is how many sentences were judged for which there is no room here.
    """
    told = explanation(scores)
    rows: list[dict[str, Any]] = []
    room = ROOM - _size(told["nuggets"])
    for i, sentence in enumerate(told["sentences"][:SENTENCES]):
        judgments = judged.segments[i].judgments if judged is not None else ()
        row = {
            **sentence,
            "text": sentence["text"][:TEXT],
            "citations": sentence["citations"][:CITED],
            "judgments": [_judgment(j) for j in judgments[: 4 * CITED]],
            "effects": sentence["effects"][: 4 * CITED],
        }
        room -= _size(row)
        if room < 0:
            break
        rows.append(row)
    return {
        "kind": "report",
        "topic": scores.topic,
        "answered": scores.answered,
        "line": None if judged is None else judged.line,
        "cut": cut,
        "left_out": len(told["sentences"]) - len(rows),
        **{k: v for k, v in told.items() if k not in ("topic", "answered", "sentences")},
        "sentences": rows,
    }


def _size(data: Any) -> int:
    """Bytes of the data as a part of a line."""
    return len(json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace"))


def _judgment(judgment: Judgment) -> dict[str, Any]:
    out: dict[str, Any] = {"type": judgment.type.value, "evaluator": judgment.evaluator}
    if judgment.doc_id is not None:
        out["doc_id"] = judgment.doc_id
    if judgment.value is None:
        out["matches"] = [
            {"question": m.question, "answers": list(m.answers), "importance": m.importance}
            for m in judgment.matches
        ]
    else:
        out["value"] = judgment.value
    return out | dict(judgment.extra)
