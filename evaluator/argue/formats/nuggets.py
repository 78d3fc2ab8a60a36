"""Nugget banks in the v3 form: the load filter, what is normalised, and writing them again.

A bank is an object with ``query_id`` and ``nugget_bank``; the other formats are in
:mod:`evaluator.argue.formats.nugget_formats`, and become v3 first. The load filter: answers that no document attests are
dropped (assessors keep wrong answers in the files like that), then questions without an answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import schemas
from evaluator.argue.formats.lines import Collector, Keys
from evaluator.argue.models import Aggregator, Answer, Bank, Importance, Nugget, Reference
from evaluator.findings import show
from schemas import Problem
from schemas.jsonl import kind_of

SUFFIX = ".v3.json"
MAX_BYTES = 64 << 20
MAX_NOTES = 100
_OWN = frozenset({"question", "question_id", "aggregator_type", "importance", "answers", "query_id"})
_AGGREGATORS: Mapping[str | None, Aggregator] = {None: "OR", "DEFAULT": "OR", "OR": "OR", "AND": "AND"}


def topic_of_name(name: str) -> str | None:
    """The topic that a file name gives: the last part between ``_`` before ``.v3.json``; None for another name."""
    stem = name.removesuffix(SUFFIX)
    topic = stem.rsplit("_", 1)[-1]
    return topic if stem != name and topic else None


def question_id(question: str) -> str:
    """The id of a question that has none: the MD5 of its text (no secret is protected by it)."""
    return hashlib.md5(question.encode(), usedforsecurity=False).hexdigest()


def read_v3(path: Path) -> tuple[Bank | None, list[Problem]]:
    """The bank of one v3 file, and every problem with its JSON pointer; the name has to give the topic."""
    name_topic = topic_of_name(path.name)
    doc = schemas.load_json(path, path.name, max_bytes=MAX_BYTES)
    problems = list(doc.problems)
    if name_topic is None:
        problems.insert(
            0,
            Problem(
                schemas.show(path.name, 200),
                f"has a name that ends in no topic and {SUFFIX}",
                f"call it like nuggets_388{SUFFIX}: the topic after the last underscore",
            ),
        )
    if doc.problems:
        return None, problems
    bank, found = bank_of(doc.data, path.name, topic=name_topic)
    problems += found
    if bank is not None and name_topic is not None and bank.topic_id != name_topic:
        problems.append(
            Problem(
                schemas.show(path.name, 200),
                f"has the query_id {show(bank.topic_id)}, but its name says {show(name_topic)}",
                "rename the file, or correct query_id",
                "/query_id",
            )
        )
    return (None if problems else bank), problems


def bank_of(
    data: Any, name: str = "input", *, topic: str | None = None, line: int | None = None, linked: bool = True
) -> tuple[Bank | None, list[Problem]]:
    """The bank in v3 data, filtered, and every problem; None if there is a problem.

    ``topic`` stands in for a missing ``query_id``. ``linked=False`` is for answers that never had documents: nothing
    is filtered then.
    """
    reader = _Reader(name, line)
    bank = reader.bank(data, topic, linked)
    return (None if reader.problems else bank), reader.problems


class _Reader(Collector):
    """Reads one bank and collects what is wrong with it."""

    def __init__(self, name: str, line: int | None) -> None:
        super().__init__(name, line)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)

    def bank(self, data: Any, topic: str | None, linked: bool) -> Bank | None:
        if not isinstance(data, dict):
            self.say((), f"there is {kind_of(data)}, not an object")
            return None
        found = data.get("query_id", topic)
        if isinstance(found, int) and not isinstance(found, bool):
            found = str(found)
        if not isinstance(found, str) or not found.strip() or not found.isprintable():
            self.say(("query_id",), "query_id is missing or no name", "give the topic's id as text")
            found = ""
        version = data.get("format_version")
        if version not in (None, "v3"):
            self.say(("format_version",), f"format_version is {show(str(version))}", "convert the file to v3")
        merged = self._merged(data, found)
        nuggets: list[Nugget] = []
        unanswerable: list[Nugget] = []
        for one in merged.values():
            kept = self._filtered(one, linked)
            (nuggets if kept.answers else unanswerable).append(kept)
        header = {k: v for k, v in data.items() if k not in ("nugget_bank", "query_id")}
        return Bank(found, tuple(nuggets), tuple(unanswerable), linked, header, tuple(self.notes), self.name)

    def _merged(self, data: Mapping[str, Any], topic: str) -> dict[str, Nugget]:
        """The nuggets by their question, before the filter; equal questions become one."""
        listed = data.get("nugget_bank")
        if listed is None and any(k in data for k in ("claim_bank", "claims")):
            listed = {}  # a bank of claims only
        entries: Iterable[tuple[str | int, Any]]
        if isinstance(listed, dict):
            entries = listed.items()
        elif isinstance(listed, list):
            entries = enumerate(listed)
        else:
            there = "is missing" if listed is None else f"is {kind_of(listed)}"
            self.say(("nugget_bank",), f"nugget_bank {there}", "give an object: question -> nugget")
            return {}
        merged: dict[str, Nugget] = {}
        for key, value in entries:
            one = self._nugget(("nugget_bank", key), key, value, topic)
            if one is None:
                continue
            if one.question in merged:
                self.note(
                    f"the question {show(one.question)} is there more than once: its answers were put together"
                )
                one = _merge(merged[one.question], one)
            merged[one.question] = one
        return merged

    def _nugget(self, at: Keys, key: str | int, data: Any, topic: str) -> Nugget | None:
        if not isinstance(data, dict):
            self.say(at, f"the nugget is {kind_of(data)}, not an object")
            return None
        if "claim" in data and "question" not in data:
            self.note(f"the claim {show(str(data['claim']))} is no question, and does not count")
            return None
        question = data.get("question", key)
        if not isinstance(question, str) or not question.strip():
            self.say((*at, "question"), "the question is missing or no text")
            return None
        if isinstance(key, str) and key != question:
            self.note(f"the key {show(key)} is not its question, {show(question)}: the question counts")
        if str(data.get("query_id") or topic) != topic:
            self.note(f"the question {show(question)} names another query_id, {show(str(data['query_id']))}")
        return Nugget(
            question=question,
            answers=self._answers((*at, "answers"), data.get("answers")),
            aggregator=self._aggregator(at, data.get("aggregator_type")),
            importance=self._importance(at, data.get("importance")),
            question_id=data["question_id"]
            if isinstance(data.get("question_id"), str)
            else question_id(question),
            extra={k: v for k, v in data.items() if k not in _OWN},
        )

    def _aggregator(self, at: Keys, value: Any) -> Aggregator:
        folded = value.upper() if isinstance(value, str) else value
        if folded is None or (isinstance(folded, str) and folded in _AGGREGATORS):
            return _AGGREGATORS[folded]
        shown = show(value) if isinstance(value, str) else kind_of(value)
        self.say(
            (*at, "aggregator_type"), f"aggregator_type is {shown}, which cannot be scored", "use OR or AND"
        )
        return "OR"

    def _importance(self, at: Keys, value: Any) -> Importance | None:
        match value:
            case None | "":
                return None
            case "vital":
                return "vital"
            case "okay":
                return "okay"
        shown = show(value) if isinstance(value, str) else kind_of(value)
        self.say((*at, "importance"), f"importance is {shown}", "use vital or okay, or leave it out")
        return None

    def _answers(self, at: Keys, data: Any) -> tuple[Answer, ...]:
        entries: Iterable[tuple[str | int, Any]]
        if data is None:
            return ()
        if isinstance(data, dict):
            entries = data.items()
        elif isinstance(data, list):
            entries = enumerate(data)
        else:
            self.say(at, f"the answers are {kind_of(data)}, not an object")
            return ()
        found: dict[str, Answer] = {}
        for key, value in entries:
            one = self._answer((*at, key), key, value)
            if one is None:
                continue
            if one.text in found:
                old = found[one.text]
                one = Answer(one.text, _union(old.references, one.references), {**old.extra, **one.extra})
                self.note(
                    f"the answer {show(one.text)} is there more than once: its documents were put together"
                )
            found[one.text] = one
        return tuple(found.values())

    def _answer(self, at: Keys, key: str | int, data: Any) -> Answer | None:
        if isinstance(data, str) and isinstance(key, int):
            data = {"answer": data}
        if not isinstance(data, dict):
            self.say(at, f"the answer is {kind_of(data)}, not an object")
            return None
        text = data.get("answer", key)
        if not isinstance(text, str) or not text.strip():
            self.say((*at, "answer"), "the answer is missing or no text")
            return None
        if isinstance(key, str) and key != text:
            self.note(f"the key {show(key)} is not its answer, {show(text)}: the answer counts")
        listed = data.get("references")
        if listed is not None and not isinstance(listed, list):
            self.say((*at, "references"), f"references is {kind_of(listed)}, not a list")
            listed = None
        references = [self._reference((*at, "references", i), r) for i, r in enumerate(listed or [])]
        extra = {k: v for k, v in data.items() if k not in ("answer", "references")}
        return Answer(text, _union((), tuple(r for r in references if r is not None)), extra)

    def _reference(self, at: Keys, data: Any) -> Reference | None:
        name = data.get("doc_id") if isinstance(data, dict) else data
        if not isinstance(name, str) or not name.strip():
            self.say(at, "the reference has no doc_id", "give the document's id as text")
            return None
        extra = {k: v for k, v in data.items() if k != "doc_id"} if isinstance(data, dict) else {}
        return Reference(name, extra)

    def _filtered(self, one: Nugget, linked: bool) -> Nugget:
        kept = tuple(a for a in one.answers if a.references or not linked)
        wrong = tuple(a for a in one.answers if not a.references and linked)
        return Nugget(one.question, kept, one.aggregator, one.importance, wrong, one.question_id, one.extra)


def _union(first: tuple[Reference, ...], second: tuple[Reference, ...]) -> tuple[Reference, ...]:
    """References of both; one that says nothing new is left out."""
    out = list(first)
    for one in second:
        if not any(o.doc_id == one.doc_id and o.extra == one.extra for o in out):
            out.append(one)
    return tuple(out)


def _merge(first: Nugget, second: Nugget) -> Nugget:
    """Two nuggets with the same question: the first aggregator and the last importance count."""
    answers = {a.text: a for a in first.answers}
    for a in second.answers:
        old = answers.get(a.text)
        answers[a.text] = (
            a
            if old is None
            else Answer(a.text, _union(old.references, a.references), {**old.extra, **a.extra})
        )
    return Nugget(
        first.question,
        tuple(answers.values()),
        first.aggregator,
        second.importance or first.importance,
        (),
        first.question_id,
        {**first.extra, **second.extra},
    )


def as_v3(bank: Bank) -> dict[str, Any]:
    """The bank as v3 data, with what the filter dropped and every further key.

    Reading it again gives the same bank, unless it was never linked to documents: v3 has no way to say that.
    """
    nuggets = [*bank.nuggets, *bank.unanswerable]
    return {
        "query_id": bank.topic_id,
        **{k: v for k, v in bank.header.items() if k != "format_version"},
        "format_version": "v3",
        "nugget_bank": {n.question: _nugget_json(n, bank.topic_id) for n in nuggets},
    }


def _nugget_json(one: Nugget, topic: str) -> dict[str, Any]:
    return {
        "question": one.question,
        "answers": {
            a.text: {
                "answer": a.text,
                "references": [{"doc_id": r.doc_id, **r.extra} for r in a.references],
                **a.extra,
            }
            for a in (*one.answers, *one.wrong)
        },
        "question_id": one.question_id or question_id(one.question),
        "aggregator_type": one.aggregator,
        **({} if one.importance is None else {"importance": one.importance}),
        "query_id": topic,
        **one.extra,
    }
