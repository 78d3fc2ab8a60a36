"""``evaluator data``: what is wrong with the data of a dataset, and statistics of it, for its organiser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from evaluator import registry
from evaluator.errors import EvaluatorError
from evaluator.process import FINE


def data(paths: Sequence[Path]) -> int:
    """Print what the kind of each request says of its inputs and truths, one line with a JSON object each. Returns 0.

    ``checked`` is false where the kind has no such check. Raises EvaluatorError for a request that cannot be read.
    """
    from evaluator.data import DataReport
    from evaluator.kinds.base import find
    from evaluator.request import load

    for path in paths:
        request, report = load(path), DataReport()
        find(request.kind)
        module = registry.part(request.kind, "data")
        if module is not None:
            try:
                module.check_data(request.inputs, request.truths, request, report)
            except EvaluatorError as error:
                report.error("truths", error)
        print(json.dumps({"checked": module is not None, **report.as_json()}))
    return FINE
