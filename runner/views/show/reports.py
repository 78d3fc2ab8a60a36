"""The reports of a run, sentence by sentence: citations, judgments, nuggets, and what each was worth.

They are read from the evaluation's ``details.jsonl``, one topic a line, which the evaluator of the kind ``report`` writes.
Another evaluator may write other things there: what has another form is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from runner.tasks.transcripts import json_lines
from runner.views.audience import Audience, escape, not_for, permissions_for, sees_inside
from runner.views.redact import details
from runner.views.show.texts import MAX_ID, number, shown, whole

if TYPE_CHECKING:
    from runner.model.task import Dataset
    from runner.records.store.queries import RunDetail

MAX_TOPICS = 10_000
MAX_SENTENCES = 2000  # of one report that are shown
MAX_ITEMS = 200  # of one sentence or nugget, of each kind
MAX_DOCUMENT_ID = 2 * MAX_ID
KINDS = ("reward", "penalty", "none")


@dataclass(frozen=True)
class Effect:
    """What one citation or sentence was worth. ``kind``: reward, penalty or none; ``text``: why, in words."""

    kind: str
    code: str
    text: str
    doc_id: str = ""
    question: str = ""
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgment:
    """One answer of the judge: what was asked (``type``), about which document, and what was said."""

    type: str
    doc_id: str
    said: str
    evaluator: str = ""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a report with its citations, judgments and effects. ``number`` counts from 1."""

    number: int
    text: str
    citations: tuple[str, ...]
    judgments: tuple[Judgment, ...]
    effects: tuple[Effect, ...]

    @property
    def nuggets(self) -> tuple[str, ...]:
        """The questions of the nuggets that it was rewarded for, each once."""
        return tuple(dict.fromkeys(e.question for e in self.effects if e.kind == "reward" and e.question))

    def judged(self, document: str, type: str) -> bool | None:
        """What the judge said of a cited document; None when it was not asked, or not by yes or no."""
        said = (j.said for j in self.judgments if j.type == type and j.doc_id == document)
        return {"yes": True, "no": False}.get(next(said, ""))


@dataclass(frozen=True)
class Nugget:
    """One nugget: its question, whether the report has it, its answers with whether they were given, and where."""

    question: str
    aggregator: str
    importance: str
    correct: bool
    answers: tuple[tuple[str, bool], ...]
    sentences: tuple[int, ...]


@dataclass(frozen=True)
class Report:
    """The report on one topic. ``number`` counts from 1; ``answered`` is whether there is one.

    ``cut``: how many sentences were beyond the limit and were not judged. ``left_out``: how many were judged, but are
    not kept in the details. ``truncated``: the evaluator could not keep what it has to say about it. ``title`` and
    ``request``: what was asked for, as the dataset has it.
    """

    number: int
    topic: str
    answered: bool
    measures: Mapping[str, float]
    sentences: tuple[Sentence, ...]
    nuggets: tuple[Nugget, ...]
    cut: int = 0
    left_out: int = 0
    truncated: bool = False
    title: str = ""
    request: str = ""

    @property
    def penalties(self) -> int:
        """How many effects are penalties."""
        return sum(e.kind == "penalty" for s in self.sentences for e in s.effects)

    @property
    def rewards(self) -> int:
        """How many effects are rewards."""
        return sum(e.kind == "reward" for s in self.sentences for e in s.effects)

    @property
    def correct(self) -> int:
        """How many nuggets it has."""
        return sum(n.correct for n in self.nuggets)


@dataclass(frozen=True)
class Reports:
    """The reports of a run for one audience. ``reports`` is None when it may not see them."""

    audience: Audience
    reports: tuple[Report, ...] | None
    notes: tuple[str, ...] = field(default=())

    def data(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "reports": None if self.reports is None else [asdict(one) for one in self.reports],
            "notes": list(self.notes),
        }


def read(found: RunDetail, audience: Audience, dataset: Dataset) -> Reports | None:
    """The reports of a run; None when its evaluation has no details. Raises E103 for those who may not know of it.

    On a blinded dataset only the organiser sees them: they hold the nuggets.
    """
    if not permissions_for(audience, found.run.submission.team, dataset, found.published).run:
        raise not_for(audience, f"run {found.run.id}")
    if not sees_inside(audience, found.run.submission.team, dataset, found.published):
        return Reports(audience, None)
    if found.evaluation is None or not (found.evaluation.path / "details.jsonl").is_file():
        return None
    made: list[Report] = []
    left_out = 0
    requests = _requests(dataset)
    for row in details(found, audience, dataset):
        if len(made) < MAX_TOPICS and _is_report(row):
            made.append(_report(len(made) + 1, row, requests))
        else:
            left_out += 1
    notes = (f"{left_out:,} lines of the details are no report and are not shown.",) if left_out else ()
    return Reports(audience, tuple(made), notes)


def _is_report(row: Mapping[str, Any]) -> bool:
    there = isinstance(row.get("sentences"), list) or row.get("truncated") is True
    return isinstance(row.get("topic"), str) and there


def _requests(dataset: Dataset) -> dict[str, tuple[str, str]]:
    """Title and text of each request of a dataset; empty when there is no such file."""
    path = dataset.inputs / (dataset.topics or "requests.jsonl")
    found: dict[str, tuple[str, str]] = {}
    if path.is_file():
        for _, row in json_lines(path, []):
            name = (
                next((row[k] for k in ("request_id", "topic_id") if k in row), None)
                if isinstance(row, dict)
                else None
            )
            if isinstance(name, str | int):
                asked = row.get("problem_statement", row.get("query"))
                found.setdefault(escape(name, MAX_ID), (_text(row.get("title"), 300), _text(asked)))
    return found


def _report(n: int, row: Mapping[str, Any], requests: Mapping[str, tuple[str, str]]) -> Report:
    measures = row.get("measures")
    topic = escape(row["topic"], MAX_ID)
    title, request = requests.get(topic, ("", ""))
    sentences = [_sentence(k, s) for k, s in enumerate(_dicts(row.get("sentences"), MAX_SENTENCES), 1)]
    return Report(
        n,
        topic,
        row.get("answered") is not False,
        {
            escape(name, 80): value
            for name, raw in (measures.items() if isinstance(measures, dict) else ())
            if (value := number(raw)) is not None
        },
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
        kind if kind in KINDS else "none",
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
