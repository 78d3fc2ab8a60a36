"""Debates, judgments and labels for tests, and a literal reading of the shared task's evaluator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CRITERIA = ("quantity", "quality", "relation", "manner")
Row = dict[str, Any]  # criterion -> score or label of one turn


def debate(number: int, turns: int) -> Row:
    said = []
    for t in range(turns):
        answer = f"system {number}.{t}"
        response = {"content": answer, "arguments": [{"id": f"a{t}", "text": "why"}]}
        system = {"utterance": answer, "response": response}
        said.append({"utterance": f"user {number}.{t}", "systemResponse": system})
    return {"simulation": {"userTurns": said}}


def judgments(turns: Sequence[Row]) -> Row:
    """A line of evaluations.jsonl; a criterion that a turn lacks is left out."""
    return {
        "userTurnsEvaluations": [{c.capitalize(): {"score": s} for c, s in turn.items()} for turn in turns]
    }


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def everything(score: Any) -> Row:
    return dict.fromkeys(CRITERIA, score)


def official(labels: Sequence[Sequence[Row]], scores: Sequence[Sequence[Row]]) -> dict[str, float]:
    """The values of the shared task's evaluator, written down as its description has them: turn by turn."""
    out: dict[str, float] = {}
    for criterion in CRITERIA:
        tp = fp = fn = 0
        for said, judged in zip(labels, scores, strict=True):
            for label, score in zip(said, judged, strict=True):
                if label[criterion] is None:
                    continue
                predicted = score[criterion] >= 0.5
                tp += bool(label[criterion] == 1 and predicted)
                fp += bool(label[criterion] == 0 and predicted)
                fn += bool(label[criterion] == 1 and not predicted)
        p = tp / (tp + fp) if tp else 0
        r = tp / (tp + fn) if tp else 0
        out[f"{criterion} precision"] = p
        out[f"{criterion} recall"] = r
        out[f"{criterion} f1"] = 2 * p * r / (p + r) if p + r else 0
    out["score"] = sum(out[f"{c} f1"] for c in CRITERIA) / 4
    return out
