"""``evaluator argue``: the command line of Auto-ARGUE, and what it lacks (see :mod:`evaluator.argue.trust`).

``evaluator argue INPUT NUGGETS OUT_PREFIX`` takes the options of Auto-ARGUE in both spellings (``--prompt-config`` and
``--prompt_config``). A first word ``annotate``, ``score``, ``agreement``, ``correlation``, ``consistency`` or ``canaries`` is a command
of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evaluator.argue.models import COMPAT
from evaluator.errors import EvaluatorError
from evaluator.findings import nearest, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evaluator.argue.asking import Judge
    from evaluator.argue.judging import Flow, Tally
    from evaluator.argue.models import Bank, JudgedReport, Report
    from evaluator.argue.runs import RunScores
    from evaluator.argue.work import JudgeChoice, Wanted

USAGE = 2
ACTIONS = ("annotate", "score")
COMMANDS = ("annotate", "score", "agreement", "correlation", "consistency", "canaries")
SHOWN = ("nugget_coverage", "nugget_coverage_weighted", "sentence_support", "f1", "f1_weighted")
_EPILOG = """commands (first word):
  annotate      judge only: the same arguments
  score         score stored judgments: [INPUT] NUGGETS OUT_PREFIX [--judgments FILE]; no judge is needed
  agreement     how far a judge agrees with people, by judgment type
  correlation   whether two judges order the runs alike
  consistency   whether a judge says the same again
  canaries      whether a judge can be talked into something by what it reads

examples:
  evaluator argue reports.jsonl nuggets results/mine -p lexical -C lookup
  evaluator argue reports.jsonl nuggets results/mine -p openai -a annotate score --validate-judgments
  evaluator argue score nuggets results/mine --judgments people.jsonl
"""


class Parser(argparse.ArgumentParser):
    """Unknown and wrong arguments become one clear error; options are never guessed from their beginnings."""

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

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print, with the option that was probably meant."""
        fix = f"see {self.prog} -h"
        for word in message.split():
            if word.startswith("-") and (meant := nearest(word.split("=")[0], self.known)):
                fix = f"did you mean {meant}? See {self.prog} -h"
                break
        raise EvaluatorError(f"{self.prog}: {plain(message, 300)}", fix=fix, usage=True)


