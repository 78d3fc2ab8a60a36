"""Nugget banks in the v3 form: the load filter, what is normalised, and writing them again.

A bank is an object with ``query_id`` and ``nugget_bank``; the other formats are in
:mod:`evaluator.argue.formats.nugget_formats`, and become v3 first. The load filter: answers that no document attests are
dropped (assessors keep wrong answers in the files like that), then questions without an answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import schemas
from evaluator.argue.formats.lines import Collector, Keys, name_of
from evaluator.argue.models import Aggregator, Answer, Bank, Importance, Nugget, Reference
from evaluator.findings import show
from schemas import Problem
from schemas.jsonl import kind_of

SUFFIX = ".v3.json"
MAX_BYTES = 64 << 20
MAX_NOTES = 100
_OWN = frozenset({"question", "question_id", "aggregator_type", "importance", "answers", "query_id"})
# word -> what it means; None is no word at all
_AGGREGATORS: Mapping[str | None, Aggregator] = {None: "OR", "DEFAULT": "OR", "OR": "OR", "AND": "AND"}
_IMPORTANCE: Mapping[str | None, Importance | None] = {None: None, "": None, "vital": "vital", "okay": "okay"}


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
    topic = topic_of_name(path.name)
    named = Collector(path.name)
    if topic is None:
        fix = f"call it like nuggets_388{SUFFIX}: the topic after the last underscore"
        named.add(f"has a name that ends in no topic and {SUFFIX}", fix)
    doc = schemas.load_json(path, path.name, max_bytes=MAX_BYTES)
    if doc.problems:
        return None, [*named.problems, *doc.problems]
    bank, problems = bank_of(doc.data, path.name, topic=topic)
    problems = [*named.problems, *problems]
    if bank is not None and topic is not None and bank.topic_id != topic:
        what = f"has the query_id {show(bank.topic_id)}, but its name says {show(topic)}"
        named.add(what, "rename the file, or correct query_id", "/query_id")
        problems.append(named.problems[-1])
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


def _entries(data: Any) -> Iterable[tuple[str | int, Any]] | None:
    """What stands in an object or a list, with its keys or places; None for anything else."""
    if isinstance(data, dict):
        return data.items()
    return enumerate(data) if isinstance(data, list) else None


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
        found = name_of(data.get("query_id", topic)) or ""
        if not found:
            self.say(("query_id",), "query_id is missing or no name", "give the topic's id as text")
        version = data.get("format_version")
        if version not in (None, "v3"):
            self.say(("format_version",), f"format_version is {show(str(version))}", "convert the file to v3")
        whole = self._merged(data, found)
        nuggets = [_filtered(nugget) if linked else nugget for nugget in whole.values()]
        kept = tuple(n for n in nuggets if n.answers)
        lost = tuple(n for n in nuggets if not n.answers)
        header = {k: v for k, v in data.items() if k not in ("nugget_bank", "query_id")}
        return Bank(found, kept, lost, linked, header, tuple(self.notes), self.name)

    def _merged(self, data: Mapping[str, Any], topic: str) -> dict[str, Nugget]:
        """The nuggets by their question, before the filter; equal questions become one."""
        listed = data.get("nugget_bank")
        if listed is None and any(k in data for k in ("claim_bank", "claims")):
            listed = {}  # a bank of claims only
        entries = _entries(listed)
        if entries is None:
            state = "is missing" if listed is None else f"is {kind_of(listed)}"
            self.say(("nugget_bank",), f"nugget_bank {state}", "give an object: question -> nugget")
            return {}
        merged: dict[str, Nugget] = {}
        for key, value in entries:
            nugget = self._nugget(("nugget_bank", key), key, value, topic)
            if nugget is None:
                continue
            question = nugget.question
            if question in merged:
                self.note(
                    f"the question {show(question)} is there more than once: its answers were put together"
                )
                nugget = _merge(merged[question], nugget)
            merged[question] = nugget
        return merged

    def _text(self, at: Keys, key: str | int, data: Mapping[str, Any], what: str) -> str | None:
        """The text of a question or an answer, which is the entry's key, too; None if there is none."""
        text = data.get(what, key)
        if not isinstance(text, str) or not text.strip():
            self.say((*at, what), f"the {what} is missing or no text")
            return None
        if isinstance(key, str) and key != text:
            self.note(f"the key {show(key)} is not its {what}, {show(text)}: the {what} counts")
        return text

    def _nugget(self, at: Keys, key: str | int, data: Any, topic: str) -> Nugget | None:
        if not isinstance(data, dict):
            self.say(at, f"the nugget is {kind_of(data)}, not an object")
            return None
        if "claim" in data and "question" not in data:
            self.note(f"the claim {show(str(data['claim']))} is no question, and does not count")
            return None
        question = self._text(at, key, data, "question")
        if question is None:
            return None
        if str(data.get("query_id") or topic) != topic:
            self.note(f"the question {show(question)} names another query_id, {show(str(data['query_id']))}")
        given = data.get("question_id")
        return Nugget(
            question=question,
            answers=self._answers((*at, "answers"), data.get("answers")),
            aggregator=self._known(at, data, "aggregator_type", _AGGREGATORS, "use OR or AND"),
            importance=self._known(at, data, "importance", _IMPORTANCE, "use vital or okay, or leave it out"),
            question_id=given if isinstance(given, str) else question_id(question),
            extra={k: v for k, v in data.items() if k not in _OWN},
        )

    def _known(
        self, at: Keys, data: Mapping[str, Any], key: str, known: Mapping[str | None, Any], fix: str
    ) -> Any:
        """The value of one of a few words; notes a problem, and takes the word for nothing, for another."""
        value = data.get(key)
        word = value.upper() if isinstance(value, str) and known is _AGGREGATORS else value
        if isinstance(word, str | None) and word in known:
            return known[word]
        more = ", which cannot be scored" if known is _AGGREGATORS else ""
        shown = show(value) if isinstance(value, str) else kind_of(value)
        self.say((*at, key), f"{key} is {shown}{more}", fix)
        return known[None]

    def _answers(self, at: Keys, data: Any) -> tuple[Answer, ...]:
        entries = _entries({} if data is None else data)
        if entries is None:
            self.say(at, f"the answers are {kind_of(data)}, not an object")
            return ()
        found: dict[str, Answer] = {}
        for key, value in entries:
            answer = self._answer((*at, key), key, value)
            if answer is not None and answer.text in found:
                self.note(
                    f"the answer {show(answer.text)} is there more than once: its documents were put together"
                )
                answer = _together(found[answer.text], answer)
            if answer is not None:
                found[answer.text] = answer
        return tuple(found.values())

    def _answer(self, at: Keys, key: str | int, data: Any) -> Answer | None:
        if isinstance(data, str) and isinstance(key, int):
            data = {"answer": data}
        if not isinstance(data, dict):
            self.say(at, f"the answer is {kind_of(data)}, not an object")
            return None
        text = self._text(at, key, data, "answer")
        if text is None:
            return None
        listed = data.get("references")
        if listed is not None and not self.is_list((*at, "references"), listed, "references"):
            listed = None
        references = [self._reference((*at, "references", i), r) for i, r in enumerate(listed or [])]
        extra = {k: v for k, v in data.items() if k not in ("answer", "references")}
        return _together(Answer(text), Answer(text, tuple(r for r in references if r is not None), extra))

    def _reference(self, at: Keys, data: Any) -> Reference | None:
        name = data.get("doc_id") if isinstance(data, dict) else data
        if not isinstance(name, str) or not name.strip():
            self.say(at, "the reference has no doc_id", "give the document's id as text")
            return None
        extra = {k: v for k, v in data.items() if k != "doc_id"} if isinstance(data, dict) else {}
        return Reference(name, extra)


