"""The reports of a run, sentence by sentence: citations, judgments, nuggets, and what each was worth.

They are read from the evaluation's ``details.jsonl``, one topic a line, which the evaluator of the kind ``report`` writes.
Another evaluator may write other things there: what has another form is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from runner.kinds.report.reports import EFFECTS, Effect, Judgment, Nugget, Report, Reports, Sentence
from runner.tasks.transcripts import OWN, json_lines
from runner.views.audience import Audience, escape, not_for, permissions_for, sees_inside
from runner.views.redact import cut, details
from runner.views.text import MAX_ID, number, shown, whole

if TYPE_CHECKING:
    from runner.model.task import Dataset, Task
    from runner.records.store.run_detail import RunDetail

MAX_TOPICS = 10_000
MAX_SENTENCES = 2000  # of one report that are shown
MAX_ITEMS = 200  # of one sentence or nugget, of each kind
MAX_DOCUMENT_ID = 2 * MAX_ID


def read(found: RunDetail, task: Task | None, audience: Audience, dataset: Dataset) -> Reports | None:
    """The reports of a run; None when its evaluation has no details. Raises E103 for those who may not know of it.

    On a blinded dataset only the organiser sees them: they hold the nuggets.
    """
    if not permissions_for(audience, found.run.submission.team, dataset, found.published).run:
        raise not_for(audience, f"run {found.run.id}")
    if not sees_inside(audience, found.run.submission.team, dataset, found.published):
        return Reports(audience, None)
    if found.evaluation is None or found.evaluation.file("details.jsonl") is None:
        return None
    reports: list[Report] = []
    left_out = 0
    requests = _requests(dataset)
    rows = details(found, audience, dataset)
    for row in islice(rows, MAX_TOPICS):
        if _is_report(row):
            reports.append(_report(len(reports) + 1, row, requests))
        else:
            left_out += 1
    notes: tuple[str, ...] = (
        (f"{left_out:,} lines of the details are no report and are not shown.",) if left_out else ()
    )
    if cut(found, rows):
        notes += ("The details are too long to be shown whole: what follows is left out.",)
    return Reports(audience, tuple(reports), notes)


def _is_report(row: Mapping[str, Any]) -> bool:
    known = isinstance(row.get("sentences"), list) or row.get("truncated") is True
    return isinstance(row.get("topic"), str) and known


def _requests(dataset: Dataset) -> dict[str, tuple[str, str]]:
    """Title and text of each request of a dataset; empty when there is no such file."""
    path = dataset.inputs / (dataset.topics or "requests.jsonl")
    found: dict[str, tuple[str, str]] = {}
    if path.is_file():
        for _, row in json_lines(path, [], OWN):
            name = row.get("request_id", row.get("topic_id")) if isinstance(row, dict) else None
            if isinstance(name, str | int):
                asked = row.get("problem_statement", row.get("query"))
                found.setdefault(escape(name, MAX_ID), (_text(row.get("title"), 300), _text(asked)))
    return found


def _report(n: int, row: Mapping[str, Any], requests: Mapping[str, tuple[str, str]]) -> Report:
    measures = row["measures"].items() if isinstance(row.get("measures"), dict) else ()
    topic = escape(row["topic"], MAX_ID)
    title, request = requests.get(topic, ("", ""))
    sentences = [_sentence(k, s) for k, s in enumerate(_dicts(row.get("sentences"), MAX_SENTENCES), 1)]
    return Report(
        n,
        topic,
        row.get("answered") is not False,
        {escape(name, 80): value for name, raw in measures if (value := number(raw)) is not None},
        tuple(sentences),
        tuple(_nugget(one) for one in _dicts(row.get("nuggets"), MAX_SENTENCES)),
        whole(row.get("cut")) or 0,
        whole(row.get("left_out")) or 0,
        row.get("truncated") is True,
        title,
        request,
    )


def _sentence(n: int, row: Mapping[str, Any]) -> Sentence:
    given = whole(row.get("number"))
    return Sentence(
        n if given is None else given,
        _text(row.get("text")),
        tuple(_texts(row.get("citations"))),
        tuple(_judgment(one) for one in _dicts(row.get("judgments"))),
        tuple(_effect(one) for one in _dicts(row.get("effects"))),
    )


def _effect(row: Mapping[str, Any]) -> Effect:
    kind = row.get("kind")
    return Effect(
        kind if kind in EFFECTS else "none",
        _text(row.get("code"), 60),
        _text(row.get("text")),
        _text(row.get("doc_id"), MAX_DOCUMENT_ID),
        _text(row.get("question")),
        tuple(_texts(row.get("answers"))),
    )


def _judgment(row: Mapping[str, Any]) -> Judgment:
    known = ("type", "judgment_type_id", "doc_id", "evaluator", "provenance")
    rest = {k: v for k, v in row.items() if k not in known}
    kind = row.get("type", row.get("judgment_type_id"))
    if isinstance(row.get("matches"), list):
        del rest["matches"]
        matched = [
            f'"{_text(m.get("question"), 300)}" with {", ".join(_texts(m.get("answers"))) or "no answer"}'
            for m in _dicts(row["matches"])
        ]
        rest = {"answers": "; ".join(matched) or "no nugget", **rest}
    return Judgment(
        _text(kind, 80),
        _text(row.get("doc_id"), MAX_DOCUMENT_ID),
        _said(rest),
        _text(row.get("evaluator"), 80),
    )


def _said(value: Any, depth: int = 0) -> str:
    """What a judge said, as one line: JSON data in words."""
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, dict):
        if depth > 3:
            return "…"
        items = list(value.items())[:MAX_ITEMS]
        if len(items) == 1:
            return _said(items[0][1], depth + 1)
        return ", ".join(f"{escape(k, 60)}: {_said(v, depth + 1)}" for k, v in items)
    if isinstance(value, list):
        return "…" if depth > 3 else "; ".join(_said(v, depth + 1) for v in value[:MAX_ITEMS]) or "none"
    return escape(value, 2000)


def _nugget(row: Mapping[str, Any]) -> Nugget:
    return Nugget(
        _text(row.get("question")),
        _text(row.get("aggregator"), 20),
        _text(row.get("importance"), 20),
        row.get("correct") is True,
        tuple((_text(a.get("answer")), a.get("given") is True) for a in _dicts(row.get("answers"))),
        tuple(n for one in _list(row.get("sentences"), MAX_ITEMS) if (n := whole(one)) is not None),
    )


def _list(value: Any, limit: int) -> Sequence[Any]:
    return value[:limit] if isinstance(value, list) else ()


def _dicts(value: Any, limit: int = MAX_ITEMS) -> list[Mapping[str, Any]]:
    return [one for one in _list(value, limit) if isinstance(one, dict)]


def _texts(value: Any) -> list[str]:
    return [escape(one, MAX_DOCUMENT_ID) for one in _list(value, MAX_ITEMS) if isinstance(one, str)]


def _text(value: Any, limit: int = 2000) -> str:
    return shown(value, limit) if isinstance(value, str) else ""
