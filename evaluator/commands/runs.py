"""``evaluator run`` and ``evaluator local``: evaluate one run as a request says."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.findings import Log
from evaluator.request import Request
from evaluator.scores import Sink

DEFAULT_REQUEST = "/in/request.json"


def run_request(path: Path) -> int:
    """Do what a request says and write the result files. Returns 0 whenever ``result.json`` was written.

    Wrong files of the organiser give a result of status ``error``; a request that cannot be read gives none.
    """
    from evaluator.kinds.base import find
    from evaluator.request import load

    request = load(path)
    log = Log(request.run_file, request.severities, kept=request.max_findings)
    sink = Sink(log)
    try:
        request = _present(request, sink)
        find(request.kind).evaluate(
            request.run / request.run_file, request.inputs, request.truths, request, sink
        )
    except EvaluatorError as error:
        message = "; ".join(part for part in (error.what, error.why) if part)
        print("\n".join(error.lines()), file=sys.stderr)
        Sink(Log(request.run_file)).write(request.output, status="error", message=message)
        return 0
    loud = _loud(log, sink)
    sink.write(request.output)
    print("\n".join([*loud, log.summary()]), file=sys.stderr)
    return 0


def _present(request: Request, sink: Sink) -> Request:
    """The request without measures whose truths are not here: they wait. Raises :class:`EvaluatorError` when none is left."""
    waiting = {m.id: m.truths for m in request.measures if f"truths/{m.truths}" in request.absent}
    sink.pending.update({name: f"{truths} is not here" for name, truths in waiting.items()})
    if waiting and len(waiting) == len(request.measures):
        names = ", ".join(sorted(set(waiting.values())))
        raise EvaluatorError("no truths are here", f"missing: {names}", "runner data pull fetches them")
    return request._replace(measures=tuple(m for m in request.measures if m.id not in waiting))


def _loud(log: Log, sink: Sink) -> list[str]:
    """Note what has to stand beside the scores, because it takes the sense from them; returns it in words."""
    lines = [f.message for f in log.sorted() if f.code == "F029"][:5]
    for line in lines:
        sink.note("nothing-judged", message=line)
    return lines


def local(text: str | None, path: Path | None) -> int:
    """Evaluate one run and print what a team wants to know: findings, then scores (``docker compose up``).

    The request is ``text``, else the file ``path``. Returns 1 for a run that is missing or invalid.
    """
    import json
    import os

    from evaluator.kinds.base import find
    from evaluator.request import load, parse

    try:
        request = parse(json.loads(text)) if text else load(path or Path(DEFAULT_REQUEST))
    except ValueError:
        raise EvaluatorError("the request is not JSON", usage=True) from None
    names = (request.run_file, f"{request.run_file}.gz")
    name = next((n for n in names if os.path.lexists(request.run / n)), None)
    if name is None:
        print(f"FAILED: the software left no {names[0]} (or {names[1]}) in $outputDir.")
        print("How it ended and what it said stands above.")
        print("Fix: write the run there and end with exit code 0")
        return 1
    log = Log(name, request.severities, kept=request.max_findings)
    sink = Sink(log)
    present = _present(request, sink)
    find(request.kind).evaluate(present.run / name, present.inputs, present.truths, present, sink)
    _loud(log, sink)
    lines = log.lines_of(50)
    lines.append(f"{'INVALID' if log.invalid else 'VALID'}: {name}: {log.summary()}")
    if not log.invalid:
        width = max((len(m.measure) for m in request.measures), default=0)
        lines.append(f"\n{request.task}, dataset {request.dataset}")
        for measure in request.measures:
            if measure.id in sink.pending:
                lines.append(f"{measure.measure:<{width}}        –  {sink.pending[measure.id]}")
                continue
            score = sink.aggregates[measure.id]
            lines.append(
                f"{measure.measure:<{width}}  {score['value']:7.4f}  {score['covered']} of {score['topics']} topics answered"
            )
        lines += _judged_by(sink)
    print("\n".join(lines))
    return 1 if log.invalid else 0


def _judged_by(sink: Sink) -> list[str]:
    """Who judged, how reliable that is, and what else has to be known beside the scores."""
    judge = sink.judge or {}
    about = [str(judge["name"])] if judge.get("name") else []
    if judge.get("model"):
        about.append(f"model {judge['model']}")
    about += [f"{name} {value:.4g}" for name, value in judge.get("reliability", {}).items()]
    lines = [f"\njudged by: {', '.join(about)}"] if about else []
    return lines + [
        f"note: {note}" for note in (*([judge["note"]] if judge.get("note") else []), *sink.notes)
    ]
