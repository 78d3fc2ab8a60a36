"""The command line: ``evaluator run`` (in the container), ``local``, ``check``, ``codes``, and the commands of the kinds."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from evaluator import __version__, process, registry
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


def _width() -> int:
    """How wide help may be. argparse asks for every argument, and would import shutil for it: longer than all else it does."""
    try:
        return (int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(1).columns or 80) - 2
    except (ValueError, OSError):
        return 78


class _Help(argparse.RawDescriptionHelpFormatter):
    """argparse forgets that commands are indented, and would give the longest name a line of its own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action.choices, dict):
            self._action_max_length = max(self._action_max_length, *(len(c) + 4 for c in action.choices))


class _Command(argparse.ArgumentParser):
    """The parser of one command."""

    def __init__(self, **words: Any) -> None:
        super().__init__(**{"formatter_class": _plain_help, **words})


def _plain_help(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, width=_width())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0 fine, 1 invalid run, 2 usage, 3 internal, 4 organiser's files."""
    heard()
    args = _parsed(sys.argv[1:] if argv is None else list(argv))
    return process.run(lambda: args.call(args), debug=args.debug)


def _parsed(words: list[str]) -> argparse.Namespace:
    """The arguments. A kind's command that reads its words itself is given all that follow it."""
    at = next((i for i, word in enumerate(words) if word != "--debug"), len(words))
    name = words[at] if at < len(words) else ""
    if name in _OWN:
        return _parser([]).parse_args(words)
    modules = _modules(name)
    for module in modules:
        if read := getattr(module, "READ_THEMSELVES", {}).get(name):
            return argparse.Namespace(debug=at > 0, call=lambda _: read(words[at + 1 :]))
    return _parser(modules).parse_args(words)


def _modules(name: str) -> list[ModuleType]:
    """The module of the kind that has the command ``name``; of all kinds if none that comes with the evaluator has it.

    The first that has it is enough: to import all, and to look for those of other packages, takes longer than scoring a
    small run.
    """
    for kind in registry.built_in() if name and not name.startswith("-") else ():
        module = registry.part(kind, "command")
        if module is not None:
            commands = argparse.ArgumentParser(add_help=False).add_subparsers(
                prog="evaluator", parser_class=_Command
            )
            module.add_commands(commands)
            if name in commands.choices or name in getattr(module, "READ_THEMSELVES", {}):
                return [module]
    return [module for kind in registry.names() if (module := registry.part(kind, "command"))]


def _run(args: argparse.Namespace) -> int:
    from evaluator.commands.runs import run_request

    return run_request(args.request)


def _local(args: argparse.Namespace) -> int:
    from evaluator.commands.runs import local

    return local(None if args.request else os.environ.get("EVALUATOR_REQUEST_JSON"), args.request)


def _check(args: argparse.Namespace) -> int:
    from evaluator.commands.check import check

    return check(args)


def _data(args: argparse.Namespace) -> int:
    from evaluator.commands.check import data

    return data(args.request)


def _prove(args: argparse.Namespace) -> int:
    from evaluator.commands.prove import prove

    return prove(args.request)


def _codes(args: argparse.Namespace) -> int:
    from evaluator.codes import CODES

    if args.json:
        import json

        print(json.dumps([c._asdict() for c in CODES.values()], indent=2))
    else:
        for c in CODES.values():
            print(f"{c.code}  {c.severity:7}  {c.title}. Fix: {c.fix}")
    return FINE


_OWN: dict[str, tuple[Callable[[argparse.Namespace], int], str]] = {
    "run": (_run, "what the container does: read a request, write the result files"),
    "local": (_local, "evaluate one run and print findings and scores (docker compose up)"),
    "check": (
        _check,
        "say everything that is wrong with a run: a TREC run, or of the kind that a request names",
    ),
    "data": (_data, "say everything that is wrong with the data of a dataset, as JSON (runner task check)"),
    "prove": (
        _prove,
        "make outputs from the truths, and say what they score, as JSON (runner task check --run)",
    ),
    "codes": (_codes, "list everything that can be found wrong"),
}


def _parser(modules: Iterable[ModuleType]) -> argparse.ArgumentParser:
    """The command line with the commands of the kinds in ``modules``."""
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
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, prog="evaluator", parser_class=_Command
    )
    own = {}
    for name, (call, text) in _OWN.items():
        own[name] = commands.add_parser(name, help=text)
        own[name].set_defaults(call=call)
    default = Path(os.environ.get("EVALUATOR_REQUEST", "/in/request.json"))
    own["run"].add_argument("--request", type=Path, default=default, metavar="FILE")
    own["prove"].add_argument("--request", type=Path, default=default, metavar="FILE")
    own["data"].add_argument(
        "--request", type=Path, action="append", required=True, metavar="FILE", help="repeatable"
    )
    own["local"].add_argument("--request", type=Path, metavar="FILE", help="default: $EVALUATOR_REQUEST_JSON")
    check = own["check"]
    check.add_argument("run", type=Path, metavar="RUN", help="a run file; - is standard input")
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
    own["codes"].add_argument("--json", action="store_true")
    for module in modules:
        module.add_commands(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
