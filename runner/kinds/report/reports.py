"""Reports for people: sentences with their citations and judgments, nuggets, and what each was worth; as lines for a terminal, as JSON and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from runner.views.show.contents import Contents
from runner.views.text import cut, figures, plural, quoted, wrapped

# What an effect is called: sign on a terminal; style and words on a page.
EFFECTS = {
    "reward": ("+", "good", "+ reward"),
    "penalty": ("-", "bad", "− penalty"),
    "none": ("·", "about", "no effect"),
}
# What comes first of a report's figures on a page; the rest can be opened.
MAIN = ("f1", "nugget_coverage", "sentence_support", "citation_support", "citation_relevance")


@dataclass(frozen=True)
class Effect:
    """What one citation or sentence was worth. ``kind``: reward, penalty or none; ``text``: why, in words."""

    kind: str
    code: str
    text: str
    doc_id: str = ""
    question: str = ""
    answers: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """Why, in words or as a code."""
        return self.text or self.code

    @property
    def called(self) -> tuple[str, str, str]:
        """Its sign on a terminal, and its style and words on a page."""
        return EFFECTS[self.kind]


@dataclass(frozen=True)
class Judgment:
    """One answer of the judge: what was asked (``type``), about which document, and what was said."""

    type: str
    doc_id: str
    said: str
    evaluator: str = ""

    @property
    def asked(self) -> str:
        """What was asked about which document, in words."""
        return self.type.lower().replace("_", " ") + (f" of {self.doc_id}" if self.doc_id else "")


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

    @property
    def worth(self) -> str:
        """The kind of its worst effect: a penalty, else a reward, else none."""
        kinds = {e.kind for e in self.effects}
        return next((kind for kind in ("penalty", "reward") if kind in kinds), "none")

    @property
    def marks(self) -> list[tuple[str, bool | None, str]]:
        """Its citations as facts for a page: what the judge said of each, and whether it supports the sentence."""
        found: list[tuple[str, bool | None, str]] = []
        for document in self.citations:
            supports = self.judged(document, "SENTENCE_ATTESTED")
            relevant = self.judged(document, "CITED_DOCUMENT_RELEVANCE")
            words = [f"cites {document}"]
            words += [] if supports is None else ["supports it" if supports else "does not support it"]
            words += [] if relevant is None else ["relevant" if relevant else "not relevant"]
            found.append((", ".join(words), supports, ""))
        return found


@dataclass(frozen=True)
class Nugget:
    """One nugget: its question, whether the report has it, its answers with whether they were given, and where."""

    question: str
    aggregator: str
    importance: str
    correct: bool
    answers: tuple[tuple[str, bool], ...]
    sentences: tuple[int, ...]

    @property
    def sort(self) -> str:
        """How its answers count together, and how important it is."""
        return ", ".join(part for part in (self.aggregator, self.importance) if part)


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

    @property
    def name(self) -> str:
        """What ``--topic`` calls it."""
        return self.topic

    @property
    def main_marks(self) -> list[tuple[str, bool | None, str]]:
        """The figures that come first on a page, as facts for it."""
        return [(f"{name} {self.measures[name]:.4g}", None, "") for name in MAIN if name in self.measures]

    @property
    def rest(self) -> dict[str, float]:
        """The other figures."""
        return {name: value for name, value in self.measures.items() if name not in MAIN}

    def numbered(self) -> dict[int, Sentence]:
        """The sentences by number: numbers come from the evaluator's file and may repeat, the first of each counts."""
        return {one.number: one for one in reversed(self.sentences) if one.number >= 0}

    def earned(self, sentence: Sentence) -> list[tuple[str, bool | None, str]]:
        """The nuggets that a sentence was rewarded for, as facts for a page that lead to them."""
        places = {nugget.question: k for k, nugget in reversed(list(enumerate(self.nuggets, 1)))}
        found = [places[question] for question in sentence.nuggets if question in places]
        return [(f"nugget {k}", True, f"r{self.number}n{k}") for k in found]

    @property
    def summary(self) -> str:
        """The report in figures."""
        if self.truncated:
            return "too much for the evaluation's details, which leave it out"
        if not self.answered:
            return "no report"
        more = f", {self.cut} more beyond the limit" if self.cut else ""
        more += f", {self.left_out} more judged but not kept in the details" if self.left_out else ""
        return (
            f"{plural(len(self.sentences), 'sentence')}{more}, {self.correct} of {plural(len(self.nuggets), 'nugget')}, "
            f"{plural(self.rewards, 'reward')}, {self.penalties} {'penalty' if self.penalties == 1 else 'penalties'}"
        )


@dataclass(frozen=True)
class Reports(Contents[Report]):
    """The reports of a run for one audience."""

    noun: ClassVar[str] = "report"
    closed: ClassVar[str] = "sentences and nuggets"
    template: ClassVar[str] = "runner.kinds.report/page.html"

    def line(self, piece: Report) -> str:
        """The topic, and the report in figures."""
        return cut(f"  {piece.topic}: {piece.summary}")

    def full(self, piece: Report) -> Iterator[str]:
        """The request and the figures, then sentence by sentence what each was worth, and the nuggets."""
        yield f"\ntopic {piece.topic}: {piece.summary}"
        if piece.title or piece.request:
            yield from quoted(": ".join(filter(None, (piece.title, piece.request))), "    request | ")
        if piece.measures:
            yield from wrapped(f"measures: {figures(piece.measures)}", "    ")
        for one in piece.sentences:
            yield from quoted(one.text, f"  {one.number:>3} | ")
            if one.citations:
                yield from wrapped(f"cites {', '.join(one.citations)}", "        ")
            for judgment in one.judgments:
                yield from wrapped(f"judged {judgment.asked}: {judgment.said}", "        ")
            for effect in one.effects:
                yield from wrapped(effect.why, f"      {effect.called[0]} ")
        if piece.nuggets:
            yield "  nuggets:"
        for nugget in piece.nuggets:
            given = f"{sum(given for _, given in nugget.answers)} of {len(nugget.answers)} answers"
            sort = f" ({nugget.sort})" if nugget.sort else ""
            at = f", in sentence {', '.join(map(str, nugget.sentences))}" if nugget.sentences else ""
            yield from wrapped(
                f'"{nugget.question}"{sort}: {given}{at}', f"  [{'x' if nugget.correct else ' '}] "
            )
