"""Forms of a first task of records: labels and numbers, answers to questions, texts, or spans. The data are made up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

Row = tuple[dict[str, Any], dict[str, Any]]


class Example(NamedTuple):
    """A form of task.

    - ``says``: what is asked, as a sentence; ``things``: what the records are about.
    - ``file``: the name of the inputs and of the truths; ``output``: that of the output, whose name ends as its format wants it.
    - ``answer``, ``truth``: the JSON Schemas of the fields beside ``id``; ``lines``: an output.
    - ``measures``: rows of task.yaml without their truths; ``rank_by``: the id of one of them.
    - ``baseline``: a software of ``submissions/baselines`` that reads and writes these files.
    - ``rows(draw)``: what software sees of each record, and what is right.
    """

    says: str
    things: str
    file: str
    output: str
    answer: Mapping[str, Any]
    truth: Mapping[str, Any]
    lines: str
    measures: tuple[str, ...]
    rank_by: str
    baseline: str
    rows: Callable[[Random], Iterable[Row]]


# Bill length, bill depth and flipper length (mm), and body mass (g).
_TYPICAL = {
    "Adelie": (39, 18, 190, 3700),
    "Chinstrap": (49, 18, 196, 3700),
    "Gentoo": (47, 15, 217, 5100),
}
_MEASURED = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm")
_PENGUIN = {
    "species": {"enum": [*_TYPICAL]},
    "body_mass_g": {"type": "number", "minimum": 0, "maximum": 20000},
}


def _penguins(draw: Random) -> Iterator[Row]:
    for species in [*_TYPICAL] * 4:
        values = [round(v * draw.uniform(0.97, 1.03), 1) for v in _TYPICAL[species]]
        seen = dict(zip(_MEASURED, values[:3], strict=True))
        yield seen, {"species": species, "body_mass_g": round(values[3])}


_FIRST = ("Ida", "Olaf", "Maren", "Tilda", "Ruben", "Nora")
_LAST = ("Stone", "Winter", "Falk", "Haug", "Berg", "Lund")
_PLACES = ("Arden", "Bexley", "Corvan", "Dunmoor", "Elstow", "Farnham")
_KINDS = ("bridge", "library", "lighthouse", "theatre")


def _questions(draw: Random) -> Iterator[Row]:
    for place in _PLACES:
        kind, year = draw.choice(_KINDS), str(draw.randrange(1800, 2000))
        first, last = draw.choice(_FIRST), draw.choice(_LAST)
        context = (
            f"The {kind} of {place} was opened in {year}. It was designed by {first} {last}, who lived there."
        )
        yield {"context": context, "question": f"When was the {kind} of {place} opened?"}, {"answers": [year]}
        who = {"answers": [f"{first} {last}", last]}
        yield {"context": context, "question": f"By whom was the {kind} of {place} designed?"}, who


_METHODS = ("network", "parser", "index", "grammar", "sampler", "ranker")
_TASKS = ("translation", "summarization", "question answering", "named entity recognition")


def _abstracts(draw: Random) -> Iterator[Row]:
    for method in _METHODS:
        task, by = draw.choice(_TASKS), draw.randrange(2, 20)
        abstract = (
            f"Systems for {task} need much data. We propose a {method} that needs less. "
            f"Experiments show that the {method} improves {task} by {by} points."
        )
        yield {"abstract": abstract}, {"outcome": f"The proposed {method} improves {task} by {by} points."}


_SPANS = {
    "spans": {
        "type": "array",
        "maxItems": 100,
        "items": {
            "type": "object",
            "required": ["start", "end", "label"],
            "additionalProperties": False,
            "properties": {
                "start": {"type": "integer", "minimum": 0},
                "end": {"type": "integer", "minimum": 1, "description": "the first character after the span"},
                "label": {"enum": ["method", "outcome"]},
            },
        },
    }
}


def _passages(draw: Random) -> Iterator[Row]:
    for seen, _ in _abstracts(draw):
        text = seen["abstract"]
        method, outcome = text.index("propose ") + len("propose "), text.index("Experiments")
        spans = [
            {"start": method, "end": text.index(" that needs"), "label": "method"},
            {"start": outcome, "end": len(text), "label": "outcome"},
        ]
        yield seen, {"spans": spans}


EXAMPLES = {
    "classification": Example(
        says="Say of every animal which species it is and what it weighs.",
        things="animals",
        file="penguins.jsonl",
        output="answers.csv",
        answer=_PENGUIN,
        truth=_PENGUIN,
        lines="id,species,body_mass_g\ndev-1,Adelie,3700\ndev-2,Gentoo,5076.5\n",
        measures=(
            'id: f1, measure: "F1(species, average=macro)"',
            "id: accuracy, measure: Accuracy(species)",
            'id: mae, measure: "MAE(body_mass_g, range=[2000, 7000])", direction: lower',
        ),
        rank_by="f1",
        baseline="penguins-nearest",
        rows=_penguins,
    ),
    "qa": Example(
        says="Answer every question from the text that stands beside it, in as few words as you can.",
        things="texts and questions",
        file="questions.jsonl",
        output="answers.jsonl",
        answer={"answer": {"type": "string", "maxLength": 1000}},
        truth={"answers": {"type": "array", "minItems": 1, "items": {"type": "string"}}},
        lines='{"id": "dev-1", "answer": "1912"}\n{"id": "dev-2", "answer": "Ida Stone"}\n',
        measures=(
            'id: token_f1, measure: "TokenF1(answer, truth=answers)"',
            'id: exact_match, measure: "ExactMatch(answer, truth=answers)"',
        ),
        rank_by="token_f1",
        baseline="questions-overlap",
        rows=_questions,
    ),
    "generation": Example(
        says="Say in one sentence of your own what came out of the work that an abstract is about.",
        things="abstracts",
        file="abstracts.jsonl",
        output="outcomes.jsonl",
        answer={"outcome": {"type": "string", "maxLength": 2000}},
        truth={"outcome": {"type": "string"}},
        lines='{"id": "dev-1", "outcome": "The proposed parser improves translation by 2 points."}\n',
        measures=(
            "id: chrf, measure: chrF(outcome)",
            'id: rouge_l, measure: "ROUGE(outcome, type=rougeL)"',
        ),
        rank_by="chrf",
        baseline="outcomes-sentence",
        rows=_abstracts,
    ),
    "spans": Example(
        says="Mark in every abstract what is proposed, and the sentence that tells what came out of it.",
        things="abstracts",
        file="passages.jsonl",
        output="spans.jsonl",
        answer=_SPANS,
        truth=_SPANS,
        lines='{"id": "dev-1", "spans": [{"start": 0, "end": 9, "label": "method"}]}\n{"id": "dev-2", "spans": []}\n',
        measures=(
            "id: span_f1, measure: SpanF1(spans)",
            'id: overlap_f1, measure: "SpanF1(spans, match=overlap)"',
        ),
        rank_by="span_f1",
        baseline="outcomes-sentence",
        rows=_passages,
    ),
}
