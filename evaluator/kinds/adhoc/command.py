"""``evaluator trec``: TREC runs scored by one file of judgements, like trec_eval and ir_measures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.printing import print_json

if TYPE_CHECKING:
    from evaluator.formats.qrels import Qrels
    from evaluator.measures.ir import Measure


def add_commands(commands: Any) -> None:
    """Add the command to argparse's ``commands``."""
    parser = commands.add_parser("trec", help="score TREC runs, like trec_eval and ir_measures")
    parser.add_argument("qrels", type=Path, metavar="QRELS")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run files; - is standard input")
    parser.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="M",
        help="an ir-measures string; repeatable (default nDCG@10, AP)",
    )
    parser.add_argument("-q", "--by-topic", action="store_true", help="also print values by topic")
    parser.add_argument("--format", choices=("table", "json", "trec_eval"), default="table")
    parser.add_argument(
        "--precision",
        choices=("float32", "double"),
        default="float32",
        help="how scores are compared (trec_eval 9: float32); measures of other programs, such as ERR@k, always use double",
    )
    parser.add_argument(
        "--cross-check",
        action="store_true",
        help="also let ir_measures score the file; fail, and name the measure, if it differs",
    )
    parser.add_argument(
        "--severity",
        action="append",
        default=[],
        metavar="CODE=SEVERITY",
        help="accept what a task accepts, such as F010=warning for tags of two words; repeatable",
    )
    parser.set_defaults(call=trec)


def trec(args: argparse.Namespace) -> int:
    """Score runs by one file of judgements and print the values. Returns 1 if a run is invalid."""
    from evaluator.formats.files import whole_file
    from evaluator.formats.qrels import read_qrels
    from evaluator.formats.ranked import Rules
    from evaluator.formats.trec import scan
    from evaluator.kinds.adhoc.remarks import report_ties, report_unmatched, wanted
    from evaluator.measures.ir import Measure, aggregate, evaluate, first_wanted, require

    measures = [Measure(text) for text in args.measure or ["nDCG@10", "AP"]]
    require(measures)
    qrels = read_qrels(args.qrels, str(args.qrels))
    double = args.precision == "double"
    rules = Rules(judged=wanted([qrels]), first=first_wanted(measures), double=double, suggest=True)
    severities = _severities(args.severity)
    results = []
    invalid = False
    for path in args.runs:
        log = Log(str(path), severities)
        with whole_file(path) as file:
            read = scan(file, rules, log)
            report_unmatched(read, [qrels], log)
            values = {} if log.invalid else evaluate(measures, qrels, read.topics)
            if values:
                report_ties(read, measures, qrels, values, log, public=True)
            print(log.printed(50), end="", file=sys.stderr)
            if log.invalid:
                invalid = True
                continue
            if args.cross_check:
                _cross_checked(measures, qrels, file, values, log, double=double)
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
    _print_results(results, args.format, named=len(args.runs) > 1)
    return 1 if invalid else 0


def _severities(texts: Sequence[str]) -> dict[str, str]:
    """Return severities by code of options such as ``F010=warning``. Raises :class:`EvaluatorError`."""
    from evaluator.codes import CODES
    from evaluator.findings import SEVERITIES

    severities = {}
    for text in texts:
        code, _, severity = text.partition("=")
        if code not in list(CODES) or severity not in SEVERITIES:
            raise EvaluatorError(
                f"--severity {plain(text)} is not CODE=SEVERITY",
                f"The code is one of docs/reference/findings.md, and the severity one of {', '.join(SEVERITIES)}.",
                "write it like --severity F010=warning",
                usage=True,
            )
        severities[code] = severity
    return severities


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
        from schemas.details import Detail

        print(f"{log.file}: {Detail(why)}", file=sys.stderr)
    elif (found := cross_check(measures, qrels, path, values)) is not None:
        raise EvaluatorError(f"the cross-check of {found[0]} with ir_measures failed", found[1])


def _print_results(results: list[dict[str, Any]], form: str, *, named: bool) -> None:
    if form == "json":
        print_json(results)
    elif form == "trec_eval":
        print("".join(line + "\n" for result in results for line in _trec_eval(result)), end="")
    elif results:
        print("\n\n".join("\n".join(_table(result, named=named)) for result in results))


def _trec_eval(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'runid':<22}\tall\t{result['tag']}"
    for measure, by_topic in result["values"].items():
        yield from (f"{measure:<22}\t{topic}\t{value:.4f}" for topic, value in by_topic.items())
    yield from (f"{measure:<22}\tall\t{value:.4f}" for measure, value in result["measures"].items())


def _table(result: Mapping[str, Any], *, named: bool) -> Iterator[str]:
    if named:
        yield result["run"]
    width = max(map(len, result["measures"]))
    for measure, by_topic in result["values"].items():
        yield from (f"{measure:<{width}}  {plain(topic)}  {value:.4f}" for topic, value in by_topic.items())
    yield from (f"{measure:<{width}}  {value:.4f}" for measure, value in result["measures"].items())
    if result["covered"] < result["topics"]:
        yield f"{result['covered']:,} of {result['topics']:,} judged topics answered; the others count 0"
