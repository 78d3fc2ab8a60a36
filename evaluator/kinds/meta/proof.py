"""Judgments of debates whose order is known, made from people's labels: the same, half of them turned round, and all."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from evaluator.formats.gold import Gold, read_gold
from evaluator.kinds.base import Broken, Order, Proof
from evaluator.kinds.meta.judgments import shape_of
from evaluator.kinds.options import checked_options
from evaluator.measures.judging import Measure
from evaluator.request import Request
from schemas.debates import CRITERIA

Says = Callable[[int, str], bool]  # what is said, given the label and the place of a judgment


def proof(inputs: Path, truths: Path, request: Request) -> Proof | None:
    """Judgments for each file of labels, and broken ones; see :class:`Proof`. None for leaderboards.

    The share of yes is left out, since none is the best, and kappa is not the worst where all is turned round. Raises
    EvaluatorError for wrong truths.
    """
    options = checked_options("meta", request.options)
    if options["form"] != "judgments":
        return None
    shape = shape_of(inputs, request)
    orders = []
    first = b""
    for name in dict.fromkeys(m.truths for m in request.measures):
        measures = {m.id: Measure(m.measure).name for m in request.measures if m.truths == name}
        gold = read_gold(truths / name, shape, reading=options["reading"])
        outputs = {
            "perfect": _written(gold, lambda label, _: bool(label)),
            "shuffled": _written(gold, lambda label, at: bool(label) is (sha256(at.encode()).digest()[0] < 128)),
            "wrong": _written(gold, lambda label, _: not label),
        }  # fmt: skip
        first = first or outputs["perfect"]
        some = {key: outputs[key] for key in ("perfect", "shuffled")}
        orders += [
            Order([i for i, of in measures.items() if of not in ("yes-rate", "kappa")], outputs, {}),
            Order([i for i, of in measures.items() if of == "kappa"], some, {}),
        ]
    return Proof([order for order in orders if order.measures], _all_broken(first, request))


def _written(gold: Gold, says: Says) -> bytes:
    return b"".join(
        _line([
            {c.capitalize(): {"score": int(says(label or 0, f"{place} {n} {c}"))} for c, label in zip(CRITERIA, turn, strict=True)}
            for n, turn in enumerate(turns)
        ])
        for place, turns in enumerate(gold)
    )  # fmt: skip


def _line(turns: Any) -> bytes:
    return json.dumps({"userTurnsEvaluations": turns}).encode() + b"\n"


def _all_broken(run: bytes, request: Request) -> list[Broken]:
    lines = run.splitlines(keepends=True)
    place = next((n for n, line in enumerate(lines) if json.loads(line)["userTurnsEvaluations"]), None)
    if place is None:
        return []
    turns = json.loads(lines[place])["userTurnsEvaluations"]

    def instead(line: bytes) -> bytes:
        return b"".join([*lines[:place], line, *lines[place + 1 :]])

    def scored(judgment: Any) -> bytes:
        return instead(_line([{**turns[0], CRITERIA[0].capitalize(): judgment}, *turns[1:]]))

    made = {
        "F231": instead(b"[]\n"),
        "F232": instead(_line(None)),
        "F233": run + _line(turns),
        "F234": scored({}),
        "F235": scored({"score": 2}),
    }
    return [Broken(code, data) for code, data in made.items() if request.severities.get(code) != "ignore"]
