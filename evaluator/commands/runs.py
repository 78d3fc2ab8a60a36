"""What the commands of the evaluator do."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.scores import Sink

if TYPE_CHECKING:
    from evaluator.formats.qrels import Qrels
    from evaluator.measures.ir import Measure
    from evaluator.request import Request

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
    find(request.kind).evaluate(request.run / name, request.inputs, request.truths, request, sink)
    _loud(log, sink)
    lines = [str(f) for f in log.sorted()[:50]]
    total = sum(log.counts.values())
    if total > len(lines):
        lines.append(f"... and {total - len(lines):,} more")
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


def trec(args: argparse.Namespace) -> int:
    """Score runs by one file of judgements and print the values. Returns 1 if a run is invalid."""
    from evaluator.formats.qrels import read_qrels
    from evaluator.formats.ranked import Rules
    from evaluator.formats.trec import scan
    from evaluator.kinds.adhoc import report_unmatched, wanted
    from evaluator.measures.ir import Measure, aggregate, evaluate, first_wanted, require

    measures = [Measure(text) for text in args.measure or ["nDCG@10", "AP"]]
    require(measures)
    qrels = read_qrels(args.qrels, str(args.qrels))
    double = args.precision == "double"
    rules = Rules(judged=wanted([qrels]), first=first_wanted(measures), double=double, suggest=True)
    results = []
    invalid = False
    for path in args.runs:
        log = Log(str(path))
        read = scan(path, rules, log)
        report_unmatched(read, [qrels], log)
        print(log.printed(50), end="", file=sys.stderr)
        if log.invalid:
            invalid = True
            continue
        values = evaluate(measures, qrels, read.topics, name_topics=True)
        if args.cross_check:
            _cross_checked(measures, qrels, path, values, log, double=double)
        results.append(
            {
                "run": plain(str(path), 200),
                "tag": plain((read.tag or b"").decode("utf-8", "backslashreplace")),
                "topics": len(qrels.grades),
                "covered": sum(1 for topic in qrels.grades if topic in read.topics),
                "measures": {m.text: aggregate(m, values[m.text]) for m in measures},
                "values": {
                    m: {t.decode("utf-8", "backslashreplace"): v for t, v in by.items()}
                    for m, by in values.items()
                }
                if args.by_topic
                else {},
            }
        )
    _print_results(results, args.format)
    return 1 if invalid else 0


def _cross_checked(
    measures: list[Measure],
    qrels: Qrels,
    path: Path,
    values: dict[str, dict[bytes, float]],
    log: Log,
    *,
    double: bool,
) -> None:
    """Raise :class:`EvaluatorError` if ir_measures comes to other values; say so if a run cannot be compared."""
    from evaluator.measures.crosscheck import cross_check, incomparable

    if why := incomparable(log, double=double):
        print(f"{log.file}: not cross-checked with ir_measures: {why}", file=sys.stderr)
    elif (found := cross_check(measures, qrels, path, values)) is not None:
        raise EvaluatorError(f"the cross-check of {found[0]} with ir_measures failed", found[1])


def _print_results(results: list[dict[str, Any]], form: str) -> None:
    out = []
    if form == "json":
        import json

        out.append(json.dumps(results, indent=2, ensure_ascii=False))
    for result in results if form == "trec_eval" else ():
        out.append(f"{'runid':<22}\tall\t{result['tag']}")
        for measure, by_topic in result["values"].items():
            out += [f"{measure:<22}\t{topic}\t{value:.4f}" for topic, value in by_topic.items()]
        out += [f"{measure:<22}\tall\t{value:.4f}" for measure, value in result["measures"].items()]
    for i, result in enumerate(results if form == "table" else ()):
        if i:
            out.append("")
        if len(results) > 1:
            out.append(result["run"])
        width = max(map(len, result["measures"]))
        for measure, by_topic in result["values"].items():
            out += [f"{measure:<{width}}  {plain(topic)}  {value:.4f}" for topic, value in by_topic.items()]
        for measure, value in result["measures"].items():
            out.append(f"{measure:<{width}}  {value:.4f}")
        if result["covered"] < result["topics"]:
            out.append(
                f"{result['covered']:,} of {result['topics']:,} judged topics answered; the others count 0"
            )
    if out:
        print("\n".join(out))


def _overridden(request: Request, args: argparse.Namespace) -> Request:
    """The request with what the command line says otherwise. These options are for TREC runs only."""
    if not (args.topics or args.corpus or args.max_documents):
        return request
    if request.kind != "adhoc":
        raise EvaluatorError(
            f"--topics, --corpus and --max-documents mean nothing for the kind {request.kind}", usage=True
        )
    options = dict(request.options)
    if args.max_documents:
        options["max_documents"] = args.max_documents
    # An absolute path stands for itself when it is joined to the folder of the inputs.
    return request._replace(
        topics=str(args.topics.absolute()) if args.topics else request.topics,
        corpus=str(args.corpus.absolute()) if args.corpus else request.corpus,
        options=options,
    )


def check(args: argparse.Namespace) -> int:
    """Say everything that is wrong with a run. Returns 1 if it is invalid, else 0."""
    if args.max_documents is not None and args.max_documents < 1:
        raise EvaluatorError("--max-documents has to be at least 1", usage=True)
    if args.request is None:
        from evaluator.kinds.adhoc import check_run

        log = Log(str(args.run))
        check_run(args.run, log, topics=args.topics, corpus=args.corpus, max_documents=args.max_documents)
    else:
        from evaluator.kinds.base import checker, find
        from evaluator.request import load

        request = load(args.request)
        kind = checker(find(request.kind))
        log = Log(str(args.run), request.severities, kept=request.max_findings)
        kind.check(args.run, request.inputs, _overridden(request, args), log)
    if args.json:
        import json

        print(
            json.dumps(
                {
                    "schema_version": 1,
                    "file": log.file,
                    "status": "invalid" if log.invalid else "valid",
                    "lines": log.lines,
                    "topics": log.answered,
                    "run_tag": None
                    if log.tag is None
                    else plain(log.tag.decode("utf-8", "backslashreplace"), 40),
                    "summary": log.summary(),
                    "findings": log.as_json() | {"kept": [f.as_json() for f in log.sorted()]},
                },
                indent=2,
                ensure_ascii=False,
            )
        )
    else:
        lines = [str(f) for f in log.sorted()]
        total = sum(log.counts.values())
        if total > len(lines):
            lines.append(f"... and {total - len(lines):,} more")
        print("\n".join([*lines, f"{log.file}: {log.summary()}"]))
    return 1 if log.invalid else 0
