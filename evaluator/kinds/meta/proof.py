"""Judgments and leaderboards whose order is known, made from the truths: the same, half of it turned round, and all of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from evaluator.formats.gold import Gold, read_gold
from evaluator.formats.leaderboards import ALL, Board, Row, read_boards, write_board
from evaluator.kinds.base import Order
from evaluator.kinds.meta.judgments import shape_of
from evaluator.kinds.options import checked_options
from evaluator.measures.boards import BEST, Comparison
from evaluator.measures.judging import Measure
from evaluator.request import Request
from schemas.debates import CRITERIA

Says = Callable[[int, str], bool]  # what is said, given the label and the place of a judgment


def proof(inputs: Path, truths: Path, request: Request) -> list[Order] | None:
    """Return judgments for each file of labels, or leaderboards for each measure of the truth's.

    The share of yes is left out, since none is the best, and kappa is not the worst where all is turned round. None for
    leaderboards in the format trec_eval, which holds a single run. Raises EvaluatorError for wrong truths.
    """
    options = checked_options("meta", request.options)
    if options["form"] != "judgments":
        return None if options["format"] == "trec_eval" else _boards(truths, request, options)
    shape = shape_of(inputs, request)
    orders = []
    for name in dict.fromkeys(m.truths for m in request.measures):
        measures = {m.id: Measure(m.measure).name for m in request.measures if m.truths == name}
        gold = read_gold(truths / name, shape, reading=options["reading"])
        outputs = {
            "perfect": _written(gold, lambda label, _: bool(label)),
            "shuffled": _written(gold, lambda label, at: bool(label) is (sha256(at.encode()).digest()[0] < 128)),
            "wrong": _written(gold, lambda label, _: not label),
        }  # fmt: skip
        some = {key: outputs[key] for key in ("perfect", "shuffled")}
        orders += [
            Order([i for i, of in measures.items() if of not in ("yes-rate", "kappa")], outputs, {}),
            Order([i for i, of in measures.items() if of == "kappa"], some, {}),
        ]
    return [order for order in orders if order.measures]


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


def _boards(truths: Path, request: Request, options: Mapping[str, Any]) -> list[Order]:
    """Leaderboards with the values of each measure of the truth, with those of the lower half in reverse, and of all runs."""
    compared = {m.id: (m.truths, Comparison(m.measure)) for m in request.measures}
    boards = {
        name: read_boards([truths / name], options["truth_format"])
        for name in {m.truths for m in request.measures}
    }
    names = list(dict.fromkeys(c.judge for _, c in compared.values() if c.judge != BEST)) or ["score"]
    runs = list(dict.fromkeys(run for board in boards.values() for run in board.runs))

    def written(values: Mapping[str, float]) -> bytes:
        board = Board()
        for run, name in product(runs, names):
            board.add(Row(run, ALL, name, values.get(run, 0.0)))
        return "".join(f"{line}\n" for line in write_board(board, options["format"])).encode()

    orders = []
    for name, truth in dict.fromkeys((name, c.truth) for name, c in compared.values()):
        values, _ = boards[name].overall(truth, recompute=options["recompute"])
        best = sorted(values, key=lambda run: (-values[run], run))
        half = best[: len(best) // 2]
        lower = best[len(half) :]
        turned = dict(zip(lower, (values[run] for run in reversed(lower)), strict=True))
        upside_down = dict(zip(best, (values[run] for run in reversed(best)), strict=True))
        ids = [i for i, (of, c) in compared.items() if (of, c.truth) == (name, truth)]
        outputs = {"perfect": values, "half reversed": {**values, **turned}, "reversed": upside_down}
        orders.append(Order(ids, {o: written(v) for o, v in outputs.items()}, dict.fromkeys(ids, 1.0)))
    return orders
