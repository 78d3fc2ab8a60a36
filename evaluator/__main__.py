"""The command line: ``evaluator run`` (in the container), ``trec``, ``perspective``, ``check`` and ``codes`` (for people)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluator import __version__, process
from evaluator.process import FINE
from schemas.interrupts import heard

_EXAMPLES = """examples:
  evaluator check run.txt --topics queries.jsonl --corpus documents.jsonl.gz
  evaluator trec qrels.txt run.txt -m nDCG@10 -m AP
  evaluator perspective --data release --predictions run.jsonl --scenario explicit --split dev --output results
  evaluator judges --labels debates-labels.jsonl --judgments evaluations.jsonl
  evaluator leaderboards --truth truth.txt --judge judge.txt --measures kendall tauap_b
  evaluator run --request /in/request.json
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """argparse forgets that commands are indented, and would give the longest name a line of its own."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action.choices, dict):
            self._action_max_length = max(self._action_max_length, *(len(c) + 4 for c in action.choices))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0 fine, 1 invalid run, 2 usage, 3 internal, 4 organiser's files."""
    heard()
    args = _parsed(sys.argv[1:] if argv is None else list(argv))
    return process.run(lambda: args.call(args), debug=args.debug)


def _parsed(words: list[str]) -> argparse.Namespace:
    """The arguments. What follows ``argue`` is that command's own: its options may stand before its files."""
    own = next((i for i, word in enumerate(words) if word != "--debug"), len(words))
    if words[own : own + 1] != ["argue"]:
        return _parser().parse_args(words)
    from evaluator.argue.cli import call

    return argparse.Namespace(debug=own > 0, call=lambda _: call(words[own + 1 :]))


def _run(args: argparse.Namespace) -> int:
    from evaluator.commands.runs import run_request

    return run_request(args.request)


def _local(args: argparse.Namespace) -> int:
    from evaluator.commands.runs import local

    return local(None if args.request else os.environ.get("EVALUATOR_REQUEST_JSON"), args.request)


def _trec(args: argparse.Namespace) -> int:
    from evaluator.commands.runs import trec

    return trec(args)


def _check(args: argparse.Namespace) -> int:
    from evaluator.commands.runs import check

    return check(args)


def _codes(args: argparse.Namespace) -> int:
    from evaluator.findings import CODES

    if args.json:
        import json

        print(json.dumps([c._asdict() for c in CODES.values()], indent=2))
    else:
        for c in CODES.values():
            print(f"{c.code}  {c.severity:7}  {c.title}. Fix: {c.fix}")
    return FINE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="evaluator",
        description="Check and score runs.",
        epilog=_EXAMPLES,
        formatter_class=_Help,
    )
    parser.add_argument(
        "--version", action="version", version=f"evaluator {__version__} (request and result schema 1)"
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="what the container does: read a request, write the result files")
    run.add_argument(
        "--request",
        type=Path,
        default=Path(os.environ.get("EVALUATOR_REQUEST", "/in/request.json")),
        metavar="FILE",
    )
    run.set_defaults(call=_run)

    local = commands.add_parser(
        "local", help="evaluate one run and print findings and scores (docker compose up)"
    )
    local.add_argument("--request", type=Path, metavar="FILE", help="default: $EVALUATOR_REQUEST_JSON")
    local.set_defaults(call=_local)

    trec = commands.add_parser("trec", help="score TREC runs, like trec_eval and ir_measures")
    trec.add_argument("qrels", type=Path, metavar="QRELS")
    trec.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    trec.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="M",
        help="an ir-measures string; repeatable (default nDCG@10, AP)",
    )
    trec.add_argument("-q", "--by-topic", action="store_true", help="also print values by topic")
    trec.add_argument("--format", choices=("table", "json", "trec_eval"), default="table")
    trec.add_argument(
        "--precision",
        choices=("float32", "double"),
        default="float32",
        help="how scores are compared (trec_eval 9 and ir_measures: float32)",
    )
    trec.add_argument(
        "--cross-check",
        action="store_true",
        help="also let ir_measures score the file; fail, and name the measure, if it differs",
    )
    trec.set_defaults(call=_trec)

    check = commands.add_parser(
        "check",
        help="say everything that is wrong with a run: a TREC run, or of the kind that a request names",
    )
    check.add_argument("run", type=Path, metavar="RUN")
    check.add_argument("--topics", type=Path, metavar="FILE", help="topics that may be answered")
    check.add_argument("--corpus", type=Path, metavar="FILE", help="documents that may be listed")
    check.add_argument(
        "--max-documents", "--max-docs", type=int, metavar="N", help="documents allowed per topic"
    )
    check.add_argument(
        "--request",
        type=Path,
        metavar="FILE",
        help="take kind, inputs, severities and limits from a request",
    )
    check.add_argument("--json", action="store_true")
    check.set_defaults(call=_check)

    from evaluator.commands.perspective import add_command

    add_command(commands)

    from evaluator.commands.meta import add_commands as add_meta

    add_meta(commands)

    from evaluator.commands.debate import add_command as add_debate

    add_debate(commands)

    from evaluator.argue.cli import add_command as add_argue
    from evaluator.argue.formats.convert_lookup import add_command as add_convert

    add_argue(commands)
    add_convert(commands)

    codes = commands.add_parser("codes", help="list everything that can be found wrong")
    codes.add_argument("--json", action="store_true")
    codes.set_defaults(call=_codes)
    return parser


if __name__ == "__main__":
    sys.exit(main())
