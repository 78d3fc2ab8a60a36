"""``evaluator prove``: whether the best output scores best; tried before a task opens.

The outputs are made from the truths where the truths are, and go before the command ends. What is printed has names of measures,
values and codes of findings, and nothing of their content.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from evaluator import registry
from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.kinds.base import Kind, Order, find
from evaluator.process import FINE
from evaluator.request import Request, load
from evaluator.scores import Sink

SAME = 1e-9  # values that differ by less are equal


def prove(path: Path) -> int:
    """Print, as one JSON object, what the kind's own outputs score on the data of a request. Returns 0.

    ``made`` is false if the kind cannot make outputs from the truths. ``orders`` has the values of each measure and what is wrong
    with them, ``unproven`` the measures without an order.
    """
    request = load(path)
    kind, module = find(request.kind), registry.part(request.kind, "proof")
    orders: list[Order] | None = module.proof(request.inputs, request.truths, request) if module else None
    answer: dict[str, Any] = {"made": orders is not None, "orders": [], "unproven": []}
    if orders is not None:
        with tempfile.TemporaryDirectory(prefix="proof-", dir=request.output) as scratch:
            file = Path(scratch) / "run"
            for group in orders:
                scored = {
                    name: _scored(kind, request, file, output) for name, output in group.outputs.items()
                }
                answer["orders"] += [_order(m, scored, group.best.get(m), request) for m in group.measures]
        proven = {one["measure"] for one in answer["orders"]}
        answer["unproven"] = [m.id for m in request.measures if m.id not in proven]
    print(json.dumps(answer))
    return FINE


def _scored(kind: Kind, request: Request, file: Path, output: bytes) -> Mapping[str, float] | str:
    """The value of each measure, or why there is none."""
    file.write_bytes(output)
    log = Log(request.run_file, request.severities, kept=0)
    sink = Sink(log)
    try:
        kind.evaluate(file, request.inputs, request.truths, request, sink)
    except EvaluatorError as error:
        return f"is not scored: {error.what}"
    if log.invalid:
        return f"is refused ({', '.join(sorted(log.counts))})"
    return {name: one["value"] for name, one in sink.aggregates.items()}


def _order(
    measure: str, scored: Mapping[str, Mapping[str, float] | str], best: float | None, request: Request
) -> dict[str, Any]:
    """The values of one measure, and what is wrong: ``scored`` has the outputs from the best to the worst."""
    sign = -1 if any(m.id == measure and m.direction == "lower" for m in request.measures) else 1
    values: dict[str, float | None] = {}
    wrong = []
    for name, found in scored.items():
        values[name] = None if isinstance(found, str) else found.get(measure)
        if values[name] is None:
            why = found if isinstance(found, str) else "has no value"
            wrong.append(f"the {name} output {why}")
    there = [(name, value) for name, value in values.items() if value is not None]
    for (name, value), (other, next_) in pairwise(there):
        if sign * (next_ - value) > SAME:
            wrong.append(f"the {other} output ({next_:.4f}) is better than the {name} one ({value:.4f})")
    if there and best is not None and abs(there[0][1] - best) > SAME:
        wrong.append(f"the {there[0][0]} output has {there[0][1]:.4f}, and the best value is {best:.4f}")
    return {"measure": measure, "values": values, "wrong": wrong}
