"""Debates whose order is known, about two claims of our own: nobody can make the best debate about a task's claims.

People's labels and judges' scores are made up for them; no model is asked. What a task says of turns, words and services is left out,
since it is about its own debates; its measures and severities are the task's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.kinds.base import Broken, Fixture, Order, Proof
from evaluator.kinds.debate.measures import Criterion, parse_measure
from evaluator.kinds.options import checked_options
from evaluator.request import Request
from schemas.debates import CRITERIA, parse, transcript_digest

# Lengths, times and grades are not better for being higher or lower.
COUNTED = (
    "answered",
    "within-word-limit",
    "cites",
    "provenance",
    "provenance@cited",
    "groundedness",
    "unrepeated",
)
TURNS = 2
CLAIMS = ("bridges", "trams")
# For each claim the argument of each turn, and what the user says.
_ARGUMENTS: Mapping[str, Sequence[str]] = {
    "bridges": (
        "Bridges bring visitors and trade to both banks of a river.",
        "A ferry stops at night and in storms, which no river crossing on pillars does.",
    ),
    "trams": (
        "Trams carry more people than cars in the same street.",
        "Rails last for decades, so that a tram is cheap in the long run.",
    ),
}
_USER = (
    "I think that nobody needs {}.",
    "Still, {} cost a river of money and carry few people for a tram fare.",
)
_EVASIVE = "Perhaps."  # an answer that is there and says nothing
_MADE_UP = (_EVASIVE, ("made-up",))  # rests on an argument that the index does not have
Answers = Sequence[tuple[str, Sequence[str]]]  # each with the numbers of the arguments that it lists, from 1


def proof(inputs: Path, truths: Path, request: Request) -> Proof:
    """Debates about the fixture, and broken ones; see :class:`Proof`. ``inputs`` and ``truths`` are not looked at."""
    told = checked_options("debate", request.options)
    measures = {m.id: parse_measure(m.measure) for m in request.measures}
    counted = [i for i, m in measures.items() if m in COUNTED or _source(m) == "heuristic"]
    labelled = [i for i, m in measures.items() if _source(m) in ("human", "software")]
    good = [_debate(name, _good(name)) for name in CLAIMS]
    worse = [
        _debate(name, [_good(name)[0], last]) for name, last in zip(CLAIMS, (("", ()), _MADE_UP), strict=True)
    ]
    empty = [_debate(name, [("", ())] * TURNS) for name in CLAIMS]
    # An answer that nobody has judged has no value yet: what is worth nothing is there, and is judged so.
    evasive = [_debate(name, [(_EVASIVE, ())] * TURNS) for name in CLAIMS]
    names = {m.judge for m in measures.values() if isinstance(m, Criterion)} - {""} or {"judge"}
    fixture = Fixture(
        _files([(1, good), (0, evasive)], names),
        request._replace(
            topics="claims.jsonl",
            corpus=None,
            absent=(),
            records=False,
            public=True,
            measures=tuple(m for m in request.measures if m.id in (*counted, *labelled)),
            options={
                "turns": TURNS,
                "search": "search",
                **{k: told[k] for k in ("labels", "interval") if k in told},
            },
        ),
    )
    orders = [
        Order(counted, {"good": _lines(good), "worse": _lines(worse), "empty": _lines(empty)}, {}),
        Order(labelled, {"good": _lines(good), "worse": _lines([good[0], evasive[1]]), "evasive": _lines(evasive)}, {}),
    ]  # fmt: skip
    return Proof([order for order in orders if order.measures], _all_broken(good, request), fixture)


def _source(measure: str | Criterion) -> str:
    return measure.source if isinstance(measure, Criterion) else ""


def _good(name: str) -> Answers:
    return [(text, (f"{name}-{n}",)) for n, text in enumerate(_ARGUMENTS[name], 1)]


def _debate(name: str, answers: Answers) -> dict[str, Any]:
    known = {f"{one}-{n}": text for one, texts in _ARGUMENTS.items() for n, text in enumerate(texts, 1)}
    turns = [
        {
            "utterance": says.format(name),
            "systemResponse": {
                "utterance": text,
                "response": {
                    "content": text,
                    "arguments": [{"id": i, "text": known.get(i, "No.")} for i in listed],
                },
            },
        }
        for says, (text, listed) in zip(_USER, answers, strict=True)
    ]
    return {"id": name, "claim": name, "simulation": {"userTurns": turns}}


def _files(judged: Iterable[tuple[int, Sequence[Any]]], judges: Iterable[str]) -> dict[str, bytes]:
    """Claims, the index, and what people and judges say: 1 or 0 of every answer of each debate."""
    said = [
        {
            "transcript": transcript_digest([found]),
            "debate": n,
            "turn": turn,
            **dict.fromkeys(CRITERIA, value),
        }
        for value, debates in judged
        for n, debate in enumerate(debates, 1)
        if (found := parse(debate)[0]) is not None
        for turn in range(1, TURNS + 1)
    ]
    known = [
        {"id": f"{name}-{n}", "text": text}
        for name, texts in _ARGUMENTS.items()
        for n, text in enumerate(texts, 1)
    ]
    return {
        "inputs/claims.jsonl": _lines([{"id": name, "claim": name} for name in CLAIMS]),
        "services/search/arguments.jsonl": _lines(known),
        "truths/labels/labels.jsonl": _lines([{"run": "", "annotator": "proof", **one} for one in said]),
        "truths/judgments/judgments.jsonl": _lines(
            [{"judge": name, **one} for name in judges for one in said]
        ),
    }


def _lines(rows: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _all_broken(good: Sequence[Mapping[str, Any]], request: Request) -> list[Broken]:
    first, second = good
    turns = first["simulation"]["userTurns"]
    made: dict[str, Sequence[Any]] = {
        "F201": [{}, second],
        "F202": [_debate(CLAIMS[0], [("", ()), _good(CLAIMS[0])[1]]), second],
        "F203": [first],
        "F204": [first, second, {**first, "id": "nobody", "claim": "nobody"}],
        "F205": [first, second, first],
        "F208": [_debate(CLAIMS[0], [_good(CLAIMS[0])[0], _MADE_UP]), second],
        "F214": [{"simulation": {}}, second],
        "F217": [{**first, "simulation": {"userTurns": turns[:1]}}, second],
        "F218": [{**first, "simulation": {"userTurns": [*turns, turns[0]]}}, second],
    }
    return [
        Broken(code, _lines(rows)) for code, rows in made.items() if request.severities.get(code) != "ignore"
    ]