def _filtered(nugget: Nugget) -> Nugget:
    """The load filter: answers that no document attests do not count."""
    kept = tuple(a for a in nugget.answers if a.references)
    return replace(nugget, answers=kept, wrong=tuple(a for a in nugget.answers if not a.references))


def _together(first: Answer, second: Answer) -> Answer:
    """Two answers with the same text: the references of both, without one that says nothing new."""
    references: list[Reference] = []
    for reference in (*first.references, *second.references):
        if reference not in references:
            references.append(reference)
    return Answer(first.text, tuple(references), {**first.extra, **second.extra})


def _merge(first: Nugget, second: Nugget) -> Nugget:
    """Two nuggets with the same question: the first aggregator and the last importance count."""
    answers = {a.text: a for a in first.answers}
    for a in second.answers:
        answers[a.text] = _together(answers[a.text], a) if a.text in answers else a
    return replace(
        first,
        answers=tuple(answers.values()),
        importance=second.importance or first.importance,
        extra={**first.extra, **second.extra},
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


def _nugget_json(nugget: Nugget, topic: str) -> dict[str, Any]:
    return {
        "question": nugget.question,
        "answers": {
            a.text: {
                "answer": a.text,
                "references": [{"doc_id": r.doc_id, **r.extra} for r in a.references],
                **a.extra,
            }
            for a in (*nugget.answers, *nugget.wrong)
        },
        "question_id": nugget.question_id or question_id(nugget.question),
        "aggregator_type": nugget.aggregator,
        **({} if nugget.importance is None else {"importance": nugget.importance}),
        "query_id": topic,
        **nugget.extra,
    }
