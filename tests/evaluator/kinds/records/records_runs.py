"""Requests for records in a folder, and their evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluator.findings import Log
from evaluator.kinds.records.kind import KIND
from evaluator.request import MeasureRequest, Request
from evaluator.scores import Sink

LOWER = ("LogLoss", "MAE", "RMSE", "HammingLoss", "Number")


def lines(records: Iterable[Any]) -> bytes:
    """Return records as JSON Lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def measure_request(id: str, text: str, **options: Any) -> MeasureRequest:
    """Return a measure of truths.jsonl with the direction of its name."""
    direction = "lower" if text.startswith(LOWER) else "higher"
    return MeasureRequest(id, text, "truths.jsonl", direction, options)


def records_request(
    folder: Path,
    outputs: Sequence[Mapping[str, Any]],
    measures: Mapping[str, str] = {},
    options: Mapping[str, Any] = {},
    **fields: Any,
) -> Request:
    """Return a request of which every folder is ``folder``, unless ``fields`` say otherwise."""
    fields = dict.fromkeys(("run", "inputs", "truths", "output"), folder) | fields
    return Request(
        "records",
        run_file=fields.pop("run_file", "run.jsonl"),
        options={"outputs": outputs, **options},
        measures=tuple(measure_request(id, text) for id, text in measures.items()),
        **fields,
    )


def evaluate_records(request: Request) -> Sink:
    """Evaluate the run of a request."""
    sink = Sink(Log(request.run_file, request.severities))
    KIND.evaluate(request.run / request.run_file, request.inputs, request.truths, request, sink)
    return sink
