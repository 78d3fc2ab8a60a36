"""``evaluator check`` and ``evaluator data``: everything that is wrong with a run, without any truths, and with a dataset."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluator import registry
from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.printing import print_json
from evaluator.process import FINE
from evaluator.request import Request, load

PRINTED = 50  # findings; --json has all that were kept


def check(args: argparse.Namespace) -> int:
    """Print everything that is wrong with a run. Returns 1 if it is invalid, else 0."""
    from evaluator.formats.files import whole_file
    from evaluator.kinds.base import checker, find

    request = _request(args)
    log = Log(str(args.run), request.severities, kept=request.max_findings)
    with whole_file(args.run) as file:
        checker(find(request.kind)).check(file, request.inputs, request, log)
    if args.json:
        print_json(_report(log))
    else:
        note = [f"note: {request.unchecked}"] if request.unchecked else []
        print("\n".join([*log.lines_of(PRINTED), *note, f"{log.file}: {log.summary()}"]))
    return 1 if log.invalid else 0


def _request(args: argparse.Namespace) -> Request:
    """The request of the command line, or one for a TREC run; the options about such runs decide over it."""
    if args.max_documents is not None and args.max_documents < 1:
        raise EvaluatorError("--max-documents has to be at least 1", usage=True)
    if args.request:
        request = load(args.request)
    else:
        none = Path()
        options = {"max_documents": sys.maxsize}
        request = Request(
            registry.DEFAULT, none, none, none, none, args.run.name, public=True, options=options
        )
    if not (args.topics or args.corpus or args.max_documents):
        return request
    if request.kind != registry.DEFAULT:
        raise EvaluatorError(
            f"--topics, --corpus and --max-documents mean nothing for the kind {request.kind}", usage=True
        )
    # An absolute path stands for itself when it is joined to the folder of the inputs.
    return request._replace(
        topics=str(args.topics.absolute()) if args.topics else request.topics,
        corpus=str(args.corpus.absolute()) if args.corpus else request.corpus,
        options={
            **request.options,
            **({"max_documents": args.max_documents} if args.max_documents else {}),
        },
    )


def _report(log: Log) -> dict[str, Any]:
    """What was found, as the JSON object that the runner reads."""
    return {
        "schema_version": 1,
        "file": log.file,
        "status": log.status,
        "lines": log.lines,
        "topics": log.answered,
        "run_tag": None if log.tag is None else plain(log.tag.decode("utf-8", "backslashreplace"), 40),
        "summary": log.summary(),
        "findings": log.with_kept(),
    }


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