def add_command(commands: Any) -> None:
    """Add ``argue`` to argparse's ``commands``, for the list of commands; its arguments are parsed by :func:`call`."""
    parser = commands.add_parser(
        "argue", help="judge and score cited reports, as Auto-ARGUE does", add_help=False
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    parser.set_defaults(call=lambda args: call(args.rest))


def call(words: Sequence[str]) -> int:
    """Do what the words after ``evaluator argue`` say. Returns the exit code. Raises :class:`EvaluatorError`."""
    name = words[0] if words and words[0] in COMMANDS else ""
    if name in ("agreement", "correlation", "consistency", "canaries"):
        from evaluator.argue import trust

        code: int = trust.call(name, words[1:])
        return code
    parser = _score_parser() if name == "score" else _parser(name)
    args = parser.parse_args(words[1:] if name else words)
    if name == "score":
        if len(args.places) not in (2, 3):
            parser.error("give [INPUT] NUGGETS OUT_PREFIX")
        *rest, nuggets, prefix = args.places
        args.input, args.nuggets, args.prefix = (rest[0] if rest else None), nuggets, prefix
        args.actions = ["score"]
        for key, value in vars(_parser("").parse_args(["-", "-", "-"])).items():
            if not hasattr(args, key):
                setattr(args, key, value)
    elif name:
        args.actions = [name]
    return run(args)


def _parser(name: str) -> Parser:
    parser = Parser(
        prog=f"evaluator argue{' ' + name if name else ''}",
        description="Judge reports with citations, and score the judgments: OUT_PREFIX.judgments.jsonl and OUT_PREFIX.scores.tsv.",
        epilog=None if name else _EPILOG,
    )
    parser.add_argument("input", metavar="INPUT", help="reports as JSON Lines")
    parser.add_argument(
        "nuggets", metavar="NUGGETS", help="nuggets: a file such as nuggets_388.v3.json, or a folder"
    )
    parser.add_argument("prefix", metavar="OUT_PREFIX", help="beginning of the names of what is written")
    if not name:
        parser.option(
            "-a",
            "--actions",
            nargs="+",
            choices=ACTIONS,
            default=list(ACTIONS),
            help="what to do (default: both)",
        )
    add_judge_options(parser)
    add_report_options(parser)
    parser.option("--rerun", action="store_true", help="judge again, even if there are judgments already")
    parser.option("--dry-run", action="store_true", help="only say what judging would take")
    parser.option("--max-calls", type=_positive, metavar="N", help="do not begin if more calls may be needed")
    _scoring(parser)
    return parser


def _score_parser() -> Parser:
    parser = Parser(
        prog="evaluator argue score",
        description="Score stored judgments: OUT_PREFIX.scores.tsv. No judge and no documents are needed.",
    )
    parser.add_argument("places", nargs="+", metavar="[INPUT] NUGGETS OUT_PREFIX")
    parser.option("--judgments", type=Path, metavar="FILE", help="default: OUT_PREFIX.judgments.jsonl")
    parser.option(
        "-t", "--topics", nargs="+", action="extend", default=[], metavar="TOPIC", help="only these topics"
    )
    parser.option("-v", "--verbose", action="store_true", help="say more on stderr")
    _scoring(parser)
    return parser


def add_judge_options(parser: Parser) -> None:
    """Who judges."""
    parser.option(
        "-p", "--model-provider", "--provider", default=None, metavar="P",
        help="openai, anthropic, together (default), huggingface, huggingface_local, from_env; lexical (offline, no key); human",
    )  # fmt: skip
    parser.option(
        "-m", "--model-name", "--model", default=None, metavar="M", help="the provider's name of the model"
    )
    parser.option(
        "-P", "--prompt-config", type=Path, metavar="FILE", help="prompts in the place of ours (JSON)"
    )
    parser.option(
        "--max-tokens", type=_positive, default=10, metavar="N", help="tokens of a reply (default 10)"
    )
    parser.option(
        "--human",
        type=Path,
        metavar="PLACE",
        help="with -p human: judgments of people, a file or a folder of files",
    )
    parser.option(
        "--disable-cache",
        action="store_true",
        help="keep no replies in OUT_PREFIX.replies.jsonl, and use none",
    )
    parser.option("--always-check-all-nuggets", action="store_true",
                  help="ask the judge about relevance, and about all nuggets for every citation: many questions")  # fmt: skip
    parser.option("--price", nargs=2, type=float, metavar=("IN", "OUT"),
                  help="dollars per million tokens read and written, for the estimate")  # fmt: skip


def add_report_options(parser: Parser) -> None:
    """What is judged."""
    parser.option(
        "-C", "--collection-dir", metavar="DIR", help="folder with the documents (default: $DOC_LOOKUP)"
    )
    parser.option("-c", "--collection", "--collections", nargs="+", action="extend", default=[], metavar="ID",
                  help="collections in it, such as neuclir/1/ru (default: the three of NeuCLIR, or what is there)")  # fmt: skip
    parser.option(
        "--report-documents", action="store_true", help="also use the documents that reports carry themselves"
    )
    parser.option(
        "-t", "--topics", nargs="+", action="extend", default=[], metavar="TOPIC", help="only these topics"
    )
    parser.option(
        "--truncate-reports", action="store_true", help="cut reports at their limit before they are judged"
    )
    parser.option("--max-report-length", type=_positive, default=2000, metavar="N",
                  help="the limit in characters, where --requests gives none (default 2000)")  # fmt: skip
    parser.option("--requests", type=Path, metavar="FILE", help="requests with limits")
    parser.option("--do-nugget-alignment-check", "--nugget-alignment-check", action="store_true",
                  help="stop unless reports and nuggets are of the same topics")  # fmt: skip
    parser.option("-v", "--verbose", action="store_true", help="say more on stderr")


def _scoring(parser: Parser) -> None:
    parser.option(
        "--validate-judgments",
        action="store_true",
        help="stop if judgments are missing or do not fit to the nuggets",
    )
    parser.option(
        "--penalize-missing-topics",
        action="store_true",
        help="topics without a report count 0 (default: left out)",
    )
    parser.option("--credit", "--nugget-credit", choices=("citation", "sentence", "none"), default="citation",
                  help="which nugget matches count (default: of citations that support their sentence)")  # fmt: skip
    parser.option(
        "--strict",
        action="store_true",
        help="ours: also measures for which wrong answers count against a nugget",
    )
    parser.option(
        "--negative-assertions",
        action="store_true",
        help="ours: also measures of statements that something is not known",
    )
    parser.option("--leaderboard", "--leaderboard-format", nargs="+", action="extend", default=[], metavar="FORMAT",
                  help="also write OUT_PREFIX.FORMAT.txt: ir_measures, tot, trec_eval, rag4reports, ranking, jsonl")  # fmt: skip
    parser.option("--explain", action="store_true", help="print every reward and penalty")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= 10**9:
        raise argparse.ArgumentTypeError("say a positive number")
    return int(text)


# --- doing it ------------------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> int:
    """Annotate, score, or both. Returns 1 if the reports are invalid."""
    from evaluator.argue.nugget_formats import load_nuggets
    from evaluator.argue.output import FORMATS

    for form in args.leaderboard:
        if form not in FORMATS:
            raise EvaluatorError(
                f"there is no leaderboard format {plain(form, 40)!r}",
                f"there are {', '.join(FORMATS)}",
                usage=True,
            )
    banks = load_nuggets(Path(args.nuggets))
    chosen = topics(args)
    banks = {t: b for t, b in banks.items() if not chosen or t in chosen}
    if not banks:
        raise EvaluatorError(
            "there are no nuggets for the topics", f"--topics names {', '.join(chosen[:5])}", usage=True
        )
    out = Path(f"{args.prefix}.judgments.jsonl")
    if not getattr(args, "dry_run", False):
        out.parent.mkdir(parents=True, exist_ok=True)
    if "annotate" in args.actions:
        code = annotate(args, banks, out)
        if code or args.dry_run:
            return code
    if "score" in args.actions:
        score(args, banks, getattr(args, "judgments", None) or out)
    return 0


def topics(args: argparse.Namespace) -> list[str]:
    """The topics that ``--topics`` names, between blanks or commas."""
    return [t for word in args.topics for t in word.split(",") if t]


def choice_of(args: argparse.Namespace) -> JudgeChoice:
    """Who judges, as the options say."""
    from evaluator.argue.work import JudgeChoice
    from evaluator.judges import providers

    name = args.model_provider or providers.DEFAULT
    if name not in ("lexical", "human"):
        name = providers.provider(name).name
    replies = None if args.disable_cache else Path(f"{args.prefix}.replies.jsonl")
    return JudgeChoice(name, args.model_name, args.prompt_config, args.max_tokens, replies, args.human)


def flow_of(args: argparse.Namespace) -> Flow:
    """What is asked, as the options say."""
    from evaluator.argue.judging import Flow

    return Flow(
        args.always_check_all_nuggets,
        getattr(args, "strict", False),
        getattr(args, "negative_assertions", False),
    )


def wanted_of(args: argparse.Namespace, banks: Mapping[str, Bank]) -> list[Wanted] | None:
    """The reports to judge with their nuggets and documents; None if they are invalid, which has been said."""
    from evaluator.argue import work
    from evaluator.argue.requests import limit_of, read_requests, truncate
    from evaluator.findings import Log

    log = Log(args.input)
    reports = work.load(Path(args.input), log, topics(args))
    _tell_findings(log)
    if log.invalid:
        return None
    if args.do_nugget_alignment_check:
        work.aligned(reports, banks)
    if args.truncate_reports:
        requests = read_requests(args.requests) if args.requests else {}
        limits = (
            limit_of(requests.get(r.topic_id)) or (args.max_report_length, "characters") for r in reports
        )
        reports = [truncate(r, *limit) for r, limit in zip(reports, limits, strict=True)]
    lookup = work.documents(args.collection_dir, args.collection)
    if lookup is None and not args.report_documents and any(r.cited for r in reports):
        raise EvaluatorError(
            "the reports cite documents, and there is no collection",
            f"neither -C nor {work.LOOKUP_VARIABLE} names one",
            "give -C DIR, set DOC_LOOKUP, or use the documents in the reports: --report-documents",
            usage=True,
        )
    if lookup is not None and lookup.missing:
        say(f"not in the look-up folder: {', '.join(plain(m, 60) for m in lookup.missing)}")
    found = work.paired(reports, banks, lookup, carried=args.report_documents)
    if len(found) < len(reports):
        say(
            f"{len(reports) - len(found):,} of {len(reports):,} reports are on topics without nuggets and are left out"
        )
    if not found:
        raise EvaluatorError(
            "no report is on a topic that has nuggets", fix="check that topic ids are the same"
        )
    _tell_unknown([r for r, _, _ in found], {id(r): text for r, _, text in found})
    return found


def _tell_unknown(reports: Sequence[Report], texts: Mapping[int, Any]) -> None:
    unknown = dict.fromkeys(d for r in reports for d in r.cited if texts[id(r)](d) is None)
    if unknown:
        names = ", ".join(plain(d, 60) for d in list(unknown)[:5])
        more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
        say(f"{len(unknown):,} cited documents are in no collection and support nothing: {names}{more}")


def annotate(args: argparse.Namespace, banks: Mapping[str, Bank], out: Path) -> int:
    """Judge what has to be judged, and write the judgments. Returns 1 if the reports are invalid."""
    from evaluator.argue import work
    from evaluator.argue.judgments import load_judgments, write_judgments
    from evaluator.judges import providers

    wanted = wanted_of(args, banks)
    if wanted is None:
        return 1
    flow, choice = flow_of(args), choice_of(args)
    with work.OpenJudge(choice) as judge:
        kept: Mapping[tuple[str, str], JudgedReport] = {}
        if out.is_file() and not args.rerun:
            reused = work.reusable(load_judgments(out), wanted, judge, flow)
            kept = reused.kept
            say(
                f"{len(kept):,} of {len(wanted):,} reports are judged already in {out.name} (--rerun judges them again)"
            )
            if reused.foreign:
                say(
                    f"{reused.foreign:,} of them do not say what they were made from, and were taken as they are"
                )
            if reused.stale:
                say(
                    f"{reused.stale:,} were made with another judge, other prompts, nuggets or documents: judged again"
                )
        todo = [w for w in wanted if (w[0].run_id, w[0].topic_id) not in kept]
        made: dict[tuple[str, str], JudgedReport] = {}
        tally = None
        if todo:
            price = (
                tuple(args.price) if args.price else providers.PRICES.get(str(judge.identity().get("model")))
            )
            expected = work.estimate(todo, judge, flow, price)  # type: ignore[arg-type]
            say(f"{judge.name}: {expected}")
            if args.max_calls is not None and expected.calls > args.max_calls:
                raise EvaluatorError(
                    f"judging may take {expected.calls:,} calls",
                    f"--max-calls allows {args.max_calls:,}",
                    usage=True,
                )
            if args.dry_run:
                return 0
            lacks = getattr(judge, "lacks", None)
            if lacks is not None and expected.calls:
                raise lacks
            judged, tally = work.annotate(todo, judge, flow, expected.questions)
            made = {(j.run_id, j.request_id): j for j in judged}
        elif args.dry_run:
            say("nothing has to be judged")
            return 0
        _tell_judging(judge, tally)
    everything = {**kept, **made}
    write_judgments((everything[w[0].run_id, w[0].topic_id] for w in wanted), out)
    say(f"wrote {out}")
    return 0


def _tell_judging(judge: Judge, tally: Tally | None) -> None:
    if tally is not None:
        usage = getattr(getattr(judge, "chat", None), "usage", None)
        asked = f"; {usage.asked:,} asked, {usage.cached:,} known before" if usage is not None else ""
        tokens = (
            f"; {usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens" if usage is not None else ""
        )
        say(f"{tally.total:,} questions answered{asked}{tokens}")
        for kind, count in sorted(tally.defaults.items()):
            say(
                f"{count:,} of {tally.asked[kind]:,} replies about {kind} could not be read: the default was taken. "
                "Models that think aloud need more --max-tokens"
            )
    if judge.name == "lexical":
        from evaluator.judges.lexical import reliability

        figures = ", ".join(f"{name} {value:.2f}" for name, value in reliability().items() if value <= 1)
        say(f"the offline judge is weak. Measured on labelled pairs: {figures}")


def score(args: argparse.Namespace, banks: Mapping[str, Bank], source: Path) -> None:
    """Score judgments, write the scores, print the main ones."""
    from evaluator.argue.judgments import load_judgments
    from evaluator.argue.output import write_leaderboard, write_scores
    from evaluator.argue.runs import score_runs
    from evaluator.argue.scoring import Options
    from evaluator.argue.validating import validate_judgments

    if not source.is_file():
        raise EvaluatorError(
            f"there are no judgments {plain(str(source), 200)}",
            fix="annotate first, or name a file with --judgments",
            usage=True,
        )
    chosen = topics(args)
    judged = [j for j in load_judgments(source) if not chosen or j.request_id in chosen]
    problems = [
        str(p)
        for j in judged
        if j.request_id in banks
        for p in validate_judgments(j, banks[j.request_id], name=source.name)
    ]
    if args.validate_judgments and problems:
        from evaluator.argue.requests import refused

        raise refused(
            f"the judgments {source.name} are not valid",
            problems,
            "judge again (--rerun), or leave --validate-judgments out",
        )
    if problems:
        say(
            f"{len(problems):,} judgments are missing or do not fit; defaults count. The first: {problems[0]}"
        )
    options = Options(
        credit=args.credit,
        missing="penalize" if args.penalize_missing_topics else "ignore",
        incomplete="refuse" if args.validate_judgments else "default",
        strict=args.strict,
        negation=args.negative_assertions,
    )
    runs = list(score_runs(judged, banks, options).values())
    judge = _facts(judged)
    path = Path(f"{args.prefix}.scores.tsv")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_scores(runs, path, judge=judge)
    for form in args.leaderboard:
        write_leaderboard(runs, Path(f"{args.prefix}.{form}.txt"), form, judge=judge)
    say(f"wrote {path}")
    _print(runs, args)


def _facts(judged: Sequence[JudgedReport]) -> dict[str, Any] | None:
    """Who judged: what all reports have in common, and how reliable it is where that was measured."""
    described = [dict(j.judge) for j in judged if j.judge]
    if not described:
        return None
    common = {
        k: v for k, v in described[0].items() if k != "fingerprint" and all(d.get(k) == v for d in described)
    }
    if common.get("name") == "lexical":
        from evaluator.judges.lexical import reliability

        common["reliability"] = reliability()
    return common


def _print(runs: Sequence[RunScores], args: argparse.Namespace) -> None:
    lines = []
    for one in runs:
        if args.explain:
            from evaluator.argue.explaining import explain

            lines += [explain(t) for t in one.topics.values()]
        lines.append(
            f"{plain(one.run, 100)}: {len(one.topics):,} topics ({COMPAT}, credit {one.options.credit})"
        )
        names = (
            *SHOWN,
            *(("f1_strict",) if args.strict else ()),
            *(("f1_negation",) if args.negative_assertions else ()),
        )
        lines += [
            f"  {name:<26} {one.overall[f'{name}_macro']:.4f} (micro {one.overall[f'{name}_micro']:.4f})"
            for name in names
        ]
        if one.missing:
            counted = "count 0" if args.penalize_missing_topics else "are left out"
            lines.append(f"  {len(one.missing):,} topics have no report and {counted}")
    print("\n".join(lines))


def say(text: str) -> None:
    """One line to stderr."""
    print(text, file=sys.stderr)


def _tell_findings(log: Any) -> None:
    if log.counts:
        lines = [str(f) for f in log.sorted()[:50]]
        print("\n".join([*lines, f"{log.file}: {log.summary()}"]), file=sys.stderr)
