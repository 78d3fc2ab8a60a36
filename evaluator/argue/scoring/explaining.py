"""Why a report has its scores: every reward and penalty, as data and as text, and ``details.jsonl`` of a run.

The last has one line a topic:
``{"kind": "report", "topic", "answered", "line", "cut", "left_out", "measures": {…}, "sentences": [{"number", "text",
"citations": [ids], "judgments": [{"type", "doc_id"?, "value"? | "matches"?, "evaluator", "defaulted"?}], "effects": [{"kind":
"reward" | "penalty" | "none", "code", "text", "doc_id"?, "question"?, "answers"?}]}], "nuggets": [{"question", "aggregator",
"importance", "weight", "correct", "answers": [{"answer", "given"}], "sentences": [numbers]}]}``
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from evaluator.argue.models import COMPAT, JudgedReport, Judgment
from evaluator.argue.scoring.runs import RunScores
from evaluator.argue.scoring.topic import Effect, NuggetScore, SentenceScore, TopicScores
from evaluator.findings import plain

TEXT = 4_000  # characters that are kept of a sentence
CITED = 100  # citations, and judgments about them
SENTENCES = 500
MOST_BYTES = 800_000  # bytes of a line, nuggets included; the rest of the sentences is left out
SHOWN = 2000  # characters of a text
_SIGNS = {"reward": "+", "penalty": "-", "none": " "}
# code -> what it means; {doc}, {question} and {answers} are filled in
WORDS = {
    "supported": "every cited document supports the sentence",
    "unsupported": "{doc} does not support the sentence",
    "irrelevant": "{doc} attests no answer of a nugget: it can earn none",
    "missing-citation": "a citation is required, and there is none",
    "said-before": "a citation is required, but the report has said this before",
    "no-citation-needed": "no citation is required",
    "nugget": "answers {question} with {answers}",
    "nugget-part": "answers a part of {question}, with {answers}; it takes all answers",
    "nugget-again": "answers {question} with {answers}, which has counted already",
    "no-nugget": "answers no nugget",
    "not-in-nuggets": "is said to answer {question} with {answers}, which is not in the nuggets",
    "match-irrelevant": "answers {question} with {answers}, but {doc} is not relevant",
    "match-unsupported": "answers {question} with {answers}, but is not supported",
    "negation-confirmed": "says that something is not known, which {question} confirms",
    "negation-unconfirmed": "says that something is not known, which nothing confirms",
    "wrong-answer": "gives {answers} to {question}, an answer that was kept out",
}


def effect_text(effect: Effect) -> str:
    """One effect in words, safe to print."""
    answers = ", ".join(_quoted(a) for a in effect.answers[:20])
    more = len(effect.answers) - 20
    return WORDS[effect.code].format(
        doc=plain(effect.doc_id or "no document", 200),
        question=_quoted(effect.question or ""),
        answers=answers + (f" and {more} more" if more > 0 else ""),
    )


def explanation(scores: TopicScores) -> dict[str, Any]:
    """Everything about one report as JSON data: measures, sentences with their effects, nuggets."""
    return {
        "compat": COMPAT,
        "topic": scores.topic,
        "answered": scores.answered,
        "measures": dict(scores.values),
        "sentences": [_sentence_json(s) for s in scores.sentences],
        "nuggets": [_nugget_json(n) for n in scores.nuggets],
    }


def run_explanation(scores: RunScores) -> dict[str, Any]:
    """Everything about a run as JSON data, with the policies under which it was scored."""
    return {
        "compat": scores.compat,
        "run": scores.run,
        "policy": policy(scores),
        "all": dict(scores.overall),
        "missing": list(scores.missing),
        "skipped": list(scores.skipped),
        "topics": [explanation(t) for t in scores.topics.values()],
    }


def policy(scores: RunScores) -> dict[str, Any]:
    """How judgments became scores: what to say next to every figure."""
    names = {"credit": "nugget_credit", "missing": "missing_topics", "incomplete": "incomplete_judgments"}
    return {names.get(name, name): value for name, value in asdict(scores.options).items()}


def _sentence_json(s: SentenceScore) -> dict[str, Any]:
    effects = []
    for e in s.effects:
        row: dict[str, Any] = {"kind": e.kind, "code": e.code, "text": effect_text(e)}
        if e.doc_id is not None:
            row["doc_id"] = e.doc_id
        if e.question is not None:
            row |= {"question": e.question, "answers": list(e.answers)}
        effects.append(row)
    return {"number": s.number, "text": s.text, "citations": list(s.citations), "effects": effects}


def _nugget_json(n: NuggetScore) -> dict[str, Any]:
    out: dict[str, Any] = {
        "question": n.nugget.question,
        "aggregator": n.nugget.aggregator,
        "importance": n.nugget.importance,
        "weight": n.nugget.weight,
        "correct": n.correct,
        "answers": [{"answer": a.text, "given": a.text in n.answers} for a in n.nugget.answers],
        "sentences": list(n.sentences),
    }
    return out | {"wrong_answers": list(n.wrong)} if n.wrong else out


def explain(scores: TopicScores) -> str:
    """One report explained as text, without control characters: + is a reward, - a penalty."""
    return "\n".join(_lines(scores)) + "\n"


def _lines(scores: TopicScores) -> Iterator[str]:
    v = scores.values
    yield f"topic {plain(scores.topic, 200)} ({COMPAT})"
    if not scores.answered:
        yield "  there is no report"
    for s in scores.sentences:
        yield f"{s.number:3}. {plain(s.text, SHOWN)}"
        if s.citations:
            yield f"     cites {', '.join(plain(d, 200) for d in s.citations)}"
        for e in s.effects:
            yield f"   {_SIGNS[e.kind]} {effect_text(e)}"
    for n in scores.nuggets:
        at = f", sentences {', '.join(map(str, n.sentences))}" if n.sentences else ""
        kind = f"{n.nugget.aggregator}{f', {n.nugget.importance}' if n.nugget.importance else ''}"
        count = f"{len(n.answers)} of {len(n.nugget.answers)} answers"
        yield f"  [{'x' if n.correct else ' '}] {_quoted(n.nugget.question)} ({kind}): {count}{at}"
    yield (
        f"  sentence_support {v['correctly_cited_sentences']:g}/"
        f"{v['sentences_with_citations_or_requiring_citations']:g} = {v['sentence_support']:.4f}, "
        f"nugget_coverage {v['correct_nuggets']:g}/{v['nuggets']:g} = {v['nugget_coverage']:.4f}, f1 {v['f1']:.4f}"
    )


def _quoted(text: str) -> str:
    return f'"{plain(text, 300)}"'


# --- details.jsonl ---------------------------------------------------------------------------------------------


def detail(scores: TopicScores, judged: JudgedReport | None, *, cut: int = 0) -> dict[str, Any]:
    """The line of one topic; ``cut`` is how many sentences were beyond the limit. Bounded, whatever was written.

    ``left_out`` is how many sentences were judged for which there is no space here.
    """
    whole = explanation(scores)
    rows: list[dict[str, Any]] = []
    free = MOST_BYTES - _size(whole["nuggets"])
    for i, sentence in enumerate(whole["sentences"][:SENTENCES]):
        judgments = judged.segments[i].judgments if judged is not None else ()
        row = {
            **sentence,
            "text": sentence["text"][:TEXT],
            "citations": sentence["citations"][:CITED],
            "judgments": [_judgment(j) for j in judgments[: 4 * CITED]],
            "effects": sentence["effects"][: 4 * CITED],
        }
        free -= _size(row)
        if free < 0:
            break
        rows.append(row)
    return {
        "kind": "report",
        "topic": scores.topic,
        "answered": scores.answered,
        "line": None if judged is None else judged.line,
        "cut": cut,
        "left_out": len(whole["sentences"]) - len(rows),
        **{k: v for k, v in whole.items() if k not in ("topic", "answered", "sentences")},
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
