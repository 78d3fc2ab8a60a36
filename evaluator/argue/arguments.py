"""The arguments of ``evaluator argue``: those of Auto-ARGUE in both spellings, what was added to them, and what they mean."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from evaluator.errors import EvaluatorError
from evaluator.findings import nearest, plain

ACTIONS = ("annotate", "score")
_EPILOG = """commands (first word):
  annotate      judge only: the same arguments
  score         score stored judgments: [INPUT] NUGGETS OUT_PREFIX [--judgments FILE]; no judge is needed
  agreement     how far a judge agrees with people, by judgment type
  correlation   whether two judges order the runs alike
  consistency   whether a judge says the same again
  canaries      whether a judge can be talked into something by what it reads
  fit           fit and measure the judges nli and lexical+nli with an entailment model of yours

examples:
  evaluator argue reports.jsonl nuggets results/mine -p lexical -C lookup
  evaluator argue reports.jsonl nuggets results/mine -p openai -a annotate score --validate-judgments
  evaluator argue score nuggets results/mine --judgments people.jsonl
"""


class Parser(argparse.ArgumentParser):
    """Unknown and wrong arguments become one clear error, which names the options that begin like an unknown one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        self.known: list[str] = []

    def option(self, *names: str, **options: Any) -> None:
        """Add an option; every name with hyphens has a twin with underscores, which the help leaves out."""
        twins = [f"--{n[2:].replace('-', '_')}" for n in names if n.startswith("--") and "-" in n[2:]]
        self.known += [*names, *twins]
        action = self.add_argument(*names, **options)
        # Not in option_strings, which is what the help shows.
        self._option_string_actions.update(dict.fromkeys(twins, action))

    def flags(self, helps: Mapping[str, str]) -> None:
        """Add options without a value: their names, between blanks, and what they do."""
        for names, text in helps.items():
            self.option(*names.split(), action="store_true", help=text)

    def several(self, *names: str, **options: Any) -> None:
        """Add an option with one or more values, which may be given several times."""
        self.option(*names, nargs="+", action="extend", default=[], **options)

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print, with the option that was probably meant."""
        fix = f"see {self.prog} -h"
        for word in message.split() if "unrecognized" in message else ():
            if meant := self._meant(word.partition("=")[0]):
                fix = f"did you mean {' or '.join(meant)}? See {self.prog} -h"
                break
        raise EvaluatorError(f"{self.prog}: {plain(message, 300)}", fix=fix, usage=True)

    def _meant(self, word: str) -> list[str]:
        if not word.startswith("-"):
            return []
        close = nearest(word, self.known)
        begins = [name for name in self.known if len(word) > 2 and name.startswith(word)]
        return [close] if close else [n for n in begins if n.replace("_", "-") == n or word.count("_")][:4]


def whole_parser(name: str) -> Parser:
    """The parser of ``evaluator argue`` itself, or of ``annotate``, which has no ``--actions``."""
    parser = Parser(
        prog=f"evaluator argue{' ' + name if name else ''}",
        description="Judge reports with citations, and score the judgments: OUT_PREFIX.judgments.jsonl and OUT_PREFIX.scores.tsv.",
        epilog=None if name else _EPILOG,
    )
    for place, metavar, text in (
        ("input", "INPUT", "reports as JSON Lines"),
        ("nuggets", "NUGGETS", "nuggets: a file such as nuggets_388.v3.json, or a folder"),
        ("prefix", "OUT_PREFIX", "beginning of the names of what is written"),
    ):
        parser.add_argument(place, metavar=metavar, help=text)
    if not name:
        parser.option("-a", "--actions", nargs="+", choices=ACTIONS, default=list(ACTIONS),
                      help="what to do (default: both)")  # fmt: skip
    add_judge_options(parser)
    add_report_options(parser)
    parser.flags(
        {
            "--rerun": "judge again, even if there are judgments already",
            "--dry-run": "only say what judging would take",
        }
    )
    parser.option("--max-calls", type=_positive, metavar="N", help="do not begin if more calls may be needed")
    _add_scoring(parser)
    return parser


def score_parser() -> Parser:
    """The parser of ``evaluator argue score``."""
    parser = Parser(
        prog="evaluator argue score",
        description="Score stored judgments: OUT_PREFIX.scores.tsv. No judge and no documents are needed.",
    )
    parser.add_argument("places", nargs="+", metavar="[INPUT] NUGGETS OUT_PREFIX")
    parser.option("--judgments", type=Path, metavar="FILE", help="default: OUT_PREFIX.judgments.jsonl")
    add_topics(parser)
    parser.flags({"-v --verbose": "say more on stderr"})
    _add_scoring(parser)
    return parser


def add_topics(parser: Parser) -> None:
    """Which topics."""
    parser.several("-t", "--topics", metavar="TOPIC", help="only these topics")


def add_judge_options(parser: Parser) -> None:
    """Who judges."""
    parser.option("-p", "--model-provider", "--provider", metavar="P",
        help="openai, anthropic, together (default), huggingface, huggingface_local, from_env; lexical (offline, no key); nli, lexical+nli (offline, with an entailment model); human",
    )  # fmt: skip
    parser.option(
        "-m",
        "--model-name",
        "--model",
        metavar="M",
        help="the provider's name of the model; for nli its folder",
    )
    parser.option(
        "-P", "--prompt-config", type=Path, metavar="FILE", help="prompts in the place of ours (JSON)"
    )
    parser.option(
        "--max-tokens", type=_positive, default=10, metavar="N", help="tokens of a reply (default 10)"
    )
    parser.option("--parameter", type=_parameter, action="append", default=[], metavar="NAME=JSON",
        help="goes with every question, such as max_completion_tokens=2000; null leaves one out (max_tokens, temperature)",
    )  # fmt: skip
    parser.option("--human", type=Path, metavar="PLACE",
                  help="with -p human: judgments of people, a file or a folder of files")  # fmt: skip
    parser.flags(
        {
            "--disable-cache": "keep no replies in OUT_PREFIX.replies.jsonl, and use none",
            "--always-check-all-nuggets": "ask the judge about relevance, and about all nuggets for every citation: "
            "many questions",
        }
    )
    parser.option("--price", nargs=2, type=float, metavar=("IN", "OUT"),
                  help="dollars per million tokens read and written, for the estimate")  # fmt: skip


def add_report_options(parser: Parser) -> None:
    """What is judged."""
    parser.option(
        "-C", "--collection-dir", metavar="DIR", help="folder with the documents (default: $DOC_LOOKUP)"
    )
    parser.several("-c", "--collection", "--collections", metavar="ID",
                   help="collections in it, such as neuclir/1/ru (default: the three of NeuCLIR, or what is there)")  # fmt: skip
    add_topics(parser)
    parser.option("--max-report-length", type=_positive, default=2000, metavar="N",
                  help="the limit in characters, where --requests gives none (default 2000)")  # fmt: skip
    parser.option("--requests", type=Path, metavar="FILE", help="requests with limits")
    parser.flags(
        {
            "--report-documents": "also use the documents that reports carry themselves",
            "--truncate-reports": "cut reports at their limit before they are judged",
            "--do-nugget-alignment-check --nugget-alignment-check": "stop unless reports and nuggets are of the same topics",
            "-v --verbose": "say more on stderr",
        }
    )


def _add_scoring(parser: Parser) -> None:
    parser.option("--credit", "--nugget-credit", choices=("citation", "sentence", "none"), default="citation",
                  help="which nugget matches count (default: of citations that support their sentence)")  # fmt: skip
    parser.several("--leaderboard", "--leaderboard-format", metavar="FORMAT",
                   help="also write OUT_PREFIX.FORMAT.txt: ir_measures, tot, trec_eval, rag4reports, ranking, jsonl")  # fmt: skip
    parser.flags(
        {
            "--validate-judgments": "stop if judgments are missing or do not fit to the nuggets",
            "--penalize-missing-topics": "topics without a report count 0 (default: left out)",
            "--strict": "ours: also measures for which wrong answers count against a nugget",
            "--negative-assertions": "ours: also measures of statements that something is not known",
            "--explain": "print every reward and penalty",
        }
    )


def topics(args: argparse.Namespace) -> list[str]:
    """The topics that ``--topics`` names, between blanks or commas."""
    return [t for word in args.topics for t in word.split(",") if t]


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if (
        not equals
        or not name.isascii()
        or not name.isidentifier()
        or name in ("model", "messages", "stream", "n")
    ):
        raise argparse.ArgumentTypeError(f"{plain(text, 40)} is no NAME=JSON of a parameter that may be set")
    try:
        return name, json.loads(value, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return name, value  # text need not be in quotes


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= 10**9:
        raise argparse.ArgumentTypeError("say a positive number")
    return int(text)
