"""``evaluator records``: records validated by a JSON Schema, and scored by a file of truths."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError
from evaluator.findings import Log, plain
from evaluator.printing import print_json

PRINTED = 50  # findings; --json has all that were kept


def add_commands(commands: Any) -> None:
    """Add the command to argparse's ``commands``."""
    parser = commands.add_parser("records", help="validate records by a JSON Schema, and score them")
    parser.add_argument(
        "output", type=Path, metavar="OUTPUT", help="JSON Lines, JSON, CSV or TSV; - is standard input"
    )
    parser.add_argument(
        "--schema", type=Path, required=True, metavar="FILE", help="JSON Schema of one record (draft 2020-12)"
    )
    parser.add_argument(
        "--truths", type=Path, metavar="FILE", help="records that are right; without them nothing is scored"
    )
    parser.add_argument(
        "--id",
        action="append",
        default=[],
        metavar="KEY",
        help="key that tells records apart; repeatable (default id)",
    )
    parser.add_argument(
        "--format", choices=("jsonl", "json", "csv", "tsv"), help="of OUTPUT; default: as its name ends"
    )
    parser.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="M",
        help="such as 'F1(label, average=macro)'; repeatable",
    )
    parser.add_argument("-q", "--by-record", action="store_true", help="also print values by record")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(call=records)


def records(args: argparse.Namespace) -> int:
    """Validate and score one file. Returns 1 if it is invalid."""
    from evaluator.formats.files import whole_file
    from evaluator.kinds.records.kind import KIND
    from evaluator.measures.records.named import measure
    from evaluator.request import MeasureRequest, Request
    from evaluator.scores import Sink

    if args.measure and args.truths is None:
        raise EvaluatorError("there is nothing to compare with", fix="give --truths FILE", usage=True)
    measures = [measure(text) for text in args.measure]
    output: dict[str, Any] = {"path": "OUTPUT", "schema": _schema(args.schema), "id": args.id or "id"}
    output["format"] = args.format or _format(args.output)
    log = Log(str(args.output))
    sink = Sink(log)
    none = Path()
    with whole_file(args.output) as file:
        request = Request(
            "records", none, none, none, none, file.name, public=True, options={"outputs": [output]},
            measures=tuple(
                MeasureRequest(f"{n}", one.text, str(args.truths.absolute()), one.direction) for n, one in enumerate(measures)
            ),
        )  # fmt: skip
        if measures:
            KIND.evaluate(file, none, none, request, sink)
        else:
            KIND.check(file, none, request, log)
    values = {
        one.text: {key: said for key, said in sink.aggregates[f"{n}"].items() if key != "resamples"}
        for n, one in enumerate(measures)
        if f"{n}" in sink.aggregates
    }
    rows = [(measures[int(m)].text, plain(t, 200), v) for m, t, v, facets in sink.scores() if not facets]
    if args.json:
        print_json(_report(log, values, rows if args.by_record else [], sink.notes))
    else:
        print(log.printed(PRINTED), end="", file=sys.stderr)
        _print(log, values, rows if args.by_record else [])
        print("".join(f"{note}\n" for note in sink.notes), end="")
    return 1 if log.invalid else 0


def _format(path: Path) -> str:
    from evaluator.kinds.records.reading import format_of

    return format_of(path.name)


def _schema(path: Path) -> Any:
    """The schema in a file of the caller. Raises :class:`EvaluatorError`."""
    from evaluator.formats.files import organisers, read_all

    with organisers("the schema", "correct --schema"):
        text = read_all(path, 1 << 20, follow=True)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvaluatorError(
            f"the schema {plain(str(path), 200)} is not JSON", plain(str(error), 200)
        ) from None
    if not isinstance(found, dict):
        raise EvaluatorError(
            f"the schema {plain(str(path), 200)} is no object", fix='write {"type": "object", …}'
        )
    return found


def _report(log: Log, values: Any, rows: Any, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "file": log.file,
        "status": log.status,
        "summary": log.summary(),
        "measures": values,
        "notes": list(notes),
        "values": [{"measure": m, "record": key, "value": value} for m, key, value in rows],
        "findings": log.with_kept(),
    }


def _print(log: Log, values: Any, rows: Any) -> None:
    width = max(map(len, values), default=0)
    for measure, key, value in rows:
        print(f"{measure:<{width}}  {key}  {value:.4f}")
    for text, one in values.items():
        low, high = one.get("interval") or (None, None)
        interval = "" if low is None else f"  [{low:.4f}, {high:.4f}]"
        print(f"{text:<{width}}  {one['value']:.4f}{interval}")
    if any(value.get("interval") for value in values.values()):
        print("In brackets: 95 % interval over records.")
    if values and any(one["covered"] < one["topics"] for one in values.values()):
        one = min(values.values(), key=lambda one: one["covered"])
        print(
            f"{one['covered']:,} of {one['topics']:,} records answered; the others count as the worst value"
        )
    if not values and not log.invalid:
        print(f"{log.file}: {log.summary()}")
